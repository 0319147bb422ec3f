# SPDX-License-Identifier: MIT
"""Heads beyond what a tile holds: one kernel walks over heads of any size.

The sizes that are drawn here share the kernel of their signature: none of them compiles another.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import all_archs
from cklang.errors import CkError
from cklang.families.attention.cost import attention_estimate
from cklang.families.attention.pipelines import MOST_HEAD
from cklang.families.attention.ranking import shape_of
from cklang.types import DType, bf16, f16, f32
from tests.support.arrays import uniform
from tests.support.attention_ops import dropped, finished, packed, varied, windowed
from tests.support.checks import check, launches
from tests.support.coverage import Covered

GPUS = [
    spec.name
    for spec in all_archs()
    if any("long_head" in row.pipelines for row in spec.attention_tiles)
]
SIZES = st.integers(1, 1200)
LONG = st.integers(MOST_HEAD + 1, 1200)


def problem_of(hdim_q: int, hdim_v: int, dtype: DType = f16, **more: Any) -> Any:
    return ck.dispatch.attention_problem(1, 8, 128, 128, hdim_q, head_v=hdim_v, dtype=dtype, **more)


def test_every_gpu_has_it() -> None:
    assert {spec.name for spec in all_archs()} == set(GPUS)


@pytest.mark.parametrize("gpu", GPUS)
@given(long=LONG, other=SIZES, is_v=st.booleans())
@example(long=576, other=512, is_v=False)
def test_every_longer_head_has_a_kernel(gpu: str, long: int, other: int, is_v: bool) -> None:
    sizes = (other, long) if is_v else (long, other)
    algorithm = ck.dispatch.select(problem_of(*sizes, bf16), arch=gpu).key.algorithm
    assert algorithm.pipeline.value == "long_head"
    assert long % algorithm.vector == other % algorithm.vector == 0


@pytest.mark.parametrize("gpu", GPUS)
def test_heads_that_a_tile_holds_keep_their_kernels(gpu: str) -> None:
    algorithm = ck.dispatch.select(problem_of(256, 256), arch=gpu).key.algorithm
    assert algorithm.pipeline.value != "long_head"


@pytest.mark.parametrize(("gpu", "slices"), [("gfx942", 1), ("gfx1201", 2)])
def test_slices_of_v_compute_the_scores_again(gpu: str, slices: int) -> None:
    problem = problem_of(576, 512)
    selection = ck.dispatch.select(problem, arch=gpu, splits=1)
    estimate = attention_estimate(selection.key, shape_of(problem))
    steps, columns = 8 * 2 * 2, 512 // slices  # of heads, tiles of queries and of keys
    assert estimate.workgroups == 8 * 2 * slices
    assert estimate.padded_flops == 2 * 64 * 64 * (576 + columns) * steps * slices
    assert estimate.flops == 2 * 8 * 128 * 128 * (576 + 512)


@pytest.mark.parametrize("more", [{"dtype": f32}, {"dropout": 0.5}], ids=["f32", "dropout"])
def test_what_has_no_long_heads_is_refused_in_one_sentence(more: dict[str, Any]) -> None:
    with pytest.raises(CkError, match="CK-K101") as refused:
        ck.dispatch.select(problem_of(320, 64, **more), arch="gfx942")
    (reason,) = (note for note in str(refused.value).splitlines() if "attention-head-most" in note)
    assert "the head size of q and k is 320, must be at most 256" in reason
    assert "ck.softmax(q @ k.mT * scale) @ v" in reason


def test_dropout_of_a_long_head_is_refused_at_the_call() -> None:
    args = [uniform(1, 2, rows, 320) for rows in (3, 5, 5)]
    with pytest.raises(CkError, match="attention-head-most"):
        dropped.explain(*args, 1, device="emu:gfx942")


# --- on the emulator


def finished_args(rows: int, keys: int, hdim_q: int, hdim_v: int, dtype: DType = f16) -> list[Any]:
    return [
        uniform(1, 4, rows, hdim_q, dtype=dtype),
        uniform(1, 2, keys, hdim_q, dtype=dtype),
        uniform(1, 2, keys, hdim_v, dtype=dtype),
        uniform(4, dtype=f32),
        np.arange(rows, dtype=np.int32).reshape(1, rows) % 3,
        np.arange(keys, dtype=np.int32).reshape(1, keys) % 3,
        uniform(hdim_v, dtype=dtype),
        uniform(1, rows, 4, hdim_v, dtype=dtype).swapaxes(1, 2),
        0.75,
    ]


EIGHTS = st.integers(33, 90).map(lambda n: 8 * n)


@pytest.mark.usefixtures("compiler")
def test_functions_of_scores_masks_and_results(covered: Covered) -> None:
    """Of v's 1032 columns three workgroups share a row's; each has columns of its own."""

    @settings(max_examples=4)
    @given(EIGHTS, EIGHTS, st.integers(1, 80), st.integers(1, 140))
    @example(576, 512, 70, 133)
    @example(40, 1032, 3, 65)
    @example(600, 8, 65, 1)
    def agrees(hdim_q: int, hdim_v: int, rows: int, keys: int) -> None:
        check(finished, finished_args(rows, keys, hdim_q, hdim_v))
        (launch,) = launches(finished)
        assert launch.key.algorithm.pipeline.value == "long_head"
        assert launch.grid[1] == -(-hdim_v // 512)

    agrees()
    covered("attention, head sizes above 256: functions, lse", "f16", "gfx942")


B, H, S, D, E, N, P = ck.dims("B H S D E N P")


@ck.op
def decode(
    q: ck.f16[B, H, S, D],
    keys: ck.f16[N, 1, 16, D],
    values: ck.f16[N, 1, 16, E],
    lengths: ck.i32[B],
    table: ck.i32[B, P],
) -> ck.f16[B, H, S, E]:
    """Latent attention: values are the first elements of the keys."""
    return ck.attention(q, keys, values, seqlens_k=lengths, block_table=table)


def latent_args(heads: int, pages: int = 4) -> list[Any]:
    """Three sequences of up to ``pages`` pages of 16 keys."""
    rng = np.random.default_rng(heads)
    cache = uniform(3 * pages, 1, 16, 576)
    table = rng.permutation(3 * pages).reshape(3, pages).astype(np.int32)
    return [
        uniform(3, heads, 1, 576),
        cache,
        cache[..., :512],
        np.array([50, 0, 16 * pages], np.int32),
        table,
    ]


@pytest.mark.usefixtures("compiler")
def test_latent_attention_decodes_from_pages(covered: Covered) -> None:
    args = latent_args(16)
    op = decode.using(splits=1)
    by_heads = check(op, args)
    by_rows = check(op, [args[0].swapaxes(1, 2), *args[1:]])
    assert (by_heads == by_rows.swapaxes(1, 2)).all(), "heads that share their keys may be rows"
    q, *rest = latent_args(128)
    check(op, [q.swapaxes(1, 2), *rest])
    assert launches(op)[0].grid == (6, 1, 1)
    covered("attention, head sizes 576 and 512: pages", "f16", "gfx942")


@pytest.mark.full
def test_latent_attention_in_splits(covered: Covered) -> None:
    op = decode.using(splits=3)
    check(op, latent_args(16, pages=10))
    assert [launch.key.family for launch in launches(op)] == ["attention", "combine"]
    covered("attention, head sizes 576 and 512: split-KV, pages", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_packed_sequences(covered: Covered) -> None:
    for hdim_q, hdim_v in ((576, 512), (264, 520)):
        starts = np.cumsum([(0, 0), (70, 90), (5, 0), (33, 130)], axis=0, dtype=np.int32)
        args = [
            uniform(108, 4, hdim_q, dtype=bf16),
            uniform(220, 2, hdim_q, dtype=bf16),
            uniform(220, 2, hdim_v, dtype=bf16),
            *(np.ascontiguousarray(starts[:, side]) for side in (0, 1)),
            uniform(4, 4, dtype=f32),
        ]
        check(packed, args, "gfx90a")
    covered("attention, head sizes above 256: packed sequences, lse", "bf16", "gfx90a")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("corner", ["top_left", "bottom_right"])
def test_windows(corner: str, covered: Covered) -> None:
    args = [uniform(1, 4, 70, 320), uniform(1, 2, 150, 320), uniform(1, 2, 150, 264)]
    check(windowed, args, "gfx950", corner=corner, left=40, right=3, sink=2)
    assert launches(windowed)[0].key.algorithm.pipeline.value == "long_head"
    covered("attention, head sizes above 256: window", "f16", "gfx950")


def varied_args(dtype: DType, hdim_q: int, hdim_v: int) -> list[Any]:
    return [
        uniform(1, 4, 70, hdim_q, dtype=dtype),
        uniform(1, 2, 150, hdim_q, dtype=dtype),
        uniform(1, 2, 150, hdim_v, dtype=dtype),
        uniform(4, dtype=f32),
        uniform(1, 4, 70, 150, dtype=dtype),
        np.arange(70, dtype=np.int32).reshape(1, 70) % 3,
        np.arange(150, dtype=np.int32).reshape(1, 150) % 3,
        0.05,
    ]


@pytest.mark.full
def test_slices_on_rdna4(covered: Covered) -> None:
    """A workgroup has 256 columns of v there, and the first of them stores the log-sum-exp."""
    check(varied, varied_args(bf16, 576, 512), "gfx1201")
    (launch,) = launches(varied)
    assert launch.grid[1] == 2
    covered("attention, head sizes above 256: functions, lse", "bf16", "gfx1201")


@ck.op
def half(q: ck.f16[B, H, S, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, E]) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"))


OTHERS = [
    ("gfx90a", f16),
    ("gfx942", bf16),
    ("gfx950", f16),
    ("gfx950", bf16),
    ("gfx1100", f16),
    ("gfx1201", f16),
]


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype"), OTHERS, ids=str)
def test_each_type_on_each_gpu(gpu: str, dtype: DType, covered: Covered) -> None:
    check(varied, varied_args(dtype, 576, 512), gpu)
    check(varied, varied_args(dtype, 264, 600), gpu)
    covered("attention, head sizes above 256: functions, lse", dtype.name, gpu)
