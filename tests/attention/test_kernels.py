# SPDX-License-Identifier: MIT
"""Attention kernels on the emulator: one stencil with all functions open, and the masks of its own.

Each stencil is compiled once and serves many shapes, layouts and functions.
"""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.families import key_from_json
from cklang.families.attention.host import AttentionOperand, AttentionProblem, AttentionTensor
from cklang.families.attention.lower import lower_attention
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from tests.support import attention_keys
from tests.support.attention_harness import Inputs, build, check, key_of, run

OPEN = key_of(score="function", mask="function")
WINDOW = key_of(score="none", mask="window")

SCORE = """#include "cklang/attention_hole.h"
#include "cklang/math.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS)
{
    const CK_GLOBAL float* relative = (const CK_GLOBAL float*)t[0].data;
    const int distance = j - i < 0 ? 0 : j - i < t[0].extent[1] ? j - i : t[0].extent[1] - 1;
    return 3.0f * ck_tanh(s / 3.0f) + relative[h * t[0].stride[0] + distance * t[0].stride[1]];
}
CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS)
{
    const CK_GLOBAL int* document = (const CK_GLOBAL int*)t[1].data;
    return document[b * t[1].stride[0] + i] == document[b * t[1].stride[0] + j];
}
"""

lengths = st.one_of(st.integers(1, 5), st.integers(30, 140), st.sampled_from((64, 128, 256)))
widths = st.integers(1, 8).map(lambda eighths: 8 * eighths)


@st.composite
def problems(draw: st.DrawFn) -> Inputs:
    kv_heads = draw(st.integers(1, 2))
    return Inputs(
        batch=draw(st.integers(1, 2)),
        heads=kv_heads * draw(st.integers(1, 3)),
        kv_heads=kv_heads,
        seqlen_q=draw(lengths),
        seqlen_k=draw(st.one_of(st.just(0), lengths)),
        hdim_q=draw(widths),
        hdim_v=draw(widths),
        bshd=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
    )


@pytest.mark.usefixtures("stencils")
@given(problems())
def test_functions_of_position_and_tensors(inputs: Inputs) -> None:
    rng = np.random.default_rng(inputs.seed)
    relative = rng.normal(size=(inputs.heads, 7)).astype(np.float32)
    longest = max(inputs.seqlen_q, inputs.seqlen_k)
    document = rng.integers(0, 3, (inputs.batch, longest)).astype(np.int32)
    operands = tuple(
        AttentionOperand(pointer=array.ctypes.data, extents=array.shape, strides=(len(array[0]), 1))
        for array in (relative, document)
    )
    check(
        build(OPEN, SCORE),
        inputs,
        score=lambda s, b, h, i, j: 3 * np.tanh(s / 3) + relative[h, np.clip(j - i, 0, 6)],
        mask=lambda b, h, i, j: document[b, i] == document[b, j],
        operands=operands,
    )


def visible(window: dict[str, Any], inputs: Inputs) -> Any:
    shift = (inputs.seqlen_k - inputs.seqlen_q) * window["from_bottom_right"]
    left, right, sink = window["left"], window["right"], window["sink"]

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        after = (j >= i + shift - left) | (j < sink) | (left < 0)
        return after & ((j <= i + shift + right) | (right < 0))

    return mask


windows = st.fixed_dictionaries(
    {
        "left": st.integers(-1, 80),
        "right": st.integers(-1, 80),
        "from_bottom_right": st.booleans(),
        "sink": st.sampled_from((0, 0, 3, 70)),
    }
)


@pytest.mark.usefixtures("compiler")
@given(problems(), windows)
def test_windows(inputs: Inputs, window: dict[str, Any]) -> None:
    check(build(WINDOW), inputs, mask=visible(window, inputs), **window)


