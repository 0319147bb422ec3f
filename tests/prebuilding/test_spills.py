# SPDX-License-Identifier: MIT
"""Kernels that are compiled before anybody asks keep their values in registers."""

from __future__ import annotations

import pytest

from cklang.arch import arch
from cklang.build.parallel import built
from cklang.families.gemm.cost.traits import spilled_registers
from cklang.prebuilding.folder import essential_kernels


@pytest.mark.full
@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_essential_kernels_do_not_spill(gpu: str) -> None:
    kernels = essential_kernels([gpu])
    products = [key for key, _ in kernels if key.family == "gemm"]
    assert not any(spilled_registers(k.signature, k.algorithm, arch(gpu)) for k in products)
    artifacts = built(kernels)
    assert len(artifacts) > 20
    spilling = {
        each.key.label: each.resources.vgpr_spills
        for each in artifacts
        if each.resources.vgpr_spills
    }
    assert spilling == {}
