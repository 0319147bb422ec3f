# SPDX-License-Identifier: MIT
"""Times of calls by the clock."""

from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.listing import CodeListing, listing_of
from cklang.emulator.clock.power import board_of, clock_of_products
from cklang.emulator.engine.recording import RecordedLaunch, RecordedWave
from cklang.emulator.profiler import prediction
from cklang.errors import CkUnsupportedError
from cklang.ops import predict as module
from tests.support.algorithms import ATTENTION
from tests.support.gemm_ops import fused

B, H, S, D = ck.dims("B H S D")


@ck.op
def masked(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal())


pytestmark = pytest.mark.usefixtures("compiler")


def test_a_product_is_timed_by_one_workgroup() -> None:
    rng = np.random.default_rng(0)
    x, w, res = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(3))
    bias = rng.standard_normal(256).astype(np.float16)
    predicted = ck.predict(fused, x, w, bias, res, device="emu:gfx942", board="MI325X")
    (kernel,) = predicted.kernels
    assert predicted.us_under_load is not None
    rate = 2 * 256**3 / (predicted.us * 1e-6)
    board = board_of(constants_of("gfx942"), "MI325X")
    assert board is not None
    cost = board.cost["f16"] / 1e12
    assert predicted.us_under_load == pytest.approx(predicted.us * (1 + cost * rate))
    assert f"under load: {predicted.us_under_load:.2f} µs" in str(predicted)
    assert predicted.us == kernel.us
    assert predicted.cycles == kernel.cycles
    assert predicted.error is not None
    assert 0 < predicted.error < 1
    assert kernel.workgroups > 1
    assert not kernel.unknown
    assert next(iter(kernel.stall)) == "s_waitcnt"
    titles = ET.fromstring(predicted.timeline()).iter("{http://www.w3.org/2000/svg}title")
    kinds = {(each.text or "").partition(":")[0] for each in titles}
    assert {"matrix", "LDS", "memory", "wait"} <= kinds
    assert predicted.timeline() in predicted._repr_html_()
    # The call itself is as before.
    result = fused(x, w, bias, res, device="emu:gfx942")
    assert np.isfinite(result).all()
    assert np.count_nonzero(result) > 256 * 255


def test_a_board_has_its_own_compute_units_and_memory() -> None:
    """An MI300A has three quarters of the units of an MI300X, and memory that is as much slower."""
    # 912 tiles of 64x64: three for each of 304 compute units, and four for each of 228.
    x, w = np.zeros((14592, 1024), np.float16), np.zeros((256, 1024), np.float16)
    bias, res = np.zeros(256, np.float16), np.zeros((14592, 256), np.float16)
    default, gpu, apu = (
        ck.predict(fused, x, w, bias, res, device="emu:gfx942", board=board)
        for board in (None, "MI300X", "MI300A")
    )
    assert gpu.us == default.us
    assert apu.kernels[0].workgroups == gpu.kernels[0].workgroups
    assert 1.1 < apu.us / gpu.us < 1.5
    assert gpu.us_under_load is not None
    assert apu.us_under_load is None  # Nobody has published its power.


def test_host_arrays_lie_as_in_the_memory_of_a_gpu() -> None:
    """NumPy's large arrays begin 16 bytes behind a line; tiles are then in more lines."""

    def at(offset: int) -> npt.NDArray[np.float16]:
        memory = np.zeros(2 * 256 * 256 + 4096, np.uint8)
        begin = -memory.ctypes.data % 2048 + offset
        return memory[begin : begin + 2 * 256 * 256].view(np.float16).reshape(256, 256)

    bias = np.zeros(256, np.float16)
    aligned, behind = (
        ck.predict(fused, at(offset), at(offset), bias, at(offset), device="emu:gfx942")
        for offset in (0, 64)
    )
    assert behind.cycles == aligned.cycles


def test_workgroups_that_differ_all_count() -> None:
    """Those of causal attention do from one to sixteen steps here, the first of them all."""
    heads = [np.zeros((16, 16, 1024, 64), np.float16)] * 3
    causal, longest = (
        ck.predict(masked.using(ATTENTION, splits=1), *heads, device="emu:gfx942", workgroups=count)
        for count in (None, 1)
    )
    assert 0.45 * longest.us < causal.us < 0.8 * longest.us
    # However many are recorded, those that are timed do as much as all of them.
    some, many = (
        ck.predict(masked.using(ATTENTION, splits=1), *heads, device="emu:gfx942", workgroups=count)
        for count in (29, 97)
    )
    assert some.us == pytest.approx(many.us, rel=0.1)
    # A compute unit that gets one workgroup: the launch takes as long as the longest.
    few = [each[:1] for each in heads]
    sampled, alone = (
        ck.predict(masked.using(ATTENTION, splits=1), *few, device="emu:gfx942", workgroups=count)
        for count in (None, 1)
    )
    assert sampled.us == pytest.approx(alone.us, rel=0.1)


