# SPDX-License-Identifier: MIT
"""Callbacks of plug-ins, and the terminal in a script."""

import io

import numpy as np
import pytest

from cklang.emulator.debugger.breakpoints import Waves
from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.inside import Callback, Observation, callbacks, debug
from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

_ADD = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v2, 5, v2
  global_store_dword v1, v2, s[6:7]
"""


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {"add": _ADD, "other": _ADD}
    return assembled(bodies)


def run(module: Module, name: str = "add", block: int = 128) -> np.ndarray:
    a, b = np.arange(block, dtype=np.uint32), np.zeros(block, np.uint32)
    assert module.launch(name, a, b, block=block) == "hipSuccess"
    np.testing.assert_array_equal(b, a + 5)
    return a


def test_by_operation(module: Module) -> None:
    values = []

    def on_add(at: Observation) -> None:
        values.append(Reader(at.session).registers(Registers("v", 2, 1))[0])
        assert at.instruction.startswith("v_add_u32")

    with callbacks(Callback(call=on_add, operation="v_add*")):
        run(module)
    np.testing.assert_array_equal(np.concatenate(values), np.arange(128))


def test_by_pc_and_wave(module: Module) -> None:
    pcs: list[tuple[int, str]] = []
    with callbacks(
        Callback(call=lambda at: pcs.append((at.pc, "load")), pc=0x8, waves=Waves(wave=1)),
        Callback(call=lambda at: pcs.append((at.pc, "start"))),
    ):
        run(module)
    assert pcs == [(0, "start"), (8, "load")]


def test_by_kernel(module: Module) -> None:
    names: list[str] = []
    plugin = Callback(
        call=lambda at: names.append(at.session.listing().name), operation="s_endpgm", kernel="o*"
    )
    with callbacks(plugin):
        run(module, "add", 64)
        run(module, "other", 64)
    assert names == ["other"]


def test_by_addresses(module: Module) -> None:
    texts: list[str] = []
    b = np.zeros(64, np.uint32)
    begin = b.ctypes.data + 40
    plugin = Callback(call=lambda at: texts.append(at.instruction), addresses=(begin, begin + 4))
    with callbacks(plugin):
        assert module.launch("add", np.zeros(64, np.uint32), b) == "hipSuccess"
    assert [text.split()[0] for text in texts] == ["global_store_dword"]


def test_an_exception_ends_the_calls(module: Module) -> None:
    calls: list[int] = []

    def fail(at: Observation) -> None:
        calls.append(at.pc)
        raise ValueError("enough")

    def twice() -> None:
        with callbacks(Callback(call=fail)):
            run(module)
            run(module)

    with pytest.raises(ValueError, match="enough"):
        twice()
    assert calls == [0]


def test_a_terminal_at_each_launch(module: Module) -> None:
    screen = io.StringIO()
    commands = ["break @v_add*", "continue", "print v2 u32", "continue", "continue"]
    with debug("add", commands=commands, screen=screen):
        run(module, block=64)
        run(module, "other", block=64)
    lines = screen.getvalue().splitlines()
    assert lines[0] == "launch 1: add on gfx942, 1 workgroups of 64 threads, LDS 0 bytes"
    assert "breakpoint 1: @v_add*" in lines
    assert " 0:  0  1  2  3  4  5  6  7" in lines
    assert "CK-" not in screen.getvalue()
