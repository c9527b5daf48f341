#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a recipe of docs/python.md as it stands there: recipes.py GPUCONV ROOT NAME.

It runs in a folder with photo.jpg and photos/. A check below looks at what it leaves. Skipped (exit status 77)
where its library is not installed, or there is no GPU that it needs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
PROGRAM, ROOT, NAME = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, run, skip  # noqa: E402

RECIPE = "pytest" if NAME == "xdist" else NAME
MODULES = "pytest", "xdist", "torch", "cupy", "jax", "dask", "ray"
NEEDS = {"processor": "transformers", "tensors": "dask", "pillow": "PIL", "opencv": "cv2"} | dict.fromkeys(
    ("tensor", "loader", "compile", "server", "dataset", "serve"), "torch")
for module in {RECIPE, NAME, NEEDS.get(NAME)} & {*MODULES, *NEEDS.values()}:
    need_module(module)
need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402

PHOTOS = "cat.png", "coffee.png", "rocket.jpg"


def same_file(name, other):
    assert pathlib.Path(name).read_bytes() == pathlib.Path(other).read_bytes(), (name, other)


def check_pillow(left):
    run(PROGRAM, "resize:800x800,unsharp:1:0.6", "photo.jpg", "expected.png")
    assert left["small"].mode == "RGB" and gpuconv.compare("small.png", "expected.png")


def check_opencv(left):
    run(PROGRAM, "gaussian:2", "photo.jpg", "blurred.png", "--border", "reflect101")
    run(PROGRAM, "sepia", "blurred.png", "expected.png")
    assert numpy.array_equal(left["image"][:, :, ::-1], gpuconv.read("blurred.png"))
    assert gpuconv.compare("sepia.png", "expected.png")


def check_tensor(left):
    tensor = left["torch"].arange(60.0).reshape(1, 3, 4, 5)
    blurred = gpuconv.filter(tensor, "gaussian:1.5", layout="chw")
    assert numpy.allclose(blurred[0, 1], gpuconv.filter(tensor[0, 1].numpy(), "gaussian:1.5"), rtol=1e-6)
    assert left["blurred"].shape == (8, 3, 64, 64)
    assert numpy.array_equal(left["batch"][0], tensor_of("photo.jpg", 256, 224, 0.5, 0.5))


def check_file(_left):
    run(PROGRAM, "--depth", "16", "--linear", "gaussian:3", "photo.jpg", "expected.png")
    same_file("out.png", "expected.png")


def check_folder(_left):
    for name in PHOTOS:
        run(PROGRAM, "sharpen", f"photos/{name}", f"expected-{name}")
        same_file(f"sharp/{name}", f"expected-{name}")


def check_list(_left):
    for name in PHOTOS:
        run(PROGRAM, "resize:200x150:exact", f"photos/{name}", "expected.jpg", "--quality", "80")
        same_file(f"small-{pathlib.Path(name).stem}.jpg", "expected.jpg")


def check_bytes(left):
    run(PROGRAM, "gaussian:8", "photo.jpg", "expected.jpg", "--quality", "80")
    assert left["answer"] == pathlib.Path("expected.jpg").read_bytes()
    try:
        left["blur"](b"no image")
    except SystemExit as end:
        assert str(end).startswith("400 Bad Request: "), end
    else:
        raise AssertionError("bytes that are no image were taken")


def check_frames(left):
    frame, edges = left["both"][:, :1920].copy(), left["both"][:, 1920:]
    assert numpy.array_equal(edges, gpuconv.filter(frame, "sobel"))
    frame[100:200, 300:500] = gpuconv.filter(frame[100:200, 300:500].copy(), "box:15")
    assert numpy.array_equal(left["frame"], frame)


def check_taps(left):
    pathlib.Path("relief.txt").write_text("offset 128\n-2 -1 0\n-1 0 1\n0 1 2\n")
    run(PROGRAM, "--flip", "./relief.txt", "photo.jpg", "expected.png")
    assert numpy.array_equal(left["convolved"], gpuconv.read("expected.png"))
    assert left["thirds"].exact and left["floats"].exact and left["floats"].margins == (1, 1, 1, 1)


