# SPDX-License-Identifier: MIT
"""CK Tile's own example programs pass their own checks on the emulator.

The quick ones to compile; ``benchmarks/ck_examples.py`` runs all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from ck_examples import EXAMPLES, build, run

ARCH = "gfx942"
QUICK = ("elementwise", "reduce", "layernorm2d", "fmha_fwd", "gemm_multi_d", "conv_fwd")
QUICK += ("conv_bwd_weight", "conv_bwd_data")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_example(name: str, tmp_path: Path) -> None:
    outcome = run(name, build(name, tmp_path, ARCH), ARCH)
    assert not outcome.failures, "\n".join(outcome.failures)


def test_the_slow_ones_are_few() -> None:
    assert set(EXAMPLES) - set(QUICK) == {"gemm_universal", "gemm_streamk"}
