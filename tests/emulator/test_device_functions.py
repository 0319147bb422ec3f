# SPDX-License-Identifier: MIT
"""ROCm's device functions beyond those that kernels of cklang call (docs/device_functions.md)."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from tests.support.hip_programs import PROGRAMS, built, run

_TABLE = Path(__file__).parents[2] / "docs" / "device_functions.md"
_ARCHS = ("gfx942", "gfx1201")


@pytest.fixture(scope="module")
def program() -> Path:
    return built("device_functions", *_ARCHS)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("arch", _ARCHS)
def test_lanes_integers_and_conversions(program: Path, arch: str) -> None:
    done = run(program, CKLANG_GPUS=arch)
    assert done.stdout == "0 failed\n", done.stdout + done.stderr


def _reference(name: str, x: float) -> Any:
    """The function to thirty digits."""
    wide, half = mpmath.mpf(x), mpmath.mpf(0.5)
    functions: dict[str, Callable[[], Any]] = {
        "erfinv": lambda: mpmath.erfinv(wide),
        "erfcx": lambda: mpmath.exp(wide * wide) * mpmath.erfc(wide),
        "normcdf": lambda: half * mpmath.erfc(-wide / mpmath.sqrt(2)),
        "normcdfinv": lambda: mpmath.sqrt(2) * mpmath.erfinv(2 * wide - 1),
        "j0": lambda: mpmath.besselj(0, wide),
        "j1": lambda: mpmath.besselj(1, wide),
        "jn": lambda: mpmath.besselj(5, wide),
        "y0": lambda: mpmath.bessely(0, wide),
        "y1": lambda: mpmath.bessely(1, wide),
        "yn": lambda: mpmath.bessely(3, wide),
        "cyl_bessel_i0": lambda: mpmath.besseli(0, wide),
        "cyl_bessel_i1": lambda: mpmath.besseli(1, wide),
    }
    with mpmath.workdps(30):
        return functions[name]()


_RANGES = {
    "erfinv": (-0.999999, 0.999999, 1e-12), "erfcx": (-5, 60, 1e-12), "normcdf": (-20, 8, 1e-12),
    "normcdfinv": (1e-9, 1 - 1e-9, 1e-11), "j0": (0.01, 90, 1e-13), "j1": (-60, 90, 1e-13),
    "jn": (0.01, 70, 1e-13), "y0": (0.05, 90, 1e-13), "y1": (0.05, 90, 1e-13),
    "yn": (0.5, 90, 1e-13), "cyl_bessel_i0": (-30, 30, 1e-12), "cyl_bessel_i1": (-30, 30, 1e-12),
}  # fmt: skip
"""From, to, and the error: relative to the larger of the result and 1 for Bessel functions."""


@pytest.mark.usefixtures("compiler")
def test_special_functions(program: Path, tmp_path: Path) -> None:
    for name, (low, high, bound) in _RANGES.items():
        x = np.linspace(low, high, 101)
        x.tofile(tmp_path / "in")
        run(program, name, tmp_path / "in", tmp_path / "out").check_returncode()
        found = np.fromfile(tmp_path / "out")
        expected = np.array([float(_reference(name, value)) for value in x])
        size = np.maximum(np.abs(expected), 1 if name[0] in "jyc" else 1e-300)
        worst = np.max(np.abs(found - expected) / size)
        assert worst <= bound, f"{name}: {worst} at {x[np.argmax(np.abs(found - expected) / size)]}"


@pytest.mark.usefixtures("compiler")
def test_inverse_of_erfc_in_its_tail(program: Path, tmp_path: Path) -> None:
    y = np.concatenate([10.0 ** -np.arange(1, 300, 7), [0.25, 0.5, 1.0, 1.5, 1.99]])
    y.tofile(tmp_path / "in")
    run(program, "erfcinv", tmp_path / "in", tmp_path / "out").check_returncode()
    for x, wanted in zip(np.fromfile(tmp_path / "out"), y, strict=True):
        # Near x an error of x changes erfc by its slope.
        slope = 2 / math.sqrt(math.pi) * math.exp(-x * x)
        error = abs(float(mpmath.erfc(mpmath.mpf(float(x))) - wanted)) / max(slope, 1e-320)
        assert error <= 1e-13 * max(1.0, abs(x)), (x, wanted)


def test_the_table_names_functions_that_the_tests_call() -> None:
    """Each function that docs/device_functions.md says is tested here is in a program here."""
    programs = ("device_functions", "conversions")
    text = "".join((PROGRAMS / f"{name}.hip").read_text() for name in programs)
    rows = [
        row.split("|")[1:-1] for row in _TABLE.read_text().splitlines() if row.startswith("| `")
    ]
    assert len(rows) > 30
    for names, status, test in rows:
        if "test_device_functions" not in test:
            continue
        assert status.strip() == "complete"
        for name in re.findall(r"`([^`]+)`", names):
            assert re.search(rf"\b{re.escape(name)}\b", text), name
