# SPDX-License-Identifier: MIT
"""The check of loaded kernels runs in a sound environment, whatever the test has patched."""

from typing import Any

import pytest

from cklang.device.device import open_device
from tests.support.assembly import assemble

pytestmark = pytest.mark.usefixtures("emulator")


def test_patches_are_undone_before_kernels_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails at its end if the check sees the patch: no other test has loaded this kernel."""
    code = assemble({"only_here": "  v_mov_b32 v0, 0x5eed0010"})
    open_device("emu:gfx942").load(code, "only_here")

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("the test forbids files")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
