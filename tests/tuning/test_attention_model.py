# SPDX-License-Identifier: MIT
"""The cost model of attention: it counts what a kernel does, and its terms make up its times."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang import emulator
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families.attention.cost import AttentionShape, attention_estimate, explain_attention
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.key import AttentionKey, AttentionPipeline, AttentionSignature
from cklang.families.attention.space import attention_algorithms
from cklang.families.attention_backward.cost import (
    attention_grad_estimate,
    backward_estimate,
    reduce_estimate,
)
from cklang.families.attention_backward.key import AttentionGradKey, AttentionGradSignature
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.types import f16
from tests.support.checks import launches
from tests.support.errors import expect_error

SIGNATURE = AttentionSignature(dtype=f16, dtype_o=f16, dtype_bias=f16)


def keys_of(head: int = 128, gpu: str = "gfx942", **changes: Any) -> list[AttentionKey]:
    signature = replace(SIGNATURE, **changes)
    algorithms = attention_algorithms(arch(gpu), signature, head, head)
    return [AttentionKey(signature, algorithm, gpu) for algorithm in algorithms]


def shape(**changes: Any) -> AttentionShape:
    base = {"batch": 2, "heads": 8, "kv_heads": 2, "queries": 1000, "keys": 900}
    return AttentionShape(**{**base, "head": 128, "head_v": 128, **changes})


lengths = st.integers(1, 300)
shapes = st.builds(
    AttentionShape,
    batch=st.integers(1, 4),
    heads=st.integers(1, 8),
    kv_heads=st.just(1),
    queries=lengths,
    keys=lengths,
    head=st.sampled_from((32, 64, 128)),
    head_v=st.sampled_from((32, 64, 128)),
    left=st.integers(-1, 200),
    right=st.integers(-1, 200),
    from_bottom_right=st.booleans(),
    sink=st.sampled_from((0, 0, 5, 70)),
)


@given(shapes, st.sampled_from((16, 64, 128)), st.sampled_from((32, 64)))
def test_tiles_reach_from_the_first_visible_one_to_the_last(
    problem: AttentionShape, queries: int, keys: int
) -> None:
    # The mask knows neither how many queries nor how many keys there are.
    rows, columns = (math.ceil(n / tile) * tile for n, tile in _sides(problem, queries, keys))
    i, j = np.ogrid[:rows, :columns]
    at = i + (problem.keys - problem.queries if problem.from_bottom_right else 0)
    not_after = j <= at + problem.right if problem.right >= 0 else j >= 0 * i
    window = not_after & (j >= at - problem.left) if problem.left >= 0 else not_after
    visible = window | (not_after & (j < problem.sink))
    assert problem.visible == visible[: problem.queries, : problem.keys].sum()
    # With a sink, tiles of queries start at key 0, and tiles with its keys end at the last query.
    walked = (not_after if problem.sink else window)[:, : problem.keys]
    assert problem.key_tiles(queries, keys) == _walked(walked, queries, keys)
    of_sink = j // keys * keys < problem.sink
    walked = np.where(of_sink, not_after, window)[: problem.queries].T
    assert problem.query_tiles(queries, keys) == _walked(walked, keys, queries)


def _sides(problem: AttentionShape, queries: int, keys: int) -> tuple[tuple[int, int], ...]:
    return (problem.queries, queries), (problem.keys, keys)


def _walked(visited: np.ndarray[Any, Any], rows: int, columns: int) -> int:
    tiles = 0
    for first in range(0, len(visited), rows):
        (places,) = np.nonzero(visited[first : first + rows].any(axis=0))
        if places.size:
            tiles += places[-1] // columns - places[0] // columns + 1
    return tiles


@given(shapes, st.sampled_from(("gfx942", "gfx950")), st.integers(1, 4))
def test_terms_make_up_the_time(problem: AttentionShape, gpu: str, splits: int) -> None:
    for key in keys_of(max(problem.head, problem.head_v), gpu):
        predicted = attention_estimate(key, replace(problem, splits=splits))
        assert predicted.us == pytest.approx(sum(predicted.terms.values()))
        assert all(term >= 0 for term in predicted.terms.values())
        assert math.isfinite(predicted.us)
        assert predicted.padded_flops >= predicted.flops
        assert (predicted.terms["combine"] > 0) == (splits > 1)


def test_more_work_takes_longer() -> None:
    key = keys_of()[0]
    base = attention_estimate(key, shape()).us
    assert attention_estimate(key, shape(keys=9000)).us > 2 * base
    assert attention_estimate(key, shape(queries=10_000)).us > 2 * base
    assert attention_estimate(key, shape(right=0)).us < base
    capped = keys_of(score="soft_cap")[0]
    assert attention_estimate(capped, shape()).us > base


def test_groups_of_waves_that_take_turns_hide_what_is_no_product() -> None:
    plain = keys_of(gpu="gfx950")[0]
    tile = (256, 32, 128, 128, 32, 128)
    base = replace(plain.algorithm, tile=tile, warps=(8, 1, 1), block_per_cu=1)
    turns, not_so = (
        replace(plain, algorithm=replace(base, pipeline=pipeline))
        for pipeline in (AttentionPipeline.V3, AttentionPipeline.QR_ASYNC_TRLOAD)
    )
    long = shape(queries=4096, keys=4096)
    hidden, open_ = (attention_estimate(key, long).terms for key in (turns, not_so))
    rest = ("softmax", "lds", "load", "issue")
    assert hidden["matrix"] == open_["matrix"]
    # What the softmax takes is the longer of the two, and is not hidden by other workgroups.
    left = sum(hidden[name] for name in rest)
    assert left > sum(open_[name] for name in rest) - open_["matrix"] > 0
    own = left + hidden["matrix"]
    assert hidden["softmax"] / left * own > open_["softmax"]


def test_splitting_the_keys_of_one_query_is_quicker() -> None:
    key = keys_of()[0]
    one = shape(batch=1, heads=8, queries=1, keys=65_536)
    assert attention_estimate(key, replace(one, splits=16)).us < attention_estimate(key, one).us


def gradient_key(head: int, *, deterministic: bool = False, gpu: str = "gfx942") -> Any:
    (algorithm, *_) = attention_grad_algorithms(arch(gpu), SIGNATURE, head, head)
    signature = AttentionGradSignature(
        forward=SIGNATURE, bias_grad=False, deterministic=deterministic
    )
    return AttentionGradKey(signature, algorithm, gpu)


@given(shapes, st.sampled_from(("gfx942", "gfx950")), st.booleans())
def test_terms_make_up_the_time_of_the_gradients(
    problem: AttentionShape, gpu: str, deterministic: bool
) -> None:
    head = max(problem.head, problem.head_v)
    gradient = gradient_key(head, deterministic=deterministic, gpu=gpu)
    predicted = backward_estimate(keys_of(head, gpu)[0], gradient, problem)
    assert list(predicted.launches) == ["forward", "dot", "gradient", "dq", "dk", "dv"]
    assert predicted.us == pytest.approx(sum(each.us for each in predicted.launches.values()))
    for each in predicted.launches.values():
        assert each.us == pytest.approx(sum(each.terms.values()))
        assert all(term >= 0 and math.isfinite(term) for term in each.terms.values())
        assert each.padded_flops >= each.flops
    main = predicted.launches["gradient"]
    assert (main.terms["atomics"] > 0) == (not deterministic and main.steps > 0)
    assert "gradient" in str(predicted)


def test_what_the_gradients_cost_grows_with_the_work() -> None:
    forward, gradient = keys_of()[0], gradient_key(128)
    whole = backward_estimate(forward, gradient, shape(queries=4000, keys=4000))
    causal_one = backward_estimate(forward, gradient, shape(queries=4000, keys=4000, right=0))
    assert causal_one.launches["gradient"].us < 0.7 * whole.launches["gradient"].us
    assert causal_one.launches["dq"] == whole.launches["dq"]
    # Five products in place of two.
    assert whole.launches["gradient"].flops == 2.5 * whole.launches["forward"].flops
    parts = gradient_key(128, deterministic=True)
    apart = backward_estimate(forward, parts, shape(queries=4000, keys=4000))
    assert apart.launches["dq"].us > whole.launches["dq"].us


def test_gradients_of_nothing_have_no_price() -> None:
    with expect_error("K011", kind=CkValueError):
        attention_grad_estimate(gradient_key(128), shape(keys=0))
    with expect_error("K011", kind=CkValueError):
        reduce_estimate(reduce_key("gfx942", f16, dot=True), 0, 64)


def test_what_it_does_not_know_is_an_error() -> None:
    with expect_error("N002", kind=CkUnsupportedError):
        attention_estimate(keys_of()[0], shape(), replace(arch("gfx942"), matrix_rates=()))
    with pytest.raises(CkValueError):
        shape(queries=0)
    with expect_error("N005", kind=CkValueError):
        explain_attention([], shape())


def test_the_text_has_both_kernels_and_all_terms() -> None:
    text = explain_attention(keys_of(), shape())
    for word in ("chosen", "runner-up", "softmax", "matrix", "total µs", "padding"):
        assert word in text


B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal())


@pytest.mark.usefixtures("stencils")
def test_the_emulator_counts_the_same() -> None:
    @settings(max_examples=20)
    @given(st.integers(1, 2), st.integers(1, 3), lengths, lengths)
    def check(batch: int, heads: int, queries: int, keys: int) -> None:
        q = np.ones((batch, heads, queries, 64), np.float16)
        k = np.ones((batch, 1, keys, 64), np.float16)
        causal(q, k, k, device="emu:gfx942")
        key = launches(causal)[0].key
        assert key.family == "attention"
        predicted = attention_estimate(
            key,
            AttentionShape(
                batch=batch,
                heads=heads,
                kv_heads=1,
                queries=queries,
                keys=keys,
                head=64,
                head_v=64,
                right=0,
            ),
        )
        counted = emulator.stats(open_device("emu:gfx942").index)
        assert counted.workgroups == predicted.workgroups
        assert counted.mfma_flops == predicted.padded_flops

    check()
