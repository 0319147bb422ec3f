# SPDX-License-Identifier: MIT
"""Kernels that are compiled before anybody asks keep their values in registers."""

from __future__ import annotations

import pytest

from cklang.build.parallel import built
from cklang.keys import AnyKey
from cklang.prebuilding.folder import essential_kernels

# Sums take 256 of 512 registers, fragments of A and B 128 and the next tile's loads 64. Of what
# is left for addresses the compiler lets some go to memory, whichever schedule it takes.
_MOST_SPILLS = {"256x256x64": 100, "256x256x128": 100}


def most_spills(key: AnyKey) -> int:
    tile = "x".join(map(str, key.algorithm.tile)) if key.family == "gemm" else ""
    return _MOST_SPILLS.get(tile, 0)


@pytest.mark.full
@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_essential_kernels_do_not_spill(gpu: str) -> None:
    artifacts = built(essential_kernels([gpu]))
    assert len(artifacts) > 20
    spills = {each.key.label: each.resources.vgpr_spills for each in artifacts}
    bounds = {each.key.label: most_spills(each.key) for each in artifacts}
    assert {label: spills[label] for label in spills if spills[label] > bounds[label]} == {}
