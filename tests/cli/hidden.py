#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Metadata that must not come into an output: hidden.py GPUCONV [--quick] [TEST...]. The tests hide pictures in
metadata, as bytes and as texts of more than 1,000 bytes, and make compressed parts that inflate to very many bytes.
Common metadata must come through. --quick hides pictures of one kind only. Skipped (exit status 77)
without Pillow or exiftool."""
import atexit
import base64
import binascii
import functools
import io
import itertools
import json
import os
import quopri
import re
import struct
import subprocess
import sys
import zlib
from urllib.parse import quote
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import metadata_files  # noqa: E402
from metadata_files import (  # noqa: E402
    IPTC, MARKER, Tiff, check_file, chunk, chunks, exiftool, jpeg, png, profile, profile_segments, raw_profile,
    resource, segment, text, xmp_packet)

if metadata_files.Image is not None:
    from PIL import Image

KINDS = ("jpeg", "png", "webp")
if "--quick" in sys.argv:
    sys.argv.remove("--quick")
    KINDS = KINDS[:1]
PROSE = "A field near the village, in the evening, after rain. "


def thumbnail(kind):
    """A small picture of noise, so that no part of its bytes is there by chance."""
    image = Image.effect_noise((40, 30), 90).convert("RGB")
    file = io.BytesIO()
    image.save(file, kind, **({} if kind == "png" else {"quality": 40 if kind == "jpeg" else 90}))
    return file.getvalue()


def forms(data):
    """The ways in which DATA may stand in a file: pieces of its bytes, of base64 at every offset, of hexadecimal
    digits, of characters and of escapes."""
    middle = data[-80:-32]  # not a table, which all JPEGs share
    yield middle[:16]
    for offset in range(3):
        yield base64.b64encode(middle[offset:offset + 30])[4:-4]
    yield middle[:16].hex().encode()
    yield middle[:16].hex().upper().encode()
    yield "".join(map(chr, middle[:16])).encode()
    yield "".join(f"&#{value};" for value in middle[:16]).encode()
    yield "".join(map(chr, middle[:16])).encode("utf-16-le")


def everything(path):
    """All bytes of a file, those of compressed texts inflated, in base64 without line ends."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".png"):
        for kind, body in chunks(path):
            if kind in (b"zTXt", b"iTXt", b"iCCP"):
                for at in range(len(body) - 2):
                    if body[at] == 0x78:
                        try:
                            data += zlib.decompressobj().decompress(body[at:])
                        except zlib.error:
                            pass
    return data + data.replace(b"\n", b"").replace(b" ", b"").replace(b"&#10;", b"")