@pytest.mark.usefixtures("stencils")
def test_window_limits_a_mask_function() -> None:
    inputs = Inputs(batch=2, heads=2, seqlen_q=150, seqlen_k=190)
    window = {"left": 40, "right": 3, "from_bottom_right": True, "sink": 2}
    fill = (
        '#include "cklang/attention_hole.h"\n'
        "float ck_score(float s, CK_ATTENTION_PARAMS) { return s - 0.01f * (T - S) * b; }\n"
        "int ck_mask(CK_ATTENTION_PARAMS) { return (i + 2 * j + h) % 3 != 0; }\n"
    )
    inside = visible(window, inputs)
    check(
        build(OPEN, fill),
        inputs,
        score=lambda s, b, h, i, j: s - 0.4 * b,
        mask=lambda b, h, i, j: inside(b, h, i, j) & ((i + 2 * j + h) % 3 != 0),
        **window,
    )


@pytest.mark.usefixtures("stencils")
def test_rows_without_weight_are_zero_and_not_nan() -> None:
    fill = (
        '#include "cklang/attention_hole.h"\n'
        "float ck_score(float s, CK_ATTENTION_PARAMS) "
        "{ return i % 2 ? s : -__builtin_inff(); }\n"
        "int ck_mask(CK_ATTENTION_PARAMS) { return i % 4 != 3; }\n"
    )
    inputs = Inputs(seqlen_q=40, seqlen_k=70)
    check(
        build(OPEN, fill),
        inputs,
        score=lambda s, b, h, i, j: np.where(i % 2 == 1, s, -np.inf),
        mask=lambda b, h, i, j: (i % 4 != 3) & (j >= 0),
    )


@pytest.mark.usefixtures("stencils")
def test_a_new_function_is_only_linked() -> None:
    build(OPEN, SCORE)
    fill = SCORE.replace("3.0f", "2.5f")
    start = time.perf_counter()
    built = build(OPEN, fill)
    assert built.facts.vgpr_spills == 0
    assert time.perf_counter() - start < 20  # a stencil takes longer on any machine


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hdim_q": 72}, "beyond the kernel's tile"),
        ({"hdim_q": 60}, "not a multiple of the kernel's vector"),
        ({"heads": 3, "kv_heads": 2}, "multiple of that of K and V"),
        ({"seqlen_q": 0}, "queries must be 1 or more"),
        ({"scale": 0.0}, "the scale must be above 0"),
        ({"left": 1 << 30}, "a window must be below 2^30"),
        ({"lse": AttentionTensor()}, "a place for lse"),
        ({"q": AttentionTensor(pointer=2)}, "not aligned for vector accesses"),
        ({"k": AttentionTensor(stride_seq=1 << 30)}, "spans more than 2^31 bytes"),
        ({"o": AttentionTensor(stride_seq=32)}, "rows of o overlap"),
    ],
)
def test_refusals(change: dict[str, Any], sentence: str) -> None:
    inputs = Inputs(heads=2)
    arrays = inputs.arrays()
    with pytest.raises(ValueError, match=sentence.replace("^", r"\^")):
        run(build(WINDOW), inputs.problem(arrays, **change))


@pytest.mark.usefixtures("stencils")
def test_operands_beyond_32_bits_are_refused() -> None:
    inputs = Inputs()
    wide = AttentionOperand(pointer=16, extents=(1 << 20, 1 << 20), strides=(1 << 20, 1))
    answer = build(OPEN, SCORE).face.describe(inputs.problem(inputs.arrays(), operands=(wide,)))
    assert answer == "an operand of the score or mask spans more than 2^31 elements"


def test_source_is_the_same_for_all_functions_and_says_what_it_is() -> None:
    functions = attention_keys.functions()
    texts = {hole: text.replace("tanh", "exp") for hole, text in functions.texts.items()}
    one, other = (lower_attention(OPEN, each) for each in (functions, Functions.parse(texts)))
    assert one.fill != other.fill
    assert one.stencil == other.stencil
    assert one.hole == "ck_score, ck_mask"
    assert "ck_tile::BlockFmhaPipelineQRKSVS<Problem>" in one.stencil
    assert lower_attention(WINDOW, NO_FUNCTIONS).hole == ""


def test_keys_are_read_back() -> None:
    for key in (OPEN, WINDOW):
        assert key_from_json(key.to_json()) == key
    assert OPEN.digest != WINDOW.digest
    problem = Inputs().problem(Inputs().arrays())
    assert isinstance(problem, AttentionProblem)
