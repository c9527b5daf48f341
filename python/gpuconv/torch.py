# SPDX-License-Identifier: MIT
"""The operator gpuconv::filter of PyTorch 2.4 or later, which torch.compile and torch.export keep in their graphs, and
which has a gradient.

gpuconv.filter uses it for tensors that need it: call that. Import this module before torch.export.load."""
import inspect

import torch

from . import _arrays, _filters, _library


def _size_of(step, height, width):
    """The height and the width of what the filter STEP makes of an image. A side that PyTorch does not know yet
    stays unknown, unless the filter has other steps than taps."""
    taps = _filters.of_key(step)
    if all("sums" in one for one in taps.describe()):
        return height, width
    width, height = taps.size(int(width), int(height))
    return height, width


def _empty(image, filter, layout):
    """A tensor for the result, without padding if the library takes channels as images."""
    row, column, _, _ = _arrays.axes_of(image.shape, layout, "input")
    size = _size_of(filter, image.shape[row], image.shape[column])
    if _arrays.are_many_images(image.shape, layout):
        image = image.contiguous()
    if size == (image.shape[row], image.shape[column]):
        return torch.empty_like(image)
    shape = list(image.shape)
    shape[row], shape[column] = size
    return image.new_empty(shape)


# CUDA graphs would not keep the order of calls. PyTorch before 2.7 takes no tags.
_TAGS = {"tags": [torch.Tag.cudagraph_unsafe]} if hasattr(torch.Tag, "cudagraph_unsafe") and \
    "tags" in inspect.signature(torch.library.custom_op).parameters else {}


# PyTorch 2.4 infers no schema from defaults that are strings.
_SCHEMA = '(Tensor image, str filter, str border="replicate", str? alpha=None, bool linear=False, ' \
    "str? layout=None) -> Tensor"


@torch.library.custom_op("gpuconv::filter", mutates_args=(), schema=_SCHEMA, **_TAGS)
def _operator(image, filter, border="replicate", alpha=None, linear=False, layout=None):
    image = image.detach().as_subclass(torch.Tensor)
    return _filters.filter_now(image, _filters.of_key(filter), border, alpha, linear, layout,
                               out=_empty(image, filter, layout), context=None, stream=None)


@_operator.register_fake
def _(image, filter, border="replicate", alpha=None, linear=False, layout=None):
    return _empty(image, filter, layout)


@torch.compiler.assume_constant_result
def _key_of(filter):
    return _filters.filter_of(filter)._key


def filter(image, filter, border, alpha, linear, layout, out, context, stream):
    """gpuconv.filter by the operator."""
    if context is not None or stream is not None:
        raise ValueError("a call that is compiled, or has a gradient, takes no context and no stream; leave them out")
    for values, key, name in (_filters.BORDERS, border, "border"), ({None: None} | _filters.ALPHAS, alpha, "alpha"), \
            (_arrays.AXES, layout, "layout"):
        _library.one_of(values, key, name)
    key = filter if isinstance(filter, str) else filter._key if isinstance(filter, _filters.Filter) else _key_of(filter)
    result = torch.ops.gpuconv.filter(image, key, border, alpha, _library.flag(linear, "linear"), layout)
    return result if out is None else out.copy_(result)


# ---- The gradient ----

# A filter of floats is a linear map, plus the offset. Its gradient is that of the result by the transposed map.

def _steps(filter):
    """The description of each filter of the chain, by its key."""
    parts = _filters.of_key(filter).describe()
    name = filter.rpartition(_filters.FLIPPED)[2]
    return [(filter if "\n" in name else filter.removesuffix(name) + part["name"], part) for part in parts]


def _without_offset(step, part):
    """The key of the step without its offset, which would cost small gradients their accuracy."""
    if not part["offset"]:
        return step
    rows = [part["taps"][start:start + part["width"]] for start in range(0, len(part["taps"]), part["width"])]
    return _filters.Filter(rows, scale=part["scale"], anchor=part["anchor"])._key


def _fold(padded, dim, before, count, border):
    """Add the samples of the border to those that they repeat: COUNT from BEFORE on."""
    index = torch.arange(-before, padded.shape[dim] - before, device=padded.device)
    period = {"wrap": count, "reflect": 2 * count, "reflect101": max(2 * count - 2, 1)}.get(border)
    if period is None:
        index = index.clamp(0, count - 1)
    elif border == "wrap":
        index = index % period
    else:
        index = torch.minimum(index % period, period - int(border == "reflect") - index % period)
    return torch.zeros_like(padded.narrow(dim, 0, count)).index_add(dim, index, padded)