def test_a_listing_goes_on_behind_the_fill_between_two_kernels() -> None:
    end, nop, fill = 0xBF810000, 0xBF800000, 0
    code = np.array([end, *[fill] * 63, nop, end], np.uint32)
    none = np.zeros(0, np.uint32)
    wave = RecordedWave(
        0,
        0,
        stretches=np.array([0], np.uint32),
        enabled=np.array([64], np.uint8),
        begins=np.array([0], np.uint32),
        slots=np.array([64, 65], np.uint32),
        lds=none.reshape(0, 2),
        patterns=none.reshape(0, 64),
        memory=none.reshape(0, 3),
        segments=none.astype(np.uint64),
    )
    launch = cast(
        "RecordedLaunch",
        SimpleNamespace(code=code.tobytes(), waves=(wave,), executed=np.zeros(0, np.uint64)),
    )
    listing = listing_of(launch, "gfx942")
    lines = listing.line_of[wave.line]
    assert [listing.texts[line] for line in lines] == ["s_nop 0", "s_endpgm"]
    assert [listing.instructions[line].address for line in lines] == [256, 260]
    assert listing_of(launch, "gfx942") is listing


def test_a_kept_listing_grows_with_what_later_launches_execute() -> None:
    end, nop, fill = 0xBF810000, 0xBF800000, 0
    code = np.array([end, *[fill] * 63, nop, end, *[fill] * 62, nop, nop, end], np.uint32)

    def of_launch(*dwords: int) -> CodeListing:
        executed = np.zeros(len(code), np.uint64)
        executed[list(dwords)] = 1
        launch = SimpleNamespace(code=code.tobytes(), waves=(), executed=executed)
        return listing_of(cast("RecordedLaunch", launch), "gfx950")

    last = of_launch(128, 129, 130)
    assert last.line_of[64] < 0
    both = of_launch(64, 65)
    places = np.flatnonzero(both.line_of >= 0)
    assert {0, 64, 65, 128, 129, 130} <= set(places.tolist())
    assert both.line_of[places].tolist() == list(range(len(both.texts)))
    assert [each.address // 4 for each in both.instructions] == places.tolist()
    assert of_launch(128, 129, 130) is both
    assert of_launch(0) is both


@pytest.mark.parametrize(
    ("strings", "compiler"),
    [
        (b"clang version 22.1.8 (https://example.org 1234)\0stencil.hip\0", "clang 22.1.8"),
        (b"kernel.hip\0AMD clang version 20.0.0git\0", "clang 20.0.0"),
        (b"triton\0my clang version 3.1\0", ""),
    ],
)
def test_debug_information_names_the_compiler(strings: bytes, compiler: str) -> None:
    assert prediction._compiler({".debug_str": strings}) == compiler
    assert prediction._compiler({}) == ""


def test_a_real_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Real:
        emulated, name = False, "hip:0"

    monkeypatch.setattr(module, "open_device", lambda device: Real())
    with pytest.raises(CkUnsupportedError, match=r"CK-K050.*hip:0"):
        ck.predict(fused, device="hip:0")


def test_power_of_matrix_instructions_is_known_by_board_and_kind() -> None:
    gfx942, gfx950 = constants_of("gfx942"), constants_of("gfx950")
    assert [board.board for board in gfx942.boards] == ["MI300X", "MI325X"]
    assert board_of(gfx942) is board_of(gfx942, "MI300X")
    assert board_of(constants_of("gfx1201")) is None
    with pytest.raises(CkUnsupportedError, match=r"power for MI355X\W.*MI300X, MI325X"):
        board_of(gfx942, "MI355X")
    board, spec = board_of(gfx950, "MI355X"), arch("gfx950")
    assert board is not None
    bears = board.free / board.cost["bf16"] * 1e12
    assert clock_of_products(board, spec, {"bf16": bears}) == pytest.approx(spec.clock_hz)
    both = clock_of_products(board, spec, {"bf16": bears, "f8": 1 / board.cost["f8"] * 1e12})
    assert both == pytest.approx(spec.clock_hz / 2)
    assert clock_of_products(board, spec, {"bf16": bears, "f64": 1e12}) is None
