# SPDX-License-Identifier: MIT
"""Files with metadata of every kind, built here and by Pillow, and what exiftool, Pillow and pngcheck read from an
output. The tests metadata.py and hidden.py use them."""
import atexit
import functools
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

from harness import skip, temporary_folder, use_python_with
from write_png import chunk

use_python_with("PIL")
try:
    from PIL import Image, ImageCms
except ImportError:
    Image = None

MARKER = b"UNFILTERED-PICTURE"
WIDTH, HEIGHT = 23, 14
XMP = ('<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
       'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
       'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" '
       'xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" %s>'
       '<dc:source>Gr\u00fc\u00dfe</dc:source>%s</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>')


# ---- Building files ----

def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def picture(mode="RGB"):
    """A picture whose eight orientations all differ."""
    image = Image.new(mode, (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            colours = ((7 * x + 3 * y) % 256, (11 * y) % 256, (5 * x) % 256, 255 - 2 * x)
            image.putpixel((x, y), colours[0] if mode == "L" else colours[:len(mode)])
    return image


def png(*chunks, image=None, behind=()):
    """A PNG by Pillow with CHUNKS after IHDR and BEHIND after IDAT."""
    file = io.BytesIO()
    (image or picture()).save(file, "png")
    data = file.getvalue()
    return data[:33] + b"".join(chunks) + data[33:-12] + b"".join(behind) + data[-12:]


def jpeg(*segments, image=None, **options):
    """A JPEG by Pillow with SEGMENTS after APP0."""
    file = io.BytesIO()
    (image or picture()).save(file, "jpeg", quality=95, **options)
    data = file.getvalue()
    at = 4 + struct.unpack(">H", data[4:6])[0] if data[3] == 0xE0 else 2
    return data[:at] + b"".join(segments) + data[at:]


class Tiff:
    """A TIFF block in either order of bytes. Directories are lists of (tag, type, count, value): the value as bytes, or
    another directory."""

    def __init__(self, order, directory, thumbnail=None):
        self.order, self.data = order, bytearray((b"II*\0" if order == "<" else b"MM\0*") + b"\0" * 4)
        at, following = self.directory(directory)
        self.data[4:8] = self.pack("I", at)
        if thumbnail:
            start = len(self.data)
            self.data += thumbnail
            at, _ = self.directory([(0x0103, 3, 1, self.pack("H", 6)), (0x0201, 4, 1, self.pack("I", start)),
                                    (0x0202, 4, 1, self.pack("I", len(thumbnail)))])
            self.data[following:following + 4] = self.pack("I", at)

    def pack(self, kind, *values):
        return struct.pack(self.order + kind, *values)

    def directory(self, entries):
        at = len(self.data) + len(self.data) % 2
        self.data += b"\0" * (at + 2 + 12 * len(entries) + 4 - len(self.data))
        self.data[at:at + 2] = self.pack("H", len(entries))
        for i, (tag, kind, count, value) in enumerate(entries):
            if isinstance(value, list):
                value = self.pack("I", self.directory(value)[0])
            if len(value) > 4:
                self.data += b"\0" * (len(self.data) % 2)
                place = self.pack("I", len(self.data))
                self.data += value
                value = place
            entry = self.pack("HHI", tag, kind, count) + value.ljust(4, b"\0")
            self.data[at + 2 + 12 * i:at + 14 + 12 * i] = entry
        return at, at + 2 + 12 * len(entries)


def text(value):
    value = value.encode() + b"\0"
    return 2, len(value), value


def exif(orientation=1, order=">", **options):
    """EXIF like a camera's: sizes, resolution, a thumbnail, and maker's notes with another thumbnail."""
    def short(value):
        return 3, 1, struct.pack(order + "H", value)

    def rational(*values):
        return 5, len(values) // 2, struct.pack(order + f"{len(values)}I", *values)

    thumbnail = b"\xff\xd8\xff\xe0" + MARKER * 4 + b"\xff\xd9"
    camera = [
        (0x9003, *text("2024:05:06 07:08:09")),
        (0x9214, 3, 2, struct.pack(order + "HH", 3, 4)),
        (0x927C, 7, len(MARKER) + 8, b"Camera\0\0" + MARKER),
        (0x9286, 7, 16, b"ASCII\0\0\0a comment"[:16]),
        (0xA002, *short(WIDTH)), (0xA003, 4, 1, struct.pack(order + "I", HEIGHT)),
        (0xA005, 4, 1, [(1, *text("R98"))]),
        (0xA20E, *rational(4000, 1)), (0xA20F, *rational(5000, 1)),
    ]
    place = [(0, 1, 4, b"\2\3\0\0"), (1, *text("N")), (2, *rational(48, 1, 51, 1, 24, 1)),
             (3, *text("E")), (4, *rational(2, 1, 17, 1, 40, 1))]
    image = [
        (0x0100, *short(WIDTH)), (0x0101, *short(HEIGHT)), (0x0103, *short(6)), (0x010F, *text("Maker & Co")),
        (0x0112, *short(orientation)), (0x011A, *rational(300, 1)), (0x011B, *rational(200, 1)), (0x0128, *short(2)),
        (0x501B, 1, len(MARKER), MARKER),
        (0x8769, 4, 1, camera), (0x8825, 4, 1, place), (0xC4A5, 7, len(thumbnail), thumbnail),
    ]
    return bytes(Tiff(order, image, thumbnail).data) + MARKER  # after everything that the directories refer to


def profile():
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    data[24:36] = struct.pack(">6H", 2024, 5, 6, 7, 8, 9)  # a fixed date instead of the time of creation
    return bytes(data)


def kind_of_profile(kind):
    data = bytearray(profile())
    data[16:20] = kind
    return bytes(data)


def large_profile(size):
    """A profile whose first tag is long. Readers look no further than its header."""
    data = bytearray(profile())
    place = len(data) + -len(data) % 4
    data += bytes(place - len(data)) + bytes(i * i * 7919 >> 5 & 255 for i in range(size - place))
    old, length = struct.unpack(">II", data[136:144])
    data[old:old + length] = bytes(length)  # no tag refers to it any more
    data[136:144] = struct.pack(">II", place, size - place)
    data[0:4] = struct.pack(">I", len(data))
    return bytes(data)


def profile_segments(data, piece=60000, order=1):
    pieces = [data[i:i + piece] for i in range(0, len(data), piece)]
    return [segment(0xE2, b"ICC_PROFILE\0" + bytes([i + 1, len(pieces)]) + part)
            for i, part in enumerate(pieces)][::order]


def xmp_packet(attributes='tiff:Orientation="6" exif:PixelXDimension="23"', elements=""):
    return (XMP % (attributes, elements)).encode()


def resource(number, data, name=b""):
    name = bytes([len(name)]) + name
    return (b"8BIM" + struct.pack(">H", number) + name + b"\0" * (len(name) % 2) + struct.pack(">I", len(data)) + data
            + b"\0" * (len(data) % 2))


IPTC = b"\x1c\x02\x05\0\7A title\x1c\x02\x50\0\4Name"
DIGEST = hashlib.md5(IPTC).digest()
RESOURCES = (resource(0x03ED, b"\0" * 16) + resource(0x0404, IPTC, b"x") + resource(0x040C, b"\0" * 28 + MARKER)
             + resource(0x0425, DIGEST) + resource(0x040B, b"https://example.org"))


def full_jpeg(orientation=1, order=">"):
    return jpeg(segment(0xE1, b"Exif\0\0" + exif(orientation, order)),
                segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet()),
                segment(0xED, b"Photoshop 3.0\0" + RESOURCES[:40]), segment(0xED, b"Photoshop 3.0\0" + RESOURCES[40:]),
                segment(0xE2, b"MPF\0" + MARKER), segment(0xE5, MARKER),
                *profile_segments(profile(), 200, -1), segment(0xFE, "Gr\u00fc\u00dfe".encode()), dpi=(300, 200))


def full_png(orientation=1, order="<"):
    return png(chunk(b"gAMA", struct.pack(">I", 45455)),
               chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)),
               chunk(b"sBIT", b"\5\6\5"), chunk(b"pHYs", struct.pack(">IIB", 11811, 7874, 1)),
               chunk(b"iCCP", b"A name\0\0" + zlib.compress(profile())),
               chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp_packet())),
               chunk(b"tEXt", b"Comment\0Gr\xfc\xdfe"), chunk(b"zTXt", b"Author\0\0" + zlib.compress(b"Somebody")),
               chunk(b"tIME", b"\7\xe8\1\2\3\4\5"),
               behind=(chunk(b"eXIf", exif(orientation, order)), chunk(b"iTXt", b"Title\0\0\0en\0t\0A title")))


