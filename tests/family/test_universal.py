# SPDX-License-Identifier: MIT
"""Every pipeline, scheduler and epilogue of the universal GEMM, fused, on an emulated GPU.

A kernel takes ten seconds to compile, so each case stands for several choices at once.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import cklang as ck
from cklang.families.gemm.key import Algorithm, EpilogueKind, Pipeline, Scheduler
from cklang.types import DType
from tests.support.algorithms import pipelined, wide
from tests.support.arrays import drawn, laid_out_as, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.gemm_ops import fused

pytestmark = pytest.mark.usefixtures("compiler")


@dataclass(frozen=True)
class Case:
    """One kernel: a pipeline with what else is chosen."""

    pipeline: Pipeline
    arch: str
    dtype: DType = ck.f16
    layouts: str = "rc"
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def algorithm(self) -> Algorithm:
        direct = self.more.get("epilogue") is EpilogueKind.DEFAULT
        stores = {"vector_e": 1, "vector_d": (1, 1)} if direct else {}
        return pipelined(wide(2), self.pipeline, **(stores | self.more))

    @property
    def variants(self) -> list[str]:
        """What it stands for, as the coverage table names it."""
        a = self.algorithm
        scheduled = f"pipeline {self.pipeline.value}"
        if a.scheduler is Scheduler.INTERWAVE:
            scheduled += " interwave"
        variants = [scheduled, f"epilogue {a.epilogue.value}", f"layouts {self.layouts}r"]
        if a.persistent:
            variants.append("persistent")
        if a.transpose_c:
            variants.append("accumulator transposed")
        return variants


DIRECT = {"epilogue": EpilogueKind.DEFAULT}
FLOATS = Case(
    Pipeline.COMPV3,
    "gfx942",
    ck.f32,
    "rr",
    {
        "tile": (64, 64, 16),
        "transpose_c": True,
        "vector_a": 4,
        "vector_b": 4,
        "vector_e": 4,
        "vector_d": (4, 4),
    },
)
CASES = [
    # As products of a batch with a prologue run it.
    pytest.param(Case(Pipeline.MEM, "gfx942", more={"warp_tile": (32, 32, 8)}),
                 marks=pytest.mark.full),
    Case(Pipeline.MEM, "gfx90a", ck.bf16, "cr",
         {"scheduler": Scheduler.INTERWAVE, "persistent": True, **DIRECT}),
    Case(Pipeline.COMPV4, "gfx942", layouts="cc", more={"persistent": True}),
    Case(Pipeline.COMPV4, "gfx950", layouts="rr", more={"warp_tile": (16, 16, 32)}),
    Case(Pipeline.COMPV5, "gfx942",
         more={"tile": (32, 32, 32), "warps": (1, 1, 2), "warp_tile": (16, 16, 16)}),
    Case(Pipeline.COMPV6, "gfx942", ck.bf16, "cr", {"warp_tile": (16, 16, 32)}),
    Case(Pipeline.COMP_ASYNC, "gfx950", more={"tile": (64, 64, 64), "warp_tile": (16, 16, 32)}),
    Case(Pipeline.BASIC_V1, "gfx90a", more=DIRECT),
    FLOATS,
    *(
        pytest.param(replace(FLOATS, arch=gpu), marks=pytest.mark.full)
        for gpu in ("gfx90a", "gfx950")
    ),
]  # fmt: skip
SHAPES = [(72, 136, 200), (40, 40, 32), (64, 64, 0), (200, 72, 1000), (8, 264, 64)]
"""K = 0 runs where A is row-major and B is not: empty matrices have no other layout."""


def operands(case: Case, shape: tuple[int, int, int]) -> list[Any]:
    x, w, *rest = drawn(fused, mnk(*shape), T=case.dtype)
    return [*laid_out_as(case.layouts, x, w), *rest]


@pytest.mark.usefixtures("sanitized")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.pipeline.value}-{case.arch}")
def test_every_pipeline(case: Case, covered: Covered) -> None:
    op = fused.using(case.algorithm)
    for shape in SHAPES:
        if shape[2] == 0 and case.layouts != "rc":
            continue
        check(op, operands(case, shape), case.arch)
    (launch,) = launches(op)
    assert launch.key.algorithm == case.algorithm
    assert launch.resources.spills == 0
    for variant in case.variants:
        covered(variant, case.dtype.name, case.arch)
