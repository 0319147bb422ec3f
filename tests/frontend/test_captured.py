# SPDX-License-Identifier: MIT
"""A name from outside that changes after decoration is an error, never ignored."""

import types
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkValueError
from tests.support.errors import expect_error

M, N, K = ck.dims("M N K")
SCALE = 2.0
SHIFTS = (1.0, 2.0)
X, W = np.ones((2, 4), np.float16), np.ones((3, 4), np.float16)
settings: Any = types.ModuleType("settings")
settings.GAIN = 2.0


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return (x @ w.T) * SCALE + SHIFTS[0]


@ck.fn
def scaling(x):
    return x * SCALE


@ck.op
def through_a_helper(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return scaling(x @ w.T)


@ck.op
def through_a_module(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return (x @ w.T) * settings.GAIN


@pytest.mark.parametrize("op", [scaled, through_a_helper], ids=repr)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_changed_global_is_refused(
    monkeypatch: pytest.MonkeyPatch, op: ck.Op, is_first: bool
) -> None:
    if not is_first:
        op.ir(X, W)
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    for call in (op, op.ir, op.explain, op.problems, lambda *args: op.grouped([args])):
        with expect_error("F017", kind=CkValueError) as caught:
            call(X, W)
    assert "SCALE was 2.0 when" in str(caught.value)
    assert "is 4.0 now" in str(caught.value)
    monkeypatch.undo()
    op.ir(X, W)


def test_values_of_another_type_differ_and_equal_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(globals(), "SHIFTS", (1.0, float("2")))
    monkeypatch.setitem(globals(), "SCALE", float("2"))
    scaled.ir(X, W)
    monkeypatch.setitem(globals(), "SCALE", 2)
    with pytest.raises(CkValueError):
        scaled.ir(X, W)


def test_a_deleted_global_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(globals(), "SCALE")
    with pytest.raises(CkValueError, match="not defined"):
        scaled.ir(X, W)


def test_a_helper_that_was_replaced_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @ck.fn
    def other(x):
        return x * 3.0

    monkeypatch.setitem(globals(), "scaling", other)
    with pytest.raises(CkValueError, match="the helper at"):
        through_a_helper.ir(X, W)


def test_a_name_that_hides_a_builtin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @ck.op
    def twice(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return (x @ w.T) * max(1.0, 2.0)

    twice.ir(X, W)
    monkeypatch.setitem(globals(), "max", min)
    with pytest.raises(CkValueError, match="max was not defined"):
        twice.ir(X, W)


def test_attributes_of_modules_and_the_modules_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    through_a_module.ir(X, W)
    monkeypatch.setattr(settings, "GAIN", 3.0)
    with pytest.raises(CkValueError, match=r"settings\.GAIN was 2\.0"):
        through_a_module.ir(X, W)
    monkeypatch.undo()
    other: Any = types.ModuleType("settings")
    other.GAIN = 3.0
    monkeypatch.setitem(globals(), "settings", other)
    with pytest.raises(CkValueError):
        through_a_module.ir(X, W)


def test_a_variable_of_the_enclosing_function_is_watched() -> None:
    ops = []
    for gain in (1.0, 2.0):

        @ck.op
        def amplified(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
            return (x @ w.T) * gain  # noqa: B023 - what the test is about

        amplified.ir(X, W)
        ops.append(amplified)
    ops[1].ir(X, W)
    with pytest.raises(CkValueError, match=r"gain was 1\.0"):
        ops[0].ir(X, W)


def test_functions_and_dtypes_of_the_language_are_not_looked_up_again() -> None:
    @ck.op
    def plain(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return ck.relu(x @ w.T).to(ck.bf16).to(ck.f16)

    assert plain.program.captures == ()
