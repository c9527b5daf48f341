#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrays of other libraries: arrays.py ROOT torch|jax|cupy|stub|emulated.

The result is an array of the same library, on the same device, with the samples that NumPy's arrays get. Files become
arrays on a GPU with the samples of the CPU, and arrays become files with the same bytes. `stub` and `emulated` are for
the libraries with these instead of a GPU. Their memory is that of the host."""
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT, NAME = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/data")]
from bad import FILES as BAD_FILES  # noqa: E402
from harness import expect, need_module, skip, temporary_folder  # noqa: E402

if NAME not in ("stub", "emulated"):
    need_module(NAME)
need_module("numpy")
import numpy  # noqa: E402
import devices  # noqa: E402
from devices import Array as Stub, streams  # noqa: E402

import gpuconv  # noqa: E402

RANDOM = numpy.random.default_rng(2)


def check(from_numpy, to_numpy, dtypes=("uint8", "uint16", "float32")):
    """Some calls, with arrays of the library that FROM_NUMPY makes."""
    for dtype in dtypes:
        for layout, shape in (("hwc", (40, 50, 3)), ("chw", (3, 40, 50)), ("hwc", (40, 50)), ("chw", (2, 3, 40, 50)),
                              ("hwc", (3, 41, 51, 3)), ("hwc", (2, 16, 20, 3))):
            image = (1000 * RANDOM.random(shape)).astype(dtype) / numpy.asarray(1000, dtype) \
                if dtype == "float32" else RANDOM.integers(0, numpy.iinfo(dtype).max, shape, dtype)
            for name in ("gaussian:2", "sobel", "resize:60%,sharpen", "turn:90", "pad:61x50:#f80,crop:90%,mirror:y",
                         "invert,saturation:20", "levels:9:245,sharpen,saturation:20", "blur,saturation:-50,gamma:2,turn:90,grey"):
                expected = gpuconv.filter(image, name, layout=layout, border="wrap")
                own = from_numpy(image)
                result = gpuconv.filter(own, name, layout=layout, border="wrap")
                assert type(result) is type(own) and result is not own, type(result)
                assert numpy.allclose(to_numpy(result), expected, rtol=0, atol=1e-5 if dtype == "float32" else 0), \
                    (dtype, layout, shape, name)
                assert numpy.array_equal(to_numpy(own), image)
    maps = RANDOM.integers(0, 256, (2, 7, 24, 31), "uint8")  # more than 4 channels, which are separate images
    for name in ("gaussian:2", "resize:60%"):
        result = gpuconv.filter(from_numpy(maps), name, layout="chw")
        assert numpy.array_equal(to_numpy(result), gpuconv.filter(maps, name, layout="chw"))
        images = [maps[0, :3], maps[1, 2], maps[1, 1:4], maps[0, 4:].copy(), maps[1, 3]]
        results = gpuconv.filter([from_numpy(image) for image in images], name, layout="chw")
        assert all(numpy.array_equal(to_numpy(result), gpuconv.filter(image, name, layout="chw"))
                   for image, result in zip(images, results))


def check_output(from_numpy, to_numpy):
    """OUT, also as a part of an array, and transposed inputs."""
    image = RANDOM.integers(0, 256, (40, 50, 3), "uint8")
    expected = gpuconv.filter(image, "blur")
    out = from_numpy(numpy.zeros((50, 60, 3), "uint8"))
    part = out[5:45, 5:55]
    assert gpuconv.filter(from_numpy(image), "blur", out=part) is part
    assert numpy.array_equal(to_numpy(out)[5:45, 5:55], expected) and int(to_numpy(out).sum()) == int(expected.sum())
    images = RANDOM.integers(0, 256, (5, 16, 20, 3), "uint8")
    many = gpuconv.filter(from_numpy(images)[::2], "blur", out=from_numpy(numpy.zeros((3, 16, 20, 3), "uint8")))
    assert numpy.array_equal(to_numpy(many), gpuconv.filter(images[::2], "blur"))
    turned = gpuconv.filter(from_numpy(image).transpose(0, 2).transpose(1, 2), "blur", layout="chw") \
        if NAME == "torch" else gpuconv.filter(from_numpy(image).transpose(2, 0, 1), "blur", layout="chw")
    assert numpy.array_equal(to_numpy(turned).transpose(1, 2, 0), expected)


def files_of(folder):
    """The intact files of a folder as Images, by their paths."""
    images = {}
    for path in sorted((ROOT / folder).iterdir()):
        try:
            with warnings.catch_warnings(action="ignore"):
                images[path] = gpuconv.read(path)
        except gpuconv.ImageError:
            pass
    return images


def turned(content, orientation):
    """A JPEG with this orientation in its EXIF."""
    entry = b"\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(2)
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + entry + bytes(4)
    return content[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + content[2:]


def check_turned_jpegs(to_numpy):
    """A group of JPEGs that are turned after they are decoded, and planes beside each other."""
    cat = gpuconv.read(ROOT / "samples/cat.png").array
    files = [turned(gpuconv.encode(numpy.ascontiguousarray(cat[:150 + i, i:200]), "jpg"), i) for i in range(1, 9)]
    for layout in ("hwc", "chw"):
        for file, array in zip(files, gpuconv.read(files, device="cuda", layout=layout)):
            expected = gpuconv.read(file).array
            assert numpy.array_equal(to_numpy(array), expected if layout == "hwc" else expected.transpose(2, 0, 1)), layout
    tensor = to_numpy(gpuconv.preprocess(files, resize=(60, 50), dtype="uint8", device="cuda"))
    assert numpy.array_equal(tensor, gpuconv.preprocess(files, resize=(60, 50), dtype="uint8"))


def check_files(to_numpy):
    """Files to arrays on a GPU and back, many at once: those of other writers, large ones, and one that is damaged."""
    check_turned_jpegs(to_numpy)
    images = files_of("tests/data/pngsuite") | {path: image for path, image in files_of("samples").items()}
    paths, sources = list(images), [path.read_bytes() if number % 3 else path for number, path in enumerate(images)]
    sources[-1] = numpy.fromfile(paths[-1], "uint8")
    arrays = gpuconv.read(sources, device="cuda:0")
    for path, image, array in zip(paths, images.values(), arrays):
        assert numpy.array_equal(to_numpy(array), image.array), path
        assert to_numpy(array).dtype == image.array.dtype
    for path, array in zip(paths, gpuconv.read(paths, device="cuda", layout="chw", bits=8)):
        expected = gpuconv.read(path, bits=8).array
        assert numpy.array_equal(to_numpy(array), expected if expected.ndim == 2 else expected.transpose(2, 0, 1)), path
    assert numpy.array_equal(to_numpy(gpuconv.read(paths[0], device="cuda")), images[paths[0]].array)
    assert gpuconv.read([], device="cuda") == [] and gpuconv.encode([]) == []
    for format, options in (("jpg", {"quality": 80}), ("jpg", {"subsampling": 444}), ("png", {}), ("pam", {})):
        with warnings.catch_warnings(action="ignore"):  # alpha and 16 bits
            made = gpuconv.encode(arrays, format, **options)
            for path, image, content in zip(paths, images.values(), made):
                assert content == gpuconv.encode(image.array, format, **options), (path, format)
    mixed = [arrays[0], images[paths[1]].array]
    assert gpuconv.encode(mixed) == [gpuconv.encode(one.array) for one in list(images.values())[:2]]
    planar = gpuconv.read(ROOT / "samples/cat.png", device="cuda", layout="chw")
    with temporary_folder():
        gpuconv.write(["a.png", "b.jpg"], [planar, planar], layout="chw")
        cat = gpuconv.read(ROOT / "samples/cat.png").array
        assert numpy.array_equal(gpuconv.read("a.png"), cat)
        assert pathlib.Path("b.jpg").read_bytes() == gpuconv.encode(cat, "jpg")
    for layout in ("chw", "hwc"):
        for kind in ("uint8", "float16", "float32"):
            options = {"resize": 40, "crop": (50, 37), "dtype": kind, "layout": layout} | \
                ({} if kind == "uint8" else {"mean": (0.4, 0.5, 0.6), "std": 0.25})
            given = [*sources, cat, gpuconv.read(paths[0])]
            tensor = to_numpy(gpuconv.preprocess(given, device="cuda:0", **options))
            expected = gpuconv.preprocess(given, **options)
            assert tensor.dtype == kind and tensor.tobytes() == expected.tobytes(), (layout, kind)
            assert numpy.array_equal(to_numpy(gpuconv.preprocess(cat, device="cuda", **options)), expected[-2])
    bad = BAD_FILES["truncated.jpg"]
    expect(gpuconv.ImageError, "picture 1 of the list: the JPEG", gpuconv.preprocess, [cat, bad], resize=9, device="cuda")
    with temporary_folder():
        path = pathlib.Path("truncated.jpg").resolve()
        path.write_bytes(bad)
        expect(gpuconv.ImageError, f"{path}: the JPEG", gpuconv.read, [paths[0], path], device="cuda")
    expect(gpuconv.ImageError, "file 1 of the list: the JPEG", gpuconv.read, [paths[0], bad], device="cuda")
    expect(ValueError, "the device is 'cuda:x'", gpuconv.read, paths[0], device="cuda:x")
    expect(ValueError, "the device is 'cpu'", gpuconv.read, paths[0], device="cpu")
    if isinstance(planar, devices.Array):
        class Elsewhere(devices.Array):
            def __dlpack_device__(self):
                return (2, 5)

        expect(ValueError, "on the GPUs [5], and the device is 0", gpuconv.preprocess, [cat, Elsewhere(cat)],
               device="cuda:0")


def check_tensors(torch, device):
    """Kinds of samples and strides that only tensors have."""
    noise = torch.rand((2, 6, 20, 30), device=device)
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.bool):
        for shape, layout in (((20, 30), None), ((3, 20, 30), "chw"), ((20, 30, 2), None), ((2, 4, 20, 30), "chw"),
                              ((2, 6, 20, 30), "chw")):
            image = (4 * torch.rand(shape, device=device) - 2).to(dtype)
            name = "turn:90" if dtype == torch.bool else "unsharp:2:0.5,resize:80%"
            result = gpuconv.filter(image, name, layout=layout)
            floats = gpuconv.filter(image.float(), name, layout=layout)
            assert result.dtype == dtype and result.device == image.device
            assert torch.equal(result, floats.to(dtype)), (dtype, shape)
            out = torch.zeros_like(result)
            assert gpuconv.filter(image, name, layout=layout, out=out) is out and torch.equal(out, result)
    for dtype in (torch.uint8, torch.float32, torch.bfloat16):
        for image in ((200 * noise[0, :1]).to(dtype).expand(3, 20, 30),
                      (200 * noise[0, :3, :1]).to(dtype).expand(3, 20, 30),
                      (9 * noise).to(dtype).to(memory_format=torch.channels_last), (9 * noise[:, :5]).to(dtype),
                      (9 * noise).to(dtype)[::2, :, ::2, ::3], (9 * noise[:, 1:]).to(dtype).transpose(0, 1)):
            for name in ("gaussian:2", "resize:50%"):
                expected = gpuconv.filter(image.contiguous(), name, layout="chw")
                assert torch.equal(gpuconv.filter(image, name, layout="chw"), expected), (dtype, image.stride())
                for out in (torch.zeros_like(expected), torch.zeros_like(expected).transpose(-1, -2).contiguous()
                            .transpose(-1, -2)):
                    assert gpuconv.filter(image, name, layout="chw", out=out) is out and torch.equal(out, expected)
    complex = torch.complex(noise[0], noise[1])
    assert torch.equal(gpuconv.filter(complex.conj().imag, "blur", layout="chw"),
                       gpuconv.filter(-noise[1], "blur", layout="chw"))
    x, y, z = (noise[0, :3] * 255).to(torch.uint8).unbind()
    expected = gpuconv.filter([x.clone(), y.clone(), z.clone()], "sobel")
    gpuconv.filter([x, y, z], "sobel", out=[z, x, y])
    assert all(map(torch.equal, [z, x, y], expected))
    for dtype in ("float32", "float16", "bfloat16", "float64", "bool"):
        for image in (noise[0, 0].to(getattr(torch, dtype)), torch.nn.Parameter(noise[0, 0]).to(getattr(torch, dtype))):
            for given in (image, [image, image]):
                expect(TypeError, f"the image has samples of {dtype}; give uint8 or uint16, such as "
                       "(255 * image).round().to(torch.uint8)", gpuconv.encode, given)
    for wrong in (torch.int64, torch.int8):
        expect(TypeError, "give image.to(torch.float32), or image.to(torch.uint8) if they are levels of 8 bits",
               gpuconv.filter, noise[0].to(wrong), "blur", layout="chw")
    image = (255 * noise[0, 0]).to(torch.uint8)
    expect(ValueError, "share memory", gpuconv.filter, image, "blur", out=torch.zeros(30, dtype=torch.uint8,
                                                                                        device=device).expand(20, 30))
    assert gpuconv.encode(image[:, :1].expand(20, 9)) == gpuconv.encode(image[:, :1].expand(20, 9).contiguous())
    expect(ValueError, "6 channels; give 1 to 4", gpuconv.encode, (255 * noise[0]).to(torch.uint8), layout="chw")


def check_torch():
    import torch
    check(torch.from_numpy, lambda tensor: tensor.numpy(),
          ("uint8", "uint16", "float32") if hasattr(torch, "uint16") else ("uint8", "float32"))
    check_output(torch.from_numpy, lambda tensor: tensor.numpy())
    batch = torch.from_numpy(RANDOM.integers(0, 256, (3, 3, 20, 30), "uint8"))
    assert gpuconv._arrays.stack(list(batch)).data_ptr() == batch.data_ptr()
    turned = [image.mT if number % 2 else image for number, image in enumerate(batch[..., :20])]
    assert torch.equal(gpuconv._arrays.stack(turned), torch.stack(turned))
    for uneven in (batch[[0, 2, 1]].unbind(), (batch[0], batch[2], batch[1]), (batch[0], batch[1], batch[1])):
        assert torch.equal(torch.stack(gpuconv.filter(uneven, "blur", layout="chw")),
                           gpuconv.filter(torch.stack(uneven), "blur", layout="chw"))
    wide = torch.rand(2, 6, 20, 30).contiguous(memory_format=torch.channels_last)
    assert torch.equal(gpuconv.filter(wide, "blur", layout="chw"),
                       gpuconv.filter(wide.contiguous(), "blur", layout="chw"))
    check_tensors(torch, "cpu")
    array = numpy.zeros((20, 30), "uint8")  # an output of another library
    assert gpuconv.filter(batch[0, 0], "blur", out=array) is array and array.any()
    photo = gpuconv.read(ROOT / "samples/cat.png")
    assert torch.equal(torch.as_tensor(photo), torch.from_numpy(photo.array))
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    expect(gpuconv.GpuError, f"PyTorch has {count or 'no'} GPUs; ", gpuconv.read, ROOT / "samples/cat.png",
           device=f"cuda:{count}")
    if gpuconv.gpus() > 0 and torch.cuda.is_available():
        check(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy(), ("uint8", "float32"))
        check_output(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy())
        check_files(lambda tensor: tensor.cpu().numpy())
        check_tensors(torch, "cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            check(lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy(), ("uint8",))
            check_files(lambda tensor: tensor.cpu().numpy())


def check_jax():
    import jax
    with jax.default_device(jax.devices("cpu")[0]):
        check(jax.numpy.asarray, numpy.asarray)
        for dtype in ("bfloat16", "float16", "bool"):
            image = jax.numpy.asarray(RANDOM.integers(0, 2, (40, 50))).astype(dtype)
            result = gpuconv.filter(image, "turn:90")
            assert isinstance(result, jax.Array) and result.dtype == dtype
            assert numpy.array_equal(result, numpy.rot90(numpy.asarray(image), -1))


def check_cupy():
    import cupy
    if gpuconv.gpus() == 0:
        skip("there is no GPU")
    check(cupy.asarray, cupy.asnumpy)
    check_output(cupy.asarray, cupy.asnumpy)
    check_files(cupy.asnumpy)
    with cupy.cuda.Stream(non_blocking=True):
        check(cupy.asarray, cupy.asnumpy)


def check_stub():
    assert gpuconv.gpus() > 0, "this is not the library with the stub"
    devices.install()
    check(Stub, lambda stub: stub.array)
    check_output(Stub, lambda stub: stub.array)
    check_files(lambda stub: stub.array)
    assert gpuconv.read(ROOT / "samples/cat.png", device="cuda:1").array.shape and streams[-1] == 1
    image = RANDOM.integers(0, 256, (40, 50, 3), "uint8")
    own = Stub(image)
    in_place = Stub(image.copy())
    gpuconv.filter(in_place, "blur", out=in_place, stream=2)
    assert numpy.array_equal(in_place.array, gpuconv.filter(own, "blur").array)
    for dtype in ("float16", "float64", "float32", "uint16"):
        array = (RANDOM.random((2, 20, 30, 3)) * 90).astype(dtype)
        for part in (array[0, ::-1], array[1, :, ::-2], numpy.broadcast_to(array[0, :1], (20, 30, 3)),
                     numpy.moveaxis(numpy.tile(array, 2), 3, 1)):
            layout = "chw" if part.ndim == 4 else None
            for name in ("sharpen", "resize:50%"):
                expected = gpuconv.filter(part, name, layout=layout)
                result = gpuconv.filter(Stub(part), name, layout=layout).array
                assert result.dtype == dtype and numpy.allclose(result, expected, rtol=1e-5, atol=1e-5)
                out = numpy.zeros_like(expected)[..., ::-1]
                gpuconv.filter(Stub(part), name, layout=layout, out=Stub(out))
                assert numpy.array_equal(out, result), (dtype, part.shape)
    one, two = Stub(image.copy()), Stub(255 - image)
    expected = [gpuconv.filter(each.array, "blur") for each in (one, two)]
    gpuconv.filter([one, two], "blur", out=[two, one])
    assert numpy.array_equal(two.array, expected[0]) and numpy.array_equal(one.array, expected[1])
    expect(TypeError, "samples of float16; give uint8 or uint16", gpuconv.encode, Stub(image.astype("float16")))
    expect(TypeError, "samples of int32; give image.astype", gpuconv.filter, Stub(image.astype("int32")), "blur")
    expect(ValueError, "share memory", gpuconv.filter, own, "blur", out=Stub(numpy.lib.stride_tricks.as_strided(
        image.copy(), image.shape, (0, 3, 1))))
    with gpuconv.Context(gpu=0) as context:
        assert numpy.array_equal(gpuconv.filter(image, "blur", context=context), in_place.array)
    for arguments, text in (({"out": image}, "the output is not"), ({"context": gpuconv.Context()}, "the context has no GPU")):
        try:
            gpuconv.filter(own, "blur", **arguments)
        except (TypeError, ValueError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    Stub.__module__ = "other"
    try:
        gpuconv.filter(own, "blur")
    except TypeError as error:
        assert "cannot make an array of other on a GPU; give out=" in str(error), error
    else:
        raise AssertionError("an array of an unknown library was made")


check_emulated = check_stub
globals()[f"check_{NAME}"]()
