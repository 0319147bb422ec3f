# SPDX-License-Identifier: MIT
"""The C of casts to integers, compiled for this machine's CPU, against their NumPy meaning."""

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.ir.casts import CASTS
from cklang.ir.numeric import cast
from cklang.types import DType, f32, i8, i32
from tests.support.host_library import call_loop, host_library, loop

EDGES = [0.5, 2.5, 3.5, 4.9999, 126.5, 127.5, 128.0, 128.9, 129.0, 2.0**31, 3e38, np.inf, np.nan]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    lines = [
        loop(f"{source}_{to}", CASTS[source, to].format("x0"), c_type, result="int")
        for source, c_type in ((f32, "float"), (i32, "int"))
        for to in (i8, i32)
    ]
    return host_library(['#include "cklang/math.h"', *lines])


def numbers(source: DType) -> NDArray[np.generic]:
    rng = np.random.default_rng(5)
    if source == i32:
        return rng.integers(-300, 300, 2000).astype(np.int32)
    edges = np.array(EDGES, np.float32)
    return np.concatenate([edges, -edges, rng.normal(0, 60, 2000).astype(np.float32)])


@pytest.mark.parametrize("to", [i8, i32], ids=str)
@pytest.mark.parametrize("source", [f32, i32], ids=str)
def test_casts_truncate_and_saturate(library: ctypes.CDLL, source: DType, to: DType) -> None:
    x = numbers(source)
    y = call_loop(library, f"{source}_{to}", x, result=np.int32)
    np.testing.assert_array_equal(y, cast(x, to))
