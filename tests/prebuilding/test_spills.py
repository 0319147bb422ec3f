# SPDX-License-Identifier: MIT
"""Kernels that are compiled before anybody asks keep their values in registers."""

from __future__ import annotations

import pytest

from cklang.arch import arch
from cklang.build.parallel import built
from cklang.families.gemm.cost.traits import spilled_registers
from cklang.keys import AnyKey
from cklang.prebuilding.folder import essential_kernels

# Of 16-bit elements sums take 256 of 512 registers, fragments of A and B 128 and the next tile's
# loads 64. Of what is left for addresses the compiler lets a few go to memory.
_MOST_SPILLS = {("f16", "256x256x64"): 8, ("bf16", "256x256x64"): 8}


def most_spills(key: AnyKey) -> int:
    if key.family != "gemm":
        return 0
    tile = "x".join(map(str, key.algorithm.tile))
    return _MOST_SPILLS.get((key.signature.dtype_a.name, tile), 0)


@pytest.mark.full
@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_essential_kernels_do_not_spill(gpu: str) -> None:
    kernels = essential_kernels([gpu])
    products = [key for key, _ in kernels if key.family == "gemm"]
    assert not any(spilled_registers(k.signature, k.algorithm, arch(gpu)) for k in products)
    artifacts = built(kernels)
    assert len(artifacts) > 20
    spills = {each.key.label: each.resources.vgpr_spills for each in artifacts}
    bounds = {each.key.label: most_spills(each.key) for each in artifacts}
    assert {label: spills[label] for label in spills if spills[label] > bounds[label]} == {}
