# SPDX-License-Identifier: MIT
"""torch's autograd calls the op that a function gives for the gradients of an op."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import cklang as ck
from cklang.errors import CkError, error
from cklang.torch import set_backward_of
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("torch", "no_kernels")

M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.f32[M, K], w: ck.f32[N, K], scale: ck.f32) -> tuple[ck.f32[M, N], ck.i32[M]]:
    y = ck.tanh(x * scale) @ w.T
    return y, ck.argmax(x, axis=-1)


@ck.op
def by_both(
    x: ck.f32[M, K], w: ck.f32[N, K], scale: ck.f32, dy: ck.f32[M, N]
) -> tuple[ck.f32[M, K], ck.f32[N, K]]:
    bent = ck.tanh(x * scale)
    return (dy @ w) * (1.0 - bent * bent) * scale, dy.T @ bent


@ck.op
def by_w(x: ck.f32[M, K], w: ck.f32[N, K], scale: ck.f32, dy: ck.f32[M, N]) -> ck.f32[N, K]:
    return dy.T @ ck.tanh(x * scale)


asked: list[tuple[str, ...]] = []


def gradients(op: Any, *, wrt: tuple[str, ...]) -> Any:
    asked.append(wrt)
    ops = {("x", "w"): by_both, ("w",): by_w}
    if op is not product or wrt not in ops:
        raise error("A005", name=wrt[0])
    return ops[wrt]


@pytest.fixture(autouse=True)
def _with_gradients() -> Iterator[None]:
    asked.clear()
    before = set_backward_of(gradients)
    yield
    set_backward_of(before)


def operands(*needed: bool) -> list[Any]:
    tensors = torch.randn(5, 4), torch.randn(6, 4)
    return [each.requires_grad_(need) for each, need in zip(tensors, needed, strict=True)]


def plain(x: Any, w: Any) -> Any:
    return torch.tanh(x * 0.5) @ w.T


@pytest.mark.parametrize("backend", ["eager", "aot_eager", None])
def test_autograd_calls_the_backward_op(backend: str | None) -> None:
    def loss(x: Any, w: Any) -> Any:
        return product(x * 2.0, w, 0.25)[0].square().sum()

    if backend is not None:
        loss = torch.compile(loss, backend=backend, fullgraph=True)
    x, w = operands(True, True)
    loss(x, w).backward()
    got = x.grad, w.grad
    x.grad = w.grad = None
    plain(x, w).square().sum().backward()
    torch.testing.assert_close(got, (x.grad, w.grad))
    assert set(asked) == {("x", "w")}


def test_only_needed_gradients_are_asked_for() -> None:
    x, w = operands(False, True)
    y, index = product(x, w, 0.5)
    assert (y.requires_grad, index.requires_grad) == (True, False)
    y.sum().backward()
    torch.testing.assert_close(w.grad, torch.tanh(x * 0.5).sum(0).expand(6, 4))
    assert asked == [("w",)]


def test_a_gradient_that_does_not_exist_is_an_error_and_never_zero() -> None:
    x, w = operands(True, False)
    y, _ = product(x, w, 0.5)
    with expect_error("A005"):
        y.sum().backward()
    set_backward_of(None)
    with pytest.raises(CkError, match="x requires a gradient") as caught:
        product(x, w, 0.5)
    assert "the op is product" in str(caught.value)


def test_a_call_that_needs_no_gradient_asks_for_none() -> None:
    with torch.no_grad():
        assert not product(*operands(True, True), 0.5)[0].requires_grad
    assert not product(*operands(False, False), 0.5)[0].requires_grad
    assert not asked


def test_a_transform_takes_gradients() -> None:
    x, w = operands(False, False)
    by_x, by_weight = torch.func.grad(lambda *each: product(*each, 0.5)[0].sum(), (0, 1))(x, w)
    expected = torch.func.grad(lambda *each: plain(*each).sum(), (0, 1))(x, w)
    torch.testing.assert_close((by_x, by_weight), expected)


def test_a_saved_tensor_that_an_op_overwrites_is_noticed() -> None:
    x, w = operands(False, False)
    y = torch.randn(5, 6, requires_grad=True)
    saved, index = torch.randn(5, 6), torch.empty(5, dtype=torch.int32)
    product_of_both = y * saved
    product(x, w, 0.5, out=(saved, index))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product_of_both.sum().backward()
