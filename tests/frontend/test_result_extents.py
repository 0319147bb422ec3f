# SPDX-License-Identifier: MIT
"""Annotated extents of results that are computed from the dims of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.runtime.placeholder_arguments import packed_arguments
from tests.support.errors import expect_error

N, M, H2, W2, n = ck.dims("N M H2 W2 n")


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
    with expect_error("F084", match=r"the result is i32\[\(N \+ 1\)//2\]"):
        indices.program.specialise()


def test_the_extent_of_a_slice_is_compared_in_each_call() -> None:
    with expect_error("I037", match=r"a slice has 2 elements where N//2 is 3"):
        part.explain(np.zeros(7, np.float16), device="emu:gfx942")
    part.explain(np.zeros(2, np.float16)[:0], device="emu:gfx942")


def test_the_extent_of_windows_is_that_of_the_annotation() -> None:
    with expect_error("F084", match=r"the result is f16\[1, \(N \+ 1\)//2, 8\]"):
        pooled.explain(np.zeros((1, 7, 8), np.float16), device="emu:gfx942")


@pytest.mark.parametrize("pool", [ck.max_pool, ck.avg_pool])
def test_dims_of_their_own_name_the_extents_of_pooling(pool: Any) -> None:
    @ck.op
    def pooled(x: ck.f32[1, N, M, 8]) -> ck.f32[1, H2, W2, 8]:
        return pool(x, 2)

    @ck.op
    def squares(x: ck.f32[1, N, M, 8]) -> ck.f32[1, H2, H2, 8]:
        return pool(x, 2)

    image = np.zeros((1, 9, 4, 8), np.float32)
    assert pooled._bound((image,), {}).results[0].shape == (1, 4, 2, 8)
    with pytest.raises(CkError, match=r"F084 the result is f32\[1, N//2, M//2, 8\]"):
        squares.ir(image)


@ck.op
def first(x: ck.f16[M, N], n: ck.const[int] = 3) -> ck.f16[M, n]:
    return x[:, :n]


@ck.op
def repeated(x: ck.f16[M, k], *, k: ck.const[int]) -> ck.f16[M, 2 * k]:  # type: ignore  # noqa
    return ck.concat([x, x], axis=1)


@ck.op
def twice(x: ck.f16[M, 5]) -> ck.f16[M, 10]:
    return repeated(x, k=5) * 2


def test_a_constant_is_an_extent() -> None:
    x = np.arange(10, dtype=np.float16).reshape(2, 5)
    assert str(first.ir(x).results[0].type) == "f16[M, 3]"
    assert first._bound((x, 4), {}).results[0].shape == (2, 4)
    assert repeated._bound((x,), {"k": 5}).results[0].shape == (2, 10)
    assert str(twice.ir(x).results[0].type) == "f16[M, 10]"
    assert packed_arguments(first.program.signature, {"M": 2, "N": 5})["x"].shape == (2, 5)


def test_a_constant_that_is_another_extent() -> None:
    x = np.zeros((2, 5), np.float16)
    with pytest.raises(CkError, match=r"A025 k is 5 in axis 1 of x .* but 4 in the constant k"):
        repeated.ir(x, k=4)
    with pytest.raises(CkError, match=r"F101 the constant n is an extent .* cannot be -1"):
        first.ir(x, -1)

    @ck.op
    def wrong(x: ck.f16[M, 4]) -> ck.f16[M, 10]:
        return repeated(x, k=5)

    with pytest.raises(CkError, match="F087 axis 1 of the argument x of repeated is 4, but k is 5"):
        wrong.program.specialise()


def test_only_integers_are_extents() -> None:
    with pytest.raises(CkError, match=r"F029 .* name 'scale' is not defined"):

        @ck.op
        def scaled(x: ck.f16[M, N], scale: ck.const[float]) -> ck.f16[M, scale]:  # type: ignore  # noqa
            return x * scale
