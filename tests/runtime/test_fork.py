# SPDX-License-Identifier: MIT
"""Forked processes: an emulated GPU works on in them, kernels are built, a real GPU is refused."""

import faulthandler
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import cklang as ck
from cklang import forks
from cklang.device import device
from cklang.errors import CkError
from cklang.selection import background
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import drawn, mnk
from tests.support.errors import expect_error
from tests.support.gemm_ops import fused

SECONDS = 60.0
"""After which a child counts as stuck."""

OP = fused.using(narrow(2, warp_tile=DEEP))


def args(m: int) -> list[np.ndarray]:
    return drawn(OP, mnk(m, 24, 16), T=ck.f16)


def call(m: int) -> np.ndarray:
    result: np.ndarray = OP(*args(m), device="emu:gfx942")
    return result


def in_child(work: Callable[[], bool]) -> bool:
    """Whether a forked process ends in time and ``work`` is true there; stderr says why not."""
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(SECONDS / 2, file=2)
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(2)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            if code:
                print(f"the child ended with {code}", file=sys.stderr)
            return code == 0
        time.sleep(0.01)
    print(f"the child did not end in {SECONDS} s", file=sys.stderr)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@pytest.mark.usefixtures("stencils")
def test_calls_in_a_pool_of_forked_workers() -> None:
    """The first size is planned in the parent, the others in the workers."""
    here = [call(m) for m in (16, 33)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        there = list(pool.map(call, (16, 33, 47)))
    for mine, theirs in zip([*here, call(47)], there, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("stencils")
def test_a_registry_is_built_by_forked_workers_of_a_process_with_a_device() -> None:
    call(16)
    registry = ck.dispatch.Registry("mine")
    among = ck.dispatch.pattern(
        tile=(64, 64, 32),
        warps=(2, 2, 1),
        warp_tile=DEEP,
        **{f"vector_{name}": 1 for name in "abe"},
        vector_d=(1, 1),
    )
    OP.declare(*args(16), registry=registry, device="emu:gfx942", among=among)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        summary = registry.build(executor=pool)
    assert not summary.failures
    assert len(summary.artifacts) == len(registry) == 1


@pytest.mark.usefixtures("stencils")
def test_a_process_may_fork_while_its_threads_run_kernels() -> None:
    expected, done = {m: call(m) for m in (16, 80)}, threading.Event()

    def keep_busy() -> None:
        while not done.is_set():
            call(80)

    threads = [threading.Thread(target=keep_busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            assert in_child(lambda: all((call(m) == y).all() for m, y in expected.items()))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    np.testing.assert_array_equal(call(80), expected[80])


def test_a_property_that_another_thread_computes_is_computed_in_a_child() -> None:
    begun, done = threading.Event(), threading.Event()

    class Slow:
        @forks.cached_property
        def value(self) -> int:
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                done.wait(SECONDS)
            return 1

    other = threading.Thread(target=lambda: Slow().value)
    other.start()
    begun.wait()
    assert in_child(lambda: Slow().value == 1)
    done.set()
    other.join()


@pytest.mark.parametrize("make", [forks.lock, forks.reentrant_lock])
def test_a_lock_that_another_thread_holds_is_open_in_a_child(make: Callable[[], object]) -> None:
    lock: threading.Lock = make()  # type: ignore[assignment]
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    assert in_child(lambda: lock.acquire(timeout=SECONDS / 4))
    assert not lock.acquire(blocking=False), "the parent's is as it was"
    done.set()
    holder.join()


def test_a_real_gpu_is_refused_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> bool:
        with pytest.raises(CkError) as caught:
            device.open_device("hip:0")
        return caught.value.code == "D010" and "spawn" in str(caught.value.hint)

    monkeypatch.setattr(device, "_mode", "hip")
    assert in_child(refused)


def test_a_child_builds_in_the_background_with_a_thread_of_its_own() -> None:
    before = background._worker
    assert in_child(lambda: background._worker is not before)
    assert background._worker is before


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("calls", [1, 5])
def test_what_was_planned_before_the_fork_is_refused_too(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one call and of one whose launches are a single call into C."""
    values = args(16)
    for _ in range(calls):
        expected = OP(*values, device="emu:gfx942")
    with monkeypatch.context() as there:
        there.setattr(forks, "gpu_is_lost", True)
        with expect_error("D010"):
            OP(*values, device="emu:gfx942")
    np.testing.assert_array_equal(OP(*values, device="emu:gfx942"), expected)
