# SPDX-License-Identifier: MIT
"""A fault names the tensor of the call, and the element, in which its address lies."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import cklang as ck
from cklang import emulator, knobs
from cklang.device.arrays import Array
from cklang.errors import CkDeviceError
from cklang.runtime import call_plan
from cklang.runtime.call_plan import AccessRange, access_range
from cklang.runtime.fault_places import Region, Tensor, tensor_at
from tests.support.assembly import DEVICES, hip, ok

X = Tensor(name="x", dtype="f16", bits=16, shape=(4, 8), strides=(8, 1))
TURNED = Tensor(name="t", dtype="f32", bits=32, shape=(4, 8), strides=(1, 4))
WITH_GAPS = Tensor(name="g", dtype="f32", bits=32, shape=(4, 8), strides=(16, 1))
SMALL = Tensor(name="w", dtype="fp4", bits=4, shape=(4, 8), strides=(8, 1))
SCALAR = Tensor(name="s", dtype="f32", bits=32, shape=(), strides=())


@pytest.mark.parametrize(
    ("tensor", "byte", "index"),
    [
        (X, 0, (0, 0)),
        (X, 42, (2, 5)),
        (X, 43, (2, 5)),
        (X, 63, (3, 7)),
        (X, 64, None),
        (TURNED, 4, (1, 0)),
        (TURNED, 16 * 7 + 12, (3, 7)),
        (WITH_GAPS, 64, (1, 0)),
        (WITH_GAPS, 36, None),
        (SMALL, 5, (1, 2)),
        (SCALAR, 0, ()),
    ],
)
def test_index(tensor: Tensor, byte: int, index: tuple[int, ...] | None) -> None:
    assert tensor.index(byte) == index


def fault(text: str) -> CkDeviceError:
    return CkDeviceError("D003", "failed", notes=[text])


REGIONS = [
    Region(tensor=X, address=0x10000, low=0, high=64),
    Region(tensor=TURNED, address=0x20000, low=0, high=128),
]


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0x1002A, "element [2, 5] of x (f16[4, 8])"),
        (0x10044, "4 bytes behind the end of x (f16[4, 8])"),
        (0x0FFFC, "4 bytes before x (f16[4, 8])"),
        (0x20004, "element [1, 0] of t (f32[4, 8])"),
    ],
)
def test_places(address: int, place: str) -> None:
    named = tensor_at(fault(f"memory access fault at address 0x{address:x}"), REGIONS)
    assert named.notes[-1] == f"the address is {place}"


def test_no_place() -> None:
    far = fault("fault at address 0x7f0000000000")
    for problem, regions in ((fault("missing wait"), REGIONS), (far, REGIONS), (far, [])):
        assert tensor_at(problem, regions) is problem


M, N = ck.dims("M N")


def _double(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return x + x


@pytest.fixture
def checked() -> Iterator[None]:
    """Check memory on gfx942, and let the device work again."""
    emulator.sanitize("memory")
    with knobs.scope(CKLANG_DEVICE="emu:gfx942"):
        yield
    emulator.sanitize(*knobs.SANITIZE.get())
    ok(hip().hipSetDevice(DEVICES.index("gfx942")))
    ok(hip().hipDeviceReset())


@pytest.mark.usefixtures("compiler", "checked")
def test_each_tensor_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reads more of x than the plan says is found, though x is the host's array."""
    x = np.ones((3, 100), np.float32)
    np.testing.assert_array_equal(ck.op(_double)(x), 2 * x)
    usual = access_range

    def shorter(array: Array, *, written: bool, tensor: Tensor | None = None) -> AccessRange:
        piece = usual(array, written=written, tensor=tensor)
        return piece if written else replace(piece, high=piece.high - 4)

    monkeypatch.setattr(call_plan, "access_range", shorter)
    with pytest.raises(CkDeviceError) as problem:
        ck.op(_double)(x)
    text = str(problem.value)
    assert "out of bounds: " in text
    assert "behind the end of x (f32[3, 100])" in text
    assert "return x + x" in text
