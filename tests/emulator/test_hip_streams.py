# SPDX-License-Identifier: MIT
"""Streams, events and graphs: what runs in which order, and when a caller learns of it."""

import ctypes
import os
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from cklang import emulator
from cklang.device.device import PAST_LAUNCHES
from cklang.emulator.engine import library
from tests.support.assembly import DEVICES, assemble, hip, ok, status
from tests.support.errors import expect_error
from tests.support.hip_streams import BODIES, Kernels, Words, stream

pytestmark = pytest.mark.usefixtures("emulator")


def test_a_launch_returns_before_its_kernel_is_done(kernels: Kernels, words: Words) -> None:
    one = stream()
    hip().hipGetLastError()  # what an earlier test of this thread left
    assert kernels.enqueue("await", words.flag_address, words.address, one) == "hipSuccess"
    assert status(hip().hipStreamQuery(one)) == "hipErrorNotReady"
    assert status(hip().hipGetLastError()) == "hipSuccess"  # not being ready is no failure
    words.flag.value = 1
    ok(hip().hipStreamSynchronize(one))
    assert status(hip().hipStreamQuery(one)) == "hipSuccess"
    assert words.values[0] == 1
    ok(hip().hipStreamDestroy(one))


def test_a_stream_is_in_order(kernels: Kernels, words: Words) -> None:
    one = stream()
    for name in ("increment", "double", "increment", "double", "double"):
        kernels.enqueue(name, 0, words.address, one)
    ok(hip().hipStreamSynchronize(one))
    np.testing.assert_array_equal(words.values, 12)


def test_streams_run_side_by_side(kernels: Kernels, words: Words) -> None:
    first, second = stream(nonblocking=True), stream(nonblocking=True)
    kernels.enqueue("await", words.flag_address, words.address, first)
    kernels.enqueue("release", 0, words.flag_address, second)
    ok(hip().hipStreamSynchronize(first))
    assert words.values[0] == 1


def test_the_null_stream_takes_turns_with_blocking_streams(kernels: Kernels, words: Words) -> None:
    one = stream()
    kernels.enqueue("await", words.flag_address, words.address, one)
    kernels.enqueue("double", 0, words.address)  # after the stream
    kernels.enqueue("increment", 0, words.address, one)  # after the null stream
    free = stream(nonblocking=True)
    kernels.enqueue("release", 0, words.flag_address, free)
    ok(hip().hipDeviceSynchronize())
    assert words.values[0] == 3


def test_events_order_streams(kernels: Kernels, words: Words) -> None:
    first, second = stream(nonblocking=True), stream(nonblocking=True)
    event = ok(hip().hipEventCreate())
    kernels.enqueue("await", words.flag_address, words.address, first)
    ok(hip().hipEventRecord(event, first))
    assert status(hip().hipEventQuery(event)) == "hipErrorNotReady"
    ok(hip().hipStreamWaitEvent(second, event, 0))
    kernels.enqueue("double", 0, words.address, second)
    words.flag.value = 1
    ok(hip().hipStreamSynchronize(second))
    assert words.values[0] == 2
    ok(hip().hipEventQuery(event))


def test_event_times(kernels: Kernels, words: Words) -> None:
    one = stream()
    start, stop = ok(hip().hipEventCreate()), ok(hip().hipEventCreate())
    plain = ok(hip().hipEventCreateWithFlags(2))  # hipEventDisableTiming
    never = ok(hip().hipEventCreate())
    ok(hip().hipEventRecord(start, one))
    kernels.enqueue("await", words.flag_address, words.address, one)
    for event in (stop, plain):
        ok(hip().hipEventRecord(event, one))
    assert status(hip().hipEventElapsedTime(start, stop)) == "hipErrorNotReady"
    ok(hip().hipEventSynchronize(start))  # its time has been taken
    time.sleep(0.02)
    words.flag.value = 1
    ok(hip().hipEventSynchronize(stop))
    assert 20 <= ok(hip().hipEventElapsedTime(start, stop)) < 10_000
    assert status(hip().hipEventElapsedTime(start, plain)) == "hipErrorInvalidHandle"
    assert status(hip().hipEventElapsedTime(start, never)) == "hipErrorInvalidHandle"
    ok(hip().hipEventSynchronize(never))
    ok(hip().hipEventDestroy(stop))
    assert status(hip().hipEventRecord(stop, one)) == "hipErrorInvalidHandle"


