# SPDX-License-Identifier: MIT
"""What each GPU is: the loader of ``arch_specs/*.json`` and the questions code may ask of it.

No other place holds a GPU's numbers, and no code compares arch names: it asks a capability here.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from cklang import knobs
from cklang.errors import error
from cklang.widths import DWORD_BYTES

ANY = "*"
"""In a :class:`Forbidden` row: whichever."""

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
    isa: str | None
    """The instruction that it is made of, as assemblers spell it; None if the GPU has none."""
    loads: tuple[int, ...]
    """In how many loads a lane may take its elements of an operand, as the CK Tile tree that cklang
    is pinned to instantiates the tile; none if it does not."""
    transposed_loads: tuple[int, ...] = ()
    """The same of the tile with its accumulator transposed."""
    sparse: bool = False
    """Whether A is in 2:4 form: two of four elements along K."""
    rate: float = 1.0
    """How fast its instruction is beside the :class:`MatrixRate` of its types; zeros count."""

    @property
    def legal(self) -> bool:
        """Whether kernels may use it."""
        return bool(self.loads) and self.isa is not None

    @property
    def extents(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        return self.m, self.n, self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBudget:
    """A pipeline of CK Tile that works on this GPU."""

    pipeline: str
    lds_bytes: int
    """LDS for one tile of A and one of B; a pipeline with two buffers has half of the GPU's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """A combination that CK Tile does not have; ``*`` stands for any."""

    pipeline: str
    epilogue: str
    scheduler: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWrong:
    """Algorithms that were reported to give wrong results. All conditions that are set must hold.

    A row stays when a report could not be confirmed; ``excluded`` says whether the algorithms are
    kept out of the legal set.
    """

    id: str
    claim: str
    evidence: str
    """The source of the report."""
    seen: str
    """What ``benchmarks/known_wrong.py`` saw on the emulated GPU, with the pinned tree."""
    excluded: bool
    pipelines: tuple[str, ...] = ()
    epilogues: tuple[str, ...] = ()
    warps_at_least: int = 0
    warp_tile_mn: tuple[int, ...] = ()
    """Extents of the warp tile along m or n."""
    warp_tile_k: tuple[int, ...] = ()
    operand_bits: int = 0
    """Bits of an element of A."""
    odd_repeat: bool = False
    """A wave owns an odd number of warp tiles, and more than one, along M or N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTile:
    """A tiling that CK Tile's forward attention has on this GPU."""

    dtypes: tuple[str, ...]
    """The dtypes of q, k and v; ``fp8`` stands for the GPU's own encoding."""
    hdim_q: int
    """The largest head sizes of q and k, and of v, that it takes."""
    hdim_v: int
    tile: tuple[int, int, int, int, int, int]
    """As in :class:`cklang.families.attention.key.AttentionAlgorithm`."""
    warps: int
    """Along the queries."""
    warp_tile: tuple[int, int, int]
    pipelines: tuple[str, ...]
    """The pipelines that work, the preferred one first."""
    block_per_cu: int


Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradTile:
    """A tiling that CK Tile's backward attention has on this GPU; its last two are head sizes."""

    dtypes: tuple[str, ...]
    tile: tuple[int, int, int, int, int, int, int, int, int]
    """As in :class:`cklang.families.attention_backward.key.AttentionGradAlgorithm`, as are the next
    two."""
    warps: tuple[Triple, Triple, Triple]
    warp_tiles: tuple[Triple, Triple, Triple]
    pipelines: tuple[str, ...]
    """The pipelines that work, the preferred one first."""
    block_per_cu: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRate:
    """How fast one compute unit's matrix instructions for these element types are: most of them.

    The others say so in their :class:`WarpTile`.
    """

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
    """Bytes of LDS of one compute unit; one workgroup may take all of it."""
    lds_banks: int
    vgprs_per_simd_lane: int
    """Vector registers (arch and acc together) of ``wave_size`` lanes that a SIMD's waves share."""
    vgpr_granule: int
    max_vgprs_per_wave: int
    """Vector registers (arch and acc together) that one wave can address."""
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
    pci_device_id: int
    shader_arrays: int
    """Groups of compute units, of all dies."""
    shader_arrays_per_engine: int
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
    elf_machine: int
    """What LLVM calls ``EF_AMDGPU_MACH``, in the flags of its code objects."""
    buffer_resource_word3: int
    """The last dword of a raw buffer descriptor."""
    warp_configs: tuple[tuple[int, int, int], ...]
    """Warps of a block along (m, n, k) that CK Tile is used with on this GPU."""
    pipelines: tuple[PipelineBudget, ...]
    forbidden: tuple[Forbidden, ...]
    known_wrong: tuple[KnownWrong, ...]
    warp_tiles: tuple[WarpTile, ...]
    """Every row, also those that are not legal; see :meth:`tiles`."""
    source: str
    """Where the numbers come from."""
    attention_tiles: tuple[AttentionTile, ...] = ()
    attention_grad_tiles: tuple[AttentionGradTile, ...] = ()
    lds_load_bytes: int = DWORD_BYTES
    """Bytes that a lane's load from memory straight into LDS moves at most."""
    lds_transposed_bytes: int = 0
    """Bytes that a lane's load from LDS moves where it transposes; 0 where none does."""
    repeats_rows: bool = False
    """Whether a matrix instruction wants each row of an operand in two lanes, one of each half of
    the wave; elsewhere every lane has a part of its own."""

    def __hash__(self) -> int:
        return hash((self.name, self.compute_units))

    def tiles(
        self, a: str, b: str, acc: str, *, sparse: bool = False
    ) -> tuple[tuple[int, int, int], ...]:
        """Return the legal warp tiles (m, n, k) of these element types, in the file's order."""
        return tuple(row.extents for row in self.tile_rows(a, b, acc, sparse=sparse))

    def tile_rows(self, a: str, b: str, acc: str, *, sparse: bool = False) -> tuple[WarpTile, ...]:
        """Return the rows of the legal warp tiles of these element types, in the file's order."""
        return _tile_rows(self, (a, b, acc, sparse))

    @property
    def version(self) -> tuple[int, int, int]:
        """Major, minor and stepping, as LLVM spells them in its target: (9, 0, 10) of gfx90a."""
        digits = self.name.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16), int(digits[-1], 16)

    @property
    def has_wmma(self) -> bool:
        """Whether its matrix instructions are WMMA (waves of 32) and not MFMA."""
        return self.wave_size == 32

    def budget(self, pipeline: str) -> int | None:
        """Return the LDS for one tile of A and B in ``pipeline``; None if it does not work here."""
        return next((p.lds_bytes for p in self.pipelines if p.pipeline == pipeline), None)

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
                    self, product=variant.product, compute_units=count, chiplets=variant.chiplets
                )
        known = [f"{self.compute_units} ({self.product})"]
        known += [f"{v.compute_units} ({v.product})" for v in self.variants]
        raise error("K006", name=self.name, got=count, known=", ".join(known))

    def on_board(self, name: str) -> ArchSpec:
        """Return the variant that a board has; this one where the board has as many units.

        Example:
            >>> [arch("gfx942").on_board(name).compute_units for name in ("MI300A", "MI325X")]
            [228, 304]
        """
        counts = (v.compute_units for v in self.variants if v.product.endswith(name))
        return self.with_compute_units(next(counts, self.compute_units))


