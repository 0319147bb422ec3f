# SPDX-License-Identifier: MIT
"""What each GPU is: the loader of ``arch_specs/*.json`` and the questions code may ask of it.

No other place holds a GPU's numbers, and no code compares arch names: it asks a capability here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from cklang.errors import error

__all__ = ["ArchSpec", "MatrixRate", "Variant", "WarpTile", "all_archs", "arch"]

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
class MatrixRate:
    """How fast the matrix instructions of one compute unit are with these element types."""

    dtype: str
    """The type of A and B; ``fp8`` stands for all 8-bit floating-point types."""
    flops_per_clock: int
    """Multiplications and additions, counted one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A product with the same instruction set and compute unit, but a different number of them."""

    product: str
    compute_units: int
    chiplets: int


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
    compute_units_per_multiprocessor: int
    """HIP counts multiprocessors: on RDNA a work-group processor, which is two compute units."""
    simds_per_cu: int
    max_waves_per_simd: int
    wave_size: int
    max_threads_per_block: int
    lds_bytes: int
    """LDS of one compute unit, all of which one workgroup may take, in bytes."""
    lds_banks: int
    vgprs_per_simd_lane: int
    """Vector registers (arch and acc together) of ``wave_size`` lanes that a SIMD's waves share."""
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
    chiplets: int
    """Dies with compute units (XCDs), each with an L2 of its own."""
    vector_flops_per_clock: int
    """Peak f32 rate of the vector units of one compute unit."""
    lds_bytes_per_clock: int
    """Peak read rate of the LDS of one compute unit."""
    l1_bytes_per_clock: int
    """Peak rate from the L1 cache into one compute unit."""
    matrix_rates: tuple[MatrixRate, ...]
    variants: tuple[Variant, ...]
    fp8: str
    """The fp8 encoding of its matrix instructions: ``fnuz``, ``ocp`` or ``none``."""
    buffer_resource_word3: int
    """The last dword of a raw buffer descriptor."""
    warp_tiles: tuple[WarpTile, ...]
    source: str
    """Where the numbers come from."""

    def with_compute_units(self, count: int) -> ArchSpec:
        """Return the product of this architecture that has ``count`` compute units.

        Raises:
            CkValueError: K006, there is none.
        """
        if count == self.compute_units:
            return self
        for variant in self.variants:
            if variant.compute_units == count:
                return replace(
                    self,
                    product=variant.product,
                    compute_units=count,
                    chiplets=variant.chiplets,
                )
        known = [f"{self.compute_units} ({self.product})"]
        known += [f"{v.compute_units} ({v.product})" for v in self.variants]
        raise error("K006", name=self.name, got=count, known=", ".join(known))


_TUPLES = {"warp_tiles": WarpTile, "matrix_rates": MatrixRate, "variants": Variant}


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
    tuples: dict[str, Any] = {
        name: tuple(kind(**row) for row in data.pop(name)) for name, kind in _TUPLES.items()
    }
    return ArchSpec(**tuples, **data)


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
