# SPDX-License-Identifier: MIT
"""Compare the profiler's counters with those that others measured on GPUs.

    python benchmarks/counters.py [--all]

Reads ``silicon/copy_counters.json`` and ``silicon/gemm_counters_gfx942.json`` of
``CKLANG_DATA_DIR``. The copy of 1,048,576 doubles is the program of the profiler's tests, with
every workgroup recorded. The product on an MI325X is of 8-bit floats, and its counters say that its
tiles are of 128 × 128 and that 2 M N K is 2 × 8192³; its source was not published. Beside it are
requests to the L2 of CK Tile's product of that shape with such tiles, from 8 of its 4096
workgroups, no other of which runs. Prints Markdown: the counters that differ, and how many do not;
``--all`` prints all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from data.silicon import folder

import cklang as ck
from cklang import emulator, knobs
from cklang.emulator.engine.recording import recorded_launches, timing
from cklang.emulator.hipcc import driver
from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.session import Profile

_PROGRAM = Path(__file__).parents[1] / "tests/emulator/profiler/copy.hip"
_GROUPS = 4096
_GPUS = {"MI210": "gfx90a", "MI300A": "gfx942", "MI300X": "gfx942"}
_SIZE = 8192
_ALGORITHM = ck.dispatch.Algorithm(
    tile=(128, 128, 64), warps=(2, 2, 1), warp_tile=(32, 32, 16),
    vector_a=16, vector_b=16, vector_e=8,
)  # fmt: skip
_OF_PRODUCT = ("TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum")
M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.fp8_fnuz[M, K], w: ck.fp8_fnuz[N, K]) -> ck.bf16[M, N]:
    """A product of 8-bit floats."""
    return x @ w.T


def measured(name: str, product_name: str) -> dict[str, float]:
    """Return the counters that a GPU had."""
    silicon = folder()
    assert silicon is not None
    rows: list[dict[str, Any]] = json.loads((silicon / name).read_text())
    return next(row["counters_median"] for row in rows if row["gpu"] == product_name)


def copied(gpu: str) -> LaunchProfile:
    """Profile the copy, all of its workgroups."""
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "copy"
        driver.build([f"--offload-arch={gpu}", "-o", str(program), str(_PROGRAM)], print)
        settings = {"CKLANG_GPUS": gpu, "CKLANG_PROFILE": f"{_GROUPS}:{work}"}
        subprocess.run([program], env={**os.environ, **settings}, check=True)
        (records,) = Path(work).glob("*.records")
        (launch,) = Profile(recorded_launches(records.read_bytes())).launches
    return launch


def multiplied() -> LaunchProfile:
    """Profile some workgroups of a product."""
    x, w = (np.zeros((_SIZE, _SIZE), ck.fp8_fnuz.numpy) for _ in range(2))
    with knobs.scope(CKLANG_DEVICE="emu:gfx942"), timing(8, alone=True) as recording:
        product.using(_ALGORITHM)(x, w)
    (launch,) = Profile(recording.launches).launches
    return launch


def rows_of(gpu: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> list[str]:
    """Return the rows of the table, and print how many counters agree."""
    both = [name for name in ours if theirs.get(name) is not None]
    same = [name for name in both if ours[name] == theirs[name]]
    near = [n for n in both if n not in same and abs(ours[n] - theirs[n]) <= 0.01 * theirs[n]]
    print(
        f"{gpu}: {len(both)} counters of both, {len(same)} equal, {len(near)} within 1 %",
        flush=True,
    )
    return [
        " | ".join(
            (
                f"| {gpu}",
                f"`{name}`",
                f"{ours[name]:.0f}",
                f"{theirs[name]:.0f}",
                f"{error(ours, theirs, name)} |",
            )
        )
        for name in both
    ]


def error(ours: Mapping[str, float], theirs: Mapping[str, float], name: str) -> str:
    """Return how far a counter is off."""
    if ours[name] == theirs[name]:
        return "equal"
    return f"{ours[name] / theirs[name] - 1:+.1%}" if theirs[name] else "not 0"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if folder() is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the counters with")
        return
    emulator.load()
    launches = {gpu: copied(gpu) for gpu in set(_GPUS.values())}
    rows = []
    for gpu, name in _GPUS.items():
        counted = {c.name: c.value for c in launches[name].counters}
        rows += rows_of(gpu, counted, measured("copy_counters.json", gpu))
    launch = multiplied()
    theirs = measured("gemm_counters_gfx942.json", "MI325X")
    rows += rows_of("MI325X", {name: launch.counter(name) for name in _OF_PRODUCT}, theirs)
    print("\n| GPU | counter | profiler | GPU's | error |\n|---|---|---|---|---|")
    print("\n".join(row for row in rows if options.all or not row.endswith("equal |")))


if __name__ == "__main__":
    main()
