#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The operator gpuconv::filter of PyTorch: torch_operator.py ROOT.

A gradient is compared with the product by the filter's matrix, whose rows are the results for unit vectors. Functions
are compiled to one graph, and exported."""
import io
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run_tests, skip  # noqa: E402

need_module("numpy")
need_module("torch")
import numpy  # noqa: E402
import torch  # noqa: E402

import gpuconv  # noqa: E402

if not hasattr(torch.library, "custom_op"):
    skip("this PyTorch is older than 2.4")
warnings.simplefilter("ignore", gpuconv.ImageWarning)  # a resize repeats the edge
torch.manual_seed(1)

BORDERS = "replicate", "reflect", "reflect101", "wrap", "zero"
TAPS = gpuconv.Filter(numpy.random.default_rng(1).integers(-5, 9, (4, 6)), scale=7, anchor=(1, 3), offset=9)
CHAIN = gpuconv.Filter("sharpen,motion:9:30")


# ---- The gradient ----

def check_gradient(taps, shape, **options):
    image = torch.rand(shape, requires_grad=True)
    result = gpuconv.filter(image, taps, **options)
    offset = gpuconv.filter(torch.zeros(shape), taps, **options)
    matrix = torch.stack([(gpuconv.filter(unit.reshape(shape), taps, **options) - offset).flatten()
                          for unit in torch.eye(image.numel())])
    gradient = torch.rand_like(result)
    result.backward(gradient)
    difference = (matrix @ gradient.flatten() - image.grad.flatten()).abs().max()
    assert difference <= 2e-6 * max(1, float(matrix.abs().sum(1).max())), (taps, shape, options, float(difference))


def test_gradients_of_taps():
    """Also where the filter is larger than the image."""
    for border in BORDERS:
        for taps in ("gaussian:2", "emboss", "unsharp:1:0.5", TAPS, TAPS.flip(), CHAIN, CHAIN.flip()):
            for layout, shape in (("hwc", (7, 5)), ("chw", (3, 4, 3)), ("hwc", (1, 1)), ("nhw", (2, 2, 6))):
                check_gradient(taps, shape, border=border, layout=layout)
            check_gradient(taps, (3, 4, 4), border=border, alpha="keep")
            check_gradient(taps, (4, 3, 2), border=border)
        check_gradient("blur", (2, 4, 4, 3), border=border, layout="chw", alpha="filter")
        check_gradient("blur", (2, 5, 3, 4), border=border, layout="chw")


def test_gradients_of_sizes():
    for name in ("resize:50%", "resize:9x8:exact:mitchell", "turn:90", "mirror:x", "crop:3x4+1+1", "pad:9x9:#fff",
                 "cover:3x6", "turn:270,gaussian:1,resize:60%:box"):
        for options, shape in (({}, (7, 5)), ({"layout": "chw"}, (3, 5, 4)), ({"alpha": "keep"}, (5, 5, 4)),
                               ({}, (5, 6, 4))):
            check_gradient(name, shape, **options)


def test_small_gradients():
    """An offset does not cost them their accuracy, and they have gradients themselves."""
    image = torch.rand((5, 6), requires_grad=True)
    gpuconv.filter(image, gpuconv.Filter([[1, 2, 1]], scale=4, offset=128), border="wrap").backward(
        torch.full((5, 6), 1e-12))
    assert torch.allclose(image.grad, torch.tensor(1e-12), rtol=1e-5, atol=0), image.grad
    wide = torch.rand((4, 3), dtype=torch.float64, requires_grad=True)
    for name in ("sharpen", "blur,resize:150%"):
        assert torch.autograd.gradgradcheck(lambda wide: gpuconv.filter(wide, name, border="reflect"), wide, eps=1,
                                            atol=1e-4)


def test_lists_and_outputs():
    image, out = torch.rand((3, 5, 4), requires_grad=True), torch.zeros((3, 5, 4))
    sum(one.sum() for one in gpuconv.filter([image, 2 * image], "blur", layout="chw", border="wrap")).backward()
    assert torch.allclose(image.grad, torch.full_like(image, 3))
    assert gpuconv.filter(image, "blur", layout="chw", out=out) is out and out.requires_grad
    for given in (torch.nn.Parameter(image), image):
        with torch.no_grad():
            result = gpuconv.filter(given, "sobel", layout="chw")
        expected = gpuconv.filter(image.detach(), "sobel", layout="chw")
        assert type(result) is torch.Tensor and torch.equal(result, expected)


def test_lists_of_outputs():
    """Outputs that are inputs, with a gradient."""
    x, y = torch.rand((3, 5, 4)), torch.rand((3, 5, 4))
    expected = gpuconv.filter([x.clone(), y.clone()], "emboss", layout="chw")
    weight = torch.ones((), requires_grad=True)
    results = gpuconv.filter([x * weight, y * weight], "emboss", layout="chw", out=[y, x])
    assert results[0] is y and torch.equal(y.detach(), expected[0]) and torch.equal(x.detach(), expected[1])
    assert y.requires_grad
    compiled = torch.compile(lambda x, y: gpuconv.filter([x, y], "emboss", layout="chw", out=[y, x]), fullgraph=True,
                             backend="aot_eager")
    x, y = torch.rand((3, 5, 4)), torch.rand((3, 5, 4))
    expected = gpuconv.filter([x.clone(), y.clone()], "emboss", layout="chw")
    compiled(x, y)
    assert torch.equal(y, expected[0]) and torch.equal(x, expected[1])


def test_wrong_calls():
    image = torch.rand((4, 5, 3), requires_grad=True)
    for name in ("sobel", "blur,sobel", "unsharp:1:0.5:2", gpuconv.Filter([[1, -1]], absolute=True)):
        expect(ValueError, "is not linear, so it has no gradient; give image.detach()", gpuconv.filter, image, name)
    for name in ("sepia", "blur,levels:10:200"):
        expect(ValueError, "changes each pixel by itself and has no gradient; give image.detach()", gpuconv.filter, image,
               name)
    for name in ("median", "blur,outline:1"):
        expect(ValueError, "puts samples in order and has no gradient; give image.detach()", gpuconv.filter, image, name)
    for name in ("gaussian:1@3x3+0+0", "pixelate:2", "blur,edge@50%x50%+0+0"):
        expect(ValueError, "has a region or squares and no gradient here; give image.detach()", gpuconv.filter, image, name)
    expect(ValueError, "premultiplied alpha has no gradient; give alpha='keep'", gpuconv.filter, image[..., :2], "blur",
           alpha="premultiply")
    batch, unknown = torch.rand((2, 3, 5, 4)), "the transforms of torch.func and forward gradients do not know"
    def blur(image):
        return gpuconv.filter(image, "blur", layout="chw")
    for transform in (torch.vmap(blur), torch.func.functionalize(blur), torch.func.jacrev(blur),
                      torch.func.jacfwd(blur), torch.vmap(torch.func.grad(lambda one: blur(one).sum())),
                      lambda one: torch.func.jvp(blur, (one,), (one,)), lambda one: torch.func.vjp(blur, one)):
        expect(TypeError, unknown, transform, batch)
        expect(TypeError, unknown, transform, torch.nn.Parameter(batch))
    expect(TypeError, unknown, torch.vmap(blur), batch.to(torch.uint8))
    with torch.autograd.forward_ad.dual_level():
        expect(TypeError, unknown, blur, torch.autograd.forward_ad.make_dual(batch, batch))
        assert torch.equal(blur(batch), gpuconv.filter(batch, "blur", layout="chw"))
    expect(TypeError, "is sparse or on 'meta'; give a dense tensor", blur, batch.to("meta"))
    expect(TypeError, "is sparse or on 'cpu'; give a dense tensor", blur, batch.to_sparse())
    expect(ValueError, "takes no context and no stream", gpuconv.filter, image, "blur", context=gpuconv.Context())
    expect(ValueError, "there is no border None; give", gpuconv.filter, image, "blur", border=None)
    expect(ValueError, "the input has 1 dimensions; give", gpuconv.filter, image[0, 0], "blur")
    expect(ValueError, 'there is no filter named "nope"', gpuconv.filter, image, "nope")


# ---- The graph ----

def test_operator():
    """PyTorch's own checks: what is said of the result without samples is true."""
    maps = torch.zeros((2, 6, 5, 4)).contiguous(memory_format=torch.channels_last)
    for arguments in ((torch.rand((2, 3, 8, 9), requires_grad=True), "blur", "wrap", "premultiply", False, "chw"),
                      (torch.rand((9, 7), requires_grad=True), "resize:50%"),
                      (maps, "blur", "zero", "premultiply", False, "chw"),
                      (torch.randint(0, 255, (5, 5, 4), dtype=torch.uint8), "turn:90,blur")):
        gpuconv.filter(arguments[0].detach(), arguments[1], layout="nhw" if arguments[0].ndim < 4 else "chw")
        torch.library.opcheck(torch.ops.gpuconv.filter, arguments)


