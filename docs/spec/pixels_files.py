# SPDX-License-Identifier: MIT
"""The rules J, E and Z of pixels-1-files.md. Bits are texts of 0 and 1 in the order of the file: slow, but simple."""
import re
import struct
import zlib
from bisect import bisect
from collections import Counter
from heapq import heappop, heappush
from itertools import accumulate, chain, product
from operator import eq, mul
from types import SimpleNamespace

ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
K1 = [int(k) for k in """
    16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62 18 22 37 56 68 109
    103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99""".split()]
K2 = [17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66]
K2 += [99] * 38
K3 = bytes.fromhex("00010501010101010100000000000000 000102030405060708090a0b")
K4 = bytes.fromhex("00030101010101010101010000000000 000102030405060708090a0b")
K5 = bytes.fromhex("""0002010303020403050504040000017d 01020300041105122131410613516107227114328191a1082342b1c11552d1f0
    2433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a
    838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5
    e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa""")
K6 = bytes.fromhex("""00020102040403040705040400010277 000102031104052131061241510761711322328108144291a1b1c109233352f0
    156272d10a162434e125f11718191a262728292a35363738393a434445464748494a535455565758595a636465666768696a73747576777879
    7a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4
    e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa""")
COST = bytes(min(d, 256 - d, 31) for d in range(256))
EXTRA = [max(i // 4 - 1, 0) for i in range(28)] + [0], [max(i // 2 - 1, 0) for i in range(30)]  # RFC 1951: extra bits
LENGTHS = [*accumulate((1 << extra for extra in EXTRA[0][:27]), initial=3), 258]
DISTANCES = list(accumulate((1 << extra for extra in EXTRA[1][:29]), initial=1))


def digits(value, count):
    """A number as so many digits 0 and 1, the highest first."""
    return format(value, f"0{count}b") if count else ""


def make_codes(lengths, symbols):
    """T.81, RFC 1951: the bits of each symbol, for the lengths of the codes, shortest first."""
    codes, code, last = {}, 0, 0
    for length, symbol in zip(lengths, symbols):
        code, last = code << (length - last), length
        codes[symbol] = digits(code, length)
        code += 1
    return codes


def table_codes(table):
    """T.81: the bits of each symbol, for 16 counts and the symbols."""
    return make_codes([n + 1 for n in range(16) for _ in range(table[n])], table[16:])


def read_segments(data):
    """J1: the tables of a file, its frame, the head and the bytes of its scan."""
    at, file = 2, SimpleNamespace(quantisers={}, codes={}, interval=0)
    while True:
        marker = re.compile(rb"\xff+(.)", re.DOTALL).match(data, at)
        size = int.from_bytes(data[marker.end():marker.end() + 2], "big")
        body, at = data[marker.end() + 2:marker.end() + size], marker.end() + size
        while body and marker[1] == b"\xdb":
            file.quantisers[body[0]] = dict(zip(ZIGZAG, body[1:65]))
            body = body[65:]
        while body and marker[1] == b"\xc4":
            size = 17 + sum(body[1:17])
            file.codes[body[0]] = {bits: symbol for symbol, bits in table_codes(body[1:size]).items()}
            body = body[size:]
        if marker[1] in b"\xc0\xc1":
            file.frame = body
        elif marker[1] == b"\xdd":
            file.interval = int.from_bytes(body, "big")
        elif marker[1] == b"\xda":
            file.head, file.scan = body, data[at:re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]").search(data, at).start()]
            return file


def make_parts(file, n):
    """J1, J4, J7: the components, with the side of their blocks (n for luma) and the size of their planes."""
    height, width, count = struct.unpack_from(">xHHB", file.frame)
    tables, parts = dict(zip(file.head[1::2], file.head[2::2])), []
    for i in range(count):
        number, factors, quantisers = file.frame[6 + 3 * i:9 + 3 * i]
        h, v = divmod(factors, 16) if count > 1 else (1, 1)
        high, low = (parts[0].h, parts[0].v) if i else (h, v)
        side = n
        while i and side < 8 and high * n % (2 * side) == 0 and low * n % (2 * side) == 0:
            side *= 2
        parts.append(SimpleNamespace(
            h=h, v=v, side=side, last=0, quantisers=file.quantisers[quantisers], dc=file.codes[tables[number] // 16],
            ac=file.codes[16 + tables[number] % 16], a=high * n // side, b=low * n // side,
            width=-(-width * h * side // (8 * high)), height=-(-height * v * side // (8 * low))))
    return width, height, parts


def read_block(bits, at, part):
    """J2: the coefficients of the block at a place in the bits, and the place after it."""
    values, k = [0] * 64, 0
    while k < 64:
        codes = part.ac if k else part.dc
        start = next(end for end in range(at + 1, at + 17) if bits[at:end] in codes)
        zeros, size = divmod(codes[bits[at:start]], 16)
        at = start + size
        if k and size == 0 and zeros < 15:
            break
        negative = size and bits[start] == "0"
        k += zeros + 1
        values[ZIGZAG[k - 1]] = int(bits[start:at] or "0", 2) - ((1 << size) - 1 if negative else 0)
    part.last = values[0] = part.last + values[0]
    return [value * part.quantisers[place] for place, value in enumerate(values)], at


def inverse(x, side, n):
    """J3, J9, J10: as many samples as `side` from 8 values."""
    x0, x1, x2, x3, x4, x5, x6, x7 = x
    if side == 8:
        e0, e1, e2, e3 = (x0 + x4) << 13, (x0 - x4) << 13, 4433 * x2 - 10704 * x6, 10703 * x2 + 4433 * x6
        p3, p4 = -6436 * (x7 + x3) + 9633 * (x5 + x1), 9633 * (x7 + x3) + 6437 * (x5 + x1)
        odd = [4926 * x1 - 7373 * x7 + p4, 4177 * x3 - 20995 * x5 + p3,
               -4176 * x5 - 20995 * x3 + p4, -4927 * x7 - 7373 * x1 + p3]
        even = [e0 + e3, e1 + e2, e1 - e2, e0 - e3]
    elif side == 4:
        f, e = x0 << 14, 15137 * x2 - 6270 * x6
        even = [f + e, f - e]
        odd = [20995 * x1 + 7373 * x3 - 4926 * x5 - 4176 * x7, 8697 * x1 - 17799 * x3 + 11893 * x5 - 1730 * x7]
    else:
        even, odd = [x0 << 15], [29692 * x1 - 10426 * x3 + 6967 * x5 - 5906 * x7]
    even = [e + (1 << (n - 1)) for e in even]
    return [(e + o) >> n for e, o in zip(even, odd)] + [(e - o) >> n for e, o in zip(even[::-1], odd[::-1])]


def inverse_block(values, side):
    """J3, J9, J10: the rows of samples of a block."""
    if side == 1:
        rows = [[(values[0] + 4) >> 3]]
    else:
        first, second = {8: (11, 18), 4: (12, 19), 2: (13, 20)}[side]
        rows = [inverse(row, side, second) for row in zip(*(inverse(values[u::8], side, first) for u in range(8)))]
    return [[min(max(v + 128, 0), 255) for v in row] for row in rows]


def read_planes(file, width, height, parts):
    """J2, J4: the plane of each component, a list of rows."""
    across, down = -(-width // (8 * parts[0].h)), -(-height // (8 * parts[0].v))
    pieces = iter(re.split(rb"\xff+[\xd0-\xd7]", file.scan))
    for part in parts:
        part.plane = [[0] * (across * part.h * part.side) for _ in range(down * part.v * part.side)]
    for mcu in range(across * down):
        if mcu % (file.interval or across * down) == 0:
            piece, at = next(pieces).replace(b"\xff\x00", b"\xff"), 0
            bits = digits(int.from_bytes(piece, "big"), 8 * len(piece))
            for part in parts:
                part.last = 0
        for part in parts:
            for y, x in product(range(part.v), range(part.h)):
                left, top = (mcu % across * part.h + x) * part.side, (mcu // across * part.v + y) * part.side
                values, at = read_block(bits, at, part)
                for i, row in enumerate(inverse_block(values, part.side)):
                    part.plane[top + i][left:left + part.side] = row
    return [[row[:part.width] for row in part.plane[:part.height]] for part in parts]


def upsample(plane, a, b, width, height, fancy):
    """J5: a plane of chroma as dense as the picture."""
    rows = []
    for y in range(height):
        near, far = plane[y // b], plane[min(max(y // b - 1 + y % 2 * 2, 0), len(plane) - 1)]
        if fancy and (a, b) == (1, 2):
            row = [(3 * s + t + 1 + y % 2) >> 2 for s, t in zip(near, far)]
        elif fancy and a == 2 and len(near) > 2:
            c = near if b == 1 else [3 * s + t for s, t in zip(near, far)]
            first, second, n = (1, 2, 2) if b == 1 else (8, 7, 4)
            row = [v >> n for s, before, after in zip(c, c[:1] + c, c[1:] + c[-1:])
                   for v in (3 * s + before + first, 3 * s + after + second)]
        else:
            row = [near[x // a] for x in range(width)]
        rows.append(row[:width])
    return rows


def decode_jpeg(data, shrink=0):
    """J1 to J7: (width, height, channels, samples, factors) of a file, smaller by 2^shrink."""
    file = read_segments(data)
    width, height, parts = make_parts(file, 8 >> shrink)
    planes = read_planes(file, width, height, parts)
    width, height, samples = -(-width >> shrink), -(-height >> shrink), []
    if len(parts) == 1:
        return width, height, 1, list(chain.from_iterable(planes[0])), None
    planes[1:] = [upsample(planes[i], parts[i].a, parts[i].b, width, height, shrink < 3) for i in (1, 2)]
    for y, cb, cr in zip(*map(chain.from_iterable, planes)):
        b, c = cb - 128, cr - 128
        samples += (y + ((91881 * c + 32768) >> 16), y + ((-22554 * b - 46802 * c + 32768) >> 16),
                    y + ((116130 * b + 32768) >> 16))
    return width, height, 3, [min(max(v, 0), 255) for v in samples], (parts[0].h, parts[0].v)


def extend(items, multiple):
    """E3: repeat the last item up to a multiple."""
    return items + items[-1:] * (-len(items) % multiple)


def subsample(plane, h, v):
    """E4: subsample a plane of chroma."""
    bias, rows = {(2, 1): (0, 1), (2, 2): (1, 2)}.get((h, v), (h * v // 2, h * v // 2)), []
    for top in range(0, len(plane), v):
        columns = [sum(column) for column in zip(*plane[top:top + v])]
        rows.append([(sum(columns[x:x + h]) + bias[x // h % 2]) // (h * v) for x in range(0, len(columns), h)])
    return rows


def make_planes(width, channels, samples, h, v):
    """E2, E3: the planes, continued to whole MCUs."""
    planes = [samples[c::channels] for c in range(channels)]
    if channels == 3:
        weights = (19595, 38470, 7471, 32768), (-11059, -21709, 32768, 8421375), (32768, -27439, -5329, 8421375)
        planes = [[(i * r + j * g + k * b + half) >> 16 for r, g, b in zip(*planes)] for i, j, k, half in weights]
    for i, plane in enumerate(planes):
        rows = extend([extend(plane[at:at + width], 8 * h) for at in range(0, len(plane), width)], v)
        planes[i] = extend(subsample(rows, h, v), 8) if i else extend(rows, 8 * v)
    return planes


def forward(x, n):
    """E5: 8 coefficients from 8 samples, for rows (n = 11) or columns (n = 15)."""
    half, (a0, a1, a2, a3) = 1 << (n - 1), (x[i] + x[7 - i] for i in range(4))
    d7, d6, d5, d4 = (x[i] - x[7 - i] for i in range(4))
    b0, b1, b2, b3 = a0 + a3, a1 + a2, a1 - a2, a0 - a3
    t, u = 4433 * (b2 + b3) + half, 9633 * (d4 + d6 + d5 + d7) + half
    p, r, g, h = u - 16069 * (d4 + d6), u - 3196 * (d5 + d7), -7373 * (d4 + d7), -20995 * (d5 + d6)
    y0, y4 = (4 * (b0 + b1), 4 * (b0 - b1)) if n == 11 else ((b0 + b1 + 2) >> 2, (b0 - b1 + 2) >> 2)
    return [y0, (12299 * d7 + g + r) >> n, (t + 6270 * b3) >> n, (25172 * d6 + h + p) >> n,
            y4, (16819 * d5 + h + r) >> n, (t - 15137 * b2) >> n, (2446 * d4 + g + p) >> n]


def forward_block(plane, x, y, quantisers):
    """E5, E6: the quantised coefficients of a block, in zigzag order."""
    rows = [forward([v - 128 for v in row[8 * x:8 * x + 8]], 11) for row in plane[8 * y:8 * y + 8]]
    columns = [forward(column, 15) for column in zip(*rows)]
    values = [(columns[place % 8][place // 8], quantisers[place]) for place in ZIGZAG]
    return [(abs(c) + 4 * q) // (8 * q) * (1 if c > 0 else -1) for c, q in values]


def block_bits(values, last, dc, ac):
    """E8: the bits of a block after one with the first coefficient `last`."""
    text, zeros = [], 0
    for k, value in enumerate([values[0] - last] + values[1:]):
        if k and value == 0:
            zeros += 1
            continue
        size = abs(value).bit_length()
        text.append(ac[0xF0] * (zeros // 16) + ac[zeros % 16 * 16 + size] if k else dc[size])
        text.append(digits(value if value > 0 else value + (1 << size) - 1, size))
        zeros = 0
    return "".join(text) + (ac[0] if zeros else "")


def scan_bits(width, height, parts):
    """E7, E8: the bits of all blocks; a part is plane, h, v, quantisers, codes for DC and AC."""
    (_, h, v, *_), last, text = parts[0], [0] * len(parts), []
    for top, left in product(range(-(-height // (8 * v))), range(-(-width // (8 * h)))):
        for i, (plane, h, v, quantisers, dc, ac) in enumerate(parts):
            for y, x in product(range(top * v, top * v + v), range(left * h, left * h + h)):
                beyond = i == 0 and (8 * x >= width or 8 * y >= height)
                values = [last[0]] + [0] * 63 if beyond else forward_block(plane, x, y, quantisers)
                text.append(block_bits(values, last[i], dc, ac))
                last[i] = values[0]
    return "".join(text)


def segment(marker, *bodies):
    """E9: a segment."""
    body = b"".join(map(bytes, bodies))
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def encode_jpeg(width, height, channels, samples, quality, factors):
    """E1 to E9: the bytes of a file; factors are those of Y."""
    h, v = factors if channels == 3 else (1, 1)
    p = 5000 // quality if quality < 50 else 200 - 2 * quality
    quantisers = [[min(max((k * p + 50) // 100, 1), 255) for k in table] for table in (K1, K2)]
    tables, parts, frame, head = [(K3, K5), (K4, K6)][:channels], [], [channels], [channels]
    for i, plane in enumerate(make_planes(width, channels, samples, h, v)):
        chroma, (x, y) = min(i, 1), (1, 1) if i else (h, v)
        parts.append((plane, x, y, quantisers[chroma], *map(table_codes, tables[chroma])))
        frame += [i + 1, 16 * x + y, chroma]
        head += [i + 1, 17 * chroma]
    bits = scan_bits(width, height, parts)
    bits += "1" * (-len(bits) % 8)
    file = b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    file += b"".join(segment(0xDB, [i], [quantisers[i][k] for k in ZIGZAG]) for i in range(len(tables)))
    file += segment(0xC0, [8], struct.pack(">HH", height, width), frame)
    file += b"".join(segment(0xC4, [16 * k + i], table[k]) for i, table in enumerate(tables) for k in (0, 1))
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return file + segment(0xDA, head, [0, 63, 0]) + scan + b"\xff\xd9"


def low_first(value, count):
    """RFC 1951: a number as so many bits, the lowest first."""
    return digits(value, count)[::-1]


def paeth(a, b, c):
    """PNG's predictor from the left, the upper and the upper left byte."""
    left, up, corner = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    if left <= up and left <= corner:
        return a
    return b if up <= corner else c


def filter_row(row, above, pixel):
    """Z3: the number of the best filter, and the row that it makes."""
    left, corner = bytes(pixel) + row[:-pixel], bytes(pixel) + above[:-pixel]
    rows = [row, bytes((x - a) & 255 for x, a in zip(row, left)), bytes((x - b) & 255 for x, b in zip(row, above)),
            bytes((x - (a + b) // 2) & 255 for x, a, b in zip(row, left, above)),
            bytes((x - paeth(a, b, c)) & 255 for x, a, b, c in zip(row, left, above, corner))]
    best = min(range(5), key=lambda number: sum(rows[number].translate(COST)))
    return bytes([best]) + rows[best]


def find_runs(masks, n):
    """Z7: 1 for each byte in a run of n, and 1 for each start of one; masks have 1 for bytes that are the same."""
    inside, starts = bytearray(len(masks[0])), bytearray(len(masks[0]))
    for first, end in (found.span() for mask in masks for found in re.finditer(b"\1{%d,}" % n, mask)):
        inside[first:end] = b"\1" * (end - first)
        starts[first:end - n + 1] = b"\1" * (end - first - n + 1)
    return inside, starts


def log16(x):
    """Z6: a logarithm in units of 1/16."""
    k = x.bit_length() - 1
    return 16 * k + (16 * x >> k) % 16 if x else 0


def find_places(block, inside):
    """Z9: the places that are sampled, and those that are chosen."""
    powers, costs = [3 ** i for i in range(8)], block.translate(COST)
    sums = [sum(map(mul, powers, block[i:i + 8])) for i in range(len(block) - 7)]
    sampled = [i for i, m in enumerate(sums) if m % 32 == 13 and not inside[i]]
    return sampled, [i for i, m in enumerate(sums) if m % 4 == 1 or sum(costs[i:i + 8]) >= 12]


def find_candidates(block, places):
    """Z9, Z10: places and their candidates."""
    latest, pairs = {}, []
    for place in places:
        key = int.from_bytes(block[place:place + 8], "little") * 11400714819323198485 % 2 ** 64 >> 51
        other, latest[key] = latest.get(key), place
        if other is not None and place - other <= 32768 and block[other:other + 8] == block[place:place + 8]:
            pairs.append((place, other))
    return pairs


def count_equal(block, a, b, most):
    """The number of equal bytes from the places a and b on."""
    return next((n for n in range(most) if block[a + n] != block[b + n]), most)


def repetition_cost(distance):
    """Z11: the cost of a repetition."""
    return 240 + 16 * EXTRA[1][bisect(DISTANCES, distance) - 1]


def find_parts(band, start, pixel):
    """Z7 to Z14: the repetitions in a block, as (place, length, distance)."""
    block, distances = band[start:start + 65472], (1, pixel)[:pixel]
    masks = [bytes(map(eq, block, chain([None] * (d - start), band[max(start - d, 0):]))) for d in distances]
    lone = bytes(byte for byte, covered in zip(block, find_runs(masks, 8)[0]) if not covered)
    u = [lone.count(v) for v in range(256)]
    prices = [min(max(log16(len(lone)) - log16(n), 16), 240) for n in u]
    inside, starts = find_runs(masks, min(max((127 + min(prices)) // min(prices), 4), 8))
    costs = list(accumulate(((0 if before else 128) if covered else prices[byte]
                             for byte, covered, before in zip(block, inside, b"\0" + inside)), initial=0))
    sampled, chosen = find_places(block, inside)
    saved = 0
    for place, other in find_candidates(block, sampled):
        n = count_equal(block, place, other, min(32, len(block) - place))
        saved += max(costs[place + n] - costs[place] - repetition_cost(place - other), 0) // n
    g = 20 if 2 * len(lone) > len(block) else 80
    others = find_candidates(block, chosen) if 32 * g * saved >= sum(map(mul, u, prices)) else []
    return walk(block, masks, distances, starts, others, costs)


def try_candidate(block, place, other, literal, costs):
    """Z13: place, length and distance of the repetition of a candidate, or None if it is not worth it."""
    n, k = count_equal(block, place, other, len(block) - place), 0
    while place - k > literal and other > k and block[place - k - 1] == block[other - k - 1]:
        k += 1
    worth = costs[place + n] - costs[place - k] > repetition_cost(place - other)
    return (place - k, k + n, place - other) if worth else None


def walk(block, masks, distances, starts, others, costs):
    """Z13, Z14: the parts of all repetitions."""
    at, parts, others = 0, [], iter([*others, (len(block), 0)])
    place, other = next(others)
    while True:
        run, found = starts.find(1, at) % (len(block) + 1), None
        while place < run and not found:
            found = try_candidate(block, place, other, at, costs) if place >= at else None
            place, other = next(others)
        if not found and run == len(block):
            return parts
        if not found:
            lengths = [mask.find(0, run) % (len(block) + 1) - run for mask in masks]
            found = run, max(lengths), distances[lengths.index(max(lengths))]
        at, length, distance = found
        while length >= 3:
            parts.append((at, min(length, 258), distance))
            at, length = at + min(length, 258), length - min(length, 258)


def find_lengths(uses, most):
    """Z16: the number of bits of each symbol, from the symbols in the order of their uses."""
    nodes, parents, n = [(count, i) for i, count in enumerate(uses)], {}, [0] * (most + 1)
    for joined in range(len(uses), 2 * len(uses) - 1):
        (one, a), (two, b) = heappop(nodes), heappop(nodes)
        parents[a] = parents[b] = joined
        heappush(nodes, (one + two, joined))
    depths = {joined: 0}
    for node in range(joined - 1, -1, -1):
        depths[node] = depths[parents[node]] + 1
        if node < len(uses):
            n[min(depths[node], most)] += 1
    for _ in range(sum(count << (most - d) for d, count in enumerate(n)) - (1 << most)):
        d = max(d for d in range(most) if n[d])
        n[d] -= 1
        n[d + 1] += 2
        n[most] -= 1
    return [d for d in range(most, 0, -1) for _ in range(n[d])]


def find_code(uses, most):
    """Z16: the lengths of a code up to the last symbol that is used, and the bits of its symbols."""
    missing = [symbol for symbol, count in enumerate(uses) if not count][:max(2 - sum(map(bool, uses)), 0)]
    uses = [1 if symbol in missing else count for symbol, count in enumerate(uses)]
    order = sorted((symbol for symbol, count in enumerate(uses) if count), key=lambda symbol: uses[symbol])
    lengths = dict(zip(order, find_lengths([uses[symbol] for symbol in order], most)))
    order = sorted(order, key=lambda symbol: (lengths[symbol], symbol))
    codes = make_codes([lengths[symbol] for symbol in order], order)
    return [lengths.get(symbol, 0) for symbol in range(max(order) + 1)], codes


def pack_lengths(lengths):
    """Z15: the lengths of codes as symbols with their extra bits."""
    while lengths:
        value, most = lengths[0], 7 if lengths[0] else 138
        n = next((n for n, length in enumerate(lengths[:most]) if length != value), min(most, len(lengths)))
        if value == 0 and n >= 3:
            yield (17, low_first(n - 3, 3)) if n < 11 else (18, low_first(n - 11, 7))
        else:
            yield value, ""
            if n >= 4:
                yield 16, low_first(n - 4, 2)
            n = n if n >= 4 else 1
        lengths = lengths[n:]


def make_symbols(block, parts):
    """Z14, Z15: the symbols of a block with their extra bits; those of distances are counted from 300."""
    end, symbols = 0, []
    for place, length, distance in parts:
        i, j = bisect(LENGTHS, length) - 1, bisect(DISTANCES, distance) - 1
        symbols += [(byte, "") for byte in block[end:place]]
        symbols.append((257 + i, low_first(length - LENGTHS[i], EXTRA[0][i])))
        symbols.append((300 + j, low_first(distance - DISTANCES[j], EXTRA[1][j])))
        end = place + length
    return symbols + [(byte, "") for byte in block[end:]] + [(256, "")]


def dynamic_bits(block, parts, last):
    """Z15: the bits of a block with its own codes."""
    symbols = make_symbols(block, parts)
    uses = Counter(symbol for symbol, _ in symbols)
    lengths, codes = find_code([uses[symbol] for symbol in range(286)], 12)
    distances, more = find_code([uses[300 + symbol] for symbol in range(30)], 12)
    codes.update((300 + symbol, bits) for symbol, bits in more.items())
    packed = list(pack_lengths(lengths + distances))
    uses = Counter(symbol for symbol, _ in packed)
    small_codes = find_code([uses[symbol] for symbol in range(19)], 7)[1]
    order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
    while order[-1] not in small_codes:
        order.pop()
    head = low_first(last, 1) + "01" + low_first(len(lengths) - 257, 5) + low_first(len(distances) - 1, 5)
    head += low_first(len(order) - 4, 4) + "".join(low_first(len(small_codes.get(s, "")), 3) for s in order)
    texts = [small_codes[symbol] + extra for symbol, extra in packed]
    return head + "".join(texts + [codes[symbol] + extra for symbol, extra in symbols])


def stored_bits(block, last, at):
    """RFC 1951: the bits of a stored block that begins after `at` bits."""
    head = low_first(last, 1) + "00" + "0" * (-(at + 3) % 8) + low_first(len(block), 16)
    return head + low_first(len(block) ^ 0xFFFF, 16) + low_first(int.from_bytes(block, "little"), 8 * len(block))


def deflate(bands, pixel, compression):
    """Z4, Z5: the bytes of deflate for bands of filtered rows."""
    text = ""
    for number, band in enumerate(bands, 1):
        for start in range(0, len(band), 65472):
            block, last = band[start:start + 65472], number == len(bands) and start + 65472 >= len(band)
            bits = dynamic_bits(block, find_parts(band, start, pixel), last) if compression else ""
            text += bits if 0 < len(bits) < 8 * len(block) else stored_bits(block, last, len(text))
        if compression and number < len(bands):
            text += stored_bits(b"", False, len(text))
    text += "0" * (-len(text) % 8)
    return int(text[::-1], 2).to_bytes(len(text) // 8, "little")


def chunk(name, body):
    """Z1: a chunk of a PNG."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def encode_png(width, height, channels, bits, samples, compression):
    """Z1, Z2: the bytes of a file."""
    data = bytes(samples) if bits == 8 else struct.pack(f">{len(samples)}H", *samples)
    pixel = channels * bits // 8
    size = width * pixel
    rows = [data[at:at + size] for at in range(0, len(data), size)]
    if compression:
        rows = [filter_row(row, above, pixel) for row, above in zip(rows, [bytes(size), *rows])]
    else:
        rows = [b"\0" + row for row in rows]
    most = max(2 ** 19 // (size + 1), 1)
    bands = [b"".join(rows[top:top + most]) for top in range(0, height, most)]
    stream = b"\x78\1" + deflate(bands, pixel, compression) + struct.pack(">I", zlib.adler32(b"".join(rows)))
    head = struct.pack(">IIBBBBB", width, height, bits, (0, 4, 2, 6)[channels - 1], 0, 0, 0)
    pieces = [stream[at:at + 2 ** 31 - 1] for at in range(0, len(stream), 2 ** 31 - 1)]
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(b"IDAT", piece) for piece in pieces)
    return file + chunk(b"IEND", b"")
