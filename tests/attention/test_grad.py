# SPDX-License-Identifier: MIT
"""Gradients of attention on the emulator: one stencil with the user's functions and dropout in it.

o and lse come from the formula, so nothing here depends on the forward kernel.
"""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.arch import arch
from cklang.families import key_from_json
from cklang.families.attention.cost import AttentionShape
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.host import (
    AttentionGradProblem,
    AttentionProblem,
    AttentionTensor,
    ReduceProblem,
)
from cklang.families.attention.pipelines import parts_of_dq
from cklang.families.attention_backward.cost import attention_grad_estimate, reduce_estimate
from cklang.families.attention_backward.key import (
    AttentionGradKey,
    AttentionGradSignature,
    GradPipeline,
)
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.ir.philox import keep_mask
from cklang.testing import assert_close
from cklang.types import f16, f32
from tests.support.arrays import Array
from tests.support.attention_harness import build, key_of, run, stored, tensor, widened
from tests.support.coverage import Covered

OPEN = key_of(score="function", mask="function", dropout=True, dtype_o=f32).signature
BIAS = key_of(score="bias", mask="causal", dtype_o=f32).signature
SUMMED = AttentionGradSignature(forward=OPEN, bias_grad=False, deterministic=False)
TILING = attention_grad_algorithms(arch("gfx942"), OPEN, 64, 64)[0]
ADDING = AttentionGradKey(SUMMED, TILING, "gfx942")
APART = AttentionGradKey(
    AttentionGradSignature(forward=BIAS, bias_grad=True, deterministic=True), TILING, "gfx942"
)
TRANSPOSING = {
    each.pipeline: each
    for each in attention_grad_algorithms(arch("gfx950"), OPEN, 64, 64)
    if each.tile[8] == 64
}
LOADED = AttentionGradKey(SUMMED, TRANSPOSING[GradPipeline.TRLOAD_KR_KTR_VR], "gfx950")
WHOLE = AttentionGradKey(
    replace(SUMMED, deterministic=True), TRANSPOSING[GradPipeline.TRLOAD_QR_QTR_DOR], "gfx950"
)

# A score that is large where there is no query: padding must not spoil what is real.
FILL = """#include "cklang/attention_hole.h"
float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 60.0f - 0.02f * j + 0.01f * i; }
int ck_mask(CK_ATTENTION_PARAMS) { return (i + 2 * j + h) % 3 != 0; }
"""


def total(gpu: str, source: Array, result: Array, count: int, stride: int, heads: int = 1) -> None:
    """Sum parts ``stride`` elements apart; a head of the result is ``heads`` of the source."""
    batch, out_heads, rows, width = result.shape
    parts = tensor(source)
    key = reduce_key(gpu, f16)
    counted = run(
        build(key),
        ReduceProblem(
            batch=batch,
            heads=out_heads,
            rows=rows,
            width=width,
            a=replace(parts, stride_head=heads * parts.stride_head),
            result=tensor(result),
            count=count,
            stride_part=stride,
        ),
    )
    predicted = reduce_estimate(key, batch * out_heads * rows, width, count)
    assert counted.workgroups == predicted.workgroups