def check_entry_point(pytest):
    """From here on, pytest finds the plugin as where the wheel is installed. It loads nothing else."""
    import tomllib
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    distribution = pathlib.Path("gpuconv-0.dist-info")
    distribution.mkdir()
    distribution.joinpath("METADATA").write_text("Name: gpuconv\nVersion: 0\n")
    distribution.joinpath("entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items()) for group, names in points.items()))
    status, said = pytest()  # with conftest.py, too
    assert status == 1 and "golden/drawing.png does not exist" in said, said
    os.remove("conftest.py")
    pathlib.Path("test_none.py").write_text("import sys\ndef test_none(): print('loaded', *sys.modules)\n")
    loaded = [{*re.search("loaded .*", pytest(*words, "-s", first="test_none.py")[1])[0].split()}
              for words in ([], ["-p", "no:gpuconv_pytest"])]
    assert loaded[0] - loaded[1] == {"gpuconv_pytest"}, loaded[0] - loaded[1]
    os.remove("test_none.py")


def check_pytest(_left, workers=()):
    path = f"{os.environ['PYTHONPATH']}:{os.getcwd()}"

    def pytest(*words, first="recipe.py"):
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, first],
                              capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=path))
        return done.returncode, done.stdout
    pathlib.Path("conftest.py").write_text('pytest_plugins = ["gpuconv.testing"]\n')
    assert pytest("--update-images", *workers)[0] == 0
    shutil.rmtree("golden")
    check_entry_point(pytest)
    status, said = pytest()
    assert status == 1 and "golden/drawing.png does not exist; see gpuconv-differences/golden/drawing.png" in said, said
    status, said = pytest("--update-images", *workers)
    assert status == 0 and "1 passed" in said and "--update-images wrote golden/drawing.png\n" in said, said
    first = pathlib.Path("golden/drawing.png").read_bytes()
    status, said = pytest(*workers)
    assert status == 0 and "1 passed" in said and not os.path.exists("gpuconv-differences/index.html"), said
    golden = gpuconv.read("golden/drawing.png")
    golden.array[5, 6] ^= 128
    gpuconv.write("golden/drawing.png", golden)
    pathlib.Path("test_more.py").write_text("""import gpuconv.testing, numpy, pytest
@pytest.mark.parametrize("name", [f"more{i}" for i in range(12)])
def test_more(name):
    gpuconv.testing.assert_images_equal(numpy.zeros((20, 20), "uint8"), f"{name}.png")
""")
    status, said = pytest(*workers, "test_more.py")
    assert status == 1 and "drawing.png: 1 pixels differ by more than 2" in said, said
    assert gpuconv.read("gpuconv-differences/golden/drawing-difference.png").array[5, 6].any()
    page = pathlib.Path("gpuconv-differences/index.html").read_text()
    assert page.count("<h2>") == 13 and page.count("<img") == 12 + 3, page
    status, said = pytest(*workers, "--update-images")
    assert status == 0 and pathlib.Path("golden/drawing.png").read_bytes() == first, said
    golden.array[5, 6] ^= 128
    golden.array[6, 5] ^= 1
    gpuconv.write("golden/drawing.png", golden)
    status, said = pytest(*workers, "--update-images", "test_more.py")
    assert status == 0 and "left 1 images that differ within the tolerance" in said and "wrote golden" not in said, said
    pathlib.Path("test_arrays.py").write_text("""import gpuconv.testing, numpy, pytest
@pytest.mark.parametrize("level", range(6))
def test_array(level):
    gpuconv.testing.assert_images_equal(numpy.full((20, 20), level, "uint8"), numpy.full((20, 20), 9, "uint8"))
""")
    status, said = pytest(*workers, "test_arrays.py")
    for level in range(6):
        picture = gpuconv.read(f"gpuconv-differences/test_arrays.py-test_array-{level}.png")
        assert status == 1 and (picture.array == level).all(), said


def check_xdist(left):
    check_pytest(left, ("-n", "2"))


def check_torch(left):
    images = left["images"].numpy()
    expected = gpuconv.filter(images, "gaussian:1.5", border="reflect", layout="chw")
    assert numpy.array_equal(numpy.concatenate([batch.cpu().numpy() for batch in left["batches"]]), expected)


def check_loader(left):
    result = numpy.concatenate([batch.cpu().numpy() for batch in left["batches"]])
    for name, planes in zip(sorted(PHOTOS), result, strict=True):
        run(PROGRAM, "cover:224x224", f"photos/{name}", "expected.png")
        assert (planes.transpose(1, 2, 0) == numpy.atleast_3d(gpuconv.read("expected.png"))).all(), name


def check_compile(left):
    image = left["image"].detach().requires_grad_()
    (image - gpuconv.filter(image, "gaussian:2", border="reflect", layout="chw")).square().mean().backward()
    assert numpy.allclose(image.grad, left["image"].grad, rtol=0, atol=1e-8)


def check_server(left):
    run(PROGRAM, "--strip", "resize:320x320", "photo.jpg", "expected.jpg", "--quality", "80", "--subsampling", "420")
    expected = gpuconv.read("expected.jpg")
    assert len(left["answers"]) == 3 and all(gpuconv.compare(expected, gpuconv.read(one)) for one in left["answers"])


