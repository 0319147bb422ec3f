# SPDX-License-Identifier: MIT
"""Batches, groups, shared K, pipelines and layouts with element types and on GPUs that other tests
of them leave out.

Their C++ depends on neither, so most of these kernels are left to the tier *full*. A kernel takes
ten seconds to compile, so each stands for several choices at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import cklang as ck
from cklang.arch import arch
from cklang.families.gemm.key import (
    Algorithm,
    EpilogueKind,
    Pipeline,
    ProductKind,
    Reduction,
    Scheduler,
)
from cklang.runtime.op import Op
from cklang.types import DTYPES, DType, TensorType
from tests.support.algorithms import DEEP, WIDE, pipelined
from tests.support.arrays import drawn, laid_out_as, mnk
from tests.support.checks import check, check_group, launches
from tests.support.coverage import Covered
from tests.support.typed import instance

G, M, N, K = ck.dims("G M N K")
X: Any = ck.dtype_var("X", ck.f16, ck.bf16, ck.fp8, ck.fp8_fnuz, ck.i8)
W: Any = ck.dtype_var("W", ck.f16, ck.bf16, ck.fp8, ck.fp8_fnuz, ck.bf8, ck.i8)


@ck.op
def plain(x: X[M, K], w: W[N, K], bias: ck.f32[N]) -> ck.bf16[M, N]:
    return ck.relu((x @ w.T).to(ck.f32) + bias)


@ck.op
def batch(x: X[G, M, K], w: W[G, N, K], bias: ck.f32[N]) -> ck.bf16[G, M, N]:
    return ck.relu(ck.einsum("gmk,gnk->gmn", x, w).to(ck.f32) + bias)


@ck.op
def half(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T + bias)


@ck.op
def half_batch(x: ck.f16[G, M, K], w: ck.f16[G, N, K], bias: ck.f32[N]) -> ck.f16[G, M, N]:
    return ck.relu(ck.einsum("gmk,gnk->gmn", x, w) + bias)


OPS = {(False, False): plain, (False, True): batch, (True, False): half, (True, True): half_batch}


@dataclass(frozen=True)
class Case:
    """One kernel."""

    variants: tuple[str, ...]
    """What it stands for, as the coverage table names it, beside what its algorithm says."""
    arch: str
    x: DType
    w: DType | None = None
    more: dict[str, Any] = field(default_factory=dict)
    layouts: str = "rc"
    whole: bool = False
    """Whether it stands for its pipeline, epilogue and layouts too."""
    scratch: bool = False
    """Whether values of a thread are kept in memory."""

    @property
    def types(self) -> tuple[DType, DType]:
        return self.x, self.w or self.x

    @property
    def is_batch(self) -> bool:
        return "batched" in self.variants

    @property
    def is_group(self) -> bool:
        return "grouped" in self.variants

    @property
    def kind(self) -> ProductKind:
        alone = ProductKind.GROUPED if self.is_group else ProductKind.GEMM
        return ProductKind.BATCHED if self.is_batch else alone

    @property
    def op(self) -> Op:
        return OPS[self.whole and self.x is ck.f16, self.is_batch].using(self.algorithm)

    @property
    def pipeline(self) -> Pipeline:
        pipeline: Pipeline = self.more.get("pipeline", Pipeline.COMPV3)
        return pipeline

    @property
    def algorithm(self) -> Algorithm:
        wmma = arch(self.arch).wave_size == 32
        vector = 1 if self.more.get("epilogue") is EpilogueKind.DEFAULT else 4
        chosen: dict[str, Any] = {
            "tile": (64, 64, 64 if self.x.bits == 8 else 32),
            "warps": (4, 2, 1) if wmma else (2, 2, 1),
            "warp_tile": (16, 16, 16) if wmma else DEEP,
            "vector_e": vector,
            "vector_d": (vector,),
        }
        return pipelined(WIDE, self.pipeline, **(chosen | self.more))

    @property
    def covered_variants(self) -> list[str]:
        """All that it stands for."""
        if not self.whole:
            return list(self.variants)
        a = self.algorithm
        scheduled = f"pipeline {a.pipeline.value}"
        if a.scheduler is Scheduler.INTERWAVE:
            scheduled += " interwave"
        chosen = [f"epilogue {a.epilogue.value}", f"layouts {self.layouts}r"]
        return [*self.variants, scheduled, *chosen]

    def __str__(self) -> str:
        return f"{self.variants[0]}-{self.pipeline.value}-{self.x}-{self.arch}"


BATCH = ("batched", "contraction (einsum)")
GROUP = ("grouped",)
LASTING = {"persistent": True}
LASTING_GROUP = (*GROUP, "grouped, persistent")


def pairs(text: str) -> Iterator[tuple[str, DType]]:
    """Yield GPUs and element types, written as gfx942:f16,bf16."""
    for word in text.split():
        gpu, _, dtypes = word.partition(":")
        yield from ((gpu, DTYPES[dtype]) for dtype in dtypes.split(","))


def shared(kind: str, reduction: str, gpu: str, dtype: DType, **more: Any) -> Case:
    how: dict[str, Any] = {"split_k": 3} if kind == "split-K" else {"stream_k": True}
    how |= {"reduction": Reduction(reduction)}
    return Case((f"{kind} {reduction}",), gpu, dtype, more=how | more)


FEW = [
    Case(BATCH, "gfx1201", ck.fp8),
    Case(LASTING_GROUP, "gfx1100", ck.bf16, more=LASTING),
    shared("split-K", "workspace", "gfx1201", ck.f16),
]
REST = [
    Case(BATCH, "gfx1100", ck.i8),
    shared("split-K", "workspace", "gfx950", ck.fp8),
    Case(("universal",), "gfx1201", ck.fp8, ck.bf8, {"pipeline": Pipeline.COMPV4}),
    Case(("persistent",), "gfx1100", ck.f16, more=LASTING),
]

INTERWAVE: dict[str, Any] = {"pipeline": Pipeline.MEM, "scheduler": Scheduler.INTERWAVE}
DIRECT: dict[str, Any] = {"epilogue": EpilogueKind.DEFAULT}
BASIC: dict[str, Any] = {"pipeline": Pipeline.BASIC_V1}
HALVES = {
    "compv3": Case(BATCH, "", ck.f16),
    "compv4": Case(
        LASTING_GROUP, "", ck.f16, more=LASTING | {"pipeline": Pipeline.COMPV4}, layouts="rr"
    ),
    "compv6": replace(
        shared("split-K", "workspace", "", ck.f16, pipeline=Pipeline.COMPV6), layouts="cc"
    ),
    "mem": replace(
        shared("stream-K", "workspace", "", ck.f16, pipeline=Pipeline.MEM), layouts="cr"
    ),
    "interwave": shared("split-K", "atomic", "", ck.f16, **INTERWAVE, **DIRECT),
    "basic": shared("stream-K", "atomic", "", ck.f16, **BASIC),
    "persistent": Case(("universal", "persistent"), "", ck.f16, more=LASTING),
}
"""What an f16 kernel of each pipeline stands for."""
ROUND = [
    replace(HALVES[name], arch=gpu, whole=True)
    for gpu, names in (
        ("gfx90a", "compv4 compv6 mem interwave persistent"),
        ("gfx942", "compv3 interwave basic persistent"),
        ("gfx950", "compv4 compv6 mem interwave basic persistent"),
        ("gfx1100", "compv3 compv4 compv6 mem interwave basic persistent"),
        ("gfx1201", "compv3 compv4 mem interwave basic persistent"),
    )
    for name in names.split()
]
LASTING_COMPV6 = LASTING | {"pipeline": Pipeline.COMPV6}
OTHERS = [
    *(
        Case(BATCH, gpu, dtype, whole=True)
        for gpu, dtype in pairs("gfx90a:bf16 gfx942:fp8_fnuz,i8 gfx950:bf16,fp8")
    ),
    *(
        Case(LASTING_GROUP, gpu, dtype, more=LASTING_COMPV6, whole=True)
        for gpu, dtype in pairs("gfx90a:bf16 gfx942:fp8_fnuz gfx950:fp8,i8")
    ),
]
"""What else is multiplied."""
ACROSS = LASTING | INTERWAVE | DIRECT
TWO_GROUPS = {"pipeline": Pipeline.COMPV5, "warps": (1, 1, 2), "tile": (64, 64, 64)}
SMALL_TILE = {"tile": (32, 32, 32), "warp_tile": (16, 16, 16)}
GAPS = [
    *(
        Case(BATCH, gpu, dtype, whole=True)
        for gpu, dtype in pairs("gfx942:bf16 gfx1100:bf16,i8 gfx1201:bf16,i8,fp8 gfx950:i8")
    ),
    *(
        Case(LASTING_GROUP, gpu, dtype, more=LASTING_COMPV6, whole=True)
        for gpu, dtype in pairs("gfx942:bf16,i8 gfx950:bf16 gfx1100:bf16,i8 gfx1201:bf16,i8,fp8")
    ),
    *(
        Case(("universal", "persistent"), gpu, ck.bf16, more=ACROSS, layouts="cr", whole=True)
        for gpu in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
    ),
    *(
        replace(shared("split-K", "workspace", gpu, dtype), layouts="cr", whole=True)
        for gpu, dtype in pairs("gfx942:fp8_fnuz,i8 gfx950:i8 gfx1100:i8 gfx1201:i8,fp8")
    ),
    *(
        replace(HALVES[name], arch=gpu, whole=True)
        for gpu, names in (
            ("gfx90a", "basic"),
            ("gfx942", "compv4 compv6 mem"),
            ("gfx1201", "compv6"),
        )
        for name in names.split()
    ),
    *(
        Case(("universal",), gpu, ck.f16, more=TWO_GROUPS | more, whole=True, scratch=scratch)
        for gpu, more, scratch in (
            ("gfx90a", {}, False),
            # A tile of 64x64x64 keeps 528 bytes of a thread in scratch memory.
            ("gfx950", SMALL_TILE, False),
            # Fragments of RDNA's matrix instructions, each in two halves, take more registers.
            ("gfx1100", SMALL_TILE, True),
            ("gfx1201", SMALL_TILE, True),
        )
    ),
]
"""What the rest leaves empty in the table of coverage."""
SHAPES = ((64, 64, 64), (80, 208, 336), (144, 48, 0), (8, 8, 1000))
"""All fit the widest loads, so that one kernel serves them."""


def arguments(case: Case, shape: tuple[int, int, int]) -> list[Any]:
    x_type, w_type = case.types
    batch = {"G": 3} if case.is_batch else {}
    x, w, bias = drawn(case.op, mnk(*shape) | batch, X=x_type, W=w_type)
    return [*laid_out_as(case.layouts, x, w), bias]


def calls_of(case: Case) -> list[tuple[Any, ...]]:
    """Empty matrices have one layout."""
    shapes = [shape for shape in SHAPES if shape[2] or case.layouts == "rc"]
    return [tuple(arguments(case, shape)) for shape in shapes]


def check_case(case: Case, covered: Covered) -> None:
    op, calls = case.op, calls_of(case)
    if case.is_group:
        check_group(op, calls, case.arch)
    else:
        for args in calls:
            check(op, args, case.arch)
    (launch,) = launches(op)
    key = launch.key
    assert key.signature.kind is case.kind
    assert key.signature.layouts == f"{case.layouts}r"
    assert key.algorithm == case.algorithm
    # SGPRs of stream-K on gfx90a may go to lanes of a VGPR; nothing goes to memory.
    assert case.scratch or launch.resources.vgpr_spills == 0
    assert bool(launch.resources.scratch_bytes) == case.scratch
    result = instance(TensorType, op.program.signature.result).dtype
    for variant in case.covered_variants:
        covered(variant, " ".join(map(str, (*case.types, result))), case.arch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("case", FEW, ids=str)
def test_kinds(case: Case, covered: Covered) -> None:
    check_case(case, covered)


@pytest.mark.full
@pytest.mark.parametrize("case", REST, ids=str)
def test_further_kinds(case: Case, covered: Covered) -> None:
    check_case(case, covered)


@pytest.mark.full
@pytest.mark.parametrize("case", ROUND, ids=str)
def test_pipelines(case: Case, covered: Covered) -> None:
    check_case(case, covered)


@pytest.mark.full
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_other_types(case: Case, covered: Covered) -> None:
    check_case(case, covered)


@pytest.mark.full
@pytest.mark.parametrize("case", GAPS, ids=str)
def test_gaps(case: Case, covered: Covered) -> None:
    check_case(case, covered)


@pytest.mark.parametrize("case", [*FEW, *REST, *ROUND, *OTHERS, *GAPS], ids=str)
def test_all_are_legal(case: Case) -> None:
    said = case.op.explain(*arguments(case, SHAPES[1]), device=f"emu:{case.arch}")
    assert "the algorithm you named" in said
