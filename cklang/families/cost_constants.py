# SPDX-License-Identifier: MIT
"""The free constants of the cost model: fitted sets that are shipped, and how others get them."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.errors import error

SCHEMA_VERSION = 4
PRODUCTS = "gemm"
"""The family whose constants serve all that were not measured themselves."""
_FOLDER = Path(__file__).parent / "fitted"
_CARRIED = "carried over from"
SPREADS = (("spread 64", 0, 64), ("spread 512", 64, 512), ("spread", 512, math.inf))
"""Each spread's name, and the rows or columns of a result, the fewer of both, beyond which and up
to which it counts; the next one counts for sizes that have none of their own."""
_BY_CLOCK = "spread by clock"
#: Constants that are bandwidths, by what they grow with from GPU to GPU; the others are times and
#: factors, and stay.
_OF_MEMORY = ("memory_warm", "memory_cold")
_OF_CACHES = ("last_level", "l2")


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
    chain: float
    """What each sum of a wave that is scaled by itself adds to that latency, without prefetch."""
    beyond_k: float
    """Part of a K step that elements beyond K spare: nobody fetches them."""
    prologue: float
    fill: float
    """K steps of latency before a prefetching pipeline is full."""
    epilogue: float
    """The time to write 64 KiB of results from one compute unit, one workgroup after another."""
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
    family: str
    """The family of kernels that was measured; others use the constants of ``gemm``."""
    constants: Constants
    provenance: Mapping[str, object]
    """Data, families, number of rows and shapes, script."""
    error: Mapping[str, float]
    """Errors of times in cross-validation grouped by (N, K); empty if nothing was measured.

    ``spread`` is how far errors of two kernels are apart (:mod:`cklang.selection.regret`)."""

    @property
    def carried_from(self) -> str:
        """The measured GPU that the constants were carried over from; empty for their own."""
        return str(self.provenance.get(_CARRIED, ""))

    def spread(self, rows: float) -> float | None:
        """Return how far errors are apart for results with so many rows; None if not measured.

        What the clock says of cklang's own kernels counts if it is more.
        """
        names = (name for name, _, most in SPREADS if rows <= most and name in self.error)
        measured = next(names, None)
        if measured is None:
            return None
        return max(self.error[measured], self.error.get(_BY_CLOCK, 0.0))

    def to_json(self) -> dict[str, Any]:
        """Return the form that :func:`read_set` reads."""
        return {
            "version": SCHEMA_VERSION,
            "gpu": self.gpu,
            "compute_units": self.compute_units,
            "family": self.family,
            "constants": asdict(self.constants),
            "provenance": dict(self.provenance),
            "error": dict(self.error),
        }


def read_set(name: str, text: str) -> FittedSet:
    """Read a fitted set; ``name`` stands in errors."""
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
    kinds = {"gpu": str, "compute_units": int, "family": str, "constants": dict}
    kinds |= {"provenance": dict, "error": dict}
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


def _same_names(name: str, names: set[str], wanted: set[str]) -> None:
    for field in sorted(names ^ wanted):
        fault = "is missing" if field in wanted else "is not a field"
        raise error("N003", name=name, problem=f"{field!r} {fault}")


@cache
def fitted_sets() -> tuple[FittedSet, ...]:
    """Return every shipped set."""
    return tuple(read_set(p.name, p.read_text()) for p in sorted(_FOLDER.glob("*.json")))


def fitted(spec: ArchSpec, family: str = PRODUCTS) -> FittedSet:
    """Return the set for a family of kernels on the GPU that ``spec`` describes.

    A family that was not measured on this GPU gets the set of products. A GPU without one gets that
    of the same GPU with the nearest number of compute units, or else the most accurate of all,
    carried over: :attr:`FittedSet.carried_from` names it.
    """
    sets = [candidate for candidate in fitted_sets() if candidate.family == PRODUCTS]
    own = [candidate for candidate in fitted_sets() if candidate.family == family]
    for candidate in (*own, *sets):
        if (candidate.gpu, candidate.compute_units) == (spec.name, spec.compute_units):
            return candidate
    same = [candidate for candidate in sets if candidate.gpu == spec.name]
    if same:
        near = min(same, key=lambda s: abs(math.log(s.compute_units / spec.compute_units)))
    else:
        near = min(sets, key=lambda s: s.error["median"])
    return _carried(near, spec)


def _carried(near: FittedSet, spec: ArchSpec) -> FittedSet:
    """Scale the bandwidths of ``near`` as the two GPUs' peaks of arch_specs compare."""
    source = arch(near.gpu).with_compute_units(near.compute_units)
    memory = spec.memory_bytes_per_second / source.memory_bytes_per_second
    caches = _cache_rate(spec) / _cache_rate(source)
    values = asdict(near.constants)
    scaled = {name: values[name] * memory for name in _OF_MEMORY}
    scaled |= {name: values[name] * caches for name in _OF_CACHES}
    return FittedSet(
        gpu=spec.name,
        compute_units=spec.compute_units,
        family=near.family,
        constants=replace(near.constants, **scaled),
        provenance={_CARRIED: f"{near.gpu} with {near.compute_units} compute units"},
        error={},
    )


def _cache_rate(spec: ArchSpec) -> float:
    """Bytes a second that all compute units together can take from their L1 caches."""
    return spec.compute_units * spec.clock_hz * spec.l1_bytes_per_clock
