# SPDX-License-Identifier: MIT
"""Tensors that a call may leave out: one program for each set of tensors that are given."""

import pickle
from argparse import Namespace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.cli.target import arguments_of
from cklang.reference.evaluate import evaluate
from cklang.runtime.call_key import of_call
from cklang.runtime.op import Op
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.tune.task import tasks_of
from tests.support.algorithms import DEEP, narrow
from tests.support.errors import expect_error
from tests.support.written_ops import written_op

B, M, N, K = ck.dims("B M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)


@ck.op
def linear(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N] | None = None, s: ck.f32 | None = None
) -> ck.f16[M, N]:
    y = x @ w.T
    if bias is not None:
        y = y + bias
    return ck.relu(y if s is None else y * s)


@ck.op
def caller(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N] | None) -> ck.f16[M, N]:
    return linear(x, w, bias=bias)


x, w, bias = (np.ones(shape, np.float16) for shape in ((4, 8), (6, 8), (6,)))


def names_of(op: Op, *args: Any, **kwargs: Any) -> list[str]:
    return [value.name for value in op.ir(*args, **kwargs).params]


def test_the_program_has_the_tensors_that_are_given() -> None:
    assert names_of(linear, x, w) == ["x", "w"]
    assert names_of(linear, x, w, None, 2.0) == ["x", "w", "s"]
    assert names_of(linear, x, w, bias) == ["x", "w", "bias"]
    assert names_of(linear, x, w, s=2.0, bias=bias) == ["x", "w", "bias", "s"]
    assert linear.ir(x, w) is linear.ir(x, w, None)
    assert linear.ir(x, w) is not linear.ir(x, w, bias)


def test_meaning() -> None:
    (plain,) = evaluate(linear.ir(x, w), [x, w])
    (more,) = evaluate(linear.ir(x, w, bias), [x, w, bias])
    np.testing.assert_array_equal(plain, np.full((4, 6), 8))
    np.testing.assert_array_equal(more, np.full((4, 6), 9))


def test_an_op_passes_none_on() -> None:
    assert names_of(caller, x, w, None) == ["x", "w"]
    assert "add" not in str(caller.ir(x, w, None))
    assert "add" in str(caller.ir(x, w, bias))


def test_a_helper_is_annotated_so() -> None:
    @ck.fn
    def shifted(y: Any, bias: ck.f16[N] | None = None) -> Any:
        return y if bias is None else y + bias

    @ck.op
    def op(x: ck.f16[M, N], bias: ck.f16[N]) -> ck.f16[M, N]:
        return shifted(shifted(x, bias))

    assert [each.op for each in op.program.specialise().body].count("add") == 1


def test_what_a_call_would_run() -> None:
    for args, count in (((x, w), 2), ((x, w, bias), 3)):
        text = linear.explain(*args, device="emu:gfx942")
        assert text.count(": f16[") >= count
        assert ("%bias" in text) == (count == 3)
        mine = ck.dispatch.Registry("mine")
        assert linear.declare(*args, registry=mine, device="emu:gfx942") == len(mine) > 0
        (task,) = tasks_of(linear, args)
        assert ("bias" in str(task.program)) == (count == 3)


def test_placeholders_leave_out_what_is_none() -> None:
    named = {"M": 4, "N": 6, "K": 8}
    signature = linear.program.signature
    arguments = packed_arguments(signature, named | {"bias": None, "s": None})
    assert arguments["bias"] is None
    assert names_of(linear, **arguments) == ["x", "w"]
    assert names_of(linear, **packed_arguments(signature, named)) == ["x", "w", "bias", "s"]


def test_the_command_line_leaves_out_what_is_none() -> None:
    options = Namespace(sizes=["M=4", "N=6", "K=8", "bias=none"], shapes=[], dtype=[])
    assert names_of(linear, **arguments_of(linear, options)) == ["x", "w", "s"]


def test_a_pickled_op_knows() -> None:
    copy = pickle.loads(pickle.dumps(linear.program))
    assert Op(copy).ir(x, w, bias) == linear.ir(x, w, bias)
    assert Op(copy).ir(x, w) == linear.ir(x, w)


def test_a_dtype_variable_of_what_is_left_out_is_free() -> None:
    @ck.op
    def op(x: ck.f16[M, N], y: T[N] | None = None) -> ck.f16[M, N]:
        return x * 2.0 if y is None else x + y

    one = np.ones((2, 3), np.float16)
    assert len(op.ir(one).params) == 1
    assert len(op.ir(one, one[0]).params) == 2


def test_a_tensor_without_default_may_be_none_and_must_be_passed() -> None:
    assert len(caller.ir(x, w, None).params) == 2
    with expect_error("A010"):
        caller.ir(x, w)


def test_none_for_a_tensor_that_is_needed() -> None:
    with expect_error("A001"):
        linear.ir(x, None)


@pytest.mark.parametrize(
    ("code", "parameters", "result"),
    [
        ("F023", "x: ck.f16[M, N], b: ck.f16[N] = None", "ck.f16[M, N]"),
        ("F023", "x: ck.f16[M, N], b: ck.f16[N] | None = 1.0", "ck.f16[M, N]"),
        ("F026", "x: ck.f16[M], b: ck.f16[N] | None = None", "ck.f16[M, N]"),
        ("F027", "x: ck.f16[M], b: T[M] | None = None", "T[M]"),
        ("F034", "x: ck.f16[K // 2], b: ck.f16[K] | None = None", "ck.f16[K // 2]"),
        ("F022", "x: ck.f16[M]", "ck.f16[M] | None"),
    ],
)
def test_mistakes(code: str, parameters: str, result: str) -> None:
    text = "T = ck.dtype_var('T', ck.f16)\n"
    text += f"@ck.op\ndef f({parameters}) -> {result}:\n    return x\n"
    with expect_error(code) as caught:
        written_op(text, "M N K")
    if code in ("F026", "F027"):
        assert "what may be None decides no result: b" in str(caught.value)


def test_a_wrong_extent_of_an_optional_tensor() -> None:
    with expect_error("A025"):
        linear.ir(x, w, bias[:5])


def test_the_memo_of_calls_tells_which_tensors_are_given() -> None:
    parameters = linear.program.parameters
    keys = [
        of_call(parameters, values, None, ())
        for values in ((x, w, None, None), (x, w, bias, None), (x, w, None, 2.0))
    ]
    assert len({each.key for each in keys}) == 3
    assert [len(each.addresses) for each in keys] == [2, 3, 3]


@ck.op
def fused(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N] | None = None, r: ck.f16[M, N] | None = None
) -> ck.f16[M, N]:
    y = x @ w.T if bias is None else x @ w.T + bias
    return y if r is None else y + r


@pytest.mark.usefixtures("emulator", "stencils")
def test_calls() -> None:
    plain = fused.using(narrow(0, warp_tile=DEEP))
    more = fused.using(narrow(2, warp_tile=DEEP))
    for _ in range(2):
        np.testing.assert_array_equal(plain(x, w, None), np.full((4, 6), 8))
        r = np.full((4, 6), 2, np.float16)
        np.testing.assert_array_equal(more(x, w, r=r, bias=bias), np.full((4, 6), 11))
