# SPDX-License-Identifier: MIT
"""Kernels that differ in their epilogue alone share the text of their main loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.build.builder import source_of
from cklang.build.halves import LOOP_NAME, loop_flag, main_loop

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def residual(x: ck.f16[M, K], w: ck.f16[N, K], y: ck.f16[M, N], b: ck.f16[N]) -> ck.f32[M, N]:
    return ck.relu(x @ w.T + b) + y


@ck.op
def turned(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return x @ w


def stencil(op: ck.Op, *more: tuple[int, ...], w: tuple[int, int] = (64, 64)) -> str:
    shapes: list[Any] = [(96, 64), w, *more]
    arrays = [np.empty(shape, np.float16) for shape in shapes]
    ((key, functions),) = op.using(strategy="first_fit").kernels(*arrays, device="emu:gfx942")
    return source_of(key, functions).stencil


def test_epilogues_share_a_main_loop() -> None:
    loops = {main_loop(stencil(linear)), main_loop(stencil(residual, (96, 64), (64,)))}
    assert len(loops) == 1
    (loop,) = loops
    assert f"void {LOOP_NAME}(" in loop
    assert "D0" not in loop
    assert "ck_epilogue" not in loop


def test_layouts_do_not() -> None:
    assert main_loop(stencil(linear)) != main_loop(stencil(turned))


def test_the_rest_of_a_stencil_calls_the_loop_by_its_name() -> None:
    text = stencil(linear)
    name = loop_flag(text).removeprefix("-D").partition("=")[0]
    assert name in text.partition("#if !defined(CKLANG_ONLY_MAINLOOP)")[2]


@pytest.mark.parametrize("op", [linear, turned], ids=lambda op: op.program.name)
def test_nothing_of_a_main_loop_is_undeclared(op: ck.Op) -> None:
    loop = main_loop(stencil(op))
    for name in ("A", "B", "AccType", "Shape", "Traits", "Acc", "ASource", "BSource"):
        assert loop.count(f"using {name} ") == 1, name
