# SPDX-License-Identifier: MIT
"""What control costs: instructions a second, forward and back, beside the interpreter's.

    python benchmarks/debugger.py

Runs a loop on the emulated gfx942, with a store in each round and without, first without a
debugger, then under control with a breakpoint that is never reached, and then back from its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cklang import emulator
from cklang.emulator.debugger.inside import _controlled
from cklang.emulator.debugger.wire import ControlledLaunch, Goal, StopAt, Until, Where
from tests.support.assembly import Module, assembled

_ROUNDS, _WAVES, _LANES = 20_000, 4, 64
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_mov_b32 s3, 0
  s_waitcnt lgkmcnt(0)
{name}_again:
  s_add_u32 s3, s3, 1
  v_add_f32 v2, v2, v3
  v_mul_f32 v3, v2, v3
  v_add_u32 v4, v4, v2
  {one}
  s_cmp_lt_u32 s3, {rounds}
  s_cbranch_scc1 {name}_again
"""
_LOOPS = {
    "registers": "v_max_f32 v5, v2, v3",
    "a store in seven": "global_store_dword v1, v4, s[6:7]",
}
_OF_A_WAVE = 4 + 7 * _ROUNDS + 1


def rates(module: Module, name: str) -> dict[str, float]:
    """Return millions of instructions a second."""
    arrays = [np.zeros(_LANES * _WAVES, np.uint32) for _ in range(2)]
    measured: dict[str, float] = {}

    def timed(what: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        measured[what] = _WAVES * _OF_A_WAVE / (time.perf_counter() - start) / 1e6

    def run() -> None:
        status = module.launch(name, *arrays, block=_LANES * _WAVES)
        if status != "hipSuccess":
            raise RuntimeError(status)

    def control(launch: ControlledLaunch) -> None:
        launch.set_breakpoints([StopAt(1, Where.CODE, launch.entry, wave=_WAVES)])
        timed("forward", lambda: launch.run(Goal(Until.BREAKPOINT)))
        timed("back", lambda: launch.run(Goal(Until.COUNT, 0, 0, _OF_A_WAVE - 1)))

    run()
    timed("no debugger", run)
    with _controlled(control):
        run()
    return measured


def main() -> None:
    """Print the table."""
    emulator.translation("off")
    names = {f"loop{n}": what for n, what in enumerate(_LOOPS)}
    bodies = {
        name: _BODY.format(name=name, one=_LOOPS[what], rounds=_ROUNDS)
        for name, what in names.items()
    }
    module = assembled(bodies)
    print("| loop of | interpreter, no debugger | under control, forward | back |")
    print("|---|---|---|---|")
    for name, what in names.items():
        row = rates(module, name)
        cells = " | ".join(f"{row[each]:.1f}" for each in ("no debugger", "forward", "back"))
        print(f"| {what} | {cells} |")


if __name__ == "__main__":
    main()
