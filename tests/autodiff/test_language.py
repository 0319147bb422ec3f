# SPDX-License-Identifier: MIT
"""Gradients of ops written in the language, by the reference, beside torch in float64."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

import cklang as ck
from cklang.autodiff.step import Context
from cklang.autodiff.transform import backward
from cklang.ir.nodes import Function
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from tests.support.torch_ir import gradients
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("torch")

EXTENTS = {"M": 5, "N": 6, "C": 4}


def function_of(signature: str, result: str, body: str) -> Function:
    ir: Function = expression_op(signature, result, body).program.specialise()
    return ir


def drawn(function: Function, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 6, param.type.extents(EXTENTS)).astype("i")
        if param.type.dtype == ck.i32
        else rng.standard_normal(param.type.extents(EXTENTS)).astype("f")
        for param in function.params
    ]


FLAT = "x: ck.f32[M, N], w: ck.f32[N], b: ck.f32[N]"
COMPOSITES = {
    "softmax": (FLAT, "ck.f32[M, N]", "ck.softmax(x * w) * b"),
    "softmax of columns": (FLAT, "ck.f32[M, N]", "ck.softmax(x * w, axis=0) * b"),
    "log_softmax": (FLAT, "ck.f32[M, N]", "ck.log_softmax(x * w) * b"),
    "logsumexp": (FLAT, "ck.f32[M]", "ck.logsumexp(x * w + b, axis=-1)"),
    "var": (FLAT, "ck.f32[M]", "ck.var(x * w + b, axis=-1, correction=1)"),
    "std": (FLAT, "ck.f32[M]", "ck.std(x * w + b, axis=-1, correction=1)"),
    "nansum": (
        FLAT,
        "ck.f32[M]",
        "ck.nansum(ck.where(x > 0.5, float('nan'), x * w), axis=-1) + 0.0 * b[0]",
    ),
    "diff": (FLAT, "ck.f32[M, N - 1]", "ck.diff(x * w + b)"),
    "diff of columns": (FLAT, "ck.f32[M - 1, N]", "ck.diff(x * w + b, axis=0)"),
    "norm": (FLAT, "ck.f32[M]", "ck.norm(x * w + b)"),
    "rms_norm": (FLAT, "ck.f32[M, N]", "ck.rms_norm(x, w) * b"),
    "layer_norm": (FLAT, "ck.f32[M, N]", "ck.layer_norm(x, w, b)"),
    "layer_norm of all": (FLAT, "ck.f32[M, N]", "ck.layer_norm(x, w, b, axis=(0, 1))"),
    "group_norm": ("x: ck.f32[M, N, 4], w: ck.f32[4], b: ck.f32[4]", "ck.f32[M, N, 4]",
                   "ck.group_norm(x, 2, w, b)"),
    "cross_entropy": ("x: ck.f32[M, N], w: ck.f32[N, C], b: ck.f32[C], t: ck.i32[M]", "ck.f32[()]",
                      "ck.mean(ck.cross_entropy(x @ w + b, t))"),
    "einsum": ("x: ck.f32[M, N, C], w: ck.f32[C, N, 3], b: ck.f32[3]", "ck.f32[M, 3]",
               "ck.einsum('mnc,cnk->mk', x, w) + b"),
    "clamped product": (FLAT, "ck.f32[M, N]", "ck.clamp(x, lo=-1.0, hi=1.0) * w / (2.0 + b * b)"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_function_of_the_language_follows_torch(name: str) -> None:
    function = function_of(*COMPOSITES[name])
    arrays = drawn(function)
    wrt = ["x", "w", "b"]
    dy = np.random.default_rng(1).standard_normal(evaluate(function, arrays)[0].shape).astype("f")
    derived = verify(backward(function, wrt, ["dy"], name="f_vjp"), allow_unused=True)
    got, bounds = evaluate_with_bound(derived, [*arrays, dy])
    for each, bound, want in zip(got, bounds, gradients(function, arrays, wrt, [dy]), strict=True):
        np.testing.assert_allclose(each, want, rtol=2e-5, atol=2e-6)
        assert np.isfinite(bound).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "softmax of columns"])
def test_a_maximum_that_only_shifts_has_no_gradient(name: str) -> None:
    function = function_of(*COMPOSITES[name])
    derived = str(backward(function, ["x"], ["dy"], name="f_vjp"))
    assert " eq(" not in derived


SHIFTED = {
    "x - ck.max(x, axis=-1, keepdims=True)",
    "ck.exp(x - ck.max(x, axis=-1, keepdims=True))",
    "ck.exp(x - ck.max(x, axis=-1, keepdims=True)) / ck.sum(x, axis=-1, keepdims=True)",
    "ck.softmax(x) + ck.max(x, axis=-1, keepdims=True)",
    "ck.exp(x - ck.max(x, axis=0)) / ck.sum(ck.exp(x - ck.max(x, axis=0)), -1, keepdims=True)",
}


@pytest.mark.parametrize("body", sorted(SHIFTED))
def test_a_maximum_that_does_more_has_a_gradient(body: str) -> None:
    function = function_of("x: ck.f32[M, N]", "ck.f32[M, N]", body)
    arrays = drawn(function)
    dy = np.random.default_rng(1).standard_normal((5, 6)).astype("f")
    (got,) = evaluate(backward(function, ["x"], ["dy"], name="f_vjp"), [*arrays, dy])
    (want,) = gradients(function, arrays, ["x"], [dy])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


BLOCKS = "ck.f32[2, 3, N]"
SPLIT = {
    "in halves": ("ck.f32[M, N]", "x[:, N//2:] * ck.tanh(x[:, :N//2])", "ck.f32[M, N//2]", 0),
    "in four": ("ck.f32[M, 6]", "x[:, 0] * x[:, 1] + x[:, 2]", "ck.f32[M]", None),
    "one part unused": ("ck.f32[M, 6]", "x[:, :2] * 3.0 + 0.0 * ck.floor(x[:, 2:4])",
                        "ck.f32[M, 2]", None),
    "and used whole": ("ck.f32[M, 6]", "ck.concat([x[:, 3:], x[:, :3]], axis=1) * x",
                       "ck.f32[M, 6]", 0),
    "with an overlap": ("ck.f32[M, 6]", "x[:, :4] * x[:, 2:] + x[:, :4]", "ck.f32[M, 4]", None),
    "along two axes": (BLOCKS, "x[0, 0] * x[0, 1] * x[0, 2] * x[1, 0] + x[1, 1] / x[1, 2]",
                       "ck.f32[N]", 0),
    "the second axis first": (BLOCKS, "x[0, :2] * x[1, :2] + x[:, 2]", "ck.f32[2, N]", 0),
    "by indices and slices": (BLOCKS, "x[0] * x[1:2, 0] + x[1, 1:2] * x[1, 2]", "ck.f32[3, N]", 0),
    "not by straight cuts": ("ck.f32[3, 3]", "x[0, :2] * x[:2, 2] + x[2, 1:] * x[1:, 0] * x[1, 1]",
                             "ck.f32[2]", None),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLIT)
def test_tensors_that_are_taken_apart_follow_torch(name: str) -> None:
    param, body, result, zeros = SPLIT[name]
    function = function_of(f"x: {param}", result, body)
    arrays = drawn(function)
    dy = np.random.default_rng(1).standard_normal(evaluate(function, arrays)[0].shape).astype("f")
    derived = backward(function, ["x"], ["dy"], name="f_vjp")
    (got,), (want,) = evaluate(derived, [*arrays, dy]), gradients(function, arrays, ["x"], [dy])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    if zeros is not None:  # the gradients of the parts are joined, without any padding
        assert str(derived).count("value = 0.0") == zeros


HEADS = {"B": 2, "H": 4, "G": 2, "J": 4, "S": 5, "T": 7}


def attention(scores: Callable[..., Any], mask: Callable[..., Any]) -> Callable[..., Any]:
    """Return attention in torch, in float64, for heads that share keys."""

    def attend(q: Any, k: Any, v: Any, *reads: Any) -> Any:
        share = q.shape[1] // k.shape[1]
        k, v = (each.repeat_interleave(share, 1) for each in (k, v))
        s = scores(q @ k.mT / q.shape[-1] ** 0.5, *reads)
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        p = s.masked_fill(~mask(i, j), -np.inf).softmax(-1)
        return torch.nan_to_num(p, 0.0) @ v

    return attend


QKV = "q: ck.f32[B, {h}, S, 8], k: ck.f32[B, {g}, T, 8], v: ck.f32[B, {g}, T, 3]"
ATTENTIONS: Mapping[str, tuple[str, str, Callable[..., Any], Callable[..., Any]]] = {
    "plain": (QKV.format(h="H", g="H"), "", lambda s: s, lambda i, j: i >= -j),
    "causal": (QKV.format(h="H", g="H"), ", mask=lambda i, j: j <= i", lambda s: s,
               lambda i, j: j <= i),
    "rows without keys": (QKV.format(h="H", g="H"), ", mask=lambda i, j: j < i", lambda s: s,
                          lambda i, j: j < i),
    "shared heads": (QKV.format(h=4, g=2), "", lambda s: s, lambda i, j: i >= -j),
    "heads of two names": (QKV.format(h="H", g="G") + ", bias: ck.f32[H, S, T]",
                           ", score=lambda s, h, i, j: s + bias[h, i, j] * h",
                           lambda s, bias: s + bias * torch.arange(4)[:, None, None],
                           lambda i, j: i >= -j),
    "as many heads of two names": (QKV.format(h="H", g="J") + ", bias: ck.f32[H, S, T]",
                                   ", score=lambda s, h, i, j: s + bias[h, i, j] * h",
                                   lambda s, bias: s + bias * torch.arange(4)[:, None, None],
                                   lambda i, j: i >= -j),
    "one head of keys": (QKV.format(h="H", g=1), ", mask=ck.causal()", lambda s: s,
                         lambda i, j: j <= i),
    "bias of heads that share": (
        QKV.format(h=4, g=2) + ", bias: ck.f32[4, S, T], slope: ck.f32[4, 1]",
        ", score=lambda s, h, i, j: s + bias[h, i, j] * slope[h, i] + 0.1 * h.to(ck.f32) * j",
        lambda s, bias, slope: (
            s + bias * slope[:, :, None] + 0.1 * torch.arange(4)[:, None, None] * torch.arange(7)
        ),
        lambda i, j: i >= -j,
    ),
    "bias": (QKV.format(h="H", g="H") + ", bias: ck.f32[H, S, T]",
             ", score=lambda s, h, i, j: s + bias[h, i, j]", lambda s, bias: s + bias,
             lambda i, j: i >= -j),
    "factor of heads": (QKV.format(h="H", g="H") + ", gain: ck.f32[H]",
                        ", score=lambda s, h: 3.0 * ck.tanh(s * gain[h])",
                        lambda s, gain: 3 * torch.tanh(s * gain[:, None, None]),
                        lambda i, j: i >= -j),
    "transposed bias": (QKV.format(h="H", g="H") + ", bias: ck.f32[T, S]",
                        ", score=lambda s, i, j: s + bias[j, i]", lambda s, bias: s + bias.mT,
                        lambda i, j: i >= -j),
}  # fmt: skip


@pytest.mark.parametrize("by_kernels", [False, True])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_follows_torch(name: str, by_kernels: bool) -> None:
    signature, options, scores, mask = ATTENTIONS[name]
    heads = "4" if "4, S" in signature else "H"
    result = f"ck.f32[B, {heads}, S, 3]"
    function = function_of(signature, result, f"ck.attention(q, k, v{options})")
    rng = np.random.default_rng(2)
    shapes = [param.type.extents(HEADS) for param in function.params]
    arrays = [rng.standard_normal(shape).astype("f") for shape in shapes]
    dy = rng.standard_normal((2, 4, 5, 3)).astype("f")
    names = [param.name for param in function.params]
    context = Context(numbers=HEADS, by_kernels=by_kernels)
    gradient = verify(backward(function, names, ["dy"], name="g", context=context))
    has_op = any(each.op == "attention_dq" for each in gradient.body)
    assert has_op == by_kernels
    got = evaluate(gradient, [*arrays, dy])
    tensors = [torch.tensor(each.astype("d"), requires_grad=True) for each in arrays]
    result = attention(scores, mask)(*tensors)
    want = torch.autograd.grad(result, tensors, torch.tensor(dy.astype("d")))
    for each, mine, theirs in zip(names, got, want, strict=True):
        expected = torch.nan_to_num(theirs, 0.0).numpy()
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-5, err_msg=each)