def test_copies_and_fills_are_in_order(kernels: Kernels, words: Words) -> None:
    one = stream()
    device, back = ok(hip().hipMalloc(256)), ok(hip().hipHostMalloc(256, 0))
    kind = hip().hipMemcpyKind.hipMemcpyDefault
    ok(hip().hipMemsetD32Async(device, 7, 64, one))
    kernels.enqueue("increment", 0, int(device), one)
    ok(hip().hipMemcpyAsync(back, device, 256, kind, one))
    ok(hip().hipMemsetAsync(device, 0, 256, one))
    ok(hip().hipStreamSynchronize(one))
    copied = (ctypes.c_uint32 * 64).from_address(int(back))
    assert list(copied) == [8] * 64
    ok(hip().hipFree(device))
    ok(hip().hipHostFree(back))


def test_host_functions_run_in_order(kernels: Kernels, words: Words) -> None:
    observed: list[int] = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    note = prototype(lambda _: observed.append(int(words.values[0])))
    one = stream()
    library = emulator.load()
    for _ in range(3):
        kernels.enqueue("increment", 0, words.address, one)
        handle = ctypes.c_void_p(int(one))
        assert library.hipLaunchHostFunc(handle, note, None) == 0
    # By ctypes, which lets other threads run Python meanwhile; hip-python 7 does not.
    assert library.hipStreamSynchronize(ctypes.c_void_p(int(one))) == 0
    assert observed == [1, 2, 3]


def test_faults_appear_when_someone_waits(kernels: Kernels, words: Words) -> None:
    one = stream()
    kernels.enqueue("await", words.flag_address, words.address, one)
    assert kernels.enqueue("wild", 0, words.address, one) == "hipSuccess"
    assert kernels.enqueue("increment", 0, words.address, one) == "hipSuccess"
    words.flag.value = 1
    assert status(hip().hipStreamSynchronize(one)) == "hipErrorIllegalAddress"
    assert words.values[0] == 1  # what came after the fault did not run
    assert kernels.enqueue("increment", 0, words.address) == "hipErrorIllegalAddress"
    assert status(hip().hipDeviceSynchronize()) == "hipErrorIllegalAddress"
    ok(hip().hipDeviceReset())
    assert kernels.enqueue("increment", 0, words.address) == "hipSuccess"
    ok(hip().hipDeviceSynchronize())


def test_destroyed_streams_finish_their_work(kernels: Kernels, words: Words) -> None:
    one = stream(nonblocking=True)
    kernels.enqueue("await", words.flag_address, words.address, one)
    ok(hip().hipStreamDestroy(one))
    assert status(hip().hipStreamSynchronize(one)) == "hipErrorInvalidHandle"
    words.flag.value = 1
    ok(hip().hipDeviceSynchronize())
    assert words.values[0] == 1


def test_memory_is_freed_after_its_use(kernels: Kernels, words: Words) -> None:
    device, one = ok(hip().hipMalloc(256)), stream()
    kernels.enqueue("await", words.flag_address, words.address, one)
    kernels.enqueue("increment", 0, int(device), one)
    kernels.enqueue("release", 0, words.flag_address, stream(nonblocking=True))
    ok(hip().hipFree(device))  # waits
    assert words.values[0] == 1


def test_devices_have_streams_of_their_own(image: bytes, words: Words) -> None:
    here = Kernels(image)
    increment = {"increment": BODIES["increment"]}
    there = Kernels(assemble(increment, "gfx90a"), "gfx90a")
    other = stream()
    assert there.enqueue("increment", 0, words.address, other) == "hipSuccess"
    ok(hip().hipStreamSynchronize(other))
    assert here.enqueue("increment", 0, words.address, other) == "hipErrorInvalidDeviceFunction"
    assert ok(hip().hipStreamGetDevice(other)) == DEVICES.index("gfx90a")
    ok(hip().hipSetDevice(0))
    assert words.values[0] == 1