def check_cupy(left):
    assert numpy.array_equal(left["image"].get(), gpuconv.read("photo.jpg"))
    assert numpy.array_equal(left["edges"].get(), gpuconv.filter(left["image"].get(), "sobel"))


def check_jax(left):
    image = numpy.asarray(left["image"])
    assert numpy.array_equal(numpy.asarray(left["edges"]), gpuconv.filter(image, "sobel"))
    assert numpy.allclose(left["mean"], abs(image - gpuconv.filter(image, "gaussian:2")).mean())


def check_dask(left):
    assert numpy.array_equal(left["blurred"], gpuconv.filter(left["picture"].compute(), left["blur"]))


def check_ray(left):
    for name, result in zip(sorted(PHOTOS), left["results"]):
        run(PROGRAM, "unsharp:1:0.5", f"photos/{name}", "expected.png")
        assert result == pathlib.Path("expected.png").read_bytes(), name


def tensor_of(name, resize, crop, mean, std):
    """The tensor of a photo by NumPy and the filter of Pillow 13: the shorter side, and the middle of it."""
    photo = numpy.atleast_3d(gpuconv.read(name))[..., :3]
    (height, width), short = photo.shape[:2], min(photo.shape[:2])
    size = f"{resize * width // short}x{resize * height // short}"
    photo = gpuconv.filter(numpy.ascontiguousarray(photo), f"resize:{size}:exact:pillow-bicubic")
    y, x = (round((side - crop) / 2) for side in photo.shape[:2])
    levels = (photo[y:y + crop, x:x + crop] / 255).astype("float32")
    return numpy.moveaxis((levels - numpy.float32(mean)) / numpy.float32(std), 2, 0)


def check_dataset(left):
    tensors = [tensor.numpy() for batch in left["batches"] for tensor in batch]
    assert len(tensors) == len(PHOTOS)
    for name, tensor in zip(sorted(PHOTOS), tensors):
        expected = tensor_of(f"photos/{name}", 256, 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        assert numpy.array_equal(tensor, numpy.broadcast_to(expected, tensor.shape)), name


def check_serve(left):
    assert len(left["answers"]) == 3 and 0 <= left["answers"][0] < 10, left["answers"]
    try:
        left["classify"]([open("photo.jpg", "rb").read(), b"no image"])
    except SystemExit as end:
        assert str(end).startswith("400 Bad Request: picture 1 of the list: "), end
    else:
        raise AssertionError("bytes that are no image were taken")


def check_processor(left):
    import PIL.Image
    import transformers
    kind = getattr(transformers, "CLIPImageProcessorPil", None) or transformers.CLIPImageProcessor
    theirs = kind.from_pretrained("model")(list(map(PIL.Image.open, sorted(pathlib.Path("photos").iterdir()))),
                                           return_tensors="np").pixel_values
    assert numpy.array_equal(left["inputs"]["pixel_values"].numpy(), theirs)
    again = left["processor"](left["inputs"]["pixel_values"].new_zeros(2, 9, 9, 3).byte(), return_tensors="np")
    assert again["pixel_values"].shape == (2, 3, 224, 224)


def check_tensors(left):
    tensors = numpy.concatenate(left["tensors"])
    assert tensors.shape == (3, 3, 224, 224) and tensors.dtype == "float16"
    assert numpy.array_equal(tensors, left["preprocess"](left["paths"]))


# The file of a model, as transformers writes it.
CONFIG = {"image_processor_type": "CLIPImageProcessor", "do_convert_rgb": True, "do_resize": True, "resample": 3,
          "size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": {"height": 224, "width": 224},
          "do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True,
          "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}


def main():
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    recipes = dict(re.findall(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", page, re.S))
    assert all(f"check_{name}" in globals() for name in recipes), recipes.keys()
    if NAME == "cupy" and gpuconv.gpus() == 0:
        skip("there is no GPU")
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        os.chdir(folder)
        os.environ.update(HOME=folder, RAY_AUTH_MODE="disabled")
        os.mkdir("photos")
        os.mkdir("model")
        pathlib.Path("model/preprocessor_config.json").write_text(json.dumps(CONFIG))
        for name in PHOTOS:
            shutil.copy(ROOT / "samples" / name, "photos")
        shutil.copy("photos/rocket.jpg", "photo.jpg")
        pathlib.Path("recipe.py").write_text(recipes[RECIPE], encoding="utf-8")
        left = {"__name__": "recipe"}
        exec(compile(recipes[RECIPE], "recipe.py", "exec"), left)
        globals()[f"check_{NAME}"](left)
        os.chdir("/")


if __name__ == "__main__":
    main()
