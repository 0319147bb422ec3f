# SPDX-License-Identifier: MIT
"""Derivatives in forward mode beside torch's: no tangent is lost in silence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

import cklang as ck

pytestmark = pytest.mark.usefixtures("torch", "no_kernels")

M, N, K, B, H, S, D = ck.dims("M N K B H S D")


@ck.op
def bent(x: ck.f32[M, K], w: ck.f32[N, K], scale: ck.f32) -> tuple[ck.f32[M, N], ck.i32[M]]:
    return ck.silu(x @ w.T) * scale, ck.argmax(x, axis=-1)


@ck.op
def attend(
    q: ck.f32[B, H, S, D], k: ck.f32[B, H, S, D], v: ck.f32[B, H, S, D]
) -> tuple[ck.f32[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, mask=ck.causal(), return_lse=True)


def product(x: Any, w: Any) -> Any:
    return bent(x, w, 0.5)[0]


def product_in_torch(x: Any, w: Any) -> Any:
    return torch.nn.functional.silu(x @ w.T) * 0.5


def attend_in_torch(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    i = torch.arange(q.shape[2])
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(i > i[:, None], -torch.inf)
    return s.softmax(-1) @ v, s.logsumexp(-1)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]]]] = {
    "product": (product, product_in_torch, [(4, 6), (5, 6)]),
    "attention and its log-sum-exps": (attend, attend_in_torch, [(1, 2, 5, 8)] * 3),
}


@pytest.mark.parametrize("name", CASES)
def test_tangents_follow_torch(name: str) -> None:
    ours, theirs, shapes = CASES[name]
    primals, tangents = (tuple(map(torch.randn, shapes)) for _ in range(2))
    got, want = (torch.func.jvp(each, primals, tangents) for each in (ours, theirs))
    torch.testing.assert_close(got, want)


def test_dual_tensors_and_one_argument_alone() -> None:
    x, w, u = torch.randn(4, 6), torch.randn(5, 6), torch.randn(5, 6)
    parts = []
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(w, u)
        for each in (product, product_in_torch):
            parts.append(forward_ad.unpack_dual(each(x, dual)))
        plain = product(x, w)
        assert forward_ad.unpack_dual(plain).tangent is None
    torch.testing.assert_close(tuple(parts[0]), tuple(parts[1]))


def test_jacobians_in_forward_mode() -> None:
    x, w = torch.randn(3, 4), torch.randn(2, 4)
    got, want = (torch.func.jacfwd(each)(x, w) for each in (product, product_in_torch))
    torch.testing.assert_close(got, want)


def squares(function: Callable[..., Any]) -> Callable[[Any], Any]:
    w = torch.linspace(-1, 1, 8).reshape(2, 4)
    return lambda x: function(x, w).square().sum()


SECOND: dict[str, Callable[[Any, Any], Any]] = {
    "forward over reverse": lambda f, x: torch.func.hessian(f)(x),
    "forward over forward": lambda f, x: torch.func.jacfwd(torch.func.jacfwd(f))(x),
    "reverse over reverse": lambda f, x: torch.func.jacrev(torch.func.jacrev(f))(x),
    "reverse over forward": lambda f, x: torch.func.grad(
        lambda y: torch.func.jvp(f, (y,), (x,))[1]
    )(x),
    "elements of a batch": lambda f, x: torch.vmap(
        lambda y: torch.func.jvp(torch.func.grad(f), (y[None],), (y[None],))[1]
    )(x),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    x = torch.randn(3, 4)
    got, want = (SECOND[name](squares(each), x) for each in (product, product_in_torch))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
