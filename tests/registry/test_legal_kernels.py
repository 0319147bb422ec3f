# SPDX-License-Identifier: MIT
"""No legal algorithm may fail to compile or give a wrong result: some are drawn, built and run.

A kernel takes some ten seconds to compile, so a run of the ``dev`` profile draws few, the same ones
each time; ``--hypothesis-profile=nightly`` draws a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.arch import arch
from cklang.families.gemm.key import Algorithm, GemmKey
from cklang.selection.diagnose import fix
from cklang.selection.rules import violations
from cklang.selection.space import legal_values
from cklang.testing import plain_key, self_test
from cklang.types import DTYPES, DType
from tests.support.algorithms import NARROW
from tests.support.typed import instance


def draws() -> int:
    """How many kernels this profile builds."""
    profile = settings.default
    examples = profile.max_examples if profile is not None else 40
    return 3 if examples <= 40 else 100


GPUS = {
    "gfx90a": "f16 bf16 f32 f16*i4 bf16*i4",
    "gfx942": "f16 bf16 f32 fp8_fnuz bf8_fnuz i8 fp8_fnuz*bf8_fnuz f16*i4 fp8_fnuz*i4",
    "gfx950": "f16 bf16 f32 fp8 bf8 i8 bf8*fp8 f16*i4 fp8*i4 fp4",
    "gfx1100": "f16 bf16 i8 f16*i4 bf16*i4",
    "gfx1201": "f16 bf16 i8 fp8 bf8 fp8*bf8 f16*i4 fp8*i4",
}
"""The types of A and B that each multiplies."""


@dataclass(frozen=True)
class Drawn:
    """A legal kernel of E = A B."""

    algorithm: Algorithm
    types: tuple[DType, DType]
    gpu: str
    layouts: str

    @property
    def key(self) -> GemmKey:
        a, b = self.types
        return plain_key(self.algorithm, a, self.gpu, self.layouts, b=b)


@st.composite
def legal_kernels(draw: st.DrawFn) -> Drawn:
    """A random point of the space, moved to a legal one."""
    gpu = draw(st.sampled_from(list(GPUS)))
    names = draw(st.sampled_from(GPUS[gpu].split())).split("*")
    types = DTYPES[names[0]], DTYPES[names[-1]]
    packed = any(dtype.packed for dtype in types)
    layouts = "rcr" if packed else draw(st.sampled_from(["rcr", "rrr", "ccr", "crr"]))
    signature = Drawn(NARROW, types, gpu, layouts).key.signature
    chosen: dict[str, Any] = {
        f.name: draw(st.sampled_from(list(legal_values(f.name, signature, arch(gpu)))))
        for f in fields(Algorithm)
        if f.name not in ("vector_d", "pad_m", "pad_n", "pad_k")
    }
    algorithm = instance(Algorithm, fix(Algorithm(**chosen), signature, gpu).algorithm)
    return Drawn(algorithm, types, gpu, layouts)


def check(drawn: Drawn) -> None:
    key, algorithm = drawn.key, drawn.algorithm
    assert list(violations(algorithm, key.signature, arch(drawn.gpu))) == []
    m, n, k = algorithm.tile
    step = max(algorithm.vector_a, algorithm.vector_b, algorithm.vector_e)
    shape = (m + 3 * step, n + 5 * step, 3 * k + step)
    outcome = self_test(key, shape, f"emu:{drawn.gpu}")
    assert outcome.wrong == 0, f"{key}: {outcome}"


@pytest.mark.usefixtures("compiler")
@settings(max_examples=draws())
@given(legal_kernels())
def test_legal_kernels_compile_and_are_right(drawn: Drawn) -> None:
    check(drawn)


@pytest.mark.usefixtures("compiler")
def test_the_draw_is_legal_and_varied() -> None:
    """The strategy itself, without compiling: every point is legal, and they differ."""
    drawn_kernels: list[Drawn] = []

    @settings(max_examples=6, database=None)
    @given(legal_kernels())
    def draw(drawn: Drawn) -> None:
        assert list(violations(drawn.algorithm, drawn.key.signature, arch(drawn.gpu))) == []
        drawn_kernels.append(drawn)

    draw()
    assert len({each.algorithm for each in drawn_kernels}) >= 3
    assert len({each.types for each in drawn_kernels}) >= 3
