# SPDX-License-Identifier: MIT
"""Gluon kernels on emulated GPUs (``emulator.triton``), checked for races, waits and the rest."""

from collections.abc import Iterator

import pytest
import torch
from triton.experimental.gluon import language as gl

from cklang import emulator
from cklang.emulator.triton import EmulatedDriver, device
from tests.support import gluon_kernels as kernels

pytestmark = pytest.mark.usefixtures("torch", "triton", "emulator")

GPUS = ("gfx942", "gfx950", "gfx1100", "gfx1201")
WMMA = gl.amd.AMDWMMALayout
# Triton 3.6 has the number of waves along each axis, later versions where each bit of theirs goes.
FOUR_WAVES = [[1, 0], [0, 1]] if "warp_bases" in WMMA.__annotations__ else [2, 2]
MATRICES = {
    "gfx942": (gl.amd.AMDMFMALayout(3, [32, 32, 8], True, [2, 2]), 4),
    "gfx950": (gl.amd.AMDMFMALayout(4, [32, 32, 16], True, [2, 2]), 8),
    "gfx1201": (WMMA(2, True, FOUR_WAVES), 8),
}
"""By GPU: who holds which element of a product of four waves, and elements along k of a lane."""


@pytest.fixture(params=GPUS)
def gpu(request: pytest.FixtureRequest) -> Iterator[EmulatedDriver]:
    torch.manual_seed(1)
    emulator.sanitize("all")
    with device(request.param) as driver:
        yield driver


def test_a_layout_of_lanes(gpu: EmulatedDriver) -> None:
    x, out = torch.rand(1000), torch.zeros(1024)
    kernels.scale[(4,)](x, out, 1000, 3.0, BLOCK=256, WAVE=gpu.gpu.spec.wave_size, num_warps=4)
    assert torch.equal(out[:1000], 3 * x)
    assert not out[1000:].any()


def test_a_tile_changes_its_layout_through_lds(gpu: EmulatedDriver) -> None:
    x, out = torch.rand(64, 32), torch.zeros(32)
    kernels.column_sums[(1,)](x, out, 64, 32, WAVE=gpu.gpu.spec.wave_size, num_warps=4)
    torch.testing.assert_close(out, x.sum(0))


@pytest.mark.parametrize("gpu", MATRICES, indirect=True)
def test_a_product_by_matrix_instructions(gpu: EmulatedDriver) -> None:
    a, b, c = torch.randn(64, 96).half(), torch.randn(96, 64).half(), torch.zeros(64, 64)
    name = gpu.gpu.spec.name
    matrix, width = MATRICES[name]
    rdna = name == "gfx1201"
    kernels.product[(1,)](a, b, c, 96, MATRIX=matrix, WIDTH=width, RDNA=rdna, num_warps=4)
    exact = a.double() @ b.double()
    bound = 96 * 2.0**-24 * (a.double().abs() @ b.double().abs())
    assert bool(((c.double() - exact).abs() <= bound).all())
    kind = "v_wmma" if rdna else "v_mfma"
    assert any(each.startswith(kind) for each in emulator.fidelity(gpu.gpu.index))
