# SPDX-License-Identifier: MIT
"""Operands that the program transposes: V with contiguous keys is copied before the attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from tests.support.arrays import uniform
from tests.support.checks import check, launches

Covered = Callable[..., None]

B, G, H, S, T, D, E, P = ck.dims("B G H S T D E P")


@ck.op
def by_column(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v.mT)


@ck.op
def transposed(
    q: ck.f16[B, H, D, S], k: ck.f16[B, G, D, T], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q.mT, k.mT, v.mT)


@ck.op
def in_pages(
    q: ck.f16[B, H, S, D],
    k: ck.f16[P, G, T, D],
    v: ck.f16[P, G, D, T],
    table: ck.i32[B, E],
    lengths: ck.i32[B],
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v.mT, block_table=table, seqlens_k=lengths)


def families(op: Any) -> list[str]:
    return [launch.key.family for launch in launches(op)]


@pytest.mark.usefixtures("compiler")
def test_a_transposed_v_is_copied_once(covered: Covered) -> None:
    q, k = uniform(2, 4, 70, 64), uniform(2, 2, 133, 64)
    check(by_column, [q, k, uniform(2, 2, 64, 133)])
    assert families(by_column) == ["layout_copy", "attention"]
    covered("attention: V with its keys contiguous", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_contiguous_heads_are_not_copied() -> None:
    """The program transposes V, and memory holds it the other way round."""
    q, k = uniform(2, 4, 70, 64), uniform(2, 2, 133, 64)
    check(by_column, [q, k, uniform(2, 2, 133, 64).swapaxes(2, 3)])
    assert families(by_column) == ["attention"]


@pytest.mark.usefixtures("compiler")
def test_all_three_may_be_transposed() -> None:
    args = [uniform(1, 2, 64, 70), uniform(1, 2, 64, 133), uniform(1, 2, 64, 133, seed=1)]
    check(transposed, args)
    assert families(transposed) == ["layout_copy"] * 3 + ["attention"]


def test_pages_are_not_copied() -> None:
    q, k, v = uniform(1, 2, 3, 64), uniform(4, 2, 16, 64), uniform(4, 2, 64, 16)
    table, lengths = np.array([[2, 0]], np.int32), np.array([20], np.int32)
    with pytest.raises(CkError, match="attention-contiguous"):
        in_pages.explain(q, k, v, table, lengths, device="emu:gfx942")


def test_an_array_with_such_strides_is_refused() -> None:
    """Only a program that transposes asks for copies."""
    q, k = uniform(1, 2, 3, 64), uniform(1, 2, 64, 16).swapaxes(2, 3)
    with pytest.raises(CkError, match="attention-contiguous"):
        by_column.explain(q, k, uniform(1, 2, 64, 16), device="emu:gfx942")