_ROWS: dict[str, Any] = {
    "warp_tiles": WarpTile,
    "matrix_rates": MatrixRate,
    "variants": Variant,
    "pipelines": PipelineBudget,
    "forbidden": Forbidden,
    "known_wrong": KnownWrong,
    "attention_tiles": AttentionTile,
    "attention_grad_tiles": AttentionGradTile,
}


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
    data.pop("$schema", None)
    spec: ArchSpec = _record(ArchSpec, data, path.stem, "")
    if spec.name != path.stem:
        raise error("K005", name=path.stem, problem=f"its name is {spec.name!r}")
    return spec


def _record(kind: Any, data: object, file: str, place: str) -> Any:
    """Return the ``kind`` that ``data`` describes; optional fields are those with a default."""
    if not isinstance(data, dict):
        raise error("K005", name=file, problem=f"{place} must be an object")
    known, required = _fields(kind)
    for name in data:
        if name not in known:
            raise error("K005", name=file, problem=f"{place}{name!r} is not a field")
    for name in required:
        if name not in data:
            raise error("K005", name=file, problem=f"{place}{name!r} is missing")
    values = {name: _value(name, value, file, place) for name, value in data.items()}
    return kind(**values)


@cache
def _fields(kind: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a record's fields, and of those that have no default."""
    known = frozenset(f.name for f in fields(kind))
    return known, tuple(f.name for f in fields(kind) if f.default is MISSING)


def _value(name: str, value: object, file: str, place: str) -> object:
    if not isinstance(value, list):
        return value
    if not place and name in _ROWS:
        kind = _ROWS[name]
        return tuple(_record(kind, row, file, f"{name}[{i}] ") for i, row in enumerate(value))
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)


def all_archs() -> tuple[ArchSpec, ...]:
    """Return every GPU of arch_specs in the order in which the emulator lists its devices.

    Files of the folder ``CKLANG_ARCH_DIR`` are added; one of a shipped name takes its place.
    """
    return _all(knobs.ARCH_DIR.get())


@cache
def _all(extra: Path | None) -> tuple[ArchSpec, ...]:
    paths = {path.stem: path for path in _folder().glob("gfx*.json")}
    if extra is not None:
        if not extra.is_dir():
            problem, doc = "is not a folder", knobs.ARCH_DIR.doc
            raise error("Z001", name=knobs.ARCH_DIR.name, got=extra, problem=problem, doc=doc)
        paths |= {path.stem: path for path in extra.glob("gfx*.json")}
    specs = [_read(path) for _, path in sorted(paths.items())]
    return tuple(sorted(specs, key=lambda spec: (spec.emulated_order, spec.name)))


def timing_file(name: str) -> Path:
    """Return the file with the clock's constants of a GPU, which need not exist."""
    return _folder() / "timing" / f"{base_name(name)}.json"


@cache
def _tile_rows(spec: ArchSpec, wanted: tuple[str, str, str, bool]) -> tuple[WarpTile, ...]:
    return tuple(t for t in spec.warp_tiles if t.legal and (t.a, t.b, t.acc, t.sparse) == wanted)


def base_name(target: str) -> str:
    """Return the GPU's name in a target: ``gfx942`` of ``amdgcn-amd-amdhsa--gfx942:xnack-``."""
    return target.rpartition("--")[2].partition(":")[0]


def arch(name: str) -> ArchSpec:
    """Return the GPU named ``name`` (``gfx942``; feature suffixes as in ``gfx942:xnack-`` are cut).

    Raises:
        CkValueError: K004, there is no such file.
    """
    known_spec = _by_name(knobs.ARCH_DIR.get()).get(base_name(name))
    if known_spec is None:
        known = [spec.name for spec in all_archs()]
        raise error("K004", got=name, known=", ".join(known))
    return known_spec


@cache
def _by_name(extra: Path | None) -> dict[str, ArchSpec]:
    return {spec.name: spec for spec in _all(extra)}