def _transpose_taps(planes, step, part, height, width, border):
    step = _filters.FLIPPED + _without_offset(step, part)
    if border == "zero":
        return torch.ops.gpuconv.filter(planes, step, "zero", "filter", False, "nhw")
    right, left, below, above = _filters.of_key(step).margins  # flipped back
    padded = torch.nn.functional.pad(planes, (left, right, above, below))
    padded = torch.ops.gpuconv.filter(padded, step, "zero", "filter", False, "nhw")
    return _fold(_fold(padded, 1, above, height, border), 2, left, width, border)


def _transpose_resize(planes, part, height, width):
    """A resize is a matrix for the rows and one for the columns. The filter makes them of unit vectors."""
    def matrix(old, new):
        rows = torch.eye(old, dtype=planes.dtype, device=planes.device)[:, None]
        return torch.ops.gpuconv.filter(rows, f"resize:{new}x1:exact:{part['kernel']}", layout="nhw")[:, 0]
    return matrix(height, int(planes.shape[1])) @ planes @ matrix(width, int(planes.shape[2])).T


def _transpose_move(planes, step, height, width):
    """Samples go back to where they are from. Filtered rows and columns say where; the colour of pad is at most 1."""
    grid = torch.meshgrid(*(torch.arange(2, 2 + count, device=planes.device) for count in (height, width)),
                          indexing="ij")
    rows, columns = torch.ops.gpuconv.filter(torch.stack(grid).float(), step, layout="nhw").long()
    index = torch.where(rows >= 2, (rows - 2) * width + columns - 2, height * width).flatten()
    flat = planes.new_zeros(planes.shape[0], height * width + 1).index_add(1, index, planes.flatten(1))
    return flat[:, :-1].unflatten(1, (height, width))


def _transpose(planes, filter, height, width, border, keeps):
    """The gradient by images of (N, HEIGHT, WIDTH), where PLANES is that by their results. KEEPS: taps leave them."""
    steps, sizes = _steps(filter), [(height, width)]
    for step, _ in steps:
        sizes.append(_size_of(step, *sizes[-1]))
    for (step, part), size in reversed(list(zip(steps, sizes))):
        if "kernel" in part:
            planes = _transpose_resize(planes, part, *size)
        elif "move" in part:
            planes = _transpose_move(planes, step, *size)
        elif not keeps:
            planes = _transpose_taps(planes, step, part, *size, border)
    return planes


def _save(ctx, inputs, output):
    image, filter, _, alpha, _, layout = inputs
    for step, part in _steps(filter):
        if "region" in part or "square" in part:
            raise ValueError(f"the filter {part['name']} has a region or squares and no gradient here; give "
                             "image.detach(), or do the same with PyTorch")
        if "matrix" in part or "footprint" in part:
            does = "changes each pixel by itself" if "matrix" in part else "puts samples in order"
            raise ValueError(f"the filter {part['name']} {does} and has no gradient; give image.detach(), or do the "
                             "same with PyTorch")
        if part.get("combine", "none") != "none" or part.get("absolute") or part.get("threshold"):
            raise ValueError(f"the filter {part['name']} is not linear, so it has no gradient; give image.detach(), or "
                             "combine linear filters with PyTorch")
    channel = _arrays.AXES[layout][image.ndim][2]
    if alpha == "premultiply" and channel is not None and image.shape[channel] in (2, 4):
        raise ValueError("premultiplied alpha has no gradient; give alpha='keep', or alpha='filter' if the last "
                         "channel is like the others")
    ctx.inputs, ctx.shape = inputs[1:], image.shape


def _gradient(ctx, gradient):
    filter, border, alpha, _, layout = ctx.inputs
    row, column, channel, _ = _arrays.AXES[layout][gradient.ndim]
    height, width = ctx.shape[row], ctx.shape[column]

    def transpose(part, keeps):
        planes = part.movedim((row, column), (-2, -1))
        result = _transpose(planes.reshape(-1, *planes.shape[-2:]), filter, height, width, border, keeps)
        return result.reshape(*planes.shape[:-2], height, width).movedim((-2, -1), (row, column))

    result = transpose(gradient, False)
    if alpha == "keep" and channel is not None and gradient.shape[channel] in (2, 4):
        last = gradient.shape[channel] - 1
        kept = transpose(gradient.narrow(channel, last, 1), True)
        result = torch.cat([result.narrow(channel, 0, last), kept], channel)
    return result, None, None, None, None, None


_operator.register_autograd(_gradient, setup_context=_save)
