#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors for models beside NumPy and, where they are installed, Pillow, PyTorch, torchvision and transformers:
preprocess.py ROOT."""
import importlib.util
import io
import json
import pathlib
import pickle
import random
import sys
import warnings

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run_tests  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402

RANDOM, CHANCE = numpy.random.default_rng(7), random.Random(7)
MEAN, STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]  # those of CLIP


def has(module):
    if importlib.util.find_spec(module) is None:
        print(f"without {module}")
        return False
    return True


def picture(height, width, channels=3, top=256, dtype="uint8"):
    return RANDOM.integers(0, top, (height, width, channels)[:2 if channels == 1 else 3], dtype)


def rgb(image):
    """Three channels of 8 bits, without alpha."""
    image = image[..., None] if image.ndim == 2 else image
    return numpy.repeat(image[..., :1], 3, 2) if image.shape[2] < 3 else image[..., :3]


def resized(image, height, width, kernel):
    return gpuconv.filter(numpy.ascontiguousarray(image), f"resize:{width}x{height}:exact:{kernel}")


def centre(image, crop, first):
    """The middle of IMAGE on black, whose first pixel FIRST(side) says."""
    result = numpy.zeros((crop, crop, 3), "uint8")
    y, x = (first(side - crop) for side in image.shape[:2])
    part = image[max(y, 0):max(y + crop, 0), max(x, 0):max(x + crop, 0)]
    result[max(-y, 0):max(-y, 0) + len(part), max(-x, 0):max(-x, 0) + part.shape[1]] = part
    return result


def chw(image):
    return numpy.ascontiguousarray(numpy.moveaxis(image, 2, 0))


def normal(image, mean=0.0, std=1.0, rescale=1 / 255):
    levels = (image.astype("float64") * rescale).astype("float32")
    return chw((levels - numpy.float32(mean)) / numpy.float32(std))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- Beside NumPy ----

def test_shorter_side_and_crop():
    rules = {"torchvision": lambda rest: int(round(rest / 2.0)) if rest > 0 else int(rest / 2),
             "transformers": lambda rest: rest // 2}
    for rule, first in rules.items():
        for side, crop, kernel in ((20, 20, "cubic"), (30, 17, "pillow-bicubic"), (16, 23, "pillow12-lanczos"),
                                   (24, 21, "pillow-box"), (25, 4, "pillow12-bilinear")):
            images, expected = [], []
            options = {"resize": side, "crop": crop, "kernel": kernel, "mean": MEAN, "std": STD, "crop_rule": rule}
            for _ in range(12):
                image = picture(CHANCE.randrange(1, 60), CHANCE.randrange(1, 60), CHANCE.randrange(1, 5))
                height, width = image.shape[:2]
                short, long = sorted((height, width))
                size = (side, int(side * long / short)) if height <= width else (int(side * long / short), side)
                images.append(image if CHANCE.random() < 0.5 else gpuconv.encode(image))
                expected.append(normal(centre(resized(rgb(image), *size, kernel), crop, first), MEAN, STD))
            result = gpuconv.preprocess(images, **options)
            assert same(result, numpy.stack(expected)), (rule, kernel)
            assert same(gpuconv.preprocess(images[3], **options), expected[3])
            planes = gpuconv.preprocess(images, layout="hwc", **options)
            assert same(numpy.ascontiguousarray(numpy.moveaxis(planes, 3, 1)), result)


def test_exact_sizes_and_levels():
    images = [picture(50, 40), picture(21, 34, 4), picture(20, 30, 1), picture(20, 30)]
    for size in ((20, 30), (40, 70)):
        levels = gpuconv.preprocess(images, resize=size, kernel="cubic", dtype="uint8")
        for image, result in zip(images, levels):
            assert same(result, chw(resized(rgb(image), *size, "cubic")))
        for options in ({}, {"rescale": 1}, {"rescale": 1 / 127.5, "mean": 1}, {"rescale": 2, "std": (3, 4, -5)}):
            result = gpuconv.preprocess(images, resize=size, kernel="cubic", **options)
            assert same(result, numpy.stack([normal(numpy.moveaxis(one, 0, 2), **options) for one in levels])), options
            half = gpuconv.preprocess(images, resize=size, kernel="cubic", dtype=numpy.float16, **options)
            assert same(half, result.astype("float16"))
    assert same(gpuconv.preprocess(images[3][:, ::2], dtype="uint8"), chw(images[3][:, ::2]))
    tall = gpuconv.preprocess(picture(3, 2000), resize=6, crop=(5, 3), dtype="uint8")
    assert tall.shape == (3, 5, 3)


def test_sources():
    """All kinds, also in one list, files that are turned, and contexts with several threads."""
    pathlib.Path("a.png").write_bytes(gpuconv.encode(picture(30, 40)))
    photo = gpuconv.read("a.png")
    big = picture(900, 1300)
    sources = ["a.png", pathlib.Path("a.png"), open("a.png", "rb"), pathlib.Path("a.png").read_bytes(), photo,
               photo.array, gpuconv.read("a.png", layout="chw"), photo.array[:, :, :],
               photo.array.astype("uint16") * 257, numpy.frombuffer(gpuconv.encode(photo), "uint8"),
               bytearray(gpuconv.encode(photo))]
    results = gpuconv.preprocess(sources, dtype="uint8")
    assert all(same(result, chw(photo.array)) for result in results)
    kept = photo.array.copy()
    gpuconv.preprocess([photo.array, photo.array], resize=9, dtype="uint8")
    assert same(photo.array, kept)
    jpeg = (ROOT / "samples/rocket.jpg").read_bytes()
    turned = jpeg[:2] + b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0" + jpeg[2:]
    for keep in (False, True):
        expected = gpuconv.read(turned, keep_orientation=keep).array
        assert expected.shape == ((427, 640, 3) if keep else (640, 427, 3))
        assert same(gpuconv.preprocess(turned, keep_orientation=keep, dtype="uint8"), chw(expected))
    with gpuconv.Context(threads=3) as context:  # few large pictures, and many
        for images in ([big], [big, big[::-1]], [big[:, :1100], *[picture(10 + side, 30) for side in range(20)]]):
            many = gpuconv.preprocess(images, resize=64, crop=60, context=context)
            assert same(many, numpy.stack([gpuconv.preprocess(image, resize=64, crop=60) for image in images]))


def test_files_of_16_bits():
    """As Pillow: the upper byte, but grey is cut at 255."""
    for channels, top in ((1, 700), (2, 65536), (3, 65536), (4, 65536)):
        image = picture(20, 30, channels, top, "uint16")
        expected = rgb(image)
        expected = (numpy.minimum(expected, 255) if channels == 1 else expected >> 8).astype("uint8")
        for source in (image, gpuconv.encode(image)):
            assert same(gpuconv.preprocess(source, dtype="uint8"), chw(expected)), channels
    result = gpuconv.preprocess(image, background="#0af", dtype="uint8")
    image = (image >> 8).astype("int64")
    alpha, colour = image[..., 3:], numpy.array([0, 170, 255])
    assert numpy.array_equal(result, chw((image[..., :3] * alpha + colour * (255 - alpha) + 127) // 255))


def test_errors():
    good, bad = gpuconv.encode(picture(20, 30)), gpuconv.encode(picture(20, 30))[:80]
    expect(gpuconv.ImageError, "picture 2 of the list: ", gpuconv.preprocess, [good, picture(20, 30), bad], resize=9)
    pathlib.Path("bad.png").write_bytes(bad)
    expect(gpuconv.ImageError, "bad.png: ", gpuconv.preprocess, ["bad.png"], resize=9)
    expect(gpuconv.ImageError, "30 x 20 pixels are more than the 500", gpuconv.preprocess, good, max_pixels=500)
    expect(ValueError, "the pictures become 9 x 13 and 9 x 27 pixels, height x width; give crop=, pad=, or "
           "resize=(height, width)", gpuconv.preprocess, [good, picture(10, 30)], resize=9)
    expect(ValueError, "one of the kernels ", gpuconv.preprocess, good, resize=9, kernel="fine")
    expect(ValueError, "there is no kernel \"box,blur\"", gpuconv.preprocess, good, resize=9, kernel="box,blur")
    expect(ValueError, "100000", gpuconv.preprocess, picture(1, 200000), resize=224, crop=224)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if has("PIL"):
            import PIL.Image
            PIL.Image.fromarray(picture(20, 30)).convert("CMYK").save("cmyk.jpg")
            gpuconv.preprocess("cmyk.jpg")
            assert [str(one.message) for one in seen] == ["cmyk.jpg is CMYK, and becomes RGB"], seen


# ---- Beside others ----

def pillow_kernel(name):
    """The kernel of the Pillow that is installed."""
    import PIL
    return f"pillow-{name}" if int(PIL.__version__.split(".")[0]) > 12 else f"pillow12-{name}"


def test_pillow():
    """Files and images of all modes as convert("RGB") has them, alpha over a colour, and ImageOps.pad."""
    if not has("PIL"):
        return
    import PIL.Image
    import PIL.ImageOps
    rgba = PIL.Image.fromarray(picture(24, 31, 4))
    images = {mode: rgba.convert("RGB").convert(mode)
              for mode in ("L", "RGB", "1", "P", "CMYK", "YCbCr", "HSV", "I", "F")}
    images |= {"RGBA": rgba, "LA": rgba.convert("LA"), "I;16": PIL.Image.fromarray(picture(24, 31, 1, 600, "uint16")),
               "PA": rgba.convert("RGB").quantize(9).convert("PA")}
    for mode, image in images.items():
        files = []
        for format, modes in (("png", "1 L LA P RGB RGBA I;16"), ("jpeg", "L RGB CMYK"), ("ppm", "L RGB")):
            if mode in modes.split():
                stream = io.BytesIO()
                image.save(stream, format, **({"transparency": 3} if mode == "P" else {}))
                files.append(stream.getvalue())
        for source in (image, *files):
            pillow = PIL.Image.open(io.BytesIO(source)) if isinstance(source, bytes) else source
            with warnings.catch_warnings(action="ignore"):  # CMYK becomes RGB
                result = gpuconv.preprocess(source, dtype="uint8")
            assert numpy.array_equal(numpy.moveaxis(result, 0, 2), pillow.convert("RGB")), (mode, type(source))
    for colour in ((255, 255, 255), (0, 90, 7)):
        expected = PIL.Image.alpha_composite(PIL.Image.new("RGBA", rgba.size, colour), rgba).convert("RGB")
        for source in (rgba, gpuconv.encode(rgba)):
            result = gpuconv.preprocess(source, dtype="uint8", background="#%02x%02x%02x" % colour)
            assert numpy.array_equal(numpy.moveaxis(result, 0, 2), expected)
    for kernel in ("bicubic", "bilinear", "lanczos", "box", "hamming", "nearest"):
        for _ in range(20):
            image = PIL.Image.fromarray(picture(CHANCE.randrange(9, 60), CHANCE.randrange(9, 60)))
            height, width = CHANCE.randrange(8, 60), CHANCE.randrange(8, 60)
            method = PIL.Image.Resampling[kernel.upper()]
            expected = PIL.ImageOps.pad(image, (width, height), method, "#102030")
            result = gpuconv.preprocess(image, resize=(height, width), pad="#102030", kernel=pillow_kernel(kernel),
                                        dtype="uint8")
            assert same(result, chw(numpy.asarray(expected))), (kernel, image.size, width, height)


def test_torch():
    if not has("torch"):
        return
    import torch
    images = [picture(20, 30), picture(20, 30, 4)]
    floats = torch.from_numpy(gpuconv.preprocess(images, mean=MEAN, std=STD))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        tensor = gpuconv.preprocess(images, mean=MEAN, std=STD, dtype=dtype, device="cpu")
        assert tensor.dtype == dtype and torch.equal(tensor, floats.to(dtype)), dtype
        one = gpuconv.preprocess(torch.from_numpy(images[0]), mean=MEAN, std=STD, device=torch.device("cpu"),
                                 dtype=str(dtype).removeprefix("torch."))
        assert torch.equal(one, tensor[0])
    assert gpuconv.preprocess(images, dtype="uint8", device="cpu").dtype == torch.uint8
    planar = torch.from_numpy(images[0]).permute(2, 0, 1).contiguous()
    assert torch.equal(gpuconv.preprocess(planar.permute(1, 2, 0), mean=MEAN, std=STD, device="cpu"), floats[0])


def test_torchvision():
    """Its transforms of Pillow images, to the last bit."""
    if not has("torchvision"):
        return
    import PIL.Image
    import torch
    from torchvision import transforms
    for kernel in ("bicubic", "bilinear"):
        for side, crop in ((40, 32), (33, 24), (20, 27), (24, (31, 14))):
            theirs = transforms.Compose([transforms.Resize(side, transforms.InterpolationMode[kernel.upper()]),
                                         transforms.CenterCrop(crop), transforms.ToTensor(),
                                         transforms.Normalize(MEAN, STD)])
            images = [PIL.Image.fromarray(picture(CHANCE.randrange(5, 90), CHANCE.randrange(5, 90))) for _ in range(15)]
            result = gpuconv.preprocess(images, resize=side, crop=crop, mean=MEAN, std=STD, device="cpu",
                                        kernel=pillow_kernel(kernel))
            assert torch.equal(result, torch.stack([theirs(image) for image in images])), (kernel, side, crop)


def test_transformers():
    """Its image processors that use Pillow, with the configs that they write, to the last bit."""
    if not has("transformers"):
        return
    import PIL.Image
    import transformers
    changes = [{}, {"resample": 1}, {"resample": 2}, {"crop_size": {"height": 33, "width": 51}},
               {"do_normalize": False}, {"do_normalize": False, "do_rescale": False},
               {"rescale_factor": 1 / 127.5, "image_mean": [1.0, 0.9, 0.8]}]
    for name in ("CLIP", "ViT", "Siglip", "DeiT", "Bit"):
        kind = getattr(transformers, f"{name}ImageProcessorPil", None) or getattr(transformers, f"{name}ImageProcessor")
        for change in changes:
            processor = kind(**change)
            processor.save_pretrained(name)
            config = pathlib.Path(name, "preprocessor_config.json")
            kernel = pillow_kernel(("", "lanczos", "bilinear", "bicubic")[json.loads(config.read_text())["resample"]])
            own = pickle.loads(pickle.dumps(gpuconv.preprocess.from_config(config, kernel=kernel)))
            images = [PIL.Image.fromarray(picture(CHANCE.randrange(9, 400), CHANCE.randrange(9, 400)))
                      for _ in range(6)]
            result = own(images)
            assert same(result, numpy.asarray(processor(images, return_tensors="np").pixel_values)), (name, change)
            assert same(own([gpuconv.encode(image) for image in images]), result)


def test_configs():
    """Files of older releases: sides as numbers, and other names of types."""
    image, common = picture(50, 80), {"do_resize": True, "resample": 2, "do_normalize": True, "image_mean": MEAN,
                                      "image_std": STD, "do_pad": False, "auto": None, "do_convert_rgb": True}
    options = {"kernel": "pillow-bilinear", "mean": MEAN, "std": STD}
    clip = common | {"feature_extractor_type": "CLIPFeatureExtractor", "do_center_crop": True}
    expected = gpuconv.preprocess(image, resize=20, crop=17, crop_rule="transformers", **options)
    for size, crop in ((20, 17), ({"shortest_edge": 20, "longest_edge": None}, {"height": 17, "width": 17})):
        assert same(gpuconv.preprocess.from_config(clip | {"size": size, "crop_size": crop})(image), expected)
    vit = common | {"image_processor_type": "ViTImageProcessorFast", "size": 20}
    for size in (20, [20, 20], {"height": 20, "width": 20}):
        result = gpuconv.preprocess.from_config(vit | {"size": size}, dtype="float16")(image)
        assert same(result, gpuconv.preprocess(image, resize=(20, 20), dtype="float16", **options))
    levels = gpuconv.preprocess.from_config(vit | {"do_normalize": False, "do_rescale": False})(image)
    assert same(levels, gpuconv.preprocess(image, resize=(20, 20), dtype="uint8", kernel="pillow-bilinear"))
    pathlib.Path("list.json").write_text("[1, 2]")
    expect(ValueError, "list.json is not the JSON of a config", gpuconv.preprocess.from_config, "list.json")


run_tests(globals())
