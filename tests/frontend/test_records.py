# SPDX-License-Identifier: MIT
"""Constants of a program from dicts, lists, dataclasses, named tuples, classes and enums."""

import pickle
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkValueError
from cklang.reference.evaluate import evaluate
from tests.support.errors import expect_error

M, N, K = ck.dims("M N K")
X, W = np.ones((2, 4), np.float16), np.ones((3, 4), np.float16)


@dataclass
class Model:
    stride: int = 3
    gains: dict[str, float] = field(default_factory=lambda: {"in": 2.0, "out": 4.0})
    dtype: Any = ck.f16


class Sizes(NamedTuple):
    rows: int
    columns: int


class Mode(Enum):
    SLOW = 5


class Fixed:
    shift = 7


CONFIG: Any = {"model": Model(), "scale": 0.5, 3: [8, 9]}
SIZES = Sizes(rows=11, columns=12)


@ck.fn
def gained(x: Any) -> Any:
    return x * CONFIG["model"].gains["out"]


@ck.op
def program(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M, N]:
    y = gained(x @ w.T) * CONFIG["scale"] + CONFIG["model"].stride
    for extent in SIZES:
        y = y + extent
    y = y + ck.where(y > SIZES.rows, Mode.SLOW.value, Fixed.shift) + CONFIG[3][1]
    return y.to(CONFIG["model"].dtype).to(ck.f32)


def result(op: ck.Op) -> float:
    """Return an element of what the reference computes."""
    return float(evaluate(op.ir(X, W), (X, W))[0][0, 0])


def test_records_give_constants() -> None:
    assert result(program) == 4 * 4 * 0.5 + 3 + 11 + 12 + 5 + 9


def test_a_pickled_op_has_the_constants() -> None:
    assert result(pickle.loads(pickle.dumps(program))) == result(program)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: CONFIG.update(scale=0.75), "CONFIG['scale'] was 0.5"),
        (lambda: CONFIG["model"].gains.update(out=1.0), "CONFIG['model'].gains['out'] was 4.0"),
        (lambda: setattr(CONFIG["model"], "stride", 4), "CONFIG['model'].stride was 3"),
        (lambda: CONFIG.pop("scale"), "is not defined now"),
    ],
)
def test_a_changed_entry_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: Any, words: str
) -> None:
    monkeypatch.setitem(globals(), "CONFIG", {"model": Model(), "scale": 0.5, 3: [8, 9]})
    result(program)
    change()
    with expect_error("F017", kind=CkValueError) as caught:
        program.ir(X, W)
    assert words in str(caught.value).replace('"', "'")


def test_equal_entries_of_another_object_are_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    again = {"model": Model(), "scale": 0.5, 3: [0, 9], "more": object()}
    monkeypatch.setitem(globals(), "CONFIG", again)
    assert result(program) == result(program)


def test_an_enclosing_function_may_have_them() -> None:
    def make(config: dict[str, float]) -> ck.Op:
        @ck.op
        def scaled(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M, N]:
            return (x @ w.T) * config["scale"]

        return scaled

    config = {"scale": 2.0}
    op = make(config)
    assert result(op) == 8.0
    config["scale"] = 3.0
    with pytest.raises(CkValueError, match="F017"):
        op.ir(X, W)
