# SPDX-License-Identifier: MIT
"""Kernels of cklang among those that Inductor chooses from, and what Inductor fuses into them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm
from torch._inductor.utils import run_and_get_code
from torch.nn import functional

import cklang as ck
from cklang.torch.inductor import Record, considered
from cklang.torch.inductor.anchors import Anchor, Operand, op_of
from tests.support.by_reference import replace_kernels

pytestmark = pytest.mark.usefixtures("torch")

OPTIONS: dict[str, Any] = {"max_autotune": True}
DEVICE = "emu:gfx942"

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def half(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(shape, generator=generator).half()


def last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last)


def ours(
    function: Callable[..., Any], args: tuple[torch.Tensor, ...], **options: Any
) -> tuple[Any, Record]:
    """Return what a function returns where Inductor has our kernels alone, and the record."""
    torch._dynamo.reset()
    with torch.no_grad(), considered(device=DEVICE, only=True) as record:
        result = torch.compile(function, options=OPTIONS, **options)(*args)
    return result, record


def agrees(result: Any, expected: Any) -> None:
    results, values = (each if isinstance(each, tuple) else (each,) for each in (result, expected))
    for one, other in zip(results, values, strict=True):
        assert (one.dtype, one.stride()) == (other.dtype, other.stride())
        torch.testing.assert_close(one, other, rtol=4e-3, atol=4e-3)


A, B, C = half(9, 20), half(20, 12), half(9, 12)
IMAGES, WEIGHT = last(half(2, 8, 10, 10)), half(16, 8, 3, 3) * 0.2

PRODUCTS: dict[str, Case] = {
    "mm": (torch.mm, (A, B)),
    "transposed": (lambda a, b: a @ b.T, (A, half(12, 20))),
    "addmm": (torch.addmm, (half(12), A, B)),
    "bmm": (torch.bmm, (half(3, 9, 20), half(3, 20, 12))),
    "convolution": (functional.conv2d, (IMAGES, WEIGHT)),
    "with its bias": (
        lambda x, w, bias: functional.conv2d(x, w, bias, stride=2),
        (IMAGES, WEIGHT, half(16)),
    ),
    "groups": (
        lambda x, w: functional.conv3d(x, w, groups=2, dilation=2, padding=2),
        (half(2, 8, 5, 6, 7), half(16, 4, 3, 3, 3) * 0.2),
    ),
}

EPILOGUES: dict[str, Case] = {
    "activation": (lambda a, b: functional.gelu(a @ b, approximate="tanh") + 1, (A, B)),
    "matrix": (lambda a, b, c: functional.silu(a @ b) * c, (A, B, C)),
    "row": (lambda a, b, d: torch.sigmoid(a @ b) + d, (A, B, half(12))),
    "column": (lambda a, b, d: (a @ b) * d[:, None], (A, B, half(9))),
    "transposed matrix": (lambda a, b, c: (a @ b) * c.T, (A, B, half(12, 9))),
    "wider": (lambda a, b: (a @ b).relu().float(), (A, B)),
    "other type": (lambda a, b: (a @ b).relu().bfloat16(), (A, B)),
    "mask": (
        lambda a, b, m: (a @ b).masked_fill(m, -1.0),
        (half(3, 9, 20), half(3, 20, 12), half(3, 9, 12) > 0),
    ),
    "bias and residual": (
        lambda a, b, c, d: functional.gelu(torch.addmm(d, a, b)) + c,
        (A, B, C, half(12)),
    ),
    "more axes": (lambda a, b, c: (a @ b).tanh() * c, (half(2, 5, 20), B, half(2, 5, 12))),
    "two results": (lambda a, b: (y := a @ b, y.relu()), (A, B)),
    "convolution": (
        lambda x, w, r: functional.silu(functional.conv2d(x, w, padding=1) + r),
        (IMAGES, last(WEIGHT), last(half(2, 16, 10, 10))),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_inductor_calls_our_kernel_where_it_is_the_only_choice(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_kernels(monkeypatch)
    called, run = [], ck.Op._called

    def counted(op: ck.Op, *args: Any) -> Any:
        called.append(op.program.name)
        return run(op, *args)

    monkeypatch.setattr(ck.Op, "_called", counted)
    function, args = PRODUCTS[name]
    result, record = ours(function, args)
    agrees(result, function(*args))
    assert len(record.kernels) == len(called) == 1, record


@pytest.mark.parametrize("name", EPILOGUES)
def test_what_follows_a_product_joins_its_kernel(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_kernels(monkeypatch)
    function, args = EPILOGUES[name]
    (result, record), codes = run_and_get_code(ours, function, args)
    agrees(result, function(*args))
    (kernel,) = record.kernels
    assert len(kernel.nodes) == 2, record
    assert not record.declined
    assert not any("cpp_fused" in code for code in codes), "Inductor wrote a kernel of its own"


def test_one_kernel_serves_sizes_that_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)

    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return (a @ b).relu() * c

    torch._dynamo.reset()
    with considered(device=DEVICE, only=True) as record:
        compiled = torch.compile(function, options=OPTIONS, dynamic=True)
        for rows in (9, 7, 16):
            args = half(rows, 20), B, half(rows, 12)
            agrees(compiled(*args), function(*args))
    (kernel,) = record.kernels
    assert re.search(r"read0: f16\[s\d+, s\d+\]", kernel.text)


def test_gradients_are_products_with_epilogues(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)

    def loss(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w) @ v

    torch._dynamo.reset()
    args = [(each * 0.2).requires_grad_() for each in (A, B, half(12, 8))]
    with considered(device=DEVICE, only=True) as record:
        y = torch.compile(loss, options=OPTIONS)(*args)
        compiled = torch.autograd.grad(y, args, torch.ones_like(y))
    eager = torch.autograd.grad(loss(*args), args, torch.ones_like(y))
    for one, other in zip(compiled, eager, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
    assert len(record.kernels) == 6
    assert sum(len(each.nodes) > 1 for each in record.kernels) == 2  # tanh and its derivative


@pytest.mark.parametrize(
    ("name", "own"), [("mm", "mm"), ("addmm", "addmm"), ("convolution", "convolution")]
)
def test_our_kernel_is_measured_beside_torchs(
    name: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_kernels(monkeypatch)
    torch._dynamo.reset()
    names: list[list[str]] = []
    select = select_algorithm.AlgorithmSelectorCache.benchmark_choices

    def noted(choices: Any, *args: Any, **more: Any) -> Any:
        times = select(choices, *args, **more)
        names.append([choice.name for choice in choices])
        assert all(0 < time < float("inf") for time in times.values())
        return times

    monkeypatch.setattr(
        select_algorithm.AlgorithmSelectorCache, "benchmark_choices", staticmethod(noted)
    )
    function, args = PRODUCTS[name]
    with torch.no_grad(), considered(device=DEVICE):
        result = torch.compile(function, options=OPTIONS)(*args)
    agrees(result, function(*args))
    assert any({f"cklang_{name}_emugfx942", own} <= set(each) for each in names), names


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (lambda a, b, c: (a @ b) * c, (half(2, 5, 20), B, half(2, 1, 12)), "2 kernels"),
        (lambda a, b: (a @ b).cos(), (A, B), "epilogues have no cos"),
        (lambda a, b: (a @ b).relu().long(), (A, B), "int64"),
        (lambda a, b: (a @ b) > 0, (A, B), "X006: a kernel cannot store bool"),
    ],
)
def test_what_is_not_fused_has_a_reason(
    function: Callable[..., Any],
    args: tuple[torch.Tensor, ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_kernels(monkeypatch)
    result, record = ours(function, args)
    agrees(result, function(*args))
    assert [len(each.nodes) for each in record.kernels] == [1]
    assert {reason in each.reason for each in record.declined} == {True}
    assert reason in str(record)


def test_a_choice_that_kernels_do_not_compute_is_not_offered() -> None:
    x, w = half(2, 8, 10).double(), half(16, 8, 3).double()
    assert not ours(functional.conv1d, (x, w))[1].kernels


@pytest.mark.usefixtures("compiler", "emulator")
def test_a_transposed_convolution_is_the_gradient_of_another() -> None:
    args = (half(2, 16, 10), half(16, 8, 3))
    result, record = ours(functional.conv_transpose1d, args)
    agrees(result, functional.conv_transpose1d(*args))
    assert [each.nodes for each in record.kernels] == [("op0",)]


@pytest.mark.usefixtures("compiler", "emulator")
def test_a_fused_kernel_runs_on_the_emulated_gpu() -> None:
    w = half(12, 20)

    def function(a: torch.Tensor) -> torch.Tensor:
        return functional.silu(a @ w.T) * 2

    result, record = ours(function, (A,))
    agrees(result, function(A))
    assert len(record.kernels[0].nodes) == 2


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_programs_round_once(name: str, dtype: torch.dtype) -> None:
    batch = (3,) if name == "bmm" else ()
    operands = [Operand((*batch, 9, 20), dtype), Operand((*batch, 20, 12), dtype)]
    if name == "addmm":
        operands.insert(0, Operand((12,), dtype))
    op = op_of(Anchor(name), tuple(operands), (*batch, 9, 12), dtype)
    function = op.program.specialise()
    assert function.results[0].type.dtype.name in str(dtype).replace("loat", "")
    assert [each.op for each in function.body].count("gemm") == 1