def test_threads_have_a_device_and_a_stream_each(kernels: Kernels, words: Words) -> None:
    per_thread = ctypes.c_void_p(2)
    current: list[int] = []

    def work() -> None:
        current.append(ok(hip().hipGetDevice()))
        ok(hip().hipSetDevice(1))
        current.append(ok(hip().hipGetDevice()))

    ok(hip().hipSetDevice(0))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert current == [0, 1]
    assert ok(hip().hipGetDevice()) == 0
    kernels.enqueue("increment", 0, words.address, per_thread)
    ok(hip().hipStreamSynchronize(per_thread))
    assert words.values[0] == 1


def test_a_forked_process_has_threads_of_its_own(kernels: Kernels, words: Words) -> None:
    one = stream()
    kernels.enqueue("increment", 0, words.address, one, grid=4)
    ok(hip().hipStreamSynchronize(one))
    child = os.fork()
    if child == 0:
        # Device memory is private: the parent keeps its own contents.
        kernels.enqueue("increment", 0, words.address, one)
        synchronised = status(hip().hipStreamSynchronize(one)) == "hipSuccess"
        os._exit(int(words.values[0]) if synchronised else 99)
    before = int(words.values[0])
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == before + 1
    assert words.values[0] == before


def test_no_thread_is_woken_for_a_caller_who_waits(kernels: Kernels, words: Words) -> None:
    """The caller runs the kernel itself; if it does not wait after all, another thread does."""
    promise = library.promise_to_wait()
    kernels.enqueue("increment", 0, words.address)
    ok(hip().hipStreamSynchronize(None))
    time.sleep(0.05)  # until the threads of the library sleep
    promise(1)
    kernels.enqueue("increment", 0, words.address)
    time.sleep(0.1)
    assert status(hip().hipStreamQuery(None)) == "hipErrorNotReady"
    ok(hip().hipStreamSynchronize(None))
    assert words.values[0] == 2
    promise(1)
    kernels.enqueue("increment", 0, words.address)
    promise(0)
    _until(lambda: words.values[0] == 3)


def test_a_promise_to_wait_ends_with_the_wait(kernels: Kernels, words: Words) -> None:
    library.promise_to_wait()(1)
    kernels.enqueue("increment", 0, words.address)
    ok(hip().hipStreamSynchronize(None))
    kernels.enqueue("increment", 0, words.address)
    _until(lambda: words.values[0] == 2)


def test_a_promise_holds_nobody_else_up(kernels: Kernels, words: Words) -> None:
    """Work of another thread that comes after the promised one runs, and so both do."""
    library.promise_to_wait()(1)
    kernels.enqueue("increment", 0, words.address)
    one = stream()
    other = threading.Thread(target=kernels.enqueue, args=("double", 0, words.address, one))
    other.start()
    other.join()
    _until(lambda: words.values[0] == 2)
    ok(hip().hipStreamSynchronize(None))
    ok(hip().hipStreamDestroy(one))


def test_workgroups_that_have_ended(kernels: Kernels, words: Words) -> None:
    one, other = stream(nonblocking=True), stream(nonblocking=True)
    kernels.enqueue("first_awaits", words.flag_address, words.address, one, grid=5)
    _until(lambda: emulator.workgroups() == (4, 5))
    kernels.enqueue("await", words.flag_address, words.address, other, grid=2)
    _until(lambda: emulator.workgroups() == (4, 7))
    words.flag.value = 1
    ok(hip().hipDeviceSynchronize())
    _until(lambda: emulator.workgroups() == (0, 0))


def test_statistics_of_several_launches(kernels: Kernels, words: Words) -> None:
    each = []
    for name in ("increment", "release", "double"):
        kernels.enqueue(name, 0, words.address)
        ok(hip().hipStreamSynchronize(None))
        each.append(emulator.stats(0))
    total = emulator.stats(0, 3)
    for field in ("instructions", "waves", "bytes_stored", "nanoseconds"):
        assert getattr(total, field) == sum(getattr(one, field) for one in each)
    for _ in range(PAST_LAUNCHES):
        kernels.enqueue("increment", 0, words.address)
    ok(hip().hipStreamSynchronize(None))
    assert emulator.stats(0, PAST_LAUNCHES).waves == PAST_LAUNCHES
    for launches in (0, PAST_LAUNCHES + 1):
        with expect_error("E003"):
            emulator.stats(0, launches)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "no thread has run the kernel"
        time.sleep(0.001)