def raw_profile(name, data):
    return chunk(b"zTXt", b"Raw profile type " + name + b"\0\0" + zlib.compress(
        b"\n" + name + b"\n%8d\n" % len(data) + data.hex().encode() + b"\n"))


# ---- Reading ----

class Test:
    """gpuconv in a folder of its own."""

    def __init__(self, program):
        self.program, self.failures = program, 0

    def write(self, name, data):
        with open(name, "wb") as file:
            file.write(data)

    def run(self, *arguments, status=0):
        """Run it and return its standard error."""
        process = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.check(process.returncode == status, f"{arguments}: exit status {process.returncode}: {process.stderr}")
        return process.stderr

    def check(self, condition, message):
        if not condition:
            self.failures += 1
            print("does not hold:", message)

    def equal(self, actual, expected, message):
        self.check(actual == expected, f"{message}: {actual!r:.300} instead of {expected!r:.300}")


@functools.cache
def start_exiftool():
    """One exiftool for all files: its start takes longer than all else that it does."""
    process = subprocess.Popen(["exiftool", "-stay_open", "True", "-@", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    atexit.register(process.communicate, b"-stay_open\nFalse\n")
    return process


def exiftool(path, *options):
    """The tags of a file by group and name, as numbers, without those about the file itself."""
    process, output = start_exiftool(), b""
    words = ("-j", "-n", "-a", "-G1", *options, os.path.abspath(path), "-execute")
    process.stdin.write("".join(f"{word}\n" for word in words).encode())
    process.stdin.flush()
    for line in process.stdout:
        if line == b"{ready}\n":
            break
        output += line
    return {name: value for name, value in json.loads(output)[0].items()
            if not name.startswith(("ExifTool:ExifToolVersion", "System:", "SourceFile"))}


def chunks(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 8
    while at < len(data):
        size = struct.unpack(">I", data[at:at + 4])[0]
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += 12 + size


def segments(path):
    """The segments before the first scan."""
    with open(path, "rb") as file:
        data = file.read()
    at = 2
    while data[at + 1] != 0xDA:
        size = struct.unpack(">H", data[at + 2:at + 4])[0]
        yield data[at + 1], data[at + 4:at + 2 + size]
        at += 2 + size


def check_file(test, path):
    """Independent readers accept the file. Returns its tags."""
    tags = exiftool(path)
    warnings = [value for name, value in tags.items() if name.endswith((":Warning", ":Error"))]
    test.equal(warnings, [], f"{path}: exiftool warns")
    if path.endswith(".png") and shutil.which("pngcheck"):
        process = subprocess.run(["pngcheck", "-q", path], stdout=subprocess.PIPE)
        test.equal((process.returncode, process.stdout), (0, b""), f"{path}: pngcheck")
    with Image.open(path) as image:
        image.load()
    with open(path, "rb") as file:
        data = file.read()
    test.check(MARKER not in data and MARKER.hex().encode() not in data, f"{path}: shows the unfiltered picture")
    return tags


def run_tests(functions):
    """Run each of FUNCTIONS in a folder of its own: those that the command line names, or all, or with --quick all but
    the slow ones. Return the exit status."""
    slow = ("test_pairs", "test_profiles_of_chunks", "test_strip") if "--quick" in sys.argv else ()
    if Image is None or not shutil.which("exiftool"):
        skip("Pillow (python3-pil) or exiftool (libimage-exiftool-perl) is not installed")
    test = Test(os.path.abspath(sys.argv[1]))
    with temporary_folder():
        for name, function in list(functions.items()):
            named = len(sys.argv) < 3 or "--quick" in sys.argv or name in sys.argv[2:]
            if name.startswith("test_") and named and name not in slow:
                before = test.failures
                function(test)
                print(f"{name}: {'ok' if test.failures == before else 'FAILED'}", flush=True)
    return int(test.failures > 0)
