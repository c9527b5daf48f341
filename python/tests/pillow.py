#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Images of Pillow, and files that it writes: pillow.py ROOT. Skipped (exit status 77) if it is not installed."""
import io
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run_tests  # noqa: E402

need_module("numpy")
need_module("PIL")
import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import PIL.ImageCms  # noqa: E402

import gpuconv  # noqa: E402
import gpuconv.testing  # noqa: E402

IMAGE = numpy.random.default_rng(5).integers(0, 256, (24, 31, 3), "uint8")


def warned(name):
    """The messages of the warnings of reading a file, and the image."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        image = gpuconv.read(name)
    return [str(one.message) for one in seen if one.category is gpuconv.ImageWarning], image


def test_pillow():
    """The modes that hold samples give images of the same mode; the others are refused."""
    arrays = {"L": IMAGE[..., 0], "LA": IMAGE[..., :2], "RGB": IMAGE, "RGBA": numpy.dstack([IMAGE, IMAGE[..., 0]]),
              "I;16": 250 * IMAGE[..., 0].astype("uint16"), "F": IMAGE[..., 0].astype("float32") / 255}
    for mode, array in arrays.items():
        image = PIL.Image.fromarray(numpy.ascontiguousarray(array))
        image.info["dpi"] = (300, 300)
        assert image.mode == mode, image.mode
        for name in ("blur", "resize:50%"):
            result = gpuconv.filter(image, name)
            assert isinstance(result, PIL.Image.Image) and result.mode == mode and result.info["dpi"] == (300, 300)
            assert numpy.array_equal(numpy.asarray(result), gpuconv.filter(array, name)), mode
        if mode != "F":
            assert gpuconv.encode(image) == gpuconv.encode(array) and gpuconv.compare(array, image), mode
    for mode in ("P", "CMYK", "1", "YCbCr", "HSV", "LAB", "PA", "RGBX", "I"):
        image = PIL.Image.new(mode, (9, 9))
        advice = f"of mode {mode}; give image.convert('{'F' if mode == 'I' else 'RGB'}')"
        for call in (lambda: gpuconv.filter(image, "blur"), lambda: gpuconv.encode(image),
                     lambda: gpuconv.compare(image, image)):
            expect(TypeError, advice, call)


def test_profile():
    profile = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
    stream = io.BytesIO()
    PIL.Image.fromarray(IMAGE).save(stream, "png", icc_profile=profile)
    assert gpuconv.read(stream.getvalue()).icc[36:40] == b"acsp"


def test_metadata():
    """The profile and the EXIF of an image of Pillow stay, also in files, and turn nothing."""
    profile = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
    exif = PIL.Image.Exif()
    exif[0x10F], exif[0x112] = "Maker", 6  # which turns the picture when it is shown
    for mode in ("RGB", "L", "RGBA", "I;16"):
        image = PIL.Image.new(mode, (31, 24))
        image.info.update(exif=exif.tobytes(), **({"icc_profile": profile} if mode.startswith("RGB") else {}))
        for given in (image, gpuconv.filter(image, "resize:50%")):
            assert given.info["exif"] == exif.tobytes()
            for format in ("png", "tif") if mode == "I;16" else ("png", "jpg"):
                try:
                    content, also = gpuconv.encode(given, format, background=0) if format == "jpg" else \
                        gpuconv.encode(given, format), gpuconv.encode([given, given], format)
                except gpuconv.ImageError:
                    assert format == "tif"
                    continue
                assert format == "jpg" or also == [content, content]
                kept = gpuconv.read(content, keep_orientation=True)
                assert kept.icc == image.info.get("icc_profile", b"") and kept.size == given.size, (mode, format)
                assert kept.exif_dict["Make"] == "Maker" and kept.exif_dict["Orientation"] == 6, kept.exif_dict
    expect(ValueError, "an image of Pillow has no layout 'chw'", gpuconv.filter, image, "blur", layout="chw")
    photo = gpuconv.read(ROOT / "samples/rocket.jpg")
    assert numpy.array_equal(PIL.Image.fromarray(photo), photo.array)
    assert gpuconv.compare(PIL.Image.fromarray(photo), photo.array.transpose(2, 0, 1), layout="chw")
    expect(AssertionError, "pixels differ", gpuconv.testing.assert_images_equal, PIL.Image.fromarray(photo),
           255 - photo.array.transpose(2, 0, 1), layout="chw")


def test_warnings_of_foreign_files():
    pages = [PIL.Image.fromarray(IMAGE), PIL.Image.fromarray(255 - IMAGE)]
    pages[0].save("pages.tif", save_all=True, append_images=pages[1:])
    pages[0].save("frames.png", save_all=True, append_images=pages[1:])
    PIL.Image.fromarray(IMAGE).convert("CMYK").save("cmyk.jpg")
    first = "only its first picture is used"
    for name, text in (("pages.tif", first), ("frames.png", first), ("cmyk.jpg", "cmyk.jpg is CMYK, and becomes RGB")):
        try:
            said, _ = warned(name)
        except gpuconv.ImageError as error:  # the error of a build without libtiff
            assert name == "pages.tif" and "TIFF" in str(error), error
            continue
        assert len(said) == 1 and text in said[0], said
        for page in (1, 2) if name == "pages.tif" else ():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert numpy.array_equal(gpuconv.read(name, page=page).array, numpy.asarray(pages[page - 1])), page
            expect(gpuconv.ImageError, "has 2 pages, so there is no page 3", gpuconv.read, name, page=3)


run_tests(globals())
