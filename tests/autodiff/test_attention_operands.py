# SPDX-License-Identifier: MIT
"""Gradients of attention with a learned bias, with dropout and of packed sequences, beside torch.

Its meaning is compared with torch's in float64; on the emulated GPU, with its bounds.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import cklang as ck
from cklang.errors import CkError
from cklang.ir.philox import keep_mask
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.arrays import drawn_for_gradient
from tests.support.attention_ops import biased, distant, packed_rows, packed_rows_args
from tests.support.checks import check
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("torch")

B, H, G, S, T = ck.dims("B H G S T")

SIZES = {"B": 2, "H": 4, "G": 2, "S": 5, "T": 7}
KEPT = 0.75


@ck.op
def learned(
    q: ck.f16[B, H, S, 64],
    k: ck.f16[B, G, T, 64],
    v: ck.f16[B, G, T, 64],
    bias: ck.f16[H, S, T],
    seed: ck.i32,
) -> ck.f16[B, H, S, 64]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, h, i, j: s + bias[h, i, j],
        dropout=0.25,
        seed=seed,
    )


def by_torch(
    arrays: Sequence[Any],
    added: Callable[..., Any],
    visible: Callable[[Any, Any], Any],
    keep: Any = 1.0,
) -> list[Any]:
    """Return the gradients by torch in float64; ``added`` gives what the score adds."""
    *params, dy = (torch.tensor(each.astype("d")) for each in arrays)
    params = [each.requires_grad_() for each in params]
    q, k, v, *reads = params
    share = q.shape[1] // k.shape[1]
    keys, values = (each.repeat_interleave(share, 1) for each in (k, v))
    s = q @ keys.mT / q.shape[-1] ** 0.5 + added(*reads)
    i, j = torch.arange(s.shape[2])[:, None], torch.arange(s.shape[3])
    p = s.masked_fill(~visible(i, j), -np.inf).softmax(-1)
    o = (torch.nan_to_num(p) * keep) @ values
    grads = torch.autograd.grad(o, params, dy, allow_unused=True)
    return [None if each is None else torch.nan_to_num(each).numpy() for each in grads]


HEADS = "q: ck.f32[B, H, S, 8], k: ck.f32[B, {g}, T, 8], v: ck.f32[B, {g}, T, 3]"
BIASES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "of all scores": ("ck.f32[B, 4, S, T]", "bias[b, h, i, j]", lambda x: x),
    "of heads": ("ck.f32[4, S, T]", "bias[h, i, j]", lambda x: x),
    "in another order": ("ck.f32[S, B, T]", "bias[i, b, j]", lambda x: x.transpose(0, 1)[:, None]),
    "of keys": ("ck.f32[T]", "bias[j]", lambda x: x),
    "with extents of 1": ("ck.f32[1, 4, 1, T]", "bias[b, h, i, j]", lambda x: x),
}


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("name", BIASES)
def test_biases_follow_torch(name: str, dropout: float) -> None:
    type_, element, added = BIASES[name]
    signature = HEADS.replace("H", "4").format(g=2) + f", bias: {type_}"
    more = f", dropout={dropout}, seed=7, offset=2" * bool(dropout)
    body = (
        f"ck.attention(q, k, v, score=lambda s, b, h, i, j: s + {element}, mask=ck.causal(){more})"
    )
    op = expression_op(signature, "ck.f32[B, 4, S, 3]", body)
    arrays = drawn_for_gradient(op, SIZES)
    function = ck.vjp(op).ir(*arrays)
    assert [each.op for each in function.body].count("attention_ds") == 1
    shape = (2, 4, 5, 7)
    keep = torch.tensor(keep_mask(shape, dropout, 7, 2) / (1 - dropout)) if dropout else 1.0
    want = by_torch(arrays, added, lambda i, j: j <= i, keep)
    for mine, theirs in zip(evaluate(function, arrays), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def _sloped(distance: Any, far: Any) -> Any:
    return far[:, None, None] * distance


def _visible(shift: int, i: Any, j: Any) -> Any:
    return j <= i + shift


def by_sequences(arrays: Sequence[Any]) -> list[Any]:
    """Return the gradients of :func:`packed_rows` by torch in float64, one after the other."""
    q, k, v, mine, theirs, slopes, dy = arrays
    totals = [np.zeros(each.shape) for each in (q, k, v)] + [np.zeros(slopes.shape)]
    for b in range(len(mine) - 1):
        rows, keys = slice(*mine[b : b + 2]), slice(*theirs[b : b + 2])
        own = [each[at].swapaxes(0, 1)[None] for each, at in ((q, rows), (k, keys), (v, keys))]
        n, m = own[0].shape[2], own[1].shape[2]
        distance = torch.arange(m) - torch.arange(n)[:, None]
        grads = by_torch(
            [*own, slopes[b], dy[rows].swapaxes(0, 1)[None]],
            partial(_sloped, distance),
            partial(_visible, m - n),
        )
        for total, at, grad in zip(totals, (rows, keys, keys), grads, strict=False):
            total[at] = grad[0].swapaxes(0, 1)
    return totals[:3]


LENGTHS = [(3, 4), (0, 5), (6, 2), (1, 1)]


def packed_arguments(lengths: list[tuple[int, int]], more: int) -> list[Any]:
    """Return arguments of the gradient, with rows and keys of no sequence behind."""
    args, grad = packed_rows_args(lengths, 3)
    rng = np.random.default_rng(4)

    def longer(x: Any) -> Any:
        return np.concatenate([x, rng.uniform(-1, 1, (more, *x.shape[1:])).astype(x.dtype)])

    return [*map(longer, args[:3]), *args[3:], longer(grad)]


def test_packed_sequences_follow_torch() -> None:
    op = ck.vjp(packed_rows, wrt=("q", "k", "v"))
    arrays = packed_arguments(LENGTHS, 2)
    results = evaluate(op.ir(*arrays), arrays)
    for mine, theirs in zip(results, by_sequences(arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, rtol=2e-3, atol=2e-3)
        assert mine.dtype == np.float16


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("lengths", [[(70, 40), (0, 9), (5, 130)]])
def test_packed_sequences_are_within_their_bounds(lengths: list[tuple[int, int]]) -> None:
    arrays = packed_arguments(lengths, 3)
    results = check(ck.vjp(packed_rows, wrt=("q", "k", "v")), arrays)
    for mine, theirs in zip(results, by_sequences(arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)
    for mine in results:
        assert not mine[-3:].any(), "rows of no sequence have no gradient"


def arguments_of(op: Op, rows: int, keys: int) -> list[Any]:
    """Return arguments of the gradient of an op with four heads on two of 64 elements."""
    sizes = {"B": 2, "H": 4, "G": 2, "S": rows, "T": keys, "D": 64}
    function = op.program.specialise({"F": ck.f16})
    rng = np.random.default_rng(rows)
    types = [param.type for param in function.params] + [value.type for value in function.results]
    return [rng.uniform(-1, 1, t.extents(sizes)).astype(t.dtype.numpy) for t in types]


def seen(shape: Sequence[int]) -> Any:
    """Return what the mask of :func:`distant` and :func:`biased` lets a query see."""
    _, h, i, j = np.ogrid[tuple(map(slice, shape))]
    return torch.tensor((j <= i + 60) | (h == 1))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("sizes", [(40, 130), (5, 9)])
def test_dropout_is_within_its_bounds(sizes: tuple[int, int]) -> None:
    arrays = arguments_of(distant, *sizes)
    # The gradient of o may have any strides.
    arrays[-1] = np.repeat(arrays[-1], 8, axis=3)[..., ::8]
    results = check(ck.vjp(distant, wrt=("q", "k", "v")), arrays)
    shape = (2, 4, *sizes)
    distance = abs(torch.arange(sizes[0])[:, None] - torch.arange(sizes[1]))
    want = by_torch(
        arrays,
        lambda far: -far[:, None, None] * distance,
        lambda i, j: seen(shape),
        torch.tensor(keep_mask(shape, 0.25, 77, 3) / KEPT),
    )
    for mine, theirs in zip(results, want, strict=False):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)


@pytest.mark.usefixtures("compiler")
def test_a_bias_with_dropout_is_within_its_bounds() -> None:
    arrays = arguments_of(biased, 40, 300)
    arrays[3] = arrays[3].swapaxes(2, 3).copy().swapaxes(2, 3)  # a copy makes keys contiguous
    results = check(ck.vjp(biased), arrays)
    shape = (2, 4, 40, 300)
    keep = torch.tensor(keep_mask(shape, 0.25, 77, 3) / KEPT)
    want = by_torch(arrays, lambda bias: bias, lambda i, j: seen(shape), keep)
    for mine, theirs in zip(results, want, strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)
    assert not results[3][:, 0, :, 100:].any(), "no query of head 0 sees these keys"


def learned_arguments(rows: int, keys: int) -> list[Any]:
    """Return arguments of the gradient of :func:`learned`."""
    arrays = drawn_for_gradient(learned, {"B": 2, "H": 4, "G": 2, "S": rows, "T": keys})
    arrays[4] = 5
    return arrays


@pytest.mark.usefixtures("compiler")
def test_a_bias_of_heads_is_within_its_bounds() -> None:
    arrays = learned_arguments(40, 150)
    results = check(ck.vjp(learned), arrays)
    shape = (2, 4, 40, 150)
    keep = torch.tensor(keep_mask(shape, 0.25, 5, 0) / KEPT)
    del arrays[4]
    want = by_torch(arrays, lambda bias: bias, lambda i, j: seen(shape), keep)
    for mine, theirs in zip(results, want, strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.03)


def test_one_kernel_gives_the_gradient_of_a_bias() -> None:
    plan = ck.vjp(learned).fusion(*learned_arguments(40, 150))
    assert [each.family for each in plan.kernels] == [
        "attention",
        "rowwise",
        "attention_backward",
        "rowwise",
    ]
    assert "f16[B, H, S, T]" in [str(each.type) for each in plan.kernels[2].results]


def _refused(call: Callable[[], object]) -> CkError:
    with pytest.raises(CkError) as caught:
        call()
    return caught.value


def test_what_products_do_not_compute_says_why_the_kernels_do_not() -> None:
    heads = "q: ck.f32[B, H, S, 160], k: ck.f32[B, H, S, 160], v: ck.f32[B, H, S, 160]"
    call = "ck.attention(q, k, v, score=lambda s: 3.0 * ck.tanh(s / 3.0), dropout=0.5, seed=1)"
    op = expression_op(heads, "ck.f32[B, H, S, 160]", call)
    refusal = _refused(lambda: ck.vjp(op).program.specialise())
    assert refusal.code == "G025"
    assert "heads of f32 have at most 128 elements, not 160" in str(refusal)
    packed = _refused(lambda: ck.vjp(packed_rows, wrt="slopes").program.specialise({"F": ck.f16}))
    assert packed.code == "G025"
    assert "packed sequences, where the kernels do not take it" in str(packed)
