# SPDX-License-Identifier: MIT
"""Times of calls by the clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import cklang as ck
from cklang.clock.kernel import listing_of
from cklang.emulator.recording import RecordedLaunch, RecordedWave
from cklang.errors import CkUnsupportedError
from cklang.ops import predict as module
from tests.support.gemm_ops import fused

pytestmark = pytest.mark.usefixtures("compiler")


def test_a_product_is_timed_by_one_workgroup() -> None:
    rng = np.random.default_rng(0)
    x, w, res = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(3))
    bias = rng.standard_normal(256).astype(np.float16)
    predicted = ck.predict(fused, x, w, bias, res, device="emu:gfx942")
    (kernel,) = predicted.kernels
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


def test_a_listing_goes_on_behind_the_fill_between_two_kernels() -> None:
    end, nop, fill = 0xBF810000, 0xBF800000, 0
    code = np.array([end, *[fill] * 63, nop, end], np.uint32)
    none = np.zeros(0, np.uint32)
    wave = RecordedWave(
        0, 0, np.array([64, 65], np.uint32), none.astype(np.uint8), none, none, none.astype("u8")
    )
    launch = cast("RecordedLaunch", SimpleNamespace(code=code.tobytes(), waves=(wave,)))
    texts, line_of = listing_of(launch, "gfx942")
    assert [texts[line] for line in line_of[wave.line]] == ["s_nop 0", "s_endpgm"]


def test_a_real_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Real:
        emulated, name = False, "hip:0"

    monkeypatch.setattr(module, "open_device", lambda device: Real())
    with pytest.raises(CkUnsupportedError, match=r"CK-K050.*hip:0"):
        ck.predict(fused, device="hip:0")