@functools.cache
def start_jobs(program):
    """One process for all pictures: its start takes longer than they do."""
    process = subprocess.Popen([program, "--jobs-from", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    atexit.register(process.communicate)
    return process


def copy(test, source, target):
    """Make TARGET of SOURCE. Returns what a run on the picture alone warns of."""
    process = start_jobs(test.program)
    line = {"input": os.path.abspath(source), "output": os.path.abspath(target), "filter": "identity"}
    print(json.dumps(line), file=process.stdin, flush=True)
    answer = json.loads(process.stdout.readline())
    test.equal(answer["status"], "done", f"{source} to {target}")
    return f"metadata not carried over: {answer['metadata_left_out']}" if "metadata_left_out" in answer else ""


def hidden(test, name, data, pieces, part, warned=True):
    """DATA hide PIECES. No output shows one, and a warning names PART."""
    source = "in.png" if data.startswith(b"\x89") else "in.jpg"
    test.write(source, data)
    for target in ("out.png", "out.jpg"):
        said = copy(test, source, target)
        found = everything(target)
        for piece in itertools.chain.from_iterable(map(forms, pieces)):
            test.check(piece not in found, f"{name}, {target}: {piece} is there")
        test.check(MARKER not in found, f"{name}, {target}: the marker is there")
        if warned:
            test.check(f"metadata not carried over: {part} (" in said or f", {part} (" in said, f"{name}: {said}")
        with Image.open(target) as image:
            image.load()


def in_exif(*entries, tags=(), order="<"):
    make = (0x010F, *text("Maker & Co"))
    return segment(0xE1, b"Exif\0\0" + bytes(Tiff(order, [make, *entries, (0x8769, 4, 1, list(tags))]).data))


def in_xmp(attributes="", elements=""):
    return segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(attributes, elements))


# ---- What hides ----

def test_exif(test):
    """Pictures in tags of every type, known and unknown, and maker's notes in the wrong directory."""
    sizes = {1: 1, 2: 1, 6: 1, 7: 1, 3: 2, 8: 2, 4: 4, 5: 8, 129: 1}
    for name, (kind, size) in itertools.product(KINDS, sizes.items()):
        data = thumbnail(name)
        data += bytes(-len(data) % size)
        for tag in (0x010E, 0x0131, 0x8298, 0xC4A5, 0xB123, 0x0100):
            hidden(test, f"{name} as type {kind} in tag {tag:#x}", jpeg(in_exif((tag, kind, len(data) // size, data))),
                   [data], "EXIF", tag != 0xC4A5)
        for tag in (0x9286, 0x9213, 0xA302, 0x8828, 0xA40B, 0x9C9C):
            hidden(test, f"{name} as type {kind} in tag {tag:#x} of EXIF",
                   jpeg(in_exif(tags=[(tag, kind, len(data) // size, data)])), [data], "EXIF")
    data, other = thumbnail("jpeg"), thumbnail("png")
    for code in (b"ASCII\0\0\0", b"UNICODE\0", bytes(8), b"JIS\0\0\0\0\0"):
        entry = (0x9286, 7, len(data) + 8, code + data)
        hidden(test, f"a comment in {code}", jpeg(in_exif(tags=[entry])), [data], "EXIF")
    for text_of, name in ((base64.b64encode, "base64"), (base64.encodebytes, "base64 in lines"),
                          (lambda data: data.hex(" ").encode(), "digits")):
        value = text_of(other)
        hidden(test, name, jpeg(in_exif((0x010E, 2, len(value) + 1, value + b"\0"))), [other], "EXIF")
        wide = value.decode().encode("utf-16-le")
        hidden(test, f"{name} in UTF-16", jpeg(in_exif((0x9C9C, 1, len(wide), wide))), [other], "EXIF")
    note = b"Camera\0\0" + MARKER
    hidden(test, "maker's notes", jpeg(in_exif((0x927C, 7, len(note), note))), [], "EXIF", False)
    behind = b"Model\0" + data
    hidden(test, "after a text", jpeg(in_exif((0x0110, 2, len(behind), behind))), [data], "EXIF")


def test_xmp(test):
    """Pictures in a packet: as values, elements and structures, in base64 and in characters."""
    space = 'xmlns:a="https://example.org/a/" '
    for kind in KINDS:
        data = thumbnail(kind)
        plain, lines = base64.b64encode(data).decode(), base64.encodebytes(data).decode()
        escaped = "".join(f"&#{value};" if value > 31 else f"&#x{value + 0x2400:x};" for value in data)
        for name, value in (("base64", plain), ("lines", lines), ("escaped lines", lines.replace("\n", "&#10;")),
                            ("escaped letters", "".join(f"&#x{ord(letter):x};" for letter in plain[:3000])),
                            ("digits", data.hex()), ("escaped bytes", escaped)):
            hidden(test, f"{kind}, {name}, attribute", jpeg(in_xmp(f'{space}a:b="{value}"')), [data], "XMP")
            hidden(test, f"{kind}, {name}, element", jpeg(in_xmp(space, f"<a:b>{value}</a:b>")), [data], "XMP")
            hidden(test, f"{kind}, {name}, CDATA", jpeg(in_xmp(space, f"<a:b><![CDATA[{value}]]></a:b>")), [data],
                   "XMP", "escaped" not in name)
            hidden(test, f"{kind}, {name}, comment", jpeg(in_xmp(space, f"<!--{value}-->")), [data], "XMP", False)
            hidden(test, f"{kind}, {name}, instruction", jpeg(in_xmp(space, f"<?a {value}?>")), [data], "XMP", False)
        rows = "".join(f"<rdf:li>{plain[i:i + 60]}</rdf:li>" for i in range(0, len(plain), 60))
        hidden(test, f"{kind} in rows", jpeg(in_xmp("", f"<dc:title><rdf:Seq>{rows}</rdf:Seq></dc:title>")), [data],
               "XMP")
    image = ('xmlns:g="http://ns.adobe.com/xap/1.0/g/img/"',
             f'<xmp:Thumbnails><rdf:Alt><rdf:li g:image="{MARKER.decode()}"/></rdf:Alt></xmp:Thumbnails>'
             f"<a:b {space}><g:image>{MARKER.decode()}</g:image></a:b>")
    hidden(test, "a thumbnail", jpeg(in_xmp(*image)), [], "XMP", False)
    test.equal(exiftool("out.jpg").get("XMP-dc:Source"), "Gr\u00fc\u00dfe", "the rest of a packet")


def test_texts(test):
    """Pictures in texts of a PNG and in comments of a JPEG, and raw profiles in any letters."""
    for kind in KINDS:
        data = thumbnail(kind)
        plain, lines = base64.b64encode(data), base64.encodebytes(data)
        forms_of = {"base64": plain, "lines": lines, "digits": data.hex().encode(), "pairs": data.hex(" ").encode(),
                    "a list": b'["' + b'", "'.join(lines.split()) + b'"]',
                    "an address": b"data:image/x;base64," + plain, "bytes": data.replace(b"\0", b"\1")}
        for name, value in forms_of.items():
            for text_chunk in (chunk(b"tEXt", b"Preview\0" + value), chunk(b"zTXt", b"a\0\0" + zlib.compress(value)),
                               chunk(b"tEXt", b"Comment\0" + value),
                               chunk(b"iTXt", b"a\0\1\0\0\0" + zlib.compress(value.decode("latin-1").encode())),
                               chunk(b"iTXt", b"a\0\0\0" + value.decode("latin-1").encode() + b"\0\0b")):
                hidden(test, f"{kind}, {name}", png(text_chunk), [data], "text")
            hidden(test, f"{kind}, {name}", jpeg(segment(0xFE, value)), [data], "text")
        for head, kind_of_chunk in ((b"a\0\0", b"zTXt"), (b"a\0\1\0\0\0", b"iTXt")):
            hidden(test, f"{kind} after a stream", png(chunk(kind_of_chunk, head + zlib.compress(b"A text") + data)),
                   [data], "text")
        for word in (b"raw profile type jpg", b"RAW PROFILE TYPE exif", b"Raw profile type thumb"):
            raw = b"\n" + word[17:] + b"\n%8d\n" % len(data) + data.hex().encode() + b"\n"
            hidden(test, word, png(chunk(b"zTXt", word + b"\0\0" + zlib.compress(raw))), [data], "text", False)


def test_codes(test):
    """No code carries a picture, wherever a text may be; --keep-text carries texts as they are."""
    data = thumbnail("jpeg")
    plain = base64.b64encode(data).decode()
    codes = {
        "percent": quote(data), "base64 in an address": quote(plain, safe=""),
        "base32": base64.b32encode(data).decode(), "hexadecimal": data.hex(),
        "uuencode": "".join(binascii.b2a_uu(data[i:i + 45]).decode() for i in range(0, len(data), 45)),
        "Ascii85": base64.a85encode(data, adobe=True).decode(), "RFC 1924": base64.b85encode(data).decode(),
        "escapes": json.dumps(data.decode("latin-1"), ensure_ascii=True), "prose": f"{PROSE}{plain}{PROSE}",
        "quoted-printable": quopri.encodestring(data).decode(), "words": " ".join(re.findall("..?.?.?.?", plain)),
        "decimals": " ".join(map(str, data)), "bits": "".join(f"{byte:08b}" for byte in data),
        "other letters": "".join(chr(0x4E00 + byte) for byte in data),
    }
    for name, value in codes.items():
        raw, xml = value.encode(), escape(value, {'"': "&quot;"})
        wide = value.encode("utf-16-le")
        places = {
            "tEXt": png(chunk(b"tEXt", b"Description\0" + raw)), "iTXt": png(chunk(b"iTXt", b"Title\0\0\0\0\0" + raw)),
            "zTXt": png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(raw))), "COM": jpeg(segment(0xFE, raw)),
            "keyword": png(chunk(b"iTXt", b"Title\0\0\0\0" + raw + b"\0A title")),
            "description": jpeg(in_exif((0x010E, 2, len(raw) + 1, raw + b"\0"))),
            "comment": jpeg(in_exif(tags=[(0x9286, 7, len(raw) + 8, b"ASCII\0\0\0" + raw)])),
            "wide comment": jpeg(in_exif(tags=[(0x9286, 7, len(wide) + 8, b"UNICODE\0" + wide)])),
            "Windows": jpeg(in_exif((0x9C9C, 1, len(wide), wide))),
            "caption": jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(
                0x0404, b"\x1c\2\x78" + struct.pack(">H", len(raw)) + raw))),
            "address": jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(0x040B, raw))),
            "attribute": jpeg(in_xmp(f'dc:title="{xml}"')), "element": jpeg(in_xmp("", f"<dc:title>{xml}</dc:title>")),
            "CDATA": jpeg(in_xmp("", f"<dc:title><![CDATA[{value}]]></dc:title>")),
            "toolkit": jpeg(in_xmp("", f'<rdf:Description xmlns:x="adobe:ns:meta/" x:xmptk="{xml}"/>')),
            "namespace": jpeg(in_xmp("", f'<a:b xmlns:a="http://purl.org/dc/elements/1.1/{xml}">x</a:b>')),
        }
        for place, file in places.items():
            source = "in.png" if file.startswith(b"\x89") else "in.jpg"
            test.write(source, file)
            for target in ("out.png", "out.jpg"):
                said = copy(test, source, target)
                test.check("metadata not carried over: " in said, f"{name} as {place}: {said}")
                found = everything(target)
                pieces = [text[at:at + 24] for text in (raw, xml.encode(), wide)
                          for at in range(200, len(text) - 24, 600)]
                test.equal([piece for piece in pieces if piece in found or piece.hex().encode() in found], [],
                           f"{name} as {place}, {target}")
    test.run("--keep-text", "identity", "in.jpg", "out.jpg")
    test.check(pieces[0] in everything("out.jpg"), "--keep-text")


def test_frames(test):
    """No picture hides around the properties of a packet either: in names, in prefixes, or in the choice of them."""
    piece = 4 * base64.urlsafe_b64encode(thumbnail("png")).decode().replace("=", "").replace("-", ".")
    names = [f"a{i}.{piece[i:i + 60]}" for i in range(0, len(piece), 60)]
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    for name, elements in {
        "frames": "".join(f"<{name}:Description xmlns:{name}='{rdf}'><dc:title>x</dc:title></{name}:Description>"
                          for name in names),
        "empty frames": "".join(f"<{name}:Description xmlns:{name}='{rdf}'/>" for name in names),
        "elements of RDF": "".join(f"<rdf:{name}/>" for name in names),
        "properties": "".join(f"<dc:{name}>x</dc:{name}>" for name in names),
        "items": "<dc:title>" + "".join(f"<{name}:li xmlns:{name}='{rdf}'/>" for name in names) + "</dc:title>",
        "many items": "<dc:title><rdf:Seq>" + "<rdf:li/><rdf:li></rdf:li>" * 2000 + "</rdf:Seq></dc:title>",
        "texts between": "".join(f"{name}<rdf:Description/>" for name in names),
        "declarations": "".join(f"<rdf:Description xmlns:{name}='{rdf}'><dc:title>x</dc:title></rdf:Description>"
                                for name in names),
    }.items():
        test.write("in.png", png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_packet("", elements))))
        test.run("-q", "identity", "in.png", "out.png")
        check_file(test, "out.png")
        packet = next(body for kind, body in chunks("out.png") if kind == b"iTXt")
        found = sum(len(part) for part in names if part.encode() in packet)
        test.check(found <= 8000 and len(packet) < 20000, f"{name}: {found} of {len(piece)} in {len(packet)} bytes")


def test_profile(test):
    """A profile ends where its header says, and nothing hides between its tags."""
    data, made = thumbnail("jpeg"), profile()
    for target in ("out.png", "out.jpg"):
        for source, file in (("in.png", png(chunk(b"iCCP", b"x\0\0" + zlib.compress(made + data)))),
                             ("in.jpg", jpeg(*profile_segments(made + data)))):
            test.write(source, file)
            test.run("identity", source, target)
            test.equal(Image.open(target).info.get("icc_profile"), made, f"{source} to {target}: a longer profile")
    longer = struct.pack(">I", len(made) + len(data)) + made[4:] + data
    hidden(test, "after the tags", jpeg(*profile_segments(longer)), [data], "ICC profile", False)
    count = struct.unpack(">I", made[128:132])[0]
    for name, place, size in (("far", 1 << 31, 100), ("long", 200, 1 << 31)):
        broken = made[:132] + struct.pack(">4sII", b"A2B0", place, size) + made[144:]
        test.write("in.jpg", jpeg(*profile_segments(broken)))
        test.check("ICC profile (is damaged)" in test.run("identity", "in.jpg", "out.jpg"), f"a tag that is {name}")
    test.write("in.jpg", jpeg(*profile_segments(made[:128] + struct.pack(">I", count + 4000) + made[132:])))
    test.check("ICC profile (is damaged)" in test.run("identity", "in.jpg", "out.jpg"), "a table that is too long")


def test_iptc(test):
    """IPTC's own preview, and pictures in its texts."""
    data = thumbnail("jpeg")

    def dataset(number, value):
        size = struct.pack(">H", len(value)) if len(value) < 0x8000 else struct.pack(">HI", 0x8004, len(value))
        return b"\x1c\2" + bytes([number]) + size + value

    for number in (202, 125, 120, 5, 231):
        for value in (data, data * (40000 // len(data) + 1), base64.b64encode(data)):
            if len(value) > 60000:
                continue
            made = IPTC + dataset(number, value) + dataset(90, b"Aarhus")
            hidden(test, f"dataset {number}", jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(0x0404, made)
                                                           + resource(0x0425, bytes(range(16))))), [data], "IPTC")
            tags = exiftool("out.jpg")
            test.equal((tags.get("IPTC:ObjectName"), tags.get("IPTC:City")), ("A title", "Aarhus"), "other datasets")
            test.check("Photoshop:IPTCDigest" not in tags, "a digest of what was changed")
    hidden(test, "an address", jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(0x040B, data))), [data], "IPTC")


