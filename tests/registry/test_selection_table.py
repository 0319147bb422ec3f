# SPDX-License-Identifier: MIT
"""Which kernel is chosen for which problem of ``benchmarks/selection.py``, as it was.

A change of the code that is to leave choices alone leaves ``selection.json`` alone; one of the
cost model or of the rules shows in its diff. Write it with ``--update-golden``. The digests that
end labels are left out of the comparison: a new form of keys changes them all, and no choice.
"""

import json
from pathlib import Path

import pytest
from selection import ARCH, PROBLEMS, made, registry

from cklang.selection.select import select

TABLE = Path(__file__).with_name("selection.json")
STRATEGIES = ("first_fit", "heuristic")
SHAPES = [(64 + 8 * i, 64 + 8 * (i % 37), 64 + 8 * (i % 101)) for i in range(0, PROBLEMS, 4)]


def undigested(label: str) -> str:
    """Return a label without the digest at its end."""
    return label.rpartition("_")[0]


def without_digests(table: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {
        strategy: {shape: undigested(label) for shape, label in row.items()}
        for strategy, row in table.items()
    }


def test_the_kernels_chosen_are_as_they_were(request: pytest.FixtureRequest) -> None:
    kernels = registry()
    assert len({undigested(kernel.key.label) for kernel in kernels}) == len(kernels)
    chosen = {
        strategy: {
            "x".join(map(str, shape)): select(
                made(*shape), registry=kernels, arch=ARCH, strategy=strategy
            ).key.label
            for shape in SHAPES
        }
        for strategy in STRATEGIES
    }
    if request.config.getoption("--update-golden"):
        TABLE.write_text(json.dumps(chosen, indent=1) + "\n")
    known = json.loads(TABLE.read_text())
    assert without_digests(chosen) == without_digests(known)
    assert len(set(chosen["heuristic"].values())) > 5, "it chooses by problem"
