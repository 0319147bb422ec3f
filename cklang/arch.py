# SPDX-License-Identifier: MIT
"""What each GPU is: the loader of ``arch_specs/*.json`` and the questions code may ask of it.

No other place holds a GPU's numbers, and no code compares arch names: it asks a capability here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from cklang.errors import error

__all__ = ["ArchSpec", "WarpTile", "all_archs", "arch"]

# In a wheel the specs are package data; in a checkout they are the folder beside the package.
_FOLDERS = (Path(__file__).parent / "arch_specs", Path(__file__).parent.parent / "arch_specs")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpTile:
    """A matrix tile of one warp: C[m, n] += A[m, k] B[k, n] with these element types."""

    a: str
    b: str
    acc: str
    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchSpec:
    """The facts of one GPU that compilation, selection and emulation need."""

    name: str
    """The LLVM target: ``gfx942``."""
    family: str
    """The instruction set: ``cdna3``; names the emulator's instruction table."""
    product: str
    """The name a user knows: ``AMD Instinct MI300X``."""
    emulated_order: int
    """Position among the emulated HIP devices."""
    compute_units: int
    simds_per_cu: int
    max_waves_per_simd: int
    wave_size: int
    max_threads_per_block: int
    lds_bytes: int
    """LDS of one compute unit, all of which one workgroup may take, in bytes."""
    lds_banks: int
    vgprs_per_simd_lane: int
    """Vector registers (arch and acc together) that the waves of a SIMD share."""
    vgpr_granule: int
    sgprs_per_wave: int
    l2_bytes: int
    last_level_cache_bytes: int
    """Infinity Cache in bytes; 0 where there is none."""
    memory_bytes: int
    memory_bytes_per_second: float
    clock_hz: float
    memory_clock_hz: float
    memory_bus_bits: int
    fp8: str
    """The fp8 encoding of its matrix instructions: ``fnuz``, ``ocp`` or ``none``."""
    buffer_resource_word3: int
    """The last dword of a raw buffer descriptor."""
    warp_tiles: tuple[WarpTile, ...]
    source: str
    """Where the numbers come from."""


@cache
def _folder() -> Path:
    for folder in _FOLDERS:
        if folder.is_dir():
            return folder
    raise error("Z002", what=f"no arch_specs folder at {' or '.join(map(str, _FOLDERS))}")


def _read(path: Path) -> ArchSpec:
    try:
        data: dict[str, Any] = json.loads(path.read_text())
    except ValueError as problem:
        raise error("K005", name=path.stem, problem=str(problem)) from problem
    known = {f.name for f in fields(ArchSpec)}
    data.pop("$schema", None)
    for name in sorted(known ^ set(data)):
        fault = "is missing" if name in known else "is not a field"
        raise error("K005", name=path.stem, problem=f"{name!r} {fault}")
    tiles = data.pop("warp_tiles")
    return ArchSpec(warp_tiles=tuple(WarpTile(**tile) for tile in tiles), **data)


@cache
def all_archs() -> tuple[ArchSpec, ...]:
    """Return every GPU of arch_specs in the order in which the emulator lists its devices."""
    paths = sorted(p for p in _folder().glob("*.json") if p.name != "schema.json")
    return tuple(sorted(map(_read, paths), key=lambda spec: (spec.emulated_order, spec.name)))


def arch(name: str) -> ArchSpec:
    """Return the GPU named ``name`` (``gfx942``; feature suffixes as in ``gfx942:xnack-`` are cut).

    Raises:
        CkValueError: K004, there is no such file.
    """
    short = name.split(":", 1)[0]
    for spec in all_archs():
        if spec.name == short:
            return spec
    raise error("K004", got=name, known=", ".join(spec.name for spec in all_archs()))
