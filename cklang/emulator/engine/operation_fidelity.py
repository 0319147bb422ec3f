# SPDX-License-Identifier: MIT
"""How far the semantics of what a launch executed can be trusted, operation by operation.

``isa/verification.json`` says for each operation what it was checked against. It is made from the
tests (``tests/emulator/test_fidelity.py``): what it claims occurs in a test of that kind.
``isa/layout_sources.json`` adds the packages that agree with the emulator on the lanes of a matrix
operand.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cklang.display import ShownAsText
from cklang.emulator.engine.library import fidelity, last_numerics

_ISA = Path(__file__).parent / "isa"
MANUAL_ONLY = "manual only"
"""What is written after the manual and occurs in no test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFidelity:
    """One operation of a launch."""

    operation: str
    executed: int
    """How often waves executed it."""
    verified: tuple[str, ...]
    """What its semantics was checked against; ("manual only",) if nothing."""
    numerics: str | None
    """How a matrix product rounded; None for other operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityReport(ShownAsText):
    """The distinct operations of a launch, the least verified first."""

    numerics: str
    """The numerics that the launch ran with: fma, exact or cdna3."""
    operations: tuple[OperationFidelity, ...]

    def __str__(self) -> str:
        width = max((len(row.operation) for row in self.operations), default=0)
        lines = [f'numerics "{self.numerics}"']
        for row in self.operations:
            rounding = f" ({row.numerics})" if row.numerics else ""
            checked = ", ".join(row.verified)
            lines.append(f"{row.operation:{width}} {row.executed:>12,}  {checked}{rounding}")
        return "\n".join(lines)


@cache
def _verified() -> dict[str, tuple[str, ...]]:
    """Each operation that something was checked against, and the kinds of checks."""
    raw: dict[str, Any] = json.loads((_ISA / "verification.json").read_text("utf-8"))
    checks = {
        name: [raw["kinds"][kind] for kind in kinds] for name, kinds in raw["operations"].items()
    }
    sources: dict[str, Any] = json.loads((_ISA / "layout_sources.json").read_text("utf-8"))
    for layouts in sources["layouts"].values():
        for name, packages in layouts.items():
            agreement = f"lanes: {' and '.join(packages)} agree"
            rows = checks.setdefault(name, [])
            if agreement not in rows:
                rows.append(agreement)
    return {name: tuple(kinds) for name, kinds in checks.items()}


@cache
def _results() -> dict[str, str]:
    """The type of each matrix operation's result."""
    from cklang.emulator.engine.isa.schema import FAMILIES, load

    rows = (row for family in FAMILIES for row in load(family).rows)
    return {row.name: row.matrix.d for row in rows if row.matrix is not None}


def _rounding(operation: str, numerics: str) -> str | None:
    result = _results().get(operation)
    if result is None:
        return None
    if result == "i32":
        return "integers are exact"
    chains = numerics == "cdna3" and result == "f64"
    return "fma" if chains else numerics


def fidelity_report(device: int) -> FidelityReport:
    """Report what the last launch on HIP device number ``device`` executed, and how it is verified.

    Raises:
        CkDeviceError: E003, the device has launched nothing.
    """
    counts, numerics = fidelity(device), last_numerics(device)
    rows = [
        OperationFidelity(
            operation=name,
            executed=count,
            verified=_verified().get(name, (MANUAL_ONLY,)),
            numerics=_rounding(name, numerics),
        )
        for name, count in counts.items()
    ]
    rows.sort(key=lambda row: (row.verified != (MANUAL_ONLY,), len(row.verified), row.operation))
    return FidelityReport(numerics=numerics, operations=tuple(rows))