def expected(
    q: Array,
    k: Array,
    v: Array,
    o_grad: Array,
    scale: float,
    added: Array,
    visible: Array,
    keep: Array,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return o, lse and all gradients in float64; k and v have a head for each of q.

    Also how far a kernel may be from each gradient before it stores it.
    """
    s = np.where(visible, scale * (q @ k.swapaxes(2, 3)) + added, -np.inf)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isneginf(top), 0, top)
    e = np.exp(s - top)
    sums = e.sum(-1, keepdims=True)
    p = np.divide(e, sums, out=np.zeros_like(e), where=sums > 0)
    o = (p * keep) @ v
    dp = (o_grad @ v.swapaxes(2, 3)) * keep
    ds = p * (dp - (o_grad * o).sum(-1, keepdims=True))
    with np.errstate(divide="ignore"):
        lse = (top + np.log(sums))[..., 0]
    # How far a kernel may be: weights, their gradients and o are rounded to f16, toward zero the
    # first two; f32 sums of exponents and products are off by gamma of their lengths.
    gamma = (2 * max(q.shape[3], v.shape[3], *s.shape[2:]) + 64) * 2.0**-24
    sizes = abs(scale) * (abs(q) @ abs(k).swapaxes(2, 3)) + abs(np.where(visible, s, 0)) + abs(top)
    weight = np.where(p > 0, np.expm1(2 * gamma * (1 + sizes)), 0) * p
    product = (abs(o_grad) @ abs(v).swapaxes(2, 3)) * keep
    dot = (abs(o_grad) * abs(o)).sum(-1, keepdims=True)
    off = p * (gamma * product + (2.0**-11 + gamma) * dot) + weight * (product + dot)
    rounded = abs(ds) * 2.0**-10 + off + 2.0**-24
    heavy = (p * 2.0**-10 + weight + 2.0**-24) * keep
    bounds = {
        "q": scale * (rounded + gamma * abs(ds)) @ abs(k),
        "k": scale * (rounded + gamma * abs(ds)).swapaxes(2, 3) @ abs(q),
        "v": (heavy + gamma * p * keep).swapaxes(2, 3) @ abs(o_grad),
        "bias": rounded,
    }
    gradients = {
        "o": o,
        "lse": lse,
        "q": scale * ds @ k,
        "k": scale * ds.swapaxes(2, 3) @ q,
        "v": (p * keep).swapaxes(2, 3) @ o_grad,
        "bias": ds,
    }
    return gradients, bounds


def check(key: AttentionGradKey, shape: tuple[int, ...], seed: int, fill: str = "") -> None:
    batch, kv_heads, shared, rows, keys, hdim_q, hdim_v = shape
    computed = key.signature.forward
    heads = kv_heads * shared
    rng = np.random.default_rng(seed)

    def random_array(*extents: int) -> Array:
        return stored(rng.uniform(-1, 1, extents), f16)

    q, o_grad = random_array(batch, heads, rows, hdim_q), random_array(batch, heads, rows, hdim_v)
    k, v = random_array(batch, kv_heads, keys, hdim_q), random_array(batch, kv_heads, keys, hdim_v)
    bias = random_array(batch, heads, rows, keys)
    _, h, i, j = np.ogrid[:batch, :heads, :rows, :keys]
    dropout = 0.25 if computed.dropout else 0.0
    keep: Array = np.ones(1)
    if computed.dropout:
        keep = keep_mask((batch, heads, rows, keys), dropout, 77, 3) / (1 - dropout)
    functions = computed.score.value == "function"
    added = 60 - 0.02 * j + 0.01 * i if functions else widened(bias)
    visible = (i + 2 * j + h) % 3 != 0 if functions else j <= i + keys - rows
    scale = hdim_q**-0.5
    want, bounds = expected(
        widened(q),
        np.repeat(widened(k), shared, 1),
        np.repeat(widened(v), shared, 1),
        widened(o_grad),
        scale,
        added,
        visible,
        keep,
    )
    o, lse = stored(want["o"], f16), want["lse"].astype(np.float32)
    d = np.full(lse.shape, 77, np.float32)
    dot = reduce_key(key.arch, f16, dot=True)
    counted = run(
        build(dot),
        ReduceProblem(
            batch=batch,
            heads=heads,
            rows=rows,
            width=hdim_v,
            a=tensor(o),
            b=tensor(o_grad),
            result=tensor(d),
            factor=1 - dropout,
        ),
    )
    assert counted.workgroups == reduce_estimate(dot, lse.size, hdim_v).workgroups
    tiles = parts_of_dq(key, keys)
    # What adds needs zeros, and so do tiles that no query sees.
    dq = np.zeros((tiles, *q.shape), np.float32)
    dk = np.full((batch, heads, keys, hdim_q), 77, np.float32)
    dv = np.full((batch, heads, keys, hdim_v), 77, np.float32)
    dbias = np.zeros_like(bias)
    seeds = np.array([77, 3], np.int32)
    forward = AttentionProblem(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        seqlen_q=rows,
        seqlen_k=keys,
        hdim_q=hdim_q,
        hdim_v=hdim_v,
        q=tensor(q),
        k=tensor(k),
        v=tensor(v),
        o=AttentionTensor(),
        lse=tensor(lse),
        bias=tensor(bias),
        scale=scale,
        right=-1 if functions else 0,
        from_bottom_right=True,
        dropout=dropout,
        seed=seeds.ctypes.data,
        offset=seeds.ctypes.data + 4,
    )
    counted = run(
        build(key, fill),
        AttentionGradProblem(
            forward=forward,
            grad_o=tensor(o_grad),
            d=tensor(d),
            grad_q=tensor(dq[0]),
            grad_k=tensor(dk),
            grad_v=tensor(dv),
            grad_bias=tensor(dbias),
            stride_split_q=dq[0].size,
        ),
    )
    shape_of = AttentionShape(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        queries=rows,
        keys=keys,
        head=hdim_q,
        head_v=hdim_v,
        right=forward.right,
        from_bottom_right=True,
    )
    predicted = attention_grad_estimate(key, shape_of)
    assert counted.workgroups == predicted.workgroups
    assert counted.mfma_flops == predicted.padded_flops
    grads = [np.zeros_like(x) for x in (q, k, v)]
    total(key.arch, dq[0], grads[0], tiles, dq[0].size)
    total(key.arch, dk, grads[1], shared, dk[0, 0].size, heads=shared)
    total(key.arch, dv, grads[2], shared, dv[0, 0].size, heads=shared)

    def per_kv_head(values: Array) -> Array:
        return values.reshape(batch, kv_heads, shared, *values.shape[2:]).sum(2)

    for got, name in zip(grads, "qkv", strict=True):
        summed = (lambda x: x) if name == "q" else per_kv_head
        wanted, bound = summed(want[name]), summed(bounds[name])
        stored_to = 2.0**-11 * abs(wanted) + 2.0**-24
        assert_close(widened(got), wanted, bound + stored_to, what=f"the gradient of {name}")
    if key.signature.bias_grad:
        assert_close(widened(dbias), want["bias"], bounds["bias"])


shapes = st.tuples(
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from((1, 31, 64, 100)),
    st.sampled_from((1, 20, 128, 200)),
    st.sampled_from((40, 64)),
    st.sampled_from((24, 64)),
)


# In short, test_backward.py does the same through ops; this stencil is compiled apart from that.
@pytest.mark.usefixtures("stencils")
@given(shapes, st.integers(0, 99))
def test_functions_and_dropout(shape: tuple[int, ...], seed: int) -> None:
    check(ADDING, shape, seed, FILL)


@pytest.mark.full
@settings(max_examples=10)
@given(shapes, st.integers(0, 99))
def test_bias_and_one_order_of_summation(shape: tuple[int, ...], seed: int) -> None:
    check(APART, shape, seed)


@pytest.mark.full
def test_loads_that_transpose(covered: Covered) -> None:
    @settings(max_examples=10)
    @given(shapes, st.integers(0, 99))
    def within(shape: tuple[int, ...], seed: int) -> None:
        check(LOADED, shape, seed, FILL)

    within()
    covered("attention backward: loads that transpose", "f16", "gfx950")


@pytest.mark.full
def test_all_queries_at_once(covered: Covered) -> None:
    @settings(max_examples=10)
    @given(shapes, st.sampled_from((1, 17, 32)), st.integers(0, 99))
    def within(shape: tuple[int, ...], rows: int, seed: int) -> None:
        check(WHOLE, (*shape[:3], rows, *shape[4:]), seed, FILL)

    within()
    covered("attention backward: all queries of a head at once", "f16", "gfx950")


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize(("width", "begin"), [(8, 0), (8, 1), (7, 0)])
def test_sums_of_rows_that_lie_anywhere(width: int, begin: int) -> None:
    """A thread has four elements of a row, loads them together if it can, or has one."""
    shape, count = (2, 3, 37, width), 3
    size = prod(shape)
    source = np.random.default_rng(0).standard_normal(begin + count * size).astype(np.float32)
    parts = source[begin:].reshape(count, *shape)
    result = np.zeros(begin + size + 1, np.float16)
    inside = result[begin : begin + size].reshape(shape)
    total("gfx942", parts[0], inside, count, size)
    assert (inside == (parts[0] + parts[1] + parts[2]).astype(np.float16)).all()
    assert not result[:begin].any()
    assert result[-1] == 0


def test_keys_are_read_back() -> None:
    for key in (ADDING, APART, LOADED, WHOLE):
        assert key_from_json(key.to_json()) == key
    assert ADDING.digest != APART.digest


@pytest.mark.usefixtures("stencils")
def test_refusals() -> None:
    face = build(reduce_key("gfx942", f16, dot=True)).face
    nothing = ReduceProblem(
        batch=1, heads=1, rows=0, width=8, a=AttentionTensor(), result=AttentionTensor()
    )
    assert face.describe(nothing) == (
        "batch, heads, rows and width must be 1 or more, all below 2^31"
    )
