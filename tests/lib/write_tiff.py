# SPDX-License-Identifier: MIT
"""A writer of TIFF for the tests. It shares nothing with gpuconv."""
import struct


def tiff(order, entries, data, wide=False, base=0):
    """A TIFF of one strip, DATA, whose directory has ENTRIES: tag -> (type, numbers). Bits and the like are added,
    but for those that are None. It stands at byte BASE of a file."""
    head, place, each = (16, "Q", 20) if wide else (8, "I", 12)
    entries = {278: (4, [entries[257][1][0]]), 279: (4, [len(data)]), 273: (4, [base + head]), **entries}
    entries = {tag: entry for tag, entry in entries.items() if entry is not None}
    letters = {1: "B", 2: "B", 3: "H", 4: "I", 5: "I", 7: "B", 13: "I", 16: "Q"}
    at = base + head + len(data) + len(data) % 2
    directory = struct.pack(order + ("Q" if wide else "H"), len(entries))
    values, start = b"", at + len(directory) + each * len(entries) + (8 if wide else 4)
    for tag, (kind, numbers) in sorted(entries.items()):
        packed = struct.pack(f"{order}{len(numbers)}{letters[kind]}", *numbers)
        count = len(numbers) // (2 if kind == 5 else 1)
        if len(packed) <= (8 if wide else 4):
            value = packed.ljust(8 if wide else 4, b"\0")
        else:
            value = struct.pack(order + place, start + len(values))
            values += packed + bytes(len(packed) % 2)
        directory += struct.pack(order + "HH" + place, tag, kind, count) + value
    directory += bytes(8 if wide else 4)
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if wide else 42)
    mark += struct.pack(order + "HHQ", 8, 0, at) if wide else struct.pack(order + "I", at)
    return mark + data + bytes(len(data) % 2) + directory + values