def test_compile():
    """One graph, also for sizes that change, and with a gradient."""
    flipped, samples = TAPS.flip(), torch.rand((2, 3, 8, 9))

    def loss(image):
        first, second = gpuconv.filter([image.sin(), image], flipped, layout="chw", border="reflect")
        return (gpuconv.filter(first * second, [[1, 2, 1]], layout="chw", out=torch.empty_like(first)) ** 2).mean()

    def backend(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    graphs, compiled = [], torch.compile(loss, fullgraph=True, dynamic=True, backend=backend)
    for shape in ((2, 3, 12, 10), (3, 3, 8, 9), (4, 3, 20, 7)):
        image, other = (torch.ones(shape).cumsum(3).requires_grad_() for _ in range(2))
        compiled(image).backward()
        loss(other).backward()
        assert torch.allclose(image.grad, other.grad)
    assert len(graphs) == 1, len(graphs)
    small = torch.compile(lambda image: gpuconv.filter(image, "resize:50%", layout="chw") + 1, fullgraph=True,
                          backend="aot_eager")
    assert torch.equal(small(samples), gpuconv.filter(samples, "resize:50%", layout="chw") + 1)


def test_export():
    class Half(torch.nn.Module):
        def forward(self, image):
            return gpuconv.filter(image, "resize:50%,sharpen", layout="chw")

    samples, file = torch.rand((3, 8, 9)), io.BytesIO()
    torch.export.save(torch.export.export(Half(), (samples,)), file)
    file.seek(0)
    assert torch.equal(torch.export.load(file).module()(samples), Half()(samples))


run_tests(globals())
