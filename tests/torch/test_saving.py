# SPDX-License-Identifier: MIT
"""Eager calls that autograd records save what is quicker to read than to compute again."""

import re
from typing import Any

import pytest
import torch

import cklang as ck
import cklang.torch
from cklang.torch import saved_values
from cklang.torch.backend.compiler import options_of
from tests.support.by_reference import replace_kernels
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("torch")

M, N, K = ck.dims("M N K")
DEVICE = "emu:gfx942"


@ck.op
def up(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.tanh(x @ w.T)


def operands(inner: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(64, inner, generator=generator) * inner**-0.5 for _ in range(2))
    return x.half().requires_grad_(), w.half().requires_grad_()


def gradients(x: Any, w: Any, **more: Any) -> Any:
    return torch.autograd.grad(up(x, w, device=DEVICE).sum(), (x, w), **more)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[ck.Op]:
    replace_kernels(monkeypatch)
    calls: list[ck.Op] = []
    run = ck.Op._called

    def noted(op: ck.Op, *args: Any) -> Any:
        result = run(op, *args)  # raises where torch is to see the call
        calls.append(op)
        return result

    monkeypatch.setattr(ck.Op, "_called", noted)
    return calls


def test_a_saved_value_spares_the_backward_op_a_product(called: list[ck.Op]) -> None:
    x, w = operands(2048)
    got = gradients(x, w)
    forward, backward = called
    expected = torch.autograd.grad(torch.tanh(x.float() @ w.float().T).sum(), (x, w))
    torch.testing.assert_close(got, expected, rtol=2e-3, atol=2e-3)
    (pair,) = [each for each in saved_values(up) if each.forward is forward]
    assert backward is pair.backward
    assert "saved" in pair.reasons[0]
    assert "predicted" in pair.reasons[0]
    # The plain backward op computes the product again: a kernel more, and more time.
    args = [each.detach() for each in (x, w)]
    dy = torch.ones(64, 64).half()
    again = ck.vjp(up)
    kept = [torch.empty(64, 64, dtype=torch.float32 if pair.bytes == 4 * 64**2 else torch.float16)]
    plain = up.summary(*args, device=DEVICE), again.summary(*args, dy, device=DEVICE)
    shared = (
        pair.forward.summary(*args, device=DEVICE),
        pair.backward.summary(*args, *kept, dy, device=DEVICE),
    )
    assert sum(len(each.kernels) for each in shared) < sum(len(each.kernels) for each in plain)
    assert sum(each.bytes for each in shared) < sum(each.bytes for each in plain)
    assert sum(each.microseconds or 0 for each in shared) < sum(
        each.microseconds or 0 for each in plain
    )


def test_second_derivatives_use_the_arguments(called: list[ck.Op]) -> None:
    x, w = operands(2048)
    dx, _ = gradients(x, w, create_graph=True)
    assert called[1] not in {pair.backward for pair in saved_values(up)}
    (got,) = torch.autograd.grad(dx.float().square().sum(), (x,))
    by_x, *_ = torch.autograd.grad(
        torch.tanh(x.float() @ w.float().T).sum(), (x,), create_graph=True
    )
    (expected,) = torch.autograd.grad(by_x.float().square().sum(), (x,))
    torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-3)


def test_a_cheap_product_is_computed_again_or_saved_by_its_time(called: list[ck.Op]) -> None:
    for inner in (16, 2048):
        before = len(called)
        gradients(*operands(inner))
        args = [each.detach() for each in operands(inner)]
        pair = ck.vjp_saving(up, *args, wrt=("x", "w"), device=DEVICE)
        own = called[before]
        assert (own.program.name == up.program.name) == (not pair.saved)


@pytest.mark.parametrize("inner", [64, 2048])
def test_a_checkpoint_makes_the_call_again(called: list[ck.Op], inner: int) -> None:
    x, w = operands(inner)
    y = torch.utils.checkpoint.checkpoint(up, x, w, device=DEVICE, use_reentrant=False)
    got = torch.autograd.grad(y.sum(), (x, w))
    first, again, backward = called
    assert first is again is not backward
    expected = torch.autograd.grad(torch.tanh(x.float() @ w.float().T).sum(), (x, w))
    torch.testing.assert_close(got, expected, rtol=2e-3, atol=2e-3)


def test_calls_alike_share_the_decision(called: list[ck.Op]) -> None:
    before = len(saved_values(up))
    for _ in range(3):
        gradients(*operands(1024))
    assert len(saved_values(up)) - before <= 1
    assert len(set(called)) == 2


OPTIONS = {"reference": True, "device": DEVICE}


def layers() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.LayerNorm(32),
        torch.nn.Linear(32, 64),
        torch.nn.GELU(),
        torch.nn.Linear(64, 32),
        torch.nn.Softmax(-1),
    )


def trained(saved: str) -> tuple[list[Any], Any]:
    """Return the gradients of a model, and the report of its graphs."""
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    model = layers()
    options: dict[str, Any] = {**OPTIONS, "saved": saved}
    run = torch.compile(model, backend="cklang", options=options)
    x = torch.randn(16, 32, generator=torch.Generator().manual_seed(1))
    run(x).square().sum().backward()
    return [each.grad for each in model.parameters()], cklang.torch.report()


def test_the_backend_saves_what_is_quicker_and_says_why() -> None:
    gradients_of = {saved: trained(saved) for saved in ("auto", "everything", "least")}
    model = layers()
    x = torch.randn(16, 32, generator=torch.Generator().manual_seed(1))
    model(x).square().sum().backward()
    for own, _ in gradients_of.values():
        for one, parameter in zip(own, model.parameters(), strict=True):
            torch.testing.assert_close(one, parameter.grad, rtol=1e-4, atol=1e-6)
    reports = {saved: report for saved, (_, report) in gradients_of.items()}
    forward, backward = reports["auto"].graphs
    assert forward.saved == backward.saved
    assert forward.saved in str(forward)
    ways = re.findall(r"(\w+) saved: (\d+) bytes, (\d+) kernels, ([\d.]+) µs", forward.saved)
    chosen, other = ways
    assert {chosen[0], other[0]} == {"everything", "least"}
    assert (float(chosen[3]), int(chosen[1])) <= (float(other[3]), int(other[1]))
    assert reports["auto"].kernels == int(chosen[2]) == reports[chosen[0]].kernels
    assert reports[other[0]].kernels == int(other[2])
    size = {kind: int(bytes_) for kind, bytes_, *_ in ways}
    assert size["least"] < size["everything"]


def test_another_word_for_what_is_saved_is_an_error() -> None:
    with expect_error("A150"):
        options_of({"saved": "all"})
    assert options_of({"saved": "least"}).saved == "least"
