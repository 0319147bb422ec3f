# SPDX-License-Identifier: MIT
"""Triton kernels under control: lines of Python in programs that cklang has not compiled."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
import triton

from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.inside import Callback, Observation, callbacks
from cklang.emulator.triton import device
from tests.support import jit_kernels as kernels

pytestmark = pytest.mark.usefixtures("torch", "triton", "emulator")


def test_a_line_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Triton's cache is found by the text of a kernel, and has the folder of the first checkout; so
    # has the kernel itself, if another test was here before.
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    add = triton.jit(kernels.add.fn)
    lines, first = inspect.getsourcelines(kernels.add.fn)
    stores = first + next(n for n, line in enumerate(lines) if "tl.store" in line)
    places: list[str] = []
    sums: list[np.ndarray] = []

    def on_line(at: Observation) -> None:
        places.append(str(at.session.place()))

    def on_sum(at: Observation) -> None:
        (name, *_) = at.instruction.split()[1].split(",")
        at.session.step_instructions(1)
        sums.append(Reader(at.session).registers(Registers("v", int(name[1:]), 1))[0])

    with (
        device("gfx942"),
        callbacks(
            Callback(call=on_line, line=("jit_kernels.py", stores)),
            Callback(call=on_sum, operation="v_add_f32*"),
        ),
    ):
        x, y = torch.arange(256.0), torch.full((256,), 0.5)
        out = torch.empty(256)
        add[(1,)](x, y, out, 256, BLOCK=256)
    assert torch.equal(out, x + y)
    assert set(places) == {f"{kernels.__file__}:{stores}"}
    assert sorted(np.concatenate(sums).view(np.float32).tolist()) == (x + y).tolist()
