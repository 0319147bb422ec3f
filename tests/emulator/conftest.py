# SPDX-License-Identifier: MIT
"""What a test of the emulator asks of it, by marks and fixtures too, ends with the test."""

from collections.abc import Iterator

import pytest

from cklang import emulator, knobs
from cklang.errors import CkValueError
from tests.support.assembly import assemble, hip, ok
from tests.support.hip_streams import BODIES, Kernels, Words


@pytest.fixture(autouse=True)
def settings_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    if checks := request.node.get_closest_marker("sanitize"):
        emulator.sanitize(*checks.args)
    yield
    if {"emulator", "compiler"} & set(request.fixturenames):
        emulator.sanitize(*knobs.SANITIZE.get())
        emulator.translation(knobs.TRANSLATE.get())
        emulator.schedule(knobs.SCHEDULE.get())
        emulator.numerics(knobs.NUMERICS.get())
        emulator.deadlock_threshold()


@pytest.fixture
def first_device() -> Iterator[None]:
    """The first device is the current one, and no error is left."""
    ok(hip().hipInit(0))
    ok(hip().hipSetDevice(0))
    yield
    ok(hip().hipSetDevice(0))
    hip().hipGetLastError()


@pytest.fixture(params=["off", "all"])
def both_ways(request: pytest.FixtureRequest) -> None:
    """Kernels are interpreted, and then translated."""
    emulator.translation(request.param)


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble(BODIES)


@pytest.fixture
def kernels(image: bytes) -> Iterator[Kernels]:
    loaded = Kernels(image)
    hip().hipGetLastError()
    yield loaded
    ok(hip().hipSetDevice(0))
    ok(hip().hipDeviceReset())
    hip().hipGetLastError()


@pytest.fixture
def words() -> Iterator[Words]:
    host_words = Words()
    yield host_words
    host_words.flag.value = 1  # whatever still waits
    ok(hip().hipDeviceSynchronize())
    ok(hip().hipHostFree(host_words.memory))


def _widths() -> tuple[int, ...]:
    """Bits of the vectors that the CPU has, the widest last."""
    try:
        emulator.vector_width(512)
    except CkValueError:
        return (256,)
    return (256, 512)


@pytest.fixture
def widths() -> Iterator[tuple[int, ...]]:
    """Bits of vectors to translate for."""
    available = _widths()
    yield available
    emulator.vector_width(available[-1])
