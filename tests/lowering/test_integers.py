# SPDX-License-Identifier: MIT
"""The C of integer ops and of floor division, on this machine's CPU, against NumPy's i32 and f32.

NumPy computes in 32 bits here; the op table's meaning, which the reference uses, in 64.
"""

import ctypes
import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.rules import INTEGER_DTYPE
from cklang.lowering import headers
from cklang.lowering.pointwise import DIVIDES, c_functions
from cklang.types import DType, TensorType, f32, i32, i64
from tests.support.host_library import call_loop, host_library, loop

LEAST, MOST = -(2**31), 2**31 - 1
INTEGERS = {i32: "int", i64: "long"}
NUMPY = {"mod": "remainder", "neg": "negative", "sub": "subtract", "mul": "multiply"}
EDGES = [LEAST, LEAST + 1, -65536, -33, -32, -7, -2, -1, 0, 1, 2, 3, 7, 31, 32, 33, 65536, MOST]
INTEGER_OPS = sorted(
    {name for name, op in OPS.items() if op.kind is Kind.POINTWISE and op.dtype is INTEGER_DTYPE}
    | DIVIDES
    | {"add", "sub", "mul", "neg", "abs", "minimum", "maximum", "sign", "fmod"}
)
FLOAT_EDGES = [0.0, -0.0, 1e-45, -1e-45, 1e-38, 0.1, -0.1, 0.3, 1.0, -1.0, 2.5, -3.0, 7.0, -7.0]
FLOAT_EDGES += [16777215.0, -16777217.0, 3e38, -3e38, np.inf, -np.inf, np.nan]


def region(name: str, dtype: DType) -> Function:
    """A region that applies one op to its parameters."""
    scalar = TensorType(dtype=dtype)
    params = tuple(Value(name=p, type=scalar) for p in ("d0", "d1")[: OPS[name].operands])
    result = Value(name="0", type=scalar)
    body = (Operation(op=name, operands=params, result=result),)
    return Function(name="epilogue", params=params, body=body, results=(result,))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    lines: list[str] = []
    ops = [(name, dtype) for name in INTEGER_OPS for dtype in INTEGERS]
    for name, dtype in ops + [(name, f32) for name in sorted(DIVIDES)]:
        c, count = (INTEGERS | {f32: "float"})[dtype], OPS[name].operands
        lines.append(c_functions({f"op_{name}_{dtype}": region(name, dtype)}))
        values = ", ".join(f"x{i}" for i in range(count))
        lines.append(loop(f"{name}_{dtype}", f"op_{name}_{dtype}({values})", c, count))
    return host_library(lines)


def run(
    library: ctypes.CDLL, name: str, dtype: DType, arrays: Sequence[NDArray[np.generic]]
) -> NDArray[np.generic]:
    return call_loop(library, f"{name}_{dtype}", *arrays)


def integers(count: int, dtype: DType) -> list[NDArray[np.generic]]:
    rng = np.random.default_rng(5)
    ends = np.iinfo(dtype.numpy)
    edges = [*EDGES, ends.min, ends.min + 1, ends.max, 63, 64, -64]
    mesh = np.meshgrid(*[np.array(edges, dtype.numpy)] * count)
    wide = rng.integers(ends.min, ends.max, (count, 20_000), dtype.numpy, endpoint=True)
    near = rng.integers(-70, 70, (count, 20_000)).astype(dtype.numpy)
    mixed = np.where(rng.random((count, 20_000)) < 0.5, wide, near)
    parts = zip(mesh, wide, near, mixed, strict=True)
    return [np.concatenate([edges.ravel(), *rest]) for edges, *rest in parts]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_ops_mean_what_numpy_means(library: ctypes.CDLL, name: str, dtype: DType) -> None:
    arrays = integers(OPS[name].operands, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, NUMPY.get(name, name))(*arrays)
        wide = OPS[name].numpy(*(each.astype(np.int64) for each in arrays)).astype(dtype.numpy)
    np.testing.assert_array_equal(run(library, name, dtype, arrays), want)
    np.testing.assert_array_equal(wide, want)


def test_the_edges_of_division() -> None:
    x, y = np.array([LEAST, LEAST, -7, -7, 7, 5, -5]), np.array([-1, 2, 2, -2, -2, 0, 0])
    with np.errstate(all="ignore"):
        quotient, remainder = OPS["floor_divide"].numpy(x, y), OPS["mod"].numpy(x, y)
    assert quotient.astype(np.int32).tolist() == [LEAST, -(2**30), -4, 3, -4, 0, 0]
    assert remainder.tolist() == [0, 0, 1, -1, -1, 0, 0]


@pytest.mark.parametrize(
    ("op", "x", "y", "want"),
    [
        *(("left_shift", *case) for case in ((1, 31, LEAST), (3, 32, 0), (3, -1, 0))),
        *(("right_shift", *case) for case in ((LEAST, 31, -1), (-3, 32, -1), (3, -1, 0))),
    ],
)
def test_shifts_by_any_amount_are_defined(
    library: ctypes.CDLL, op: str, x: int, y: int, want: int
) -> None:
    arrays: list[NDArray[np.generic]] = [np.array([each], np.int32) for each in (x, y)]
    assert run(library, op, i32, arrays).tolist() == [want]


def floats() -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(6)
    mesh = np.meshgrid(*[np.array(FLOAT_EDGES, np.float32)] * 2)
    bits = rng.integers(0, 2**32, (2, 100_000), dtype=np.uint32).view(np.float32)
    near = (rng.standard_normal((2, 100_000)) * 9).astype(np.float32)
    # Quotients that are integers, or beside one.
    whole = np.rint(near[1] * 50).astype(np.float32)
    products = [near[0] * whole, near[0]]
    columns = zip(mesh, bits, near, products, strict=True)
    return [np.concatenate([edges.ravel(), *rest]) for edges, *rest in columns]


def test_mod_of_floats_is_numpys_bit_for_bit(library: ctypes.CDLL) -> None:
    x, y = floats()
    with np.errstate(all="ignore"):
        want = np.mod(x, y)
    np.testing.assert_array_equal(run(library, "mod", f32, [x, y]), want)


def test_floor_division_of_floats_is_exact_below_its_limit(library: ctypes.CDLL) -> None:
    x, y = floats()
    row = OPS["floor_divide"]
    with np.errstate(all="ignore"):
        want = np.asarray(row.numpy(x.astype(np.float64), y.astype(np.float64)))
        got = run(library, "floor_divide", f32, [x, y]).astype(np.float64)
        rounded = want.astype(np.float32).astype(np.float64)
        same = (got == rounded) | (np.isnan(got) & np.isnan(want))
        bound = np.where(np.abs(want) < row.exact_below, 0.0, row.ulps * 2.0**-24 * np.abs(want))
        near = np.abs(got - want) <= bound
    assert np.all(same | near), (x[~(same | near)][:5], y[~(same | near)][:5])


def test_divide_h_is_included_by_the_fills_that_call_it() -> None:
    text = headers.file("cklang/divide.h").read_text()
    helpers = set(re.findall(r"^CK_MATH \w+ (ck_\w+)\(", text, re.M))
    for name, op in OPS.items():
        calls = set(re.findall(r"\bck_\w+", f"{op.c} {op.c_int}"))
        assert bool(calls & helpers) == (name in DIVIDES), name
    assert "divide.h" in c_functions({"f": region("mod", i32)})
    assert "divide.h" not in c_functions({"f": region("bitwise_and", i32)})
