# SPDX-License-Identifier: MIT
"""FlyDSL's compiler and runtime on emulated GPUs, with tensors of torch (``emulator.flydsl``)."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from cklang import emulator
from cklang.device.device import Device
from cklang.emulator.flydsl import device
from cklang.errors import CkDeviceError, CkValueError
from tests.support import flydsl_kernels as kernels

pytestmark = pytest.mark.usefixtures("torch", "flydsl", "emulator")

GPUS = ("gfx942", "gfx950", "gfx1100", "gfx1201")


@pytest.fixture(params=GPUS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Device]:
    torch.manual_seed(1)
    with device(request.param) as chosen:
        yield chosen


def softmax(meet: bool) -> tuple[Any, Any]:
    x, out = torch.rand(3, 128), torch.zeros(3, 128)
    kernels.softmax(x.reshape(-1), out.reshape(-1), 3, 128, int(meet))
    return x, out


def test_vectors_whose_last_group_is_not_full(gpu: Device) -> None:
    x, y, out = torch.rand(1000), torch.rand(1000), torch.full((1024,), -1.0)
    kernels.add(x, y, out, 1000)
    assert torch.equal(out[:1000], x + y)
    assert bool((out[1000:] == -1).all())


def test_tiled_copy(gpu: Device) -> None:
    x, out = torch.rand(8, 48), torch.zeros(8, 48)
    kernels.copy(x, out, 2)
    assert torch.equal(out, x)


def test_softmax_through_lds(gpu: Device) -> None:
    x, out = softmax(meet=True)
    torch.testing.assert_close(out, torch.softmax(x, 1))


def test_product_by_matrix_instructions(gpu: Device) -> None:
    a, b = torch.randn(64, 48).half(), torch.randn(96, 48).half()
    c = torch.zeros(64, 96)
    wave = gpu.spec.wave_size
    kernels.product(a, b, c, (2, 3), 3, int(wave == 32), wave)
    exact = a.double() @ b.double().T
    magnitude = a.double().abs() @ b.double().abs().T
    assert bool(((c.double() - exact).abs() <= 48 * 2.0**-24 * magnitude).all())
    matrix = "v_wmma" if wave == 32 else "v_mfma"
    assert any(name.startswith(matrix) for name in emulator.fidelity(gpu.index))


def test_functions_of_the_device_library(gpu: Device) -> None:
    x, out = torch.rand(64) + 0.25, torch.zeros(64)
    kernels.functions(x, out)
    exact = x.double()
    expected = torch.exp2(exact) + torch.sin(exact) + torch.erf(exact) + exact**exact
    torch.testing.assert_close(out.double(), expected, rtol=4e-6, atol=0)


def test_printing(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.full((64,), 0.5)
    with device("gfx942"):
        kernels.show(x)
    assert "lane 3 of many has 0.5" in capfd.readouterr().out


def test_one_function_on_two_gpus() -> None:
    for name in ("gfx942", "gfx1201", "gfx942"):
        with device(name):
            x, y, out = torch.rand(512), torch.rand(512), torch.zeros(512)
            kernels.add(x, y, out, 512)
            assert torch.equal(out, x + y), name


def test_a_missing_barrier_is_a_race() -> None:
    emulator.sanitize("races")
    with device("gfx942"):
        softmax(meet=True)
    with pytest.raises(CkDeviceError, match="race"), device("gfx942"):
        softmax(meet=False)
    emulator.load().hipDeviceReset()


def test_what_was_set_is_as_before() -> None:
    names = ("FLYDSL_GPU_ARCH", "ROCM_PATH")
    before = [os.environ.get(name) for name in names]
    with device("gfx950"):
        assert os.environ["FLYDSL_GPU_ARCH"] == "gfx950"
    assert [os.environ.get(name) for name in names] == before


def test_an_unknown_gpu() -> None:
    with pytest.raises(CkValueError, match="gfx000"), device("gfx000"):
        raise AssertionError
