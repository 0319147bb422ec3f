# SPDX-License-Identifier: MIT
"""The C of casts to integers, compiled for this machine's CPU, against their NumPy meaning."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.ir.casts import CASTS
from cklang.ir.numeric import cast
from cklang.types import DType, f32, i8, i32
from tests.support.host_library import host_library

EDGES = [0.5, 2.5, 3.5, 4.9999, 126.5, 127.5, 128.0, 128.9, 129.0, 2.0**31, 3e38, np.inf, np.nan]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("casts")
    lines = ['#include "cklang/math.h"']
    for source, c_type in ((f32, "float"), (i32, "int")):
        for to in (i8, i32):
            expression = CASTS[source, to].format("v")
            lines.append(
                f"void {source}_{to}(const {c_type} *x, int *y, long n)"
                f"{{ for (long i = 0; i < n; ++i) {{ {c_type} v = x[i]; y[i] = {expression}; }} }}"
            )
    return host_library(folder, lines)


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
    y = np.empty(x.size, np.int32)
    function = getattr(library, f"{source}_{to}")
    function(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), x.size)
    np.testing.assert_array_equal(y, cast(x, to))
