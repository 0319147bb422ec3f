# SPDX-License-Identifier: MIT
"""The example of JAX, where JAX is installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "jax_ffi.py"


@pytest.mark.usefixtures("compiler", "jax")
def test_jax_calls_an_op(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CKLANG_DEVICE", "emu:gfx942")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "results agree" in capsys.readouterr().out
