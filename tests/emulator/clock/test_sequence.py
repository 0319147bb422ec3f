# SPDX-License-Identifier: MIT
"""What launches touch, and what they find in the caches that others have filled."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cklang as ck
from cklang import emulator
from cklang.arch import arch
from cklang.emulator.clock.hierarchy import Kept
from cklang.emulator.clock.sampling import SAMPLES
from cklang.emulator.clock.sequence import IN_CALL, Use, kept_by
from cklang.emulator.clock.touched import TouchedMemory, by_array
from cklang.emulator.profiler.session import Profile
from cklang.errors import CkUnsupportedError, CkValueError
from tests.emulator.clock.test_predict import masked
from tests.emulator.clock.test_sampling import EMPTY
from tests.support.algorithms import ATTENTION, NARROW, WIDE

M, N, K = ck.dims("M N K")
B, C, X, Y, Hi, Wi, Ho, Wo = ck.dims("B C X Y Hi Wi Ho Wo")
GPU = "emu:gfx942"
MI300X = arch("gfx942")
MB = 1 << 20


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def softmax(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.softmax(x, axis=-1)


@ck.op
def convolution(x: ck.f16[B, Hi, Wi, C], w: ck.f16[N, Y, X, C]) -> ck.f16[B, Ho, Wo, N]:
    return ck.relu(ck.conv(x, w, stride=2, padding=1))


@ck.op
def normalised(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.softmax(x @ w.T, axis=-1)


def zeros(*shape: int) -> npt.NDArray[np.float16]:
    return np.zeros(shape, np.float16)


def product_operands(m: int, n: int, k: int) -> list[npt.NDArray[np.float16]]:
    return [zeros(m, k), zeros(n, k)]


WIDE_PRODUCT, CAUSAL = product.using(WIDE), masked.using(ATTENTION, splits=1)
CALLS: dict[str, tuple[Callable[..., Any], list[npt.NDArray[np.float16]]]] = {
    "small product": (WIDE_PRODUCT, product_operands(256, 256, 256)),
    "tall product": (WIDE_PRODUCT, product_operands(6144, 256, 128)),
    "wide product": (WIDE_PRODUCT, product_operands(128, 7168, 256)),
    "square product": (WIDE_PRODUCT, product_operands(1536, 1536, 512)),
    "large product": (WIDE_PRODUCT, product_operands(6144, 7168, 256)),
    "few rows": (softmax, [zeros(256, 1024)]),
    "many rows": (softmax, [zeros(8192, 1024)]),
    "attention": (CAUSAL, [zeros(2, 4, 512, 64) for _ in range(3)]),
    "more heads": (CAUSAL, [zeros(2, 32, 1024, 64) for _ in range(3)]),
    "convolution": (convolution.using(NARROW), [zeros(2, 30, 30, 64), zeros(64, 3, 3, 64)]),
}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", CALLS)
def test_a_prediction_and_a_profile_agree(name: str) -> None:
    """Both take what workgroups share from the allocations that they touch."""
    op, operands = CALLS[name]
    with ck.using(strategy="heuristic"):
        predicted = ck.predict(op, *operands, device=GPU)
        with emulator.timing(SAMPLES, alone=True) as recording:
            result = op(*operands, device=GPU)
    profile = Profile(recording.launches)
    assert profile.us == pytest.approx(predicted.us, rel=0.02)
    footprint = sum(array.nbytes for array in operands) + result.nbytes
    (launch,) = profile.launches
    assert launch.detail.footprint == pytest.approx(footprint, rel=0.01)
    assert launch.bound == predicted.kernels[0].bound


@pytest.mark.usefixtures("compiler")
def test_kernels_of_a_call_find_what_those_before_leave() -> None:
    operands = zeros(4096, 256), zeros(1024, 256)
    times = {
        caches: ck.predict(normalised, *operands, device=GPU, caches=caches)
        for caches in (None, "warm", "cold", IN_CALL)
    }
    assert len(times["warm"].kernels) == 2
    # What the product writes leaves the L2 and stays in the last-level cache.
    warm, in_call, cold = (times[name].kernels[1] for name in ("warm", IN_CALL, "cold"))
    assert warm.us < in_call.us < cold.us
    assert times[None].us == times[IN_CALL].us
    with pytest.raises(CkValueError, match=r"A133.*\n.*'warm', 'cold', 'as in the call'"):
        ck.predict(normalised, *operands, device=GPU, caches="hot")


@pytest.mark.usefixtures("compiler")
def test_launches_and_calls_have_overheads_of_their_own() -> None:
    operands = zeros(4096, 256), zeros(1024, 256)
    chain = ck.predict(normalised, *operands, device=GPU, board="MI300A")
    alone = ck.predict(softmax, zeros(256, 1024), device=GPU, board="MI300A")
    assert (alone.overhead_us, chain.overhead_us) == pytest.approx((1.9 + 1.6, 1.9 + 2 * 1.6))
    assert chain.us == sum(kernel.us for kernel in chain.kernels)
    assert "launching takes 5.1 µs beside that" in str(chain)
    with pytest.raises(CkUnsupportedError, match=r"K050.*MI9\W"):
        ck.predict(softmax, zeros(256, 1024), device=GPU, board="MI9")


@pytest.mark.usefixtures("compiler")
def test_a_function_without_operands_is_timed_by_what_it_touches() -> None:
    x = zeros(8192, 1024)
    direct = ck.predict(softmax, x, device=GPU)
    inside = ck.predict(lambda device: softmax(x, device=device), device=GPU)
    assert inside.us == direct.us
    named = emulator.predict(lambda: softmax(x, device=GPU), operands=[x, x])
    assert named.us == pytest.approx(direct.us, rel=0.01)
    larger = emulator.predict(lambda: softmax(x, device=GPU), operands=[zeros(32, 1 << 20)] * 16)
    assert larger.us > direct.us
    with pytest.raises(CkValueError, match="A134"):
        emulator.predict(lambda: None)


def test_arrays_in_one_allocation_are_told_apart_by_the_pointers_to_them() -> None:
    def launch(*pointers: int) -> emulator.RecordedLaunch:
        extents = np.array([[0x1000, 0x9000], [0xA000, 0xB000]], np.uint64)
        return replace(EMPTY, extents=extents, pointers=np.array(pointers, np.uint64))

    first, second = by_array([launch(0x1000, 0x4000), launch(0x6000, 0xA000)])
    wanted = [[0x1000, 0x4000], [0x4000, 0x6000], [0x6000, 0x9000], [0xA000, 0xB000]]
    assert first.extents.tolist() == second.extents.tolist() == wanted


def use(kernel: str, chiplet_bytes: float = MB, **memory: tuple[int, int, int]) -> Use:
    """A launch by the megabytes of each array that it touches, loads and stores."""
    touched = {
        ord(name): TouchedMemory(begin=ord(name), bytes=size * MB, loaded=load * MB, stored=store)
        for name, (size, load, store) in memory.items()
    }
    total = sum(each.bytes for each in touched.values())
    return Use((kernel, 0, (1, 1, 1)), touched, total, chiplet_bytes)


def kept(*uses: Use, at: int = 0) -> Kept:
    return kept_by(uses.__getitem__, len(uses), at, MI300X)


def test_a_launch_that_is_repeated_finds_what_fits() -> None:
    small = kept(use("k", x=(8, 8, 0), y=(8, 0, 8)))
    assert (small.l2, small.last_level) == pytest.approx((1, 1), rel=1e-4)
    large = kept(use("k", 64 * MB, x=(512, 512, 0)))
    assert (large.l2, large.last_level) == pytest.approx((0, 0), abs=1e-3)


def test_what_is_written_leaves_the_l2() -> None:
    writer, reader = use("w", y=(8, 0, 8)), use("r", y=(8, 8, 0))
    found = kept(writer, reader, at=1)
    assert found.l2 == 0
    assert found.last_level == pytest.approx(1, rel=1e-4)


def test_another_kernel_reads_lines_on_other_chiplets() -> None:
    first, second = use("a", x=(8, 8, 0)), use("b", x=(8, 8, 0))
    assert kept(first, second, at=1).l2 == pytest.approx(1 / 8, rel=1e-4)
    assert kept(first, first, at=1).l2 == pytest.approx(1, rel=1e-4)
    shared = use("a", x=(8, 64, 0))  # each chiplet has read all of it
    assert kept(shared, second, at=1).l2 == pytest.approx(1, rel=1e-4)


def test_launches_in_between_drop_what_does_not_fit() -> None:
    first, last = use("a", x=(64, 64, 0)), use("b", x=(64, 64, 0), y=(8, 0, 8))
    between = use("c", z=(512, 512, 0))
    assert kept(first, last, at=1).last_level == pytest.approx(1, rel=1e-4)
    shares = kept(first, between, last, at=2)
    assert shares.last_level < 0.2
    # Nobody else writes the result: it is as old as the whole circle.
    assert kept(first, between, last, last, at=3).last_level == pytest.approx(1, rel=1e-4)
