# SPDX-License-Identifier: MIT
"""aten ops in programs: what each means, against torch in float64."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import cklang.torch
from tests.support.torch_models import cast

pytestmark = pytest.mark.usefixtures("torch", "fresh")

Function = Callable[..., Any]

OPTIONS: dict[str, Any] = {"reference": True}


def run(function: Function, *args: Tensor) -> tuple[Tensor, ...]:
    """Return the results of a function whose programs their reference computes."""
    compiled = torch.compile(function, backend="cklang", options=OPTIONS, fullgraph=True)
    with torch.no_grad():
        results = compiled(*args)
    return results if isinstance(results, tuple) else (results,)


def expect_same(function: Function, *args: Tensor, eager: tuple[str, ...] = ()) -> None:
    """Expect what torch gives, with nothing in eager torch but the ops ``eager``."""
    got = run(function, *args)
    with torch.no_grad():
        wide = function(*(cast(each, torch.float64) for each in args))
        like = function(*args)
    wide, like = (each if isinstance(each, tuple) else (each,) for each in (wide, like))
    report = cklang.torch.report(clear=True)
    names = {node.op for graph in report.graphs for node in graph.eager}
    assert names == set(eager), str(report)
    for ours, exact, theirs in zip(got, wide, like, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        bound = {torch.float16: 3e-3, torch.float32: 3e-6}.get(ours.dtype, 0.0)
        torch.testing.assert_close(
            ours.double(), exact.double(), rtol=bound, atol=bound, equal_nan=True
        )


def normal(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)


X, Y = normal(3, 5, 16), normal(5, 16)
POSITIVE = normal(3, 16).abs() + 0.5
SMALL = normal(4, 8, dtype=torch.float32)

POINTWISE: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "arithmetic": (lambda x, y: ((x + y) * x - y, x / (y.abs() + 1), -x), (X, Y)),
    "alpha": (lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), 3 - x), (X, Y)),
    "powers": (lambda x: (x**2, x**3, x**0.5, x**-1, 2**x, x.rsqrt()), (POSITIVE,)),
    "logarithms": (lambda x: (x.log(), x.log1p(), x.log2(), x.exp(), x.expm1()), (POSITIVE,)),
    "rounding": (lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign()), (X,)),
    "bounds": (lambda x, y: (x.clamp(-1, 1), x.clamp_min(0), torch.maximum(x, y), x.abs()), (X, Y)),
    "activations": (
        lambda x: (
            functional.relu(x),
            functional.silu(x),
            functional.gelu(x),
            functional.gelu(x, approximate="tanh"),
            x.sigmoid(),
        ),
        (X,),
    ),
    "more activations": (
        lambda x: (
            functional.leaky_relu(x, 0.2),
            functional.elu(x),
            functional.hardtanh(x),
            functional.softplus(x),
            x.tanh(),
            x.erf(),
        ),
        (X,),
    ),
    "choices": (lambda x, y: (torch.where(x > y, x, y), torch.where(x <= 0, 0.0, x)), (X, Y)),
    "masks": (
        lambda x, y: (x.masked_fill((x > 0) & ~(y > x), -3.0), torch.where(x.isnan(), 0.0, x)),
        (X, Y),
    ),
    "dtypes": (lambda x: (x.float(), x.to(torch.bfloat16).float(), (x > 0).to(x.dtype)), (X,)),
    "numbers": (
        lambda x: (x + torch.full((16,), 2.0, dtype=x.dtype), torch.zeros_like(x) - x),
        (X,),
    ),
    "rows and columns": (lambda x, y: (x * y[:, :1], x + y[None], x - x[:, :, 3:4]), (X, Y)),
}


ROWS: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "sums": (lambda x: (x.sum(-1), x.sum((0, 2), keepdim=True), x.sum()), (SMALL[None],)),
    "means": (lambda x: (x.mean(1), x.mean(), x.mean((0, 1), keepdim=True)), (SMALL[None],)),
    "extremes": (lambda x: (x.amax(-1), x.amin(0), x.amax((0, 1))), (SMALL,)),
    "indices": (lambda x: (x.argmax(-1), x.argmin(0), x.argmax()), (SMALL,)),
    "extremes and indices": (lambda x: (*x.max(-1), *x.min(0, keepdim=True)), (SMALL,)),
    "norms of vectors": (
        lambda x: (torch.linalg.vector_norm(x, dim=0), x.norm(1), x.norm(math.inf, -1)),
        (SMALL,),
    ),
    "batch norm by the batch's statistics": (
        lambda x, g, b: functional.batch_norm(x, None, None, g, b, training=True),
        (normal(3, 16, 4, 5), Y[0], Y[1]),
    ),
    "instance norm": (functional.instance_norm, (normal(3, 8, 4, 5),)),
    "variances": (lambda x: (x.var(-1), x.var(0, correction=0), x.std(-1)), (SMALL,)),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(0)), (SMALL,)),
    "layer norm": (lambda x, g, b: functional.layer_norm(x, (5, 16), g, b), (X, Y, Y - 1)),
    "layer norm without gain": (lambda x: functional.layer_norm(x, (16,)), (X,)),
    "rms norm": (lambda x, g: functional.rms_norm(x, (16,), g, 1e-5), (X, Y[0])),
    "group norm": (
        lambda x, g, b: functional.silu(functional.group_norm(x, 4, g, b)),
        (normal(2, 16, 3, 3), Y[0], Y[1]),
    ),
    "group norm of rows": (lambda x: functional.group_norm(x, 2), (normal(2, 6, 7),)),
    "batch norm": (
        lambda x, m, v, g, b: functional.batch_norm(x, m, v, g, b),
        (normal(2, 16, 3, 3), Y[0], Y[1].abs() + 1, Y[2], Y[3]),
    ),
    "means of images": (lambda x: functional.adaptive_avg_pool2d(x, 1) * 2, (normal(2, 16, 3, 5),)),
    "maxima of windows": (
        lambda x: functional.max_pool2d(functional.relu(x), 3, 2, 1) * 2,
        (normal(2, 8, 7, 6),),
    ),
    "channels last": (
        lambda x: functional.max_pool2d(x, (2, 3)) + 1,
        (normal(2, 8, 7, 6).to(memory_format=torch.channels_last),),
    ),
    "means of windows": (
        lambda x: (
            functional.avg_pool2d(x, 3, 2, 1)
            + functional.avg_pool2d(x, (3, 3), (2, 2), (1, 1), count_include_pad=False)
        ),
        (normal(2, 8, 7, 6),),
    ),
    "windows over volumes": (
        lambda x: (
            functional.max_pool3d(x * 2, 3, 2, 1),
            functional.avg_pool3d(x, (1, 2, 2), count_include_pad=False),
            functional.adaptive_avg_pool3d(x, (2, 1, 3)),
        ),
        (normal(2, 3, 4, 5, 6, dtype=torch.float32),),
    ),
    "means of equal parts": (
        lambda x: functional.adaptive_avg_pool2d(x, (2, 3)) + 1,
        (normal(2, 8, 6, 6),),
    ),
}


A, B, W = normal(6, 8), normal(8, 10), normal(10, 8)
PRODUCTS: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "mm": (lambda a, b: a @ b, (A, B)),
    "transposed": (lambda a, b: a.t().contiguous() @ b.t(), (A, normal(10, 6))),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (normal(10), A, B)),
    "linear": (
        lambda x, w, b: functional.relu(functional.linear(x, w, b)),
        (normal(2, 3, 8), W, normal(10)),
    ),
    "batches": (lambda a, b: (a @ b).transpose(1, 2) + 1, (normal(3, 4, 8), normal(3, 8, 5))),
    "heads": (
        lambda a, b: (a.view(2, 4, 3, 8).transpose(1, 2) @ b).transpose(1, 2).reshape(2, 4, 15),
        (normal(2, 4, 24), normal(2, 3, 8, 5)),
    ),
    "added batches": (torch.baddbmm, (normal(3, 1, 5), normal(3, 4, 8), normal(3, 8, 5))),
    "one row": (lambda x, w: x[0] @ w, (A, B)),
    "many rows": (
        lambda x, w: functional.linear(x, w).flatten(0, 2).sum(0),
        (normal(2, 3, 4, 8), W),
    ),
    "weight gradient": (
        lambda g, x: g.flatten(0, 1).t() @ x.flatten(0, 1),
        (normal(2, 3, 10), normal(2, 3, 8)),
    ),
}


IMAGE = normal(2, 8, 7, 6)
CONVOLUTIONS: Mapping[str, Function] = {
    "bias": lambda x, w, b: functional.relu(functional.conv2d(x, w, b, padding=1)),
    "strides": lambda x, w, b: functional.conv2d(x, w, b, stride=(2, 1), padding=(0, 2)),
    "dilation": lambda x, w, b: functional.conv2d(x, w, b + 1, dilation=2, padding="same"),
    "channels last": lambda x, w, b: functional.conv2d(
        x.contiguous(memory_format=torch.channels_last), w, b
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    expect_same(CONVOLUTIONS[name], IMAGE, normal(16, 8, 3, 3) / 4, normal(16))


@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolutions_and_their_gradients(stride: int) -> None:
    x, w, b = IMAGE.float(), normal(8, 4, 3, 3, dtype=torch.float32), normal(8, dtype=torch.float32)

    def convolve(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return functional.conv_transpose2d(x, w, b, stride, 1, stride - 1, 2) * 2

    expect_same(convolve, x, w, b)
    results = []
    for function in (convolve, torch.compile(convolve, backend="cklang", options=OPTIONS)):
        leaves = [tensor.clone().requires_grad_() for tensor in (x, w, b)]
        results.append(torch.autograd.grad(function(*leaves).square().mean(), leaves))
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not any(graph.eager for graph in cklang.torch.report().graphs)


@pytest.mark.parametrize("groups", [2, 8])
def test_groups_of_channels(groups: int) -> None:
    weight = normal(16, 8 // groups, 3, 3) / 4
    expect_same(lambda x, w: functional.conv2d(x, w, groups=groups), IMAGE, weight)


@pytest.mark.parametrize("spatial", [1, 3])
def test_convolutions_of_rows_and_volumes(spatial: int) -> None:
    convolve = {1: functional.conv1d, 3: functional.conv3d}[spatial]
    x, w = normal(2, 4, *[5] * spatial), normal(8, 4, *[3] * spatial) / 4
    expect_same(lambda x, w: convolve(x, w, padding=1), x, w)


def test_images_become_patches_without_a_copy() -> None:
    x, w = normal(2, 3, 8, 8), normal(16, 3, 4, 4) / 4
    expect_same(lambda x, w: functional.conv2d(x, w, stride=4).flatten(2).transpose(1, 2) * 2, x, w)


MOVES: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "views": (lambda x: (x * 2).view(15, 16).t()[None] + 1, (X,)),
    "squeezed": (lambda x: (x[:, None] * 2).squeeze(1).unsqueeze(-1) * 3, (X,)),
    "slices": (lambda x: (x * 1.5)[:, 1:4, ::2] + x[:, -3:, 8:], (X,)),
    "elements": (lambda x: (x[:, 2] + x[:, -1]) * 2, (X,)),
    "parts": (lambda x: torch.addcmul(*(x * 2)[..., :12].split((4, 4, 4), -1)), (X,)),
    "chunks": (lambda x: torch.mul(*x.chunk(2, -1)), (X,)),
    "unbound": (lambda x: torch.add(*(x * 2).view(3, 5, 2, 8).unbind(2)), (X,)),
    "joined": (lambda x, y: torch.cat([x * 2, y[None] - 1], 0) + 1, (X, Y)),
    "stacked": (lambda x: torch.stack([x * 2, x + 1], 1) * 3, (X,)),
    "expanded": (lambda y: (y * 2).expand(3, 5, 16) + 1, (Y,)),
    "merged axes": (lambda x: (x.transpose(0, 1) * 2).reshape(5, 48) + 1, (X,)),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_rows_of_a_table(dtype: torch.dtype) -> None:
    ids = torch.tensor([[1, 4, 0], [2, 2, 3]], dtype=dtype)
    expect_same(lambda ids, table: functional.embedding(ids, table) * 2, ids, Y)


def test_groups_of_rows_are_one_product() -> None:
    x, w = normal(20, 16, dtype=torch.bfloat16), normal(3, 8, 16, dtype=torch.bfloat16)
    ends = torch.tensor([5, 5, 20], dtype=torch.int32)

    def grouped(x: Tensor, w: Tensor, ends: Tensor) -> Tensor:
        return functional.silu(torch._grouped_mm(x, w.transpose(1, 2), ends))

    (result,) = run(grouped, x, w, ends)
    torch.testing.assert_close(result, grouped(x, w, ends), rtol=0.01, atol=0.01)
    (graph,) = cklang.torch.report(clear=True).graphs
    assert not graph.eager
    assert [kernel.family for kernel in graph.programs[0].plan.kernels] == ["gemm"]


def test_gradients_of_groups_of_rows_are_products_too() -> None:
    """torch does not define the gradient of rows that are in no group."""
    x, w = (t.requires_grad_() for t in (normal(20, 16), normal(3, 8, 16)))
    ends, dy = torch.tensor([5, 5, 20], dtype=torch.int32), normal(20, 8)

    def step(x: Tensor, w: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
        y = functional.silu(torch._grouped_mm(x.bfloat16(), w.bfloat16().transpose(1, 2), ends))
        return torch.autograd.grad(y.float(), (x, w), dy)

    wanted = step(x, w, ends)
    compiled = torch.compile(
        lambda x, w: functional.silu(
            torch._grouped_mm(x.bfloat16(), w.bfloat16().transpose(1, 2), ends)
        ).float(),
        backend="cklang",
        options={"reference": True},
    )
    got = torch.autograd.grad(compiled(x, w), (x, w), dy)
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0.03, atol=0.03)
    graphs = cklang.torch.report(clear=True).graphs
    assert not any(graph.eager for graph in graphs)


Q, K = normal(2, 4, 6, 16), normal(2, 2, 7, 16)
MASK = torch.arange(7) < torch.tensor([5, 7])[:, None]
ATTENTION: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "plain": (lambda q, k: functional.scaled_dot_product_attention(q, q, q, scale=0.3), (Q, K)),
    "grouped": (
        lambda q, k: functional.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (Q, K),
    ),
    "causal": (
        lambda q, k: functional.scaled_dot_product_attention(k, k, k, is_causal=True),
        (Q, K),
    ),
    "mask": (
        lambda q, k, m: functional.scaled_dot_product_attention(
            q, k, k, attn_mask=m[:, None, None], enable_gqa=True
        ),
        (Q, K, MASK),
    ),
    "bias": (
        lambda q, k, b: functional.scaled_dot_product_attention(
            q, k, k, attn_mask=b, enable_gqa=True
        ),
        (Q, K, normal(4, 6, 7)),
    ),
}


@pytest.mark.parametrize(
    ("function", "args"),
    [
        pytest.param(*case, id=name)
        for cases in (POINTWISE, ROWS, PRODUCTS, MOVES, ATTENTION)
        for name, case in cases.items()
    ],
)
def test_results_are_those_of_eager_torch(function: Function, args: tuple[Tensor, ...]) -> None:
    expect_same(function, *args)


def test_attention_is_one_kernel() -> None:
    run(ATTENTION["causal"][0], *ATTENTION["causal"][1])
    (graph,) = cklang.torch.report().graphs
    (program,) = graph.programs
    assert [kernel.family for kernel in program.plan.kernels] == ["attention"]


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_gradients_of_attention(kind: str) -> None:
    q, k, v = (normal(2, heads, 5, 8, dtype=torch.float32) for heads in (4, 2, 2))
    mask = normal(5, 5, dtype=torch.float32)
    if kind == "bool":
        mask = torch.ones(5, 5, dtype=torch.bool).tril()

    def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor = mask) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)

    tensors = [q, k, v] if kind == "bool" else [q, k, v, mask]
    compiled = torch.compile(attend, backend="cklang", options=OPTIONS, fullgraph=True)
    gradients = []
    for function in (compiled, attend):
        leaves = [each.clone().requires_grad_() for each in tensors]
        (function(*leaves) * normal(2, 4, 5, 8)).sum().backward()
        gradients.append([each.grad for each in leaves])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def learned(q: Tensor, k: Tensor, bias: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, k, attn_mask=bias, enable_gqa=True)


@pytest.mark.parametrize(
    ("size", "dtype", "shape", "kernels"),
    [
        (16, torch.float32, (6, 7), 1),
        (16, torch.float16, (4, 1, 7), 1),
        (16, torch.float32, (6, 1), 0),  # a bias that keys share
        (160, torch.float32, (6, 7), 0),  # longer heads of f32 than kernels of gradients take
    ],
)
def test_gradients_of_attention_are_one_kernel_where_it_takes_them(
    size: int, dtype: torch.dtype, shape: tuple[int, ...], kernels: int
) -> None:
    q, k = (normal(2, heads, rows, size, dtype=dtype) for heads, rows in ((4, 6), (2, 7)))
    leaves = [each.requires_grad_() for each in (q, k, normal(*shape, dtype=dtype))]
    run = torch.compile(learned, backend="cklang", options=OPTIONS, fullgraph=True)
    weight = normal(2, 4, 6, size)
    (run(*leaves).float() * weight).sum().backward()
    exact = [each.detach().double().requires_grad_() for each in leaves]
    (learned(*exact) * weight.double()).sum().backward()
    tolerance = 1e-4 if dtype == torch.float32 else 0.02
    for ours, theirs in zip(leaves, exact, strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=tolerance, atol=tolerance)
    _, backward = cklang.torch.report().graphs
    families = [each.family for program in backward.programs for each in program.plan.kernels]
    assert families.count("attention_backward") == kernels
    assert not backward.eager


def test_a_row_without_keys_is_zero() -> None:
    mask = torch.zeros(6, 7, dtype=torch.bool)
    mask[1:] = True
    (got,) = run(
        lambda q, k, m: functional.scaled_dot_product_attention(
            q, k, k, attn_mask=m, enable_gqa=True
        ),
        Q,
        K,
        mask,
    )
    assert not got[:, :, 0].any()
    assert got[:, :, 1:].isfinite().all()


REFUSED: Mapping[str, tuple[Function, tuple[Tensor, ...], str]] = {
    "aten.cummax.default": (lambda x: (x * 2).cummax(-1)[0] + 1, (X,), "no kernel"),
    "aten.mul.Tensor": (lambda x: x * x, (SMALL.double(),), "kernels have no float64"),
    "aten.sum.default": (lambda x: (x + x).sum(), (torch.arange(5),), "int64"),
    "aten.max_pool2d_with_indices.default": (
        lambda x: functional.max_pool2d(x * 2, 2, ceil_mode=True) + 1,
        (IMAGE,),
        "cut off at the end",
    ),
}


@pytest.mark.parametrize("op", REFUSED)
def test_what_has_no_kernel_runs_in_eager_torch_with_a_reason(op: str) -> None:
    function, args, reason = REFUSED[op]
    (got,) = run(function, *args)
    torch.testing.assert_close(got, function(*args), rtol=2e-2, atol=2e-2)
    report = cklang.torch.report()
    (node,) = (node for graph in report.graphs for node in graph.eager)
    assert node.op == op
    assert reason in node.reason
    assert node.reason in str(report)


def test_infinities_and_nan() -> None:
    x = torch.tensor([[math.inf, -math.inf, math.nan, 0.0, 1.0]])
    expect_same(lambda x: (x.isnan().float(), x.isinf().float(), functional.relu(x), x.amax(-1)), x)
