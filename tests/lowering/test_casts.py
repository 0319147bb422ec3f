# SPDX-License-Identifier: MIT
"""The C of casts to integers, compiled for this machine's CPU, against their NumPy meaning."""

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.ir.casts import CASTS
from cklang.ir.numeric import cast
from cklang.lowering.pointwise import c_type
from cklang.types import DType, f32, i8, i32, i64
from tests.support.host_library import call_loop, host_library, loop

INTEGERS = (i8, i32, i64)
SOURCES = (f32, i32, i64)
EDGES = [
    0.5,
    2.5,
    3.5,
    4.9999,
    126.5,
    127.5,
    128.0,
    128.9,
    129.0,
    2.0**31,
    2.0**62,
    2.0**63,
    3e38,
    np.inf,
    np.nan,
]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    lines = [
        loop(f"{source}_{to}", CASTS[source, to].format("x0"), c_type(source), result="long")
        for source in SOURCES
        for to in INTEGERS
    ]
    return host_library(['#include "cklang/math.h"', *lines])


def numbers(source: DType) -> NDArray[np.generic]:
    rng = np.random.default_rng(5)
    if source != f32:
        ends = np.iinfo(source.numpy)
        wide = rng.integers(ends.min, ends.max, 2000, source.numpy, endpoint=True)
        near = [rng.integers(-300, 300, 2000), np.array([-(2**31), 2**31 - 1]), wide >> 30]
        return np.concatenate([*near, wide]).astype(source.numpy)
    edges = np.array(EDGES, np.float32)
    return np.concatenate([edges, -edges, rng.normal(0, 60, 2000).astype(np.float32)])


@pytest.mark.parametrize("to", INTEGERS, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_casts_truncate_and_saturate(library: ctypes.CDLL, source: DType, to: DType) -> None:
    x = numbers(source)
    y = call_loop(library, f"{source}_{to}", x, result=np.int64)
    np.testing.assert_array_equal(y, cast(x, to))
