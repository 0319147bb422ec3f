# SPDX-License-Identifier: MIT
"""Heads of any size up to 256: accesses are as wide as divides it, and nothing is copied.

One kernel with accesses of one element takes every size of its tile, so that the sizes drawn here
share it.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import all_archs, arch
from cklang.errors import CkError
from cklang.families.attention.pipelines import MOST_HEAD
from cklang.families.attention.space import attention_algorithms, narrowed, vector_widths
from cklang.selection.space import enumerate_legal
from cklang.types import DType, bf16, f16, f32, fp8, fp8_fnuz
from tests.support.arrays import uniform
from tests.support.attention_harness import Inputs, build, check, key_of
from tests.support.attention_ops import (
    arrays,
    cached,
    cached_args,
    packed,
    packed_args,
    plain,
    within,
)
from tests.support.checks import check as check_op
from tests.support.coverage import Covered

ABLE = [spec.name for spec in all_archs()]
SIZES = st.integers(1, MOST_HEAD)


def problem_of(hdim_q: int, hdim_v: int, dtype: DType = f16, keys: int = 128) -> Any:
    return ck.dispatch.attention_problem(1, 8, 128, keys, hdim_q, head_v=hdim_v, dtype=dtype)


def algorithm_of(hdim: int, gpu: str, dtype: DType = f16) -> Any:
    return ck.dispatch.select(problem_of(hdim, hdim, dtype), arch=gpu).key.algorithm


@pytest.mark.parametrize("gpu", ABLE)
@given(hdim_q=SIZES, hdim_v=SIZES, gradient=st.booleans())
@example(hdim_q=60, hdim_v=60, gradient=False)
@example(hdim_q=61, hdim_v=256, gradient=True)
def test_every_head_size_has_a_kernel(gpu: str, hdim_q: int, hdim_v: int, gradient: bool) -> None:
    problem = problem_of(hdim_q, hdim_v)
    asked = ck.dispatch.attention_grad_problem(problem) if gradient else problem
    chosen = ck.dispatch.select(asked, arch=gpu).key.algorithm
    assert chosen.vector == math.gcd(hdim_q, hdim_v, 8)


@pytest.mark.parametrize("dtype", [f16, bf16, f32, fp8_fnuz], ids=str)
def test_accesses_that_are_narrower_cost_more(dtype: DType) -> None:
    widths = vector_widths(dtype)
    sizes = [(MOST_HEAD // 4) - (0 if width == widths[0] else width) for width in widths]
    times = []
    for size, width in zip(sizes, widths, strict=True):
        selection = ck.dispatch.select(problem_of(size, size, dtype), arch="gfx942", splits=1)
        assert selection.key.algorithm.vector == width
        # The same problem for each: the time depends on the accesses and not on the size.
        times.append(selection.pool.times_of(problem_of(64, 64, dtype))[selection.position])
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_head_sizes_that_the_widest_divide_keep_their_candidates() -> None:
    selection = ck.dispatch.select(problem_of(64, 64), arch="gfx942")
    assert {key.algorithm.vector for key in selection.pool.keys} == {8}
    named = ck.dispatch.attention_pattern(pipeline="*")
    legal = enumerate_legal(selection.key.signature, "gfx942", named)
    assert {algorithm.vector for algorithm in legal} == {8}
    every = ck.dispatch.attention_pattern(vector="*")
    legal = enumerate_legal(selection.key.signature, "gfx942", every)
    assert {algorithm.vector for algorithm in legal} == {8, 4, 2, 1}


def test_an_algorithm_is_mended_for_its_head_size() -> None:
    wide = algorithm_of(64, "gfx942")
    problem = problem_of(60, 60)
    proposal = ck.dispatch.fix(wide, problem.signature, "gfx942", problem)
    assert proposal.algorithm == replace(wide, vector=proposal.algorithm.vector)
    assert proposal.algorithm.vector in (1, 2, 4)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(("hdim_q", "hdim_v", "which"), [(257, 64, "q and k"), (64, 300, "v")])
def test_longer_heads_are_refused_in_one_sentence(
    hdim_q: int, hdim_v: int, which: str, gradient: bool
) -> None:
    """Of types for which no pipeline walks over heads; of f16 and bf16 one does."""
    problem = problem_of(hdim_q, hdim_v, f32)
    asked = ck.dispatch.attention_grad_problem(problem) if gradient else problem
    with pytest.raises(CkError, match="CK-K101") as refused:
        ck.dispatch.select(asked, arch="gfx942")
    reasons = [note for note in str(refused.value).splitlines() if "head-" in note]
    assert len(reasons) == 1
    assert f"the head size of {which} is {max(hdim_q, hdim_v)}, must be at most 256" in reasons[0]
    instead = "ck.vjp(op)" if gradient else "ck.softmax(q @ k.mT * scale) @ v"
    assert instead in reasons[0]


@pytest.mark.parametrize(("gpu", "widths"), [("gfx942", {8, 4, 2}), ("gfx950", {8})])
def test_loads_straight_into_lds_are_as_wide_as_the_gpu_has_them(
    gpu: str, widths: set[int]
) -> None:
    """The pipeline lays 16 bytes of a lane side by side on gfx950, and 4 on gfx942."""
    what = key_of(arch=gpu).signature
    known = attention_algorithms(arch(gpu), what, 64, 64)
    direct = next(each for each in known if each.pipeline.value == "qr_async")
    each_width = (direct, *narrowed([direct], f16))
    assert {each.vector for each in each_width if not ck.dispatch.advise(each, what, gpu)} == widths
    (advice,) = ck.dispatch.advise(replace(direct, vector=1), what, gpu)
    assert f"the vector along a head is 1, must be {min(widths)} or more" in str(advice)


# --- on the emulator


def inputs_of(size: int, size_v: int, seed: int, dtype: DType = f16) -> Inputs:
    return Inputs(
        heads=4,
        kv_heads=2,
        seqlen_q=70,
        seqlen_k=133,
        hdim_q=size,
        hdim_v=size_v,
        bshd=bool(seed % 2),
        seed=seed,
        dtype=dtype,
    )


@pytest.mark.usefixtures("compiler")
def test_heads_of_any_size(covered: Covered) -> None:
    kernel = build(key_of(algorithm=algorithm_of(61, "gfx942")))

    @settings(max_examples=12)
    @given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 99))
    @example(61, 61, 1)
    @example(1, 64, 0)
    def agrees(size: int, size_v: int, seed: int) -> None:
        check(kernel, inputs_of(size, size_v, seed))

    agrees()
    covered("attention: head sizes that are no multiple of 8", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_gradients_of_heads_of_any_size(covered: Covered) -> None:
    for size, size_v in ((61, 61), (33, 47), (64, 1)):
        heads = {"B": 1, "G": 2, "H": 4, "S": 70, "T": 133, "D": size, "E": size_v}
        args = arrays(np.random.default_rng(size), heads, rows_first=True)
        grad = uniform(1, 4, 70, size_v)
        grads = ck.attention_grad(plain, *args, grad=grad, device="emu:gfx942")
        within(plain, args, grad, grads)
    covered("attention backward: head sizes that are no multiple of 8", "f16", "gfx942")


CASES = [
    ("gfx90a", bf16, f32),
    ("gfx942", f32, f16),
    ("gfx950", f16, bf16),
    ("gfx1201", bf16, f16),
    ("gfx1100", f16, bf16),
]


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "one", "other"), CASES, ids=str)
def test_heads_of_any_size_on_each_gpu(
    gpu: str, one: DType, other: DType, covered: Covered
) -> None:
    for dtype, size in ((one, 61), (other, 125)):
        key = key_of(dtype, algorithm_of(size, gpu, dtype), gpu)
        for least in (0, 20):
            check(build(key), inputs_of(size - least, size, least, dtype))
        covered("attention: head sizes that are no multiple of 8", dtype.name, gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", ABLE)
def test_gradients_of_heads_of_any_size_on_each_gpu(gpu: str, covered: Covered) -> None:
    heads = {"B": 1, "G": 2, "H": 4, "S": 70, "T": 133, "D": 62, "E": 22}
    args = arrays(np.random.default_rng(0), heads, rows_first=True, dtype=bf16)
    grad = uniform(1, 4, 70, 22, dtype=bf16)
    within(plain, args, grad, ck.attention_grad(plain, *args, grad=grad, device=f"emu:{gpu}"))
    covered("attention backward: head sizes that are no multiple of 8", "bf16", gpu)


B, H, S, T, D = ck.dims("B H S T D")
N8: Any = ck.dtype_var("N8", ck.fp8, ck.fp8_fnuz)


@ck.op
def narrow(q: N8[B, H, S, D], k: N8[B, H, T, D], v: N8[B, H, T, D]) -> ck.bf16[B, H, S, D]:
    return ck.attention(q, k, v)


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype"), [("gfx942", fp8_fnuz), ("gfx1201", fp8)], ids=str)
def test_narrow_heads_of_any_size(gpu: str, dtype: DType, covered: Covered) -> None:
    args = [uniform(1, 2, rows, 61, dtype=dtype) for rows in (70, 133, 133)]
    check_op(narrow, args, gpu)
    covered("attention: head sizes that are no multiple of 8", "fp8 bf16", gpu)


def cut(args: list[Any], *sizes: int) -> list[Any]:
    """Return arguments whose first ones, q, k and v, have heads of these sizes."""
    heads = (np.ascontiguousarray(x[..., :n]) for x, n in zip(args[:3], sizes, strict=True))
    return [*heads, *args[3:]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("op", "args", "what"),
    [
        (cached.using(splits=1), cached_args([100, 0, 144], 3, 1), "pages"),
        (cached.using(splits=3), cached_args([100, 0, 144], 3, 1), "split-KV, pages"),
        (packed, packed_args([(70, 90), (5, 0), (33, 130)], 1), "packed sequences"),
    ],
)
def test_other_ways_to_keys(op: Any, args: list[Any], what: str, covered: Covered) -> None:
    check_op(op, cut(args, 61, 61, 45))
    covered(f"attention: head sizes that are no multiple of 8, {what}", "f16", "gfx942")
