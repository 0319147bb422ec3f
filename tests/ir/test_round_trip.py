# SPDX-License-Identifier: MIT
"""Text of the IR is an interface: ops are made of it, exchanged as it, and checked against it."""

import doctest
import os
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import cklang as ck
from cklang import knobs
from cklang.errors import CkInternalError
from cklang.frontend.program import Program
from cklang.ir.nodes import Function, print_function
from cklang.ir.parser import parse_function
from cklang.ir.round_trip import expect_round_trip
from cklang.runtime import ir_text
from cklang.tune.task import TuningTask, tasks_of
from tests.support.errors import expect_error
from tests.support.programs import programs

M, N, K = ck.dims("M N K")

PRODUCT = """\
# Comments are no part of the program.
func @product(%x: f16[M, K], %w: f16[K, N]) -> f16[M, N] {
  %0: f32[M, N] = gemm(%x, %w)
  %1: f16[M, N] = cast(%0) {to = f16}
  return %1
}
"""
SHAPE = {"M": 4, "N": 6, "K": 8}
ARGS = np.ones((4, 8), np.float16), np.ones((8, 6), np.float16)


def product(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return x @ w


def test_the_example_of_parse_runs() -> None:
    outcome = doctest.testmod(ir_text, extraglobs={"ck": ck, "np": np})
    assert outcome.attempted >= 4
    assert outcome.failed == 0


def test_parse_takes_back_what_an_op_prints() -> None:
    op = ck.op(product)
    again = ck.parse(str(op.ir(*ARGS)))
    assert again.ir(*ARGS) == op.ir(*ARGS)
    assert again.ir(*ARGS) == ck.parse(PRODUCT).ir(*ARGS)
    plans = [each.fusion(*ARGS) for each in (again, op)]
    assert plans[0].kernels == plans[1].kernels


def test_an_error_names_the_text_and_points_into_it() -> None:
    with expect_error("I005") as refusal:
        ck.parse(PRODUCT.replace("gemm(%x, %w)", "gemm(%x, %v)"), name="product.ckir")
    shown = str(refusal.value).splitlines()
    assert "  --> product.ckir:3:28" in shown
    assert shown[-2 if shown[-1].startswith("   =") else -1].rstrip().endswith("^^")
    with expect_error("I013", match=r"<text>:3:3"):
        ck.parse(PRODUCT.replace("gemm(", "gem("))


def test_only_text_of_one_function_with_a_result_is_an_op() -> None:
    nodes: object = ck.op(product).ir(*ARGS)
    with pytest.raises(ck.CkError, match=r"str\(op.ir"):
        ck.parse(nodes)  # type: ignore[arg-type]
    with pytest.raises(ck.CkError, match="holds 2 functions"):
        ck.parse(PRODUCT + PRODUCT.replace("@product", "@other"))
    with pytest.raises(ck.CkError, match="CK-K021 @f has no result") as refusal:
        ck.parse("func @f(%x: f16[M]) -> () { return }")
    assert "<text>:1:1" in str(refusal.value)


@given(programs())
def test_functions_are_pickled_as_their_text(function: Function) -> None:
    data = pickle.dumps(function)
    assert b"parse" in data
    # No class of a node is in it: the text alone.
    assert b"Operation" not in data
    assert pickle.loads(data) == function
    assert expect_round_trip(function) is function


def test_what_workers_get_of_a_call_is_text() -> None:
    (task,) = tasks_of(ck.parse(PRODUCT), SHAPE)
    data = task.to_json()
    assert data["function"] == str(parse_function(PRODUCT))
    assert b"Operation" not in pickle.dumps(task)
    assert TuningTask.from_json(data).functions == task.functions


def lossy(function: Function) -> str:
    """Return the text without the last operation's attributes."""
    *body, last = function.body
    return print_function(replace(function, body=(*body, replace(last, attrs=()))))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lossy, ["the frontend made ('cast'", "'to'", "the parser read ('cast'"]),
        (lambda _: "func @product(", ["CK-I003"]),
    ],
    ids=["lossy", "illegal"],
)
def test_verify_finds_a_printer_that_lies(
    monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Function], str], words: list[str]
) -> None:
    program = Program.from_function(product)
    monkeypatch.setattr("cklang.ir.round_trip.print_function", wrong)
    with knobs.scope(CKLANG_VERIFY="0"):
        assert program.specialise().name == "product"
    fresh = Program.from_function(product)
    with knobs.scope(CKLANG_VERIFY="1"), expect_error("Z003", kind=CkInternalError) as defect:
        fresh.specialise()
    for word in ["@product", *words]:
        assert word in str(defect.value)


def test_verify_is_on_in_tests_and_off_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.environ["CKLANG_VERIFY"] == "1"
    monkeypatch.delenv("CKLANG_VERIFY")
    assert knobs.VERIFY.get() is False
    with knobs.scope(CKLANG_VERIFY="yes"), pytest.raises(ck.CkError, match="must be 0 or 1"):
        knobs.VERIFY.get()