# ---- What must come through ----

def test_common(test):
    """Common metadata of cameras and editors come through without a warning; long or rare ones need --keep-text."""
    for options, long in (((), PROSE * 15), (("--keep-text",), PROSE * 100)):
        check_common(test, options, long)


def check_common(test, options, long):

    def rational(*values, signed=False):
        return 10 if signed else 5, len(values) // 2, struct.pack(f"<{len(values)}{'i' if signed else 'I'}", *values)

    def short(value):
        return 3, 1, struct.pack("<H", value)

    camera = [
        (0x829A, *rational(1, 250)), (0x829D, *rational(28, 10)), (0x8822, *short(2)), (0x8827, *short(400)),
        (0x9000, 7, 4, b"0232"), (0x9003, *text("2024:05:06 07:08:09")), (0x9004, *text("2024:05:06 07:08:09")),
        (0x9010, *text("+02:00")), (0x9101, 7, 4, b"\1\2\3\0"), (0x9201, *rational(7965, 1000, signed=True)),
        (0x9204, *rational(-1, 3, signed=True)), (0x9207, *short(5)), (0x9209, *short(16)), (0x920A, *rational(50, 1)),
        (0x927C, 7, 40, b"Camera\0\0" + MARKER + bytes(14)),
        (0x9286, 7, 48, b"ASCII\0\0\0" + b"seen from the bridge" + b" " * 20), (0x9290, *text("12")),
        (0xA000, 7, 4, b"0100"), (0xA001, *short(1)), (0xA300, 7, 1, b"\3"), (0xA301, 7, 1, b"\1"),
        (0xA302, 7, 8, b"\2\0\2\0\0\1\1\2"), (0xA402, *short(0)), (0xA432, *rational(24, 1, 70, 1, 28, 10, 28, 10)),
        (0xA433, *text("Lens & Co")), (0xA434, *text("24-70mm F2.8")), (0xA435, *text("0001")),
        (0xA005, 4, 1, [(1, *text("R98")), (2, 7, 4, b"0100")]),
    ]
    place = [(0, 1, 4, b"\2\3\0\0"), (1, *text("N")), (2, *rational(48, 1, 51, 1, 24, 1)), (3, *text("E")),
             (4, *rational(2, 1, 17, 1, 40, 1)), (5, 1, 1, b"\0"), (6, *rational(35, 1)),
             (7, *rational(7, 1, 8, 1, 9, 1)), (0x1B, 7, 11, b"ASCII\0\0\0GPS"), (0x1D, *text("2024:05:06"))]
    title = "Gr\u00fc\u00dfe".encode("utf-16-le") + b"\0\0"
    image = [(0x010E, *text(long)), (0x010F, *text("Maker & Co")), (0x0110, *text("Model 1" + "\0" * 9)),
             (0x0131, *text("Firmware 1.0")), (0x0132, *text("2024:05:06 07:08:09")),
             (0x013B, *text("Gr\u00fc\u00dfe")),
             (0x0213, *short(1)), (0x4746, *short(4)), (0x8298, *text("(c) Somebody\0and another")),
             (0x8769, 4, 1, camera), (0x8825, 4, 1, place), (0x9C9B, 1, len(title), title),
             (0xC4A5, 7, 14, b"PrintIM\0000300\0\0")]
    develop, curve = ('xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" crs:Exposure2012="+0.50" ',
                      "<crs:ToneCurvePV2012><rdf:Seq><rdf:li>0, 0</rdf:li></rdf:Seq></crs:ToneCurvePV2012>"
                      ) if options else ("", "")
    packet = xmp_packet(
        develop + 'xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" '
        'xmlns:lr="http://ns.adobe.com/lightroom/1.0/" xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" '
        'xmlns:stEvt="http://ns.adobe.com/xap/1.0/sType/ResourceEvent#" '
        'xmlns:Iptc4xmpCore="http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/" '
        'xmp:Rating="4" photoshop:City="Aarhus" photoshop:DateCreated="2024-05-06T07:08:09" '
        'xmpMM:DocumentID="xmp.did:01234567-89ab-cdef-0123-456789abcdef" tiff:Make="Maker &amp; Co" '
        'exif:FNumber="28/10"',
        f'<dc:title><rdf:Alt><rdf:li xml:lang="x-default">A &lt;title&gt;</rdf:li></rdf:Alt></dc:title>'
        f'<dc:description><rdf:Alt><rdf:li xml:lang="x-default">{long}</rdf:li></rdf:Alt></dc:description>'
        '<dc:creator><rdf:Seq><rdf:li>Gr\u00fc\u00dfe</rdf:li></rdf:Seq></dc:creator>'
        '<dc:subject><rdf:Bag><rdf:li>rain</rdf:li><rdf:li>bridge</rdf:li></rdf:Bag></dc:subject>'
        '<lr:hierarchicalSubject><rdf:Bag><rdf:li>weather|rain</rdf:li></rdf:Bag></lr:hierarchicalSubject>'
        + curve +
        '<xmpMM:History><rdf:Seq><rdf:li stEvt:action="saved" stEvt:instanceID="xmp.iid:01234567-89ab-cdef-0123-'
        '456789abcdef" stEvt:softwareAgent="Editor 1.0"/></rdf:Seq></xmpMM:History>'
        '<Iptc4xmpCore:CreatorContactInfo rdf:parseType="Resource"><Iptc4xmpCore:CiUrlWork>https://example.org'
        '</Iptc4xmpCore:CiUrlWork></Iptc4xmpCore:CreatorContactInfo>')
    exif_block = bytes(Tiff("<", image).data)
    test.write("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + exif_block),
                              segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet), segment(0xFE, PROSE.encode())))
    test.write("in.png", png(chunk(b"eXIf", exif_block), chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet),
                             chunk(b"tEXt", b"Comment\0" + PROSE.encode()),
                             chunk(b"zTXt", b"parameters\0\0" + zlib.compress(long.encode())),
                             chunk(b"iTXt", b"prompt\0\0\0\0\0" + b'{"3": {"seed": 1}, "4": 2}' * (len(long) // 30))))
    for source, target in itertools.product(("in.jpg", "in.png"), ("out.jpg", "out.png")):
        said, has_prompt = test.run(*options, "identity", source, target), (source, target) == ("in.png", "out.jpg")
        test.equal("text (the format has none)" in said if has_prompt else said == "", True, f"{source} to {target}: {said}")
        before, after = exiftool(source), check_file(test, target)
        for name, value in before.items():
            if name.split(":")[0] in ("IFD0", "ExifIFD", "GPS", "InteropIFD") or name.startswith("XMP"):
                if "MakerNote" not in name and not name.startswith("IFD0:PrintIM") and name != "ExifIFD:PrintIMVersion":
                    test.equal(after.get(name), value, f"{source} to {target}: {name}")
        with open(target, "rb") as file:
            test.check(packet in file.read(), f"{source} to {target}: the packet")
    test.equal(len([kind for kind, _ in chunks("out.png") if kind in (b"tEXt", b"zTXt", b"iTXt")]), 4, "texts")


def test_packets(test):
    """A packet that is no XML is damaged; what is cut from one leaves XML."""
    space = 'xmlns:a="https://example.org/a/" '
    for name, elements in {"not closed": "<a:b>", "crossed": "<a:b><a:c></a:b></a:c>", "no name": "<>x</>",
                           "a bare ampersand": "<a:b>a & b</a:b>", "a control character": "<a:b>&#1;</a:b>",
                           "two roots": "</rdf:Description>", "an entity": "<a:b>&x;</a:b>", "an open comment": "<!-- ",
                           "a half attribute": "<a:b c=>x</a:b>",
                           "an attribute without quotes": "<a:b a:c=d/>"}.items():
        test.write("in.jpg", jpeg(in_xmp(space, elements)))
        test.check("XMP (is damaged)" in test.run("identity", "in.jpg", "out.jpg"), name)
        check_file(test, "out.jpg")
    doctype = b'<!DOCTYPE a [<!ENTITY x "xx">]>' + xmp_packet()
    test.write("in.jpg", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + doctype)))
    test.check("XMP (is damaged)" in test.run("identity", "in.jpg", "out.jpg"), "a document type")
    data = base64.b64encode(thumbnail("png")).decode()
    for elements in (f"<a:b>{data}</a:b>", f"<a:b a:c='{data}' a:d='x'/>", f"<a:b><a:c>{data}</a:c></a:b>",
                     f"<a:b>x<a:c>y</a:c>{data}</a:b>", f"<a:b>{data[:200]}<!-- x -->{data[200:]}</a:b>"):
        test.write("in.jpg", jpeg(in_xmp(space, elements)))
        test.run("-q", "identity", "in.jpg", "out.jpg")
        packet = next(body for kind, body in metadata_files.segments("out.jpg") if kind == 0xE1)
        packet = packet.split(b"\0", 1)[1]
        done = subprocess.run([sys.executable, "-c", "import sys, xml.dom.minidom as m; m.parse(sys.stdin.buffer)"],
                              input=packet, capture_output=True)
        found = [piece.encode() in packet for piece in (data[220:240], "Gr\u00fc\u00dfe")]
        test.equal((done.returncode, found), (0, [False, True]), f"what is left of {elements[:30]}")


# ---- Bombs ----

def test_bombs(test):
    """Each compressed part is inflated, within a bound for the part and one for the file."""
    bomb = zlib.compress(bytes(17 << 20), 9)
    damaged = zlib.compress(PROSE.encode())[:-2]
    for name, kind, head in (("zTXt", b"zTXt", b"a\0\0"), ("iTXt", b"iTXt", b"a\0\1\0\0\0"),
                             ("XMP", b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0"), ("ICC profile", b"iCCP", b"x\0\0"),
                             ("EXIF", b"zTXt", b"Raw profile type exif\0\0")):
        part = name if name in ("XMP", "ICC profile") else "text"
        for data, why in ((bomb, "is too large"), (damaged, "is damaged"), (b"no stream", "is damaged")):
            test.write("in.png", png(chunk(kind, head + data)))
            for target in ("out.png", "out.jpg"):
                said = test.run("identity", "in.png", target)
                test.check(f"metadata not carried over: {part} ({why})" in said, f"{name} that {why}: {said}")
                test.check(os.path.getsize(target) < 5000, f"{name} that {why}: {os.path.getsize(target)} bytes")
    # Many parts, each below its own bound: whole and damaged.
    packed = zlib.compress(bytes(16 << 20)[:-100], 9)
    for name, data in (("whole", packed), ("damaged", packed[:-4] + b"xxxx")):
        for kind, head in ((b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0"), (b"iCCP", b"x\0\0"), (b"zTXt", b"a\0\0"),
                           (b"zTXt", b"Raw profile type exif\0\0")):
            many = chunk(kind, head + data) * (15000000 // len(data))
            test.write("in.png", png(many))
            began = os.times().children_user
            test.run("-q", "identity", "in.png", "out.png")
            seconds = os.times().children_user - began
            test.check(seconds < 5, f"{name} {kind} {head}: {seconds:.1f} s of a processor")
            test.check(os.path.getsize("out.png") < 1 << 20, f"{name} {kind}: {os.path.getsize('out.png')} bytes")
    # The sum of texts that are small enough each.
    texts = chunk(b"zTXt", b"a\0\0" + zlib.compress((PROSE * 19000).encode()[:1000000], 9)) * 200
    test.write("in.png", png(texts))
    said = test.run("--keep-text", "identity", "in.png", "out.png")
    test.check("text (is too large)" in said, "200 texts of a million letters")
    test.check(0 < sum(kind == b"zTXt" for kind, _ in chunks("out.png")) <= 67, "texts of the first 64 MiB")


def test_memory(test):
    """Metadata count for --memory, with what is inflated. A small limit holds for a usual file."""
    prose = (PROSE * 19000).encode()[:1000000]
    usual = png(chunk(b"iCCP", b"x\0\0" + zlib.compress(profile())), chunk(b"tEXt", b"Author\0Somebody"))
    test.write("in.png", usual)
    test.equal(test.run("--memory", "2M", "--threads", "1", "identity", "in.png", "out.png"), "", "a usual file")
    for name, parts in (("texts", chunk(b"tEXt", b"a\0" + prose) * 12),
                        ("a text", chunk(b"zTXt", b"a\0\0" + zlib.compress(prose))),
                        ("a profile", chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(15 << 20)))),
                        ("a packet", chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(
                            xmp_packet(elements="<dc:title>" + PROSE * 400 + "</dc:title>") + b" " * 4000000)))):
        test.write("in.png", png(parts))
        said = test.run("--memory", "3M", "--threads", "1", "identity", "in.png", "never.png", status=1)
        test.check("of memory, and --memory allows 3.0 MiB; allow more" in said, f"{name}: {said}")
        test.run("-q", "--memory", "200M", "identity", "in.png", "out.png")
        process = subprocess.Popen([test.program, "-q", "--memory", "200M", "identity", "in.png", "out.png"])
        peak = os.wait4(process.pid, 0)[2].ru_maxrss
        test.check(peak < 220 << 10, f"{name}: {peak} KiB")


sys.exit(metadata_files.run_tests(globals()))
