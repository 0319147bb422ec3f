# SPDX-License-Identifier: MIT
"""Annotated extents of results that are computed from the dims of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError

(N,) = ck.dims("N")


@ck.op
def indices(x: ck.f16[N]) -> ck.i32[N // 2]:
    """Half as many, rounded up, whatever the annotation says."""
    return ck.arange((N + 1) // 2)


@ck.op
def part(x: ck.f16[N]) -> ck.f32[N // 2]:
    return ck.cast(x[: N // 3], ck.f32)


@ck.op
def pooled(x: ck.f16[1, N, 8]) -> ck.f16[1, N // 2, 8]:
    return ck.max_pool(x, 3, stride=2, padding=1)


def test_indices_are_as_many_as_is_written() -> None:
    with pytest.raises(CkError, match=r"the result is i32\[\(N \+ 1\)//2\]") as caught:
        indices.program.specialise()
    assert caught.value.code == "F084"


def test_the_extent_of_a_slice_is_compared_in_each_call() -> None:
    with pytest.raises(CkError, match=r"a slice has 2 elements where N//2 is 3") as caught:
        part.explain(np.zeros(7, np.float16), device="emu:gfx942")
    assert caught.value.code == "I037"
    part.explain(np.zeros(2, np.float16)[:0], device="emu:gfx942")


def test_the_extent_of_windows_is_that_of_the_annotation() -> None:
    with pytest.raises(CkError, match=r"the result is f16\[1, \(N \+ 1\)//2, 8\]") as caught:
        pooled.explain(np.zeros((1, 7, 8), np.float16), device="emu:gfx942")
    assert caught.value.code == "F084"
