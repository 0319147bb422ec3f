# SPDX-License-Identifier: MIT
"""The free constants of the cost model: what they mean, and the fitted sets that are shipped."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from cklang.arch import ArchSpec
from cklang.errors import error

__all__ = ["SCHEMA_VERSION", "Constants", "FittedSet", "fitted", "fitted_sets", "read_set"]

SCHEMA_VERSION = 1
_FOLDER = Path(__file__).parent / "fitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What arch_specs cannot say. Times in µs, bandwidths in TB/s, factors multiply peak times."""

    launch: float
    """From the start of a launch to the first instruction, and from the last to the end."""
    matrix: float
    """Factor on the time of the matrix instructions at peak rate."""
    lds: float
    vector: float
    load: float
    """Factor on the time that tiles of A and B take from the L1 cache at its peak rate."""
    issue: float
    """Time of a K step that does not depend on the tile: barriers, addresses, the branch."""
    single_stage: float
    """Factor on the work of a K step if the pipeline does not prefetch."""
    spill: float
    """Growth of that work per 256 registers wanted beyond 216, without prefetch."""
    latency_single: float
    """Shortest K step without prefetch: memory latency and both barriers."""
    latency_prefetch: float
    serial_single: float
    """Part of the work that one workgroup alone cannot overlap with that latency."""
    serial_prefetch: float
    load_issue: float
    """Latency that each load of a thread (16 bytes, or fewer if it must) adds to a K step."""
    prologue: float
    fill: float
    """K steps of latency before a prefetching pipeline is full."""
    epilogue: float
    """To write 64 KiB of results from one compute unit, one workgroup after another."""
    epilogue_latency: float
    """What a round of workgroups waits for 32 KiB each beyond that."""
    tail: float
    """Part of a full round that compute units idle at the end of long launches."""
    last_level: float
    """Bandwidth that tiles are fetched into the L2 caches with."""
    memory_warm: float
    """Bandwidth on A, B and E while they fit the last-level cache."""
    memory_cold: float
    l2: float
    """Bandwidth of all L2 caches together."""
    split: float
    """Clearing E before a split-K launch."""
    split_atomics: float
    """Atomic additions, per million elements and piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSet:
    """Constants for one GPU, where they come from, and how wrong they are."""

    gpu: str
    compute_units: int
    constants: Constants
    provenance: Mapping[str, object]
    """Data, families, number of rows and shapes, script."""
    error: Mapping[str, float]
    """Of the times in cross-validation grouped by (N, K)."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that :func:`read_set` reads."""
        return {
            "version": SCHEMA_VERSION,
            "gpu": self.gpu,
            "compute_units": self.compute_units,
            "constants": asdict(self.constants),
            "provenance": dict(self.provenance),
            "error": dict(self.error),
        }


def read_set(name: str, text: str) -> FittedSet:
    """Read a fitted set; ``name`` stands in errors.

    Raises:
        CkValueError: N003 for a corrupt record, K003 for another schema version.
    """
    try:
        data = json.loads(text)
    except ValueError as problem:
        raise error("N003", name=name, problem=str(problem)) from problem
    if not isinstance(data, dict):
        raise error("N003", name=name, problem="not an object")
    if data.get("version") != SCHEMA_VERSION:
        want = SCHEMA_VERSION
        raise error("K003", what="tuning constants", got=data.get("version"), want=want)
    wanted = {f.name for f in fields(FittedSet)} | {"version"}
    _same_names(name, set(data), wanted)
    kinds = {"gpu": str, "compute_units": int, "constants": dict, "provenance": dict, "error": dict}
    for field, kind in kinds.items():
        if not isinstance(data[field], kind):
            raise error("N003", name=name, problem=f"{field!r} is {data[field]!r}")
    values = data["constants"]
    _same_names(name, set(values), {f.name for f in fields(Constants)})
    for constant, value in values.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise error("N003", name=name, problem=f"{constant!r} is {value!r}")
    data.pop("version")
    return FittedSet(**(data | {"constants": Constants(**values)}))


def _same_names(name: str, got: set[str], wanted: set[str]) -> None:
    for field in sorted(got ^ wanted):
        fault = "is missing" if field in wanted else "is not a field"
        raise error("N003", name=name, problem=f"{field!r} {fault}")


@cache
def fitted_sets() -> tuple[FittedSet, ...]:
    """Return every shipped set."""
    return tuple(read_set(p.name, p.read_text()) for p in sorted(_FOLDER.glob("*.json")))


def fitted(spec: ArchSpec) -> FittedSet:
    """Return the set for the GPU that ``spec`` describes.

    Raises:
        CkUnsupportedError: N001, nobody has fitted one.
    """
    for candidate in fitted_sets():
        if (candidate.gpu, candidate.compute_units) == (spec.name, spec.compute_units):
            return candidate
    known = ", ".join(f"{s.gpu} with {s.compute_units}" for s in fitted_sets()) or "(none)"
    raise error("N001", gpu=spec.name, units=spec.compute_units, known=known)
