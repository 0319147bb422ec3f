# SPDX-License-Identifier: MIT
"""How much longer HIP kernels that hardly do more than access global memory take under the checks.

    python benchmarks/checked_programs.py [--gpu gfx942] [--rounds 3] [--check NAME ...]

Prints a table: milliseconds of processor time of a launch without checks, and how many times as
long it takes under each check, and under all of ``all``. The least of some rounds counts. The
kernels are those of ``hip/checked.hip``; what checks cost ops is in ``sanitizer_cost.py``.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hip_programs import Programs, ok

from cklang import emulator, knobs

_SOURCE = Path(__file__).parent / "hip" / "checked.hip"
_CHECKS = (*knobs.SANITIZERS, "all")
_SERIES, _LENGTH = 512, 400
_ELEMENTS, _TIMES = 1 << 18, 5


def on_device(hip: Any, array: np.ndarray) -> int:
    """Return the address of a copy of an array in device memory."""
    pointer = ok(hip.hipMalloc(array.nbytes))
    ok(hip.hipMemcpy(pointer, array, array.nbytes, hip.hipMemcpyKind.hipMemcpyHostToDevice))
    return int(pointer)


def launches(programs: Programs) -> dict[str, Callable[[], None]]:
    """Return what launches each kernel once."""
    hip = programs.hip
    rng = np.random.default_rng(0)
    cell = on_device(hip, np.zeros(1, np.uint64))
    source, target = (on_device(hip, np.zeros(_ELEMENTS, np.int32)) for _ in range(2))
    series = on_device(hip, rng.random((_SERIES, _LENGTH)))
    peaks, results = (on_device(hip, np.zeros((_SERIES, _LENGTH))) for _ in range(2))
    stack = on_device(hip, np.zeros((_SERIES, _LENGTH), np.int32))
    sizes = on_device(hip, np.zeros(_SERIES, np.int32))
    raised = struct.pack("<QQii", target, source, _ELEMENTS, _TIMES)
    turned = struct.pack("<QQQQQii", series, peaks, stack, results, sizes, _SERIES, _LENGTH)
    shapes = {
        "largest": (256, struct.pack("<Q", cell)),
        "raise": (_ELEMENTS // 256, raised),
        "turns": (_SERIES // 256, turned),
    }

    def launch(name: str, groups: int, arguments: bytes) -> None:
        programs.launch(name, (groups, 1, 1), (256, 1, 1), arguments)

    return {name: partial(launch, name, *shape) for name, shape in shapes.items()}


def seconds(launch: Callable[[], None], rounds: int, *checks: str) -> float:
    """Return the least processor time of a launch, once its code is translated."""
    emulator.sanitize(*checks)
    launch()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        launch()
        times.append(time.process_time() - start)
    emulator.sanitize()
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--check", nargs="+", default=list(_CHECKS), choices=_CHECKS)
    options = parser.parse_args()
    print(f"| kernel | ms | {' | '.join(options.check)} |\n|{'---|' * (len(options.check) + 2)}")
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(_SOURCE, options.gpu, Path(folder))
        for name, launch in launches(programs).items():
            if options.only and name not in options.only:
                continue
            plain = seconds(launch, options.rounds)
            cells = (seconds(launch, options.rounds, check) / plain for check in options.check)
            print(f"| {name} | {plain * 1e3:.1f} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
