#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad inputs, each with one thing wrong: bad.py FOLDER [LIST] writes them to FOLDER, and their names to LIST.

The build writes them to tests/data/bad of its folder. The bytes are the same everywhere: no data are compressed here,
because versions of zlib differ."""
import base64
import os
import pathlib
import struct
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from write_png import SIGNATURE, chunk, ihdr  # noqa: E402

# Rows of a PNG of width x height x channels, as zlib compresses them: sample x of row y is 5 x + 3 y modulo 256.
ROWS = {
    (8, 8, 3): (
        "c-muNVCCW$k(5)`&^0o*adh(z2#tzQ$;>NeVCLWz5|>d_(>5@*vUl<H3yz3QO3x`QV_@SJ5S5Zw(bO}xuyu0x2@H!)NX^PGsbt{f"
        "6PA!wQr9swvvzRx@(+oOOU}qGDz9PS5fqbFP}R~mv9xpc@C^!&NleQwD6Ohzz-n_vZ4(1lo2wgI8L--1*W3XB64o;T"),
    (8, 8, 1): "c-muNVCCW$k(5(rVCLWz5|>d_V_@SJ5S5Zw(PZG{6PA!wQrBVN5fqbFP}S0B0ISr{HDUm()HX0>0ISq9wg3RqNCyD",
    (8, 4, 3): (
        "c-muNVCCW$k(5)`&^0o*adh(z2#tzQ$;>NeVCLWz5|>d_(>5@*vUl<H3yz3QO3x`QV_@SJ5S5Zw(bO}xuyu0x2@H!)NX^PGsbt{f"
        "6PA!wQr9swvvzRx@(+oOOU}qGDz5<m4j>mn"),
    (8, 1, 3): "c-muNVCCW$k(5)`&^0o*adh(z2#tzQ$;>MT04)UtWd",
}


def idat(width, height, channels=3):
    return chunk(b"IDAT", base64.b85decode(ROWS[width, height, channels]))


def flipped(data, at):
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def jpeg_segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


END = chunk(b"IEND")
GOOD = SIGNATURE + ihdr(8, 8) + idat(8, 8) + END

# A grey JPEG of 8 x 8 pixels: one quantization table of ones, a DC and an AC Huffman table, each with the single symbol
# 0 (one bit, 0), and a scan of these two bits.
JPEG_TABLES = jpeg_segment(0xDB, b"\0" + b"\1" * 64)
JPEG_HUFFMAN = b"".join(jpeg_segment(0xC4, bytes([kind, 1]) + bytes(15) + b"\0") for kind in (0x00, 0x10))
JPEG_SCAN = jpeg_segment(0xDA, b"\1\1\0\0\x3f\0") + b"\x3f"


def frame(marker=0xC0, bits=8, height=8, width=8):
    return jpeg_segment(marker, struct.pack(">BHHB", bits, height, width, 1) + b"\1\x11\0")


def jpeg(*, header=frame(), huffman=JPEG_HUFFMAN, end=b"\xff\xd9"):
    return b"\xff\xd8" + JPEG_TABLES + header + huffman + JPEG_SCAN + end


def webp(*parts):
    """A WebP of chunks: a type and data for each."""
    body = b"".join(kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
                    for kind, data in zip(parts[::2], parts[1::2]))
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


LOSSLESS = b"\x2f\0\0\0\x10\7\x10\x11\x11\x88\x88\xfe\7"  # one pixel


def box(kind, *parts):
    data = b"".join(parts)
    return struct.pack(">I", 8 + len(data)) + kind + data


def heif(*, kind=b"hvc1", size=(8, 8), bits=0, configuration=True, more=b"", indices=b"\x81\2", end=b""):
    """A HEIC without data, of one item with properties."""
    item = box(b"infe", b"\2\0\0\0\0\1\0\0", kind, b"\0")
    hvcc = box(b"hvcC", bytes(16) + bytes([1, bits, bits]) + bytes(4)) if configuration else box(b"free")
    ispe = box(b"ispe", struct.pack(">III", 0, *size)) if size else box(b"free")
    return FTYP + box(b"meta", bytes(4), box(b"pitm", b"\0\0\0\0\0\1"), box(b"iinf", b"\0\0\0\0\0\1", item), box(
        b"iprp", box(b"ipco", hvcc, ispe, more), box(
            b"ipma", b"\0\0\0\0\0\0\0\1\0\1", bytes([len(indices)]), indices))) + end


FTYP = box(b"ftyp", b"heic\0\0\0\0mif1heic")

FILES = {
    # Not images.
    "empty.png": b"",
    "not-an-image.png": b"This is a text, whatever its name says.\n",
    "gif.png": b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;",
    "heic.jpg": FTYP,
    "svg.png": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n',
    # PNG.
    "truncated.png": GOOD[:-20],
    "crc.png": flipped(GOOD, 8 + 25 + 8 + 20),
    # As crc.png, but in a chunk that changes the picture: the transparent colour.
    "crc-trns.png": SIGNATURE + ihdr(8, 8) + flipped(chunk(b"tRNS", bytes(6)), -1) + idat(8, 8) + END,
    # Apple's own kind: no zlib header, blue first.
    "cgbi.png": SIGNATURE + chunk(b"CgBI", b"\x50\0\x20\6") + ihdr(8, 8) + chunk(
        b"IDAT", idat(8, 8)[10:-8]) + END,
    "signature.png": flipped(GOOD, 6),
    "no-ihdr.png": SIGNATURE + idat(8, 8) + END,
    "no-idat.png": SIGNATURE + ihdr(8, 8) + END,
    "no-iend.png": SIGNATURE + ihdr(8, 8) + idat(8, 8),
    "no-palette.png": SIGNATURE + ihdr(8, 8, colour=3) + idat(8, 8, 1) + END,
    "huge.png": SIGNATURE + ihdr(100000, 100000) + idat(8, 8) + END,
    "wide.png": SIGNATURE + ihdr(0x7FFFFFFF, 1) + idat(8, 1) + END,
    "zero-width.png": SIGNATURE + ihdr(0, 8) + idat(8, 8) + END,
    "depth.png": SIGNATURE + ihdr(8, 8, bits=4) + idat(8, 8) + END,
    "long-chunk.png": SIGNATURE + ihdr(8, 8) + b"\xff\xff\xff\xffIDAT" + idat(8, 8)[8:] + END,
    "unknown-chunk.png": SIGNATURE + ihdr(8, 8) + chunk(b"NEWS", b"1") + idat(8, 8) + END,
    "few-rows.png": SIGNATURE + ihdr(8, 8) + idat(8, 4) + END,
    "not-deflate.png": SIGNATURE + ihdr(8, 8) + chunk(b"IDAT", b"\x78\x9c" + b"\xff" * 40) + END,
    # The last byte of the checksum of the rows is wrong; the CRC of the chunk fits.
    "checksum.png": SIGNATURE + ihdr(8, 8) + chunk(b"IDAT", flipped(idat(8, 8)[8:-4], -1)) + END,
    # The data of 8 x 8 pixels.
    "few-data.png": SIGNATURE + ihdr(16000, 16000) + idat(8, 8) + END,
    # 1 MiB of zeros for a picture that needs 200 bytes.
    "bomb.png": SIGNATURE + ihdr(8, 8) + chunk(
        b"IDAT", b"\x78\xda\xed\xc1\x31\1\0\0\0\xc2\xa0\xf5\x4f\x6d\x08\x5f\xa0" + bytes(1016) + b"\x3e\3\0\xf0\0\1") + END,
    # JPEG.
    "truncated.jpg": jpeg(end=b""),
    "no-scan.jpg": b"\xff\xd8" + JPEG_TABLES + frame() + b"\xff\xd9",
    "no-frame.jpg": jpeg(header=b""),
    "zero-width.jpg": jpeg(header=frame(width=0)),
    "12-bit.jpg": jpeg(header=frame(0xC1, bits=12)),
    # Two channels, which is allowed; the second one has a scan of its own.
    "two-channels.jpg": jpeg(header=jpeg_segment(0xC0, b"\x08\0\x08\0\x08\2\1\x11\0\2\x11\0"),
                             end=jpeg_segment(0xDA, b"\1\2\0\0\x3f\0") + b"\x3f\xff\xd9"),
    "lossless.jpg": jpeg(header=frame(0xC3)),
    "hierarchical.jpg": b"\xff\xd8" + frame(0xDE) + jpeg()[2:],
    "jpeg-ls.jpg": jpeg(header=frame(0xF7)),
    "segment.jpg": b"\xff\xd8\xff\xe0\xff\xffJFIF",
    # A byte of data for 553,725 blocks.
    "few-data.jpg": jpeg(header=frame(height=5400, width=65500)),
    # 101 equal scans.
    "scans.jpg": jpeg(end=JPEG_SCAN * 100 + b"\xff\xd9"),
    # 16 x 200 symbols in one table: stb_image 2.27 would write them past its table's end.
    "huffman.jpg": jpeg(huffman=jpeg_segment(0xC4, b"\0" + b"\xc8" * 16 + bytes(3200))),
    # HEIC and AVIF.
    "film.heic": FTYP + box(b"moov"),
    "truncated.heic": heif(end=box(b"mdat", bytes(9))[:-1]),
    "no-configuration.heic": heif(configuration=False),
    "jpeg.heic": heif(kind=b"jpeg", configuration=False),
    "15-bit.heic": heif(bits=7),
    "no-size.heic": heif(size=None),
    "zero-width.heic": heif(size=(0, 8)),
    "wide.heic": heif(size=(1 << 31, 8)),
    "large.heic": heif(size=(32769, 8)),
    "crop.heic": heif(more=box(b"clap", struct.pack(">8I", 9, 1, 8, 1, 0, 1, 0, 1)), indices=b"\x81\2\x83"),
    "no-data.heic": heif(),
    # PNM.
    "plain.ppm": b"P3\n1 1\n255\n1 2 3\n",
    "bitmap.pnm": b"P4\n8 1\n\x55",
    "float.pnm": b"Pf\n1 1\n-1.0\n\0\0\x80\x3f",
    "truncated.pgm": b"P5\n8 8\n255\n" + bytes(63),
    "no-blank.pgm": b"P58 8\n255\n" + bytes(64),
    "header.ppm": b"P6\n# the end of the width is not there\n8",
    "negative.ppm": b"P6\n8 -8\n255\n" + bytes(192),
    "huge.pgm": b"P5\n2147483647 2147483647\n65535\n" + bytes(64),
    "overflow.ppm": b"P6\n4294967304 8\n255\n" + bytes(192),
    "maxval.pgm": b"P5\n8 8\n65536\n" + bytes(128),
    "above.pgm": b"P5\n8 8\n100\n" + b"d" * 63 + b"e",
    "above.pam": b"P7\nWIDTH 8\nHEIGHT 1\nDEPTH 1\nMAXVAL 300\nENDHDR\n" + bytes(14) + b"\1\x2d",
    "thumbnail.pam": b"P7 332\n#END_OF_COMMENTS\n2 2 255\n1234",
    "no-depth.pam": b"P7\nWIDTH 8\nHEIGHT 8\nMAXVAL 255\nENDHDR\n" + bytes(64),
    "no-end.pam": b"P7\nWIDTH 8\nHEIGHT 8\nDEPTH 1\nMAXVAL 255\n",
    "line.pam": b"P7\nWIDTH 8\nHIGHT 8\nDEPTH 1\nMAXVAL 255\nENDHDR\n" + bytes(64),
    "cmyk.pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE CMYK\nENDHDR\n" + bytes(4),
    "depth.pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n" + bytes(6),
    # WebP. A frame of VP8 has 16383 x 16383 pixels and no data; VP8X claims 2 x 1 pixels.
    "truncated.webp": webp(b"VP8L", LOSSLESS)[:-3],
    "signature.webp": b"RIFX" + webp(b"VP8L", LOSSLESS)[4:],
    "long-chunk.webp": webp(b"VP8L", LOSSLESS)[:16] + b"\xff\xff\xff\x7f" + LOSSLESS + b"\0",
    "header.webp": webp(b"VP8L", b"\x2e" + LOSSLESS[1:]),
    "few-data.webp": webp(b"VP8 ", b"\x10\0\0\x9d\1\x2a\xff\x3f\xff\x3f"),
    "canvas.webp": webp(b"VP8X", bytes(4) + b"\1\0\0\0\0\0", b"VP8L", LOSSLESS),
    "no-picture.webp": webp(b"VP8X", bytes(10), b"ICCP", b"none"),
    "no-frame.webp": webp(b"VP8X", b"\2" + bytes(9), b"VP8L", LOSSLESS),
    # Filters.
    "empty.txt": b"",
    "comment.txt": b"# only a comment\n",
    "ragged.txt": b"1 2 1\n2 4\n1 2 1\n",
    "wide.txt": b"1 " * 127 + b"1\n",
    "tall.txt": b"1\n" * 128,
    "nan.txt": b"1 2 1\n2 nan 2\n1 2 1\n",
    "infinity.txt": b"1 2 1\n2 inf 2\n1 2 1\n",
    "overflow.txt": b"1 2 1\n2 99999999999999999999 2\n1 2 1\n",
    "exponent.txt": b"1 1e999 1\n",
    "word.txt": b"1 two 1\n",
    "zero-scale.txt": b"scale 0\n1 2 1\n2 4 2\n1 2 1\n",
    "zero-denominator.txt": b"1/0 1 1\n",
    "anchor.txt": b"anchor 3 0\n1 2 1\n",
    "binary.txt": b"1 2 1\n2 \0\xfe\xff 2\n1 2 1\n",
    "bidi.txt": "title gnp.\u202e \x9b\n1 2\u20283\n".encode().replace(b"gnp", b"\x9bgnp"),
    "decimal-comma.txt": b"0,5 1,25 0,5\n",
}


def write(folder):
    """Make FOLDER, with these files alone."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    write(sys.argv[1])
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text("".join(f"{name}\n" for name in FILES), encoding="utf-8")
