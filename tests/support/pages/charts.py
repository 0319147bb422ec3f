# SPDX-License-Identifier: MIT
"""Charts of ``docs/concepts.md``: predicted terms, a roofline, and waves in time.

``python -m tests.support.pages timeline`` runs a kernel and writes the timeline; the others are
predictions, which ``python -m tests.support.pages`` writes.
"""

from pathlib import Path
from typing import Any

import numpy as np

import cklang as ck
from cklang.arch import arch
from cklang.charts import Point, roofline, stacked_bars
from tests.support.algorithms import wide

__all__ = [
    "GPU",
    "TIMELINE",
    "fusion",
    "kernel_choice",
    "recorded_timeline",
    "roofline_of_products",
]

GPU = "gfx942"
TIMELINE = Path(__file__).parents[3] / "docs" / "pictures" / "timeline.svg"

M, N, K = ck.dims("M N K")


@ck.op
def rectified(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


def _select(problem: ck.dispatch.Problem) -> ck.dispatch.Selection[Any, Any]:
    """Select as users do, whatever the environment of tests says."""
    with ck.using(preset="catalogue"):
        return ck.dispatch.select(problem, arch=GPU)


@ck.op
def linear_gelu(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res: the example of the README."""
    return ck.gelu(x @ w.T + bias) + res


def fusion() -> str:
    """Return the fusion graph of the README's example."""
    return linear_gelu._repr_svg_() or ""


def kernel_choice() -> str:
    """Return the terms of the best kernel of each tile for one product."""
    problem = ck.dispatch.problem(1024, 4096, 4096, a=ck.f16)
    chosen = _select(problem)
    pool, position = chosen.pool, chosen.position
    times = np.where(pool.legal(problem), pool.times_of(problem), np.inf)
    best: dict[tuple[int, ...], int] = {}
    for place in [position, *np.argsort(times, kind="stable").tolist()]:
        tile = pool.keys[place].algorithm.tile
        if np.isfinite(times[place]):
            best.setdefault(tuple(tile), place)
    rows = [
        ("×".join(map(str, tile)), dict(pool.terms(place, problem)))
        for tile, place in list(best.items())[:6]
    ]
    return stacked_bars("1024 × 4096 × 4096, f16, MI300X: predicted time of six tiles", rows)


def roofline_of_products() -> str:
    """Return a roofline with the predicted rates of products of different M."""
    spec = arch(GPU)
    (rate,) = (each.flops_per_clock for each in spec.matrix_rates if each.dtype == "f16")
    points = []
    for m in (16, 128, 1024, 8192):
        problem = ck.dispatch.problem(m, 8192, 8192, a=ck.f16)
        chosen = _select(problem)
        microseconds = float(chosen.pool.times_of(problem)[chosen.position])
        moved = 2 * (2 * m * 8192 + 8192 * 8192)
        point = Point(
            label=f"M = {m}", flops=2 * m * 8192**2, bytes=moved, seconds=microseconds * 1e-6
        )
        points.append(point)
    return roofline(
        "M × 8192 × 8192, f16, MI300X: predicted",
        points,
        flops_per_second=rate * spec.compute_units * spec.clock_hz,
        bytes_per_second=spec.memory_bytes_per_second,
    )


def recorded_timeline() -> str:
    """Run a workgroup of a product on the emulator, and return when its waves do what."""
    x, w = np.ones((64, 128), np.float16), np.ones((64, 128), np.float16)
    return ck.predict(rectified.using(wide(0)), x, w, device=f"emu:{GPU}").timeline()
