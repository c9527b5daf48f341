# SPDX-License-Identifier: MIT
"""Pictures to a tensor, as vision models are trained on them."""
import functools
import importlib
import json
import os
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy

from . import _arrays, _library, _lists
from ._context import Context, chosen_context
from ._images import _content_of, colour_of, view_of

_KINDS = {kind: kind for kind in ("float32", "float16", "bfloat16", "uint8")}


# ---- Sizes ----

def _sides(value, name):
    """[height, width] of VALUE, which is that or one number for both."""
    values = value if isinstance(value, (list, tuple)) else (value, value)
    sides = [_library.integer(side, name).value for side in values]
    if len(sides) != 2 or min(sides) < 1:
        raise ValueError(f"{name} is {value}; give 1 or more pixels, or (height, width)")
    return sides


# The first pixel of a centre crop of SIDE pixels. It is below 0 where the crop is larger.
_CROP_RULES: dict[str, Callable[[int, int], int]] = {
    "torchvision": lambda side, crop: round((side - crop) / 2) if side > crop else -((crop - side) // 2),
    "transformers": lambda side, crop: (side - crop) // 2}


def _place(width, height, resize, crop, pad, find_first):
    """For a picture of WIDTH x HEIGHT: its struct gpuconv_placement, and the (height, width) of the result. PAD fits it
    in RESIZE, as ImageOps.pad of Pillow does."""
    new = width, height
    if pad:
        new = resize[1], resize[0]
        if width / height > new[0] / new[1]:
            new = new[0], max(round(height / width * new[0]), 1)
        elif width / height < new[0] / new[1]:
            new = max(round(width / height * new[1]), 1), new[1]
        return (*new, *(-round((side - own) / 2) for side, own in zip(resize[::-1], new))), tuple(resize)
    if isinstance(resize, int):
        new = (resize, resize * height // width) if width <= height else (resize * width // height, resize)
    elif resize is not None:
        new = resize[1], resize[0]
    if crop is None:
        return (*new, 0, 0), new[::-1]
    return (*new, *map(find_first, new, crop[::-1])), tuple(crop)


# ---- Samples ----

def _numbers(value, name, counts=(1, 3)):
    """VALUE, one number or several, as a tuple of one of the COUNTS."""
    values = tuple(_library.real(one, name) for one in (value if hasattr(value, "__iter__") else (value,)))
    if len(values) not in counts or not numpy.isfinite(values).all() or name == "std" and 0 in values:
        words = {"rescale": "a number", "std": "1 or 3 numbers other than 0"}
        raise ValueError(f"{name} is {value}; give {words.get(name, '1 or 3 numbers')}")
    return values


@functools.lru_cache(maxsize=64)
def _levels(rescale, mean, std):
    """The samples that the levels 0 to 255 of each channel become, rounded after each step as transformers and
    torchvision do."""
    levels = (numpy.arange(256.0) * rescale).astype("float32")
    mean, std = (numpy.broadcast_to(numpy.float32(value), 3)[:, None] for value in (mean, std))
    return numpy.ascontiguousarray((levels - mean) / std)


def _new(shape, kind, device, memory):
    """A new array of NumPy, a tensor of PyTorch on the CPU, or an array in MEMORY on a GPU."""
    try:
        if memory is not None or device is None:
            return numpy.empty(shape, kind) if memory is None else memory.empty(shape, kind)
        torch = importlib.import_module("torch")
        return torch.empty(shape, dtype=getattr(torch, kind))
    except TypeError:
        raise TypeError("NumPy and CuPy do not have bfloat16; import torch, and give device='cpu' or 'cuda'") from None
    except ImportError:
        raise TypeError("device='cpu' is for tensors of PyTorch; install it, or leave device out") from None


# ---- Sources ----

def _source_view(image, has_background):
    """The View of an array, or of a Pillow image of any mode."""
    if _arrays.is_like(_arrays.PILLOW, image) and image.mode not in ("L", "LA", "RGB", "RGBA", "I;16"):
        image = image.convert("RGBA" if has_background else "RGB")
    return view_of(image, "image", takes_device=True)


def _take(sources, is_list, has_background, context, options):
    """The files and the Views of SOURCES for the library, the sizes of the pictures, their names, and the owners of the
    memory."""
    are_files = numpy.array([one.ndim == 1 if hasattr(one, "ndim") else hasattr(one, "read") or isinstance(
        one, (str, bytes, bytearray, memoryview, os.PathLike)) for one in sources])
    names = [f"picture {index} of the list" if is_list else None for index in range(len(sources))]
    contents = [_content_of(one, name) for one, name, is_file in zip(sources, names, are_files) if is_file]
    files, views = numpy.zeros((len(sources), 2), numpy.uintp), numpy.zeros(len(sources), _library.View)
    files[are_files], kept = _lists._bytes_of([content for content, _ in contents])
    views[~are_files], owners = _arrays.many_views([one for one, is_file in zip(sources, are_files) if not is_file],
                                                   None, lambda one: _source_view(one, has_background))
    sizes = numpy.stack([views["width"], views["height"]], 1)
    for index, (_, name) in zip(are_files.nonzero()[0], contents):
        names[index] = name
    if are_files.any():
        errors = _lists._Errors([name for _, name in contents])
        infos, pointer = numpy.zeros(len(errors.names), _lists._INFO), _lists._pointer(files[are_files], _library.Bytes)
        errors.check(_library.inspect_all(context, pointer, len(infos), options,
                                          _lists._pointer(infos, _library.FileInfo), errors.errors))
        sizes[are_files] = numpy.stack([infos["width"], infos["height"]], 1)
    return files, views, sizes.tolist(), names, (kept, owners)


# ---- Preprocess ----

def preprocess(source: Any, *, resize: int | Sequence[int] | None = None, crop: int | Sequence[int] | None = None,
               pad: int | str | None = None, kernel: str = "pillow-bicubic",
               crop_rule: Literal["torchvision", "transformers"] = "torchvision", background: int | str | None = None,
               rescale: float = 1 / 255, mean: float | Sequence[float] = 0, std: float | Sequence[float] = 1,
               dtype: Any = "float32", layout: Literal["chw", "hwc"] = "chw", keep_orientation: bool = False,
               max_pixels: int = 0, device: Any = None, context: Context | None = None) -> Any:
    """Make a tensor of pictures, as vision models take them.

    source: a path, a file that is open for reading bytes, the bytes of a file, an Image, a Pillow image, or an array of
        (H, W) or (H, W, C), uint8 or uint16; or a list of these. A list gives (N, 3, H, W), and one picture (3, H, W).
        Arrays may be on the GPU of DEVICE, if they are of uint8, the kernel is one of Pillow's, and background is None.
    resize: the length of the shorter side, or (height, width); None leaves the size.
    crop: the side of a square in the middle, or (height, width). A smaller picture gets black around it.
    pad: keep the ratio, so that the picture fits in RESIZE, and give the rest this colour: "white", "#7f7f7f" or
        0x7f7f7f. The picture is in the middle.
    kernel: a word of the filter "resize", such as "pillow-bilinear", "pillow12-bicubic" or "lanczos3".
    crop_rule: where the middle begins if there is an odd number of pixels beside it: as in the CenterCrop of
        torchvision, or as in transformers.
    background: the colour below alpha; None drops alpha, as Pillow's convert("RGB") does.
    rescale, mean, std: a level from 0 to 255 becomes (level * rescale - mean) / std, in float32, each step rounded.
        MEAN and STD are one number, or three.
    dtype: "float32", "float16", "bfloat16", or "uint8" for the levels as they are.
    layout: of the result: "chw", or "hwc" for (N, H, W, 3).
    keep_orientation, max_pixels: of files, as for read().
    device: None gives an array of NumPy, "cpu" a tensor of PyTorch, and "cuda" or "cuda:1" an array on that GPU, of
        PyTorch if it is imported, else of CuPy.

    The samples are the same on every machine and on a GPU. Pictures that end with several sizes are a ValueError.

    Raises ImageError for damaged and for unsupported files, of the first one in a list; ValueError, TypeError, OSError,
    MemoryError, GpuError."""
    sources = source if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise ValueError("the list is empty, so that the tensor has no size; give one picture or more")
    if pad is not None or isinstance(resize, (list, tuple)):
        resize = _sides(resize, "resize")
    elif resize is not None:
        resize = _sides(resize, "resize")[0]
    if pad is not None and crop is not None:
        raise ValueError("pad gives all pictures one size; leave crop out")
    place = functools.lru_cache(maxsize=None)(functools.partial(
        _place, resize=resize, crop=None if crop is None else _sides(crop, "crop"),
        pad=pad is not None, find_first=_library.one_of(_CROP_RULES, crop_rule, "crop rule")))
    kind = getattr(dtype, "__name__", str(dtype).removeprefix("torch."))
    _library.one_of(_KINDS, kind if kind in _KINDS else dtype, "dtype")
    mean, std = _numbers(mean, "mean"), _numbers(std, "std")
    levels = None if kind == "uint8" else _levels(*_numbers(rescale, "rescale", (1,)), mean, std)
    if levels is None and (mean, std) != ((0,), (1,)):
        raise ValueError("uint8 holds the levels as they are; leave mean and std out, or give dtype='float32'")
    options = _library.PreprocessOptions(
        kernel=_library.text(kernel, "the kernel"), levels=None if levels is None else levels.ctypes.data,
        pad=0 if pad is None else colour_of(pad, "pad"), background=0 if background is None else colour_of(background),
        has_background=background is not None, decode=_library.DecodeOptions(
            max_pixels=max_pixels, keep_orientation=_library.flag(keep_orientation, "keep_orientation")))
    shape_of = _library.one_of({"chw": lambda size: (3, *size), "hwc": lambda size: (*size, 3)}, layout, "layout")
    memory = None if device is None or str(device) == "cpu" else _lists._memory(device)
    gpus = {_arrays.device_of(one) for one in sources if _arrays.is_on_device(one)}
    if memory is not None and gpus - {memory.number}:
        raise ValueError(f"the pictures are on the GPUs {sorted(gpus)}, and the device is {memory.number}; copy them")
    context = chosen_context(context, memory and memory.number)
    files, views, sizes, names, _kept = _take(sources, sources is source, background is not None, context,
                                              options.decode)
    places, sizes = zip(*(place(*size) for size in sizes))
    if len(set(sizes)) > 1:
        raise ValueError("the pictures become {} x {} and {} x {} pixels, height x width; give crop=, pad=, or "
                         "resize=(height, width)".format(*sizes[0], *next(size for size in sizes if size != sizes[0])))
    result = _new((len(sources), *shape_of(sizes[0])), kind, device, memory)
    if memory is not None:
        options.decode.stream = memory.stream
    places, errors = numpy.array(places).clip(-2**31, 2**31 - 1).astype("int32"), _lists._Errors(names)
    options.placements = places.ctypes.data
    errors.check(_library.preprocess_all(context, _lists._pointer(files, _library.Bytes),
                                         _lists._pointer(views, _library.View), len(sources), options,
                                         _arrays.direct_view(result, layout, "output"), errors.errors))
    return result if sources is source else result[0]


# ---- Configs of transformers ----

# The image processors of transformers that do only what preprocess() does. If their size is one number, it is that of
# both sides (True) or of the shorter one (False).
_SQUARE = {"Beit": True, "Bit": False, "Blip": True, "CLIP": False, "ChineseCLIP": False, "DeiT": True,
           "MobileNetV1": False, "Pvt": True, "Siglip": False, "ViT": True}
_KERNELS = "nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"  # by Pillow's number
_FIELDS = {"image_processor_type", "feature_extractor_type", "processor_class", "do_convert_rgb", "do_resize", "size",
           "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize", "image_mean",
           "image_std", "_valid_processor_keys", "transformers_version"}


def from_config(config: "str | os.PathLike[str] | dict[str, Any]", **options: Any) -> Callable[..., Any]:
    """preprocess() with the options that do what preprocessor_config.json of a model says: its path, or a dict. The
    samples are those of the image processors of transformers that use Pillow. OPTIONS replace those of the config, or
    add others, such as dtype= and background="white".

    Raises ValueError for what preprocess() does not do; OSError."""
    if not isinstance(config, dict):
        path = os.fsdecode(_library.text(config, "the config"))
        try:
            config = dict(json.loads(pathlib.Path(path).read_bytes()))
        except (ValueError, TypeError):
            raise ValueError(f"{path} is not the JSON of a config; give preprocessor_config.json of a model") from None

    def get(name):
        if config.get(name) is None:
            raise ValueError(f"the config has no {name}; add it, as transformers writes it")
        return config[name]

    def size_of(name):
        size = get(name)
        if isinstance(size, dict):
            size = {key: side for key, side in size.items() if side is not None}
            if set(size) == {"shortest_edge"} and name == "size":
                return size["shortest_edge"]
            if set(size) != {"height", "width"}:
                raise ValueError(f"the config has the {name} {size}; give shortest_edge, or height and width")
            return size["height"], size["width"]
        return size if name == "size" and not is_square or not isinstance(size, int) else (size, size)

    kind = str(config.get("image_processor_type") or config.get("feature_extractor_type"))
    is_square = _SQUARE.get(re.sub("(ImageProcessor(Fast|Pil)?|FeatureExtractor)$", "", kind))
    if is_square is None:
        raise ValueError(f"the config is for {kind}; give a config for " + ", ".join(sorted(_SQUARE)))
    for name, value in config.items():
        if name not in _FIELDS and value not in (None, False, "channels_first"):
            raise ValueError(f"the config has {name} = {value!r}, which this does not do; use transformers")
    made: dict[str, Any] = {"crop_rule": "transformers", "rescale": 1}
    if get("do_resize"):
        made["resize"] = size_of("size")
        made["kernel"] = "pillow-" + _library.one_of(dict(enumerate(_KERNELS)), get("resample"), "resample")
    if config.get("do_center_crop"):
        made["crop"] = size_of("crop_size")
    if config.get("do_rescale", True):  # old files do not say so
        made["rescale"] = config.get("rescale_factor", 1 / 255)
    if get("do_normalize"):
        made |= {"mean": get("image_mean"), "std": get("image_std")}
    elif made["rescale"] == 1:
        made["dtype"] = "uint8"
    return functools.partial(preprocess, **made | options)


preprocess.from_config = from_config  # type: ignore[attr-defined]
