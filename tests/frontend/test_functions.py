# SPDX-License-Identifier: MIT
"""The functions of the language: complete, and NumPy's meaning outside a program."""

import inspect

import ml_dtypes
import numpy as np
import pytest

from cklang import types as ty
from cklang.errors import CkTypeError
from cklang.frontend import composites, functions
from cklang.frontend.intrinsics import INTRINSICS
from cklang.frontend.other_names import advice_for
from cklang.ir.ops import OPS, Kind
from cklang.ir.reductions import REDUCTIONS
from cklang.reference.evaluate import evaluate
from tests.support.errors import expect_error

OPERATORS = {"add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne"}
OPERATORS |= {"floor_divide", "mod", "left_shift", "right_shift", "logical_xor"}
OPERATORS |= {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
FUNCTIONS = list(INTRINSICS.values())


def test_the_functions_are_those_of_the_table():
    assert sorted(INTRINSICS) == [name for name in sorted(vars(functions)) if name[0].isalpha()]


def test_every_pointwise_op_can_be_written():
    pointwise = {name for name, op in OPS.items() if op.kind is Kind.POINTWISE}
    missing = pointwise - OPERATORS - set(INTRINSICS)
    assert not missing, "add functions to cklang/frontend/ops/pointwise.py"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_signatures_fit_the_op_table(function):
    assert getattr(functions, function.name) is function
    if not function.__module__.endswith((".pointwise", ".reduction", ".scaled")):
        return  # its ops have other names: a cut is the op slice, a mask a region's comparisons
    op = OPS[REDUCTIONS.get(function.name, function.name)]
    assert function.doc == op.doc
    if function.__module__.endswith(".pointwise") and function.name not in ("cast", "clamp"):
        names = tuple(function.signature.parameters)
        assert names[op.operands :] == tuple(row.name for row in op.attrs)


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
    with expect_error("F057", kind=CkTypeError):
        functions.cast(1.0, "f16")


def test_wrong_arguments_are_pythons_own_error():
    with pytest.raises(TypeError, match="too many positional arguments"):
        functions.relu(1.0, 2.0)


def test_a_function_shows_its_signature():
    assert repr(functions.elu) == "ck.elu(x, alpha=1.0)"
    assert str(inspect.signature(functions.elu)) == "(x, alpha=1.0)"
    assert functions.elu.__name__ == "elu"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ("16, 0", "i32"),
        ("16, 0.5", "f32"),
        ("16.0, 0", "f32"),
        ("True, False", "bool"),
        ("i, 0", "i32"),
    ],
)
def test_constants_among_themselves_are_what_they_are_in_numpy(specialised, values, dtype):
    result = "ck.bool_" if dtype == "bool" else f"ck.{dtype}"
    text = (
        f"M = ck.dims('M')[0]\n@ck.op\ndef f(x: ck.f32[M], i: ck.i32[M]) -> {result}[M]:\n"
        f"    return ck.where(x > 0, {values})\n"
    )
    (function,) = specialised(text, "constants")
    (choice,) = (operation for operation in function.body if operation.op == "where")
    assert str(choice.result.type.dtype) == dtype
    x, i = np.array([-1.0, 2.0], np.float32), np.array([5, 6], np.int32)
    want = np.where(x > 0, *eval(f"({values})"))
    (got,) = evaluate(function, [x, i])
    np.testing.assert_array_equal(got, want)
    assert got.dtype.kind == want.dtype.kind


def test_a_choice_of_integers_is_an_index(specialised):
    text = (
        "M, N = ck.dims('M N')\n@ck.op\ndef f(x: ck.f32[M], t: ck.f32[N]) -> ck.f32[M]:\n"
        "    return t[ck.where(x > 0, 2, 0)]\n"
    )
    (function,) = specialised(text, "index")
    (got,) = evaluate(function, [np.array([1, -1], np.float32), np.array([3, 4, 5], np.float32)])
    np.testing.assert_array_equal(got, [5, 3])


UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
POINTWISE_OF_TORCH = (
    *[
        "abs",
        "acos",
        "acosh",
        "add",
        "addcdiv",
        "addcmul",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "bitwise_and",
        "bitwise_not",
    ],
    *[
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "ceil",
        "clamp",
        "clamp_max",
    ],
    *[
        "clamp_min",
        "clip",
        "copysign",
        "cos",
        "cosh",
        "deg2rad",
        "div",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "float_power",
    ],
    *[
        "floor",
        "floor_divide",
        "fmod",
        "fmax",
        "fmin",
        "frac",
        "heaviside",
        "hypot",
        "isfinite",
        "isinf",
        "isnan",
        "ldexp",
    ],
    *[
        "lerp",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "logaddexp2",
        "logical_and",
        "logical_not",
        "logical_or",
    ],
    *[
        "logical_xor",
        "logit",
        "maximum",
        "minimum",
        "mul",
        "nan_to_num",
        "neg",
        "pow",
        "rad2deg",
        "reciprocal",
    ],
    *[
        "remainder",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "signbit",
        "sin",
        "sinc",
        "sinh",
        "sqrt",
        "square",
        "sub",
        "tan",
        "tanh",
    ],
    *[
        "trunc",
        "where",
        "xlogy",
        "relu",
        "relu6",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
        "selu",
        "celu",
        "elu",
    ],
    *[
        "leaky_relu",
        "prelu",
        "gelu",
        "logsigmoid",
        "hardshrink",
        "softshrink",
        "tanhshrink",
        "softsign",
        "softplus",
    ],
    *["mish", "silu", "threshold"],
)
NOT_HERE = {
    **dict.fromkeys(["conj", "conjugate", "isnat"], "there are no complex numbers and no times"),
    **dict.fromkeys(["gcd", "lcm"], "a loop of divisions"),
    **dict.fromkeys(
        ["frexp", "nextafter", "spacing"], "about the bits of a number, which widths share"
    ),
    **dict.fromkeys(["matvec", "vecdot", "vecmat"], "products, not pointwise"),
    **dict.fromkeys(["bitwise_count"], "no kernel wanted it"),
}


def test_every_pointwise_function_of_numpy_and_torch_is_here_or_has_advice():
    known = {*INTRINSICS, *composites.__all__}
    left = (set(UFUNCS) | set(POINTWISE_OF_TORCH)) - known - set(NOT_HERE)
    without = {name for name in left if not advice_for(name, known).startswith("write ")}
    assert not without
    assert not set(NOT_HERE) & known


@pytest.mark.parametrize("name", sorted({*INTRINSICS, *composites.__all__} & set(UFUNCS)))
def test_a_function_that_numpy_has_too_is_numpys(name):
    function = getattr(composites, name, None) or getattr(functions, name)
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan])
    integers = name.startswith("logical")
    operands = np.meshgrid(*[special > 0 if integers else special] * getattr(np, name).nin)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*operands)
        np.testing.assert_allclose(function(*operands), want, rtol=1e-12, atol=1e-15)
