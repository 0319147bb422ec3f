# SPDX-License-Identifier: MIT
"""CK Tile's own example programs pass their own checks on the emulator.

Those that are quick to compile; with ``--all-examples`` all of them, as
``benchmarks/ck_examples.py`` runs them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ck_examples import EXAMPLES, build, run

pytestmark = pytest.mark.usefixtures("compiler")

ARCH = "gfx942"
#: Each takes more than a minute of processor time, or is a convolution as the one that stays.
LONG = ("gemm_universal", "gemm_streamk", "conv_fwd", "conv_bwd_data")


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in LONG and not request.config.getoption("--all-examples"):
        pytest.skip("takes long to compile; --all-examples runs it")
    outcome = run(name, build(name, tmp_path, ARCH), ARCH)
    assert not outcome.failures, "\n".join(outcome.failures)
