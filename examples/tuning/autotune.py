# SPDX-License-Identifier: MIT
"""Measure kernels for the problems of a program, keep what was found, and use it.

python examples/tuning/autotune.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report
from cklang.tune.bench import bench

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


def main() -> None:
    """Tune two sizes within a budget; a second session finds everything measured."""
    mine = ck.dispatch.Registry("mine")
    args = [np.ones(shape, np.float16) for shape in ((96, 64), (80, 64))]
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
    for width in (8, 1):
        among = ck.dispatch.pattern(**tile, vector_a=width, vector_b=width, vector_e=width)
        linear.declare(*args, registry=mine, device="emu:gfx942", among=among)
    op = linear.using(registry=mine)
    problems = [{"M": 96, "N": 80, "K": 64}, {"M": 33, "N": 80, "K": 64}]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "tuning.sqlite"
        options: dict[str, Any] = {"database": database, "device": "emu:gfx942", "budget": "60s"}
        # Every kernel runs in a process of its own and is compared with the reference: a wrong or
        # crashing one is recorded as such, and never wins.
        first = ck.autotune(op, problems, **options)
        print(first)
        assert all(tuned.best is not None for tuned in first.problems)
        assert sum(tuned.fresh for tuned in first.problems) > 0
        again = ck.autotune(op, problems, **options)
        assert not any(tuned.fresh for tuned in again.problems)

        # The same measurements as a table, and how near the heuristic comes to the best of them.
        table = bench(op, problems, **options)
        print(table.oracle())
        assert len(table.csv().splitlines()) == 1 + len(table.rows)

        with ck.using(strategy=ck.dispatch.Tuned(database), arch="gfx942"):
            y = op(*args)
            report(op, args, y).check()
            assert op.last is not None
            best = first.problems[0].best
            assert best is not None
            print(f"called: {op.last.launches[0].key.label}")
            assert op.last.launches[0].key == best.key


if __name__ == "__main__":
    main()
