# SPDX-License-Identifier: MIT
"""The functions of the language: complete, and NumPy's meaning outside a program."""

from __future__ import annotations

import inspect

import ml_dtypes
import numpy as np
import pytest

from cklang import types as ty
from cklang.errors import CkTypeError
from cklang.frontend import functions
from cklang.frontend.intrinsics import INTRINSICS, Form
from cklang.frontend.ops.convolution import TRANSPOSE
from cklang.ir.ops import OPS, Kind
from cklang.ir.reductions import REDUCTIONS

OPERATORS = {"add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne"}
OPERATORS |= {"floor_divide", "mod", "left_shift", "right_shift", "logical_xor"}
OPERATORS |= {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
FUNCTIONS = [getattr(functions, name) for name in functions.__all__]


def test_the_functions_are_those_of_the_table():
    assert sorted(INTRINSICS) == sorted(functions.__all__)


def test_every_pointwise_op_can_be_written():
    pointwise = {name for name, op in OPS.items() if op.kind is Kind.POINTWISE}
    assert pointwise - OPERATORS <= set(functions.__all__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_signatures_fit_the_op_table(function):
    if function.form in (Form.EINSUM, Form.MASK, Form.MOVEMENT):
        return  # written with the ops transpose, broadcast and gemm; a region's comparisons
    if function.name == TRANSPOSE:
        return  # conv_grad_input with one argument more
    op = OPS[REDUCTIONS.get(function.name, function.name)]
    assert getattr(functions, function.name) is function
    assert function.doc == op.doc
    if function.form is Form.POINTWISE:
        assert function.operands == op.operands
        assert function.attributes == tuple(row.name for row in op.attrs)


def test_numbers_and_arrays_compute_with_numpys_meaning():
    x = np.array([-2.0, -0.5, 0.0, 3.0])
    np.testing.assert_array_equal(functions.relu(x), [0, 0, 0, 3])
    np.testing.assert_array_equal(functions.leaky_relu(x, slope=0.5), [-1, -0.25, 0, 3])
    np.testing.assert_array_equal(functions.clamp(x, -1, 1), [-1, -0.5, 0, 1])
    np.testing.assert_array_equal(functions.where(x > 0, x, 7.0), [7, 7, 7, 3])
    np.testing.assert_array_equal(functions.gemm(np.eye(2), np.ones((2, 3))), np.ones((2, 3)))
    assert functions.gelu(1) == pytest.approx(0.8413447460685429)
    assert np.isnan(functions.maximum(np.nan, 1.0))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_widened_as_in_a_kernel(dtype):
    result = functions.exp(np.array([0.5, 1.0], dtype))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.exp([0.5, 1.0]), rtol=1e-6)


def test_casts_round_and_give_the_numpy_dtype():
    result = functions.cast(np.array([1 / 3, 70000.0]), ty.f16)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, np.array([1 / 3, np.inf], np.float16))
    assert functions.cast(2.0, ty.bf16).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(functions.cast(np.array([2.9, -2.9]), ty.i32), [2, -2])
    with pytest.raises(CkTypeError) as caught:
        functions.cast(1.0, "f16")
    assert caught.value.code == "F057"


def test_wrong_arguments_are_pythons_own_error():
    with pytest.raises(TypeError, match="too many positional arguments"):
        functions.relu(1.0, 2.0)


def test_a_function_shows_its_signature():
    assert repr(functions.elu) == "ck.elu(x, alpha=1.0)"
    assert str(inspect.signature(functions.elu)) == "(x, alpha=1.0)"
    assert functions.elu.__name__ == "elu"
