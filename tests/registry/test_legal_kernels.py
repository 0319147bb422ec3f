# SPDX-License-Identifier: MIT
"""No legal algorithm may fail to compile or give a wrong result: some are drawn, built and run.

A kernel takes some ten seconds to compile, so a run of the ``dev`` profile draws few, the same ones
each time; ``--hypothesis-profile=nightly`` draws a hundred.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.arch import arch
from cklang.keys import Algorithm, Signature
from cklang.runtime.advice import fix
from cklang.runtime.rules import objections
from cklang.runtime.space import legal_values
from cklang.testing import plain_key, self_test
from cklang.types import DTYPES, DType

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("legal_kernels")]

BLANK = Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    vector_a=1,
    vector_b=1,
    vector_e=1,
)


def draws() -> int:
    """How many kernels this profile builds."""
    profile = settings.default
    examples = profile.max_examples if profile is not None else 40
    return 3 if examples <= 40 else 100


@st.composite
def legal_kernels(draw: st.DrawFn) -> tuple[Algorithm, DType, str, str]:
    """A random point of the space, moved to a legal one."""
    gpu = draw(st.sampled_from(["gfx942", "gfx950", "gfx90a"]))
    dtype = DTYPES[draw(st.sampled_from(["f16", "bf16", "f32"]))]
    layouts = draw(st.sampled_from(["rcr", "rrr", "ccr", "crr"]))
    signature = plain_key(BLANK, dtype, gpu, layouts).signature
    chosen: dict[str, Any] = {
        f.name: draw(st.sampled_from(list(legal_values(f.name, signature, arch(gpu)))))
        for f in fields(Algorithm)
        if f.name not in ("vector_d", "pad_m", "pad_n", "pad_k")
    }
    return fix(Algorithm(**chosen), signature, gpu).algorithm, dtype, gpu, layouts


def check(algorithm: Algorithm, dtype: DType, gpu: str, layouts: str) -> None:
    key = plain_key(algorithm, dtype, gpu, layouts)
    assert list(objections(algorithm, key.signature, arch(gpu))) == []
    m, n, k = algorithm.tile
    step = max(algorithm.vector_a, algorithm.vector_b, algorithm.vector_e)
    shape = (m + 3 * step, n + 5 * step, 3 * k + step)
    found = self_test(key, shape, f"emu:{gpu}")
    assert found.wrong == 0, f"{key}: {found}"


@settings(max_examples=draws())
@given(legal_kernels())
def test_legal_kernels_compile_and_are_right(
    drawn: tuple[Algorithm, DType, str, str],
) -> None:
    check(*drawn)


def test_the_draw_is_legal_and_varied() -> None:
    """The strategy itself, without compiling: every point is legal, and they differ."""
    seen: list[tuple[Algorithm, Signature]] = []

    @settings(max_examples=6, database=None)
    @given(legal_kernels())
    def draw(drawn: tuple[Algorithm, DType, str, str]) -> None:
        algorithm, dtype, gpu, layouts = drawn
        signature = plain_key(algorithm, dtype, gpu, layouts).signature
        assert list(objections(algorithm, signature, arch(gpu))) == []
        seen.append((algorithm, signature))

    draw()
    assert len({algorithm for algorithm, _ in seen}) >= 3
