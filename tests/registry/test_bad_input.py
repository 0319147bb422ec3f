# SPDX-License-Identifier: MIT
"""Problems at and beyond the edges: a legal kernel, or a refusal that names its rule."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.arch import ArchSpec, all_archs, arch
from cklang.build.builder import shared_builder
from cklang.device.host_shim import LaunchShape
from cklang.errors import CkError
from cklang.families.gemm.family import GEMM
from cklang.families.gemm.key import Algorithm, DKind, GemmKey, Layout, Reduction
from cklang.families.gemm.problem import Matrix, Problem
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.synthetic import problem
from cklang.ops.grouped import _key, _Product
from cklang.ops.self_test import passing, plain_key, plain_problem
from cklang.runtime.launch import described_stage
from cklang.selection.registry import Registry
from cklang.selection.request import Request
from cklang.selection.rules import violations
from cklang.selection.select import Selection, select
from cklang.types import bf16, f16, f32, fp8_fnuz
from tests.support.algorithms import DEEP, narrow
from tests.support.errors import expect_error
from tests.support.gemm_keys import RELU, shape

EMPTY = Registry("empty")


def chosen(gemm: Problem, gpu: str = "gfx942") -> Selection[GemmKey, Problem]:
    selection = select(gemm, registry=EMPTY, arch=gpu)
    assert list(violations(selection.key.algorithm, selection.key.signature, arch(gpu), gemm)) == []
    return selection


def refused(gemm: Problem) -> str:
    with expect_error("K101") as caught:
        select(gemm, registry=EMPTY, arch="gfx942")
    return str(caught.value)


@pytest.mark.parametrize("alignment", [1, 2])
def test_misaligned_pointers_take_narrow_accesses(alignment: int) -> None:
    if alignment == 1:
        assert "address alignment" in refused(shape(64, 64, 64, alignment=1))
        return
    algorithm = chosen(shape(64, 64, 64, alignment=2)).key.algorithm
    assert (algorithm.vector_a, algorithm.vector_b, algorithm.vector_e) == (1, 1, 1)


@pytest.mark.parametrize(
    ("strides", "vectors"),
    [
        ((65, 64, 64), (1, None, None)),
        ((64, 65, 64), (None, 1, None)),
        ((64, 64, 65), (None, None, 1)),
        ((66, 66, 66), (8, 8, 8)),
    ],
)
def test_leading_dimensions_limit_the_width(strides: Any, vectors: Any) -> None:
    """Accesses start at whole dwords: an odd stride forbids wide ones of 16-bit elements."""
    a = chosen(shape(64, 64, 64, strides=strides)).key.algorithm
    for got, want in zip((a.vector_a, a.vector_b, a.vector_e), vectors, strict=True):
        assert want is None or got == want


def test_an_empty_sum_has_a_kernel() -> None:
    assert chosen(shape(64, 64, 0)).key.algorithm.pad_k


@pytest.mark.parametrize(("m", "n", "k"), [(0, 4, 4), (4, 0, 4), (4, 4, -1), (-1, 4, 4)])
def test_extents_below_the_least_are_refused(m: int, n: int, k: int) -> None:
    with expect_error("K011"):
        problem(m, n, k)


@pytest.mark.parametrize(
    ("gemm", "rule", "operand"),
    [
        (shape(1 << 16, 64, 1 << 15), "operand-size", "A"),
        (shape(64, 1 << 16, 1 << 15), "operand-size", "B"),
        (shape(1 << 16, 1 << 15, 64), "operand-size", "E"),
        (shape(1 << 31, 1, 1), "extents", "M"),
        (shape(1, 1 << 31, 1), "extents", "N"),
        (shape(1, 1, 1 << 31), "extents", "K"),
        (shape(1 << 40, 1 << 40, 1 << 40), "extents", "M"),
        (shape(2, 2, 2, strides=(1 << 31, 2, 2)), "operand-size", "A"),
    ],
)
def test_huge_problems_are_refused_by_rule(gemm: Problem, rule: str, operand: str) -> None:
    text = refused(gemm)
    assert rule in text
    assert f"{rule}: " in text
    assert operand in text


def test_a_huge_epilogue_operand_is_refused_by_rule() -> None:
    gemm = problem(1 << 15, 1 << 14, 8, e=f16, d=[(f32, DKind.FULL)])
    assert "operand-size: the span of D0" in refused(gemm)


SMALL = narrow(tile=(64, 16, 32), warps=(4, 1, 1), warp_tile=DEEP)


def violations_of(algorithm: Algorithm, gemm: Problem) -> list[str]:
    return [
        f"{each.rule}: {each.violation.value}"
        for each in violations(algorithm, gemm.signature, arch("gfx942"), gemm)
    ]


def test_a_launch_counts_its_threads_and_tiles() -> None:
    """A byte a row: 2**30 rows are 2**24 tiles of 64, and 256 threads each are one too many."""
    tall = partial(shape, a=fp8_fnuz, e=fp8_fnuz, n=1, k=1)
    assert violations_of(SMALL, tall(m=(1 << 30) - 64)) == []
    assert violations_of(SMALL, tall(m=1 << 30)) == [f"grid: {1 << 32}"]
    lasting = replace(SMALL, persistent=True)
    assert violations_of(lasting, tall(m=1 << 30)) == []
    cube = partial(shape, a=fp8_fnuz, e=fp8_fnuz, n=1 << 15, k=1 << 15)
    stream = replace(SMALL, stream_k=True, reduction=Reduction.WORKSPACE)
    assert violations_of(stream, cube(m=1 << 15)) == []
    assert violations_of(stream, cube(m=(1 << 16) - 1)) == [f"stream-steps: {1 << 31}"]
    assert violations_of(SMALL, cube(m=(1 << 16) - 1)) == []


def test_a_group_is_one_launch() -> None:
    """Each product alone has few enough threads, all together have too many."""
    gemm = replace(shape(1 << 28, 1, 1, a=fp8_fnuz, e=fp8_fnuz), grouped=True)
    kernel: Any = SimpleNamespace(functions=RELU)

    def key(count: int, algorithm: Algorithm) -> Algorithm:
        products = [_Product(problem=gemm, slots=())] * count
        request = Request(algorithm=algorithm)
        return _key(kernel, products, arch("gfx942"), request).algorithm

    assert key(3, SMALL) == SMALL
    with pytest.raises(CkError, match=r"G003 .*all 4 products[\s\S]*rule grid"):
        key(4, SMALL)
    lasting = replace(SMALL, persistent=True)
    assert key(4, lasting) == lasting


@pytest.mark.usefixtures("compiler")
def test_launch_arguments_just_below_the_limits() -> None:
    """The largest problems that are legal: computed by the host shim, not run."""
    algorithm = chosen(plain_problem(f16, 63, 61, 61)).key.algorithm
    key = plain_key(algorithm, f16, "gfx942")
    (artifact,) = shared_builder().build_all([(key, passing(f16))])
    spec = arch("gfx942")

    def launch_shape(gemm: Problem) -> LaunchShape:
        return described_stage(artifact, GEMM.stage(gemm, key, passing(f16), spec)).shape

    tile_m, tile_n, tile_k = algorithm.tile
    # Whole tiles are stored, of one column too, and of one row, whose others lie its columns apart.
    elements = (1 << 31) // 4
    rows, columns = elements - tile_n, elements // tile_m - tile_n
    # The pipeline goes on for two tiles beyond K; a matrix has 2 GiB with them.
    deepest = (1 << 30) - 2 * tile_k
    for m, n, k in ((rows, 1, 1), (1, columns, 1), (1, 1, deepest)):
        gemm = plain_problem(f16, m, n, k)
        assert list(violations(algorithm, key.signature, spec, gemm)) == []
        grid = launch_shape(gemm).grid
        assert grid[0] * grid[1] * grid[2] == -(-m // tile_m) * -(-n // tile_n)
    deeper = plain_problem(f16, 1, 1, deepest + 1)
    assert [refused.rule for refused in violations(algorithm, key.signature, spec, deeper)] == [
        "masked-span"
    ]
    with expect_error("D007"):
        launch_shape(plain_problem(f16, 1 << 31, 1, 1))


sizes = st.integers(1, 1 << 34)


@given(
    m=sizes,
    n=sizes,
    k=st.integers(0, 1 << 34),
    dtype=st.sampled_from([f16, bf16, f32]),
    layouts=st.sampled_from(["rcr", "rrr", "ccr", "crr"]),
    alignment=st.sampled_from([1, 2, 4]),
)
def test_every_problem_is_served_or_refused_by_name(
    m: int, n: int, k: int, dtype: Any, layouts: str, alignment: int
) -> None:
    gemm = shape(m, n, k, a=dtype, layouts=layouts, alignment=alignment)
    try:
        chosen(gemm)
    except CkError as refusal:
        assert refusal.code == "K101"  # noqa: PT017 - either is right
        assert refusal.notes  # noqa: PT017


def test_problems_need_no_arrays() -> None:
    gemm = problem(3, 4, 5, a=f16, b=bf16, e=f32, layouts="crr", d=[(f32, DKind.ROW)])
    assert isinstance(gemm.a, Matrix)
    assert isinstance(gemm.b, Matrix)
    assert (gemm.a.stride, gemm.b.stride, gemm.e.stride) == (3, 4, 4)
    assert gemm.b.layout is Layout.ROW
    assert gemm.signature.layouts == "crr"
    assert gemm.d[0].span == 4
    with pytest.raises(CkError):
        problem(3, 4, 5, layouts="rows")
    with pytest.raises(CkError):
        problem(3, 4, 5, layouts="rcx")


@given(m=st.integers(1, 9), n=st.integers(1, 9), k=st.integers(0, 9))
def test_equal_problems_have_equal_hashes(m: int, n: int, k: int) -> None:
    assert shape(m, n, k) == shape(m, n, k)
    assert hash(shape(m, n, k)) == hash(shape(m, n, k))
    assert shape(m, n, k) != shape(m + 1, n, k)


_SIDES = st.sampled_from((1, 60, 4096, 46_341, 1 << 18, 1 << 24, 1 << 30))


@given(_SIDES, _SIDES, _SIDES, st.sampled_from(all_archs()), st.data())
def test_rules_that_say_so_are_harmless(
    m: int, n: int, k: int, spec: ArchSpec, data: st.DataObject
) -> None:
    """Whatever the tile: the smallest that a GPU has, and what a workgroup may have of threads."""
    row = data.draw(st.sampled_from(spec.warp_tiles))
    assert row.m * row.n >= 256
    warps = data.draw(st.sampled_from(spec.warp_configs))
    gemm = problem(m, n, k)
    small = replace(
        SMALL,
        tile=(warps[0] * row.m, warps[1] * row.n, max(row.k, 8)),
        warps=warps,
        stream_k=data.draw(st.booleans()),
    )
    for rule in RULES.problems:
        assert not rule.always_satisfied(gemm, spec) or rule.check(gemm, small, spec) is None, (
            rule.id
        )


def test_common_problems_are_asked_nothing_about_grids_and_2_gib() -> None:
    gemm = problem(8192, 8192, 8192)
    gpu = arch("gfx942")
    satisfied = {rule.id for rule in RULES.problems if rule.always_satisfied(gemm, gpu)}
    assert satisfied == {"grid", "masked-span", "store-span", "stream-steps"}
