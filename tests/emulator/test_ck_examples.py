# SPDX-License-Identifier: MIT
"""CK Tile's own example programs pass their own checks on the emulator.

Those that are quick to compile; those of ``LONG`` in the tier *full*. ``benchmarks/ck_examples.py``
runs all of them, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ck_examples import EXAMPLES, build, run

pytestmark = pytest.mark.usefixtures("compiler")

ARCH = "gfx942"
#: Each takes more than a minute of processor time, or is a convolution as the one that stays.
LONG = ("gemm_universal", "gemm_streamk", "conv_fwd", "conv_bwd_data")


CASES = [pytest.param(name, marks=pytest.mark.full) if name in LONG else name for name in EXAMPLES]


@pytest.mark.parametrize("name", CASES)
def test_example(name: str, tmp_path: Path) -> None:
    outcome = run(name, build(name, tmp_path, ARCH), ARCH)
    assert not outcome.failures, "\n".join(outcome.failures)
