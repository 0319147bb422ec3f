# SPDX-License-Identifier: MIT
"""What of a kernel decides its time: extents, bytes and resources, one row a kernel.

The cost model sees nothing else, so kernels of any origin can be compared: those made from a
:class:`~cklang.keys.Key` and those of a published table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.errors import error
from cklang.families.gemm.key import Algorithm, DKind, GemmKey, Pipeline, ProductKind, Signature
from cklang.families.gemm.lower import is_mx
from cklang.families.gemm.pipelines import loop_of
from cklang.families.memory_cost import matrix_rate
from cklang.ir.log_sums import COLUMNS
from cklang.widths import ACCESS_BYTES

if TYPE_CHECKING:
    from typing import Self

Floats = npt.NDArray[np.float64]

# Registers of a lane that hold neither accumulators nor tiles: addresses, descriptors, counters.
_OTHER_REGISTERS = 40
# Registers that fragments of 8-bit elements take for each that the elements fill, as compiled for
# gfx942 (benchmarks/masked_loads.py): with it a tile of 256x256x128 wants 565 (512 and 55 spills),
# 256x256x64 430 (482), 256x128x128 369 (347), 128x128x128 239 (216).
_BYTE_FRAGMENTS = 1.6
_MATRICES = (DKind.FULL, DKind.STRIDED)
"""Operands of the epilogue with an element for each of the result."""
_PREFETCHES = dict.fromkeys(Pipeline, True)
"""Whether a pipeline loads the next tile of K while it multiplies the present one: all do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a built kernel really uses, from its code object."""

    vgprs: int
    """Vector registers of a lane, accumulation registers included."""
    lds_bytes: int
    spills: int = 0
    """Registers that spill to memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """One kernel as the cost model sees it; lengths in elements, sizes in bytes."""

    tile_m: float
    tile_n: float
    tile_k: float
    waves: float
    waves_m: float
    waves_n: float
    split_k: float
    stream: float
    """Workgroups on a compute unit of a stream-K kernel, which share all steps; else 0."""
    loop_step: float
    """K tiles that the loop takes at once; those beyond K are padding."""
    loop_least: float
    """K tiles that it computes at least."""
    prefetches: bool
    """Whether the next tile of K is loaded during the matrix instructions of the present one."""
    bytes_a: float
    bytes_b: float
    width_a: float
    """Bytes that one load of A moves; at most 16."""
    width_b: float
    bytes_out: float
    """Bytes that the epilogue moves for each element: E, further results and full-sized D."""
    b_in_lds: bool
    """Whether B passes through LDS (preshuffled B goes straight into registers)."""
    merged: float
    """Groups of a convolution that share a tile: the other operand is blocks on a diagonal."""
    held_b: float
    """Part of B that lies in memory; the rest are the zeros between those blocks."""
    held_out: float
    """The same of the result."""
    scale_k: float
    """Elements of K that share one scale factor applied to the accumulator; 0 if there is none."""
    chains: float
    """Sums of a matrix instruction's shape that a wave scales, one after the other, in a K step."""
    matrix_rate: float
    """Multiplications and additions of a compute unit per clock at these element types."""
    occupancy: float
    """Workgroups that fit on a compute unit together."""
    registers: float
    """Vector registers of a lane that the kernel would like to have."""
    spills: float
    """Registers that spill to memory; 0 if unknown."""

    @classmethod
    def of(
        cls,
        spec: ArchSpec,
        *,
        tile: tuple[int, int, int],
        waves: tuple[int, int, int],
        rate: float,
        prefetches: bool,
        bytes_a: float,
        bytes_b: float,
        bytes_out: float,
        width_a: float = ACCESS_BYTES,
        width_b: float = ACCESS_BYTES,
        split_k: int = 1,
        stream: int = 0,
        loop: tuple[int, int] = (1, 1),
        double_buffer: bool = False,
        b_in_lds: bool = True,
        merged: int = 1,
        merges_out: bool = False,
        scale_k: int = 0,
        warp_tile: tuple[int, int] = (16, 16),
        accumulators: float = 1,
        scales: int = 0,
        blocks_per_cu: int = 1,
        spills: float = 0.0,
        resources: Resources | None = None,
    ) -> Self:
        """Derive registers, LDS and occupancy; ``resources`` of a built kernel overrule them.

        ``loop`` is how many K tiles the loop takes at once, and at least. Of ``merged`` groups the
        result (``merges_out``) or else B is blocks on a diagonal.
        """
        m, n, k = tile
        count = waves[0] * waves[1] * waves[2]
        staged = m * k * bytes_a + (n * k * bytes_b if b_in_lds else 0)
        lds = staged * (2 if double_buffer else 1)
        wanted = registers_wanted(
            tile=tile,
            waves=waves,
            wave_size=spec.wave_size,
            bytes_a=bytes_a,
            bytes_b=bytes_b,
            accumulators=accumulators,
            scales=scales,
        )
        per_simd = spec.vgprs_per_simd_lane
        waves_per_simd = -(-count // spec.simds_per_cu)
        allocated = min(wanted, per_simd / (waves_per_simd * blocks_per_cu))
        if resources is not None:
            wanted = allocated = float(resources.vgprs)
            lds, spills = float(resources.lds_bytes), float(resources.spills)
        return cls(
            tile_m=m,
            tile_n=n,
            tile_k=k,
            waves=count,
            waves_m=waves[0],
            waves_n=waves[1],
            split_k=split_k,
            stream=stream,
            loop_step=loop[0],
            loop_least=loop[1],
            prefetches=prefetches,
            bytes_a=bytes_a,
            bytes_b=bytes_b,
            width_a=min(width_a, ACCESS_BYTES),
            width_b=min(width_b, ACCESS_BYTES),
            bytes_out=bytes_out,
            b_in_lds=b_in_lds,
            merged=merged,
            held_b=1.0 if merges_out else 1.0 / merged,
            held_out=1.0 / merged if merges_out else 1.0,
            scale_k=scale_k,
            chains=_chains(tile, waves, warp_tile, scale_k),
            matrix_rate=rate,
            occupancy=_occupancy(spec, allocated, lds, count),
            registers=wanted,
            spills=spills,
        )


def _chains(
    tile: tuple[int, int, int],
    waves: tuple[int, int, int],
    warp_tile: tuple[int, int],
    scale_k: int,
) -> float:
    if not scale_k:
        return 0.0
    warp_tiles = math.prod(tile[i] / (waves[i] * warp_tile[i]) for i in (0, 1))
    return warp_tiles * max(tile[2] / scale_k, 1.0)


def registers_wanted(
    *,
    tile: tuple[int, int, int],
    waves: tuple[int, int, int],
    wave_size: int,
    bytes_a: float,
    bytes_b: float,
    accumulators: float = 1,
    packing: float = 1.0,
    scales: int = 0,
) -> float:
    """Return the vector registers that a lane would like to have.

    Accumulators (one f32 each, ``accumulators`` times), the loads of the next tile in flight, and
    the fragments of the present one, all of K at once, in ``packing`` times as many as they fill;
    and ``scales``.
    """
    m, n, k = tile
    threads = waves[0] * waves[1] * waves[2] * wave_size
    sums = m * n / threads * waves[2] * accumulators
    loads = (m * bytes_a + n * bytes_b) * k / 4 / threads
    fragments = (m / waves[0] * bytes_a + n / waves[1] * bytes_b) * k / waves[2]
    return sums + loads + packing * fragments / 4 / wave_size + scales + _OTHER_REGISTERS


def sets_of_sums(signature: Signature, algorithm: Algorithm) -> float:
    """Return how many f32 for each element of a tile a kernel keeps: those of a block are scaled.

    Where a tile is one block of K, the products of one warp tile after the other are. As compiled
    for gfx942 with two workgroups a compute unit, a tile of 128x128x128 in fp8 wants 256 registers
    and 4 spills, of 254 by this estimate; for gfx950 it wants 231, of 242.
    """
    s, a = signature, algorithm
    if not s.block_k or is_mx(s, a):
        return 1
    if s.block_k != a.tile[2]:
        return 2
    warp_tiles = math.prod(a.tile[i] // (a.warps[i] * a.warp_tile[i]) for i in (0, 1))
    return 1 + 1 / warp_tiles


def scale_registers(signature: Signature, algorithm: Algorithm) -> int:
    """Return the registers of the exponents that matrix instructions take.

    For each row and column of a lane 16 bytes along K, and a copy of them. As compiled for gfx950,
    a tile of 128x128x256 in fp4 wants 272 registers so, of 264 by this estimate; one of 128x128x128
    223, of 216; one of 256x256x128 531, of 520.
    """
    s, a = signature, algorithm
    if not (s.block_k and is_mx(s, a)):
        return 0
    lines = sum(a.tile[i] // (a.warps[i] * a.warp_tile[i]) for i in (0, 1))
    return 2 * lines * (ACCESS_BYTES // 4)


def spilled_registers(signature: Signature, algorithm: Algorithm, spec: ArchSpec) -> float:
    """Return how many registers more than a lane has a kernel of ours would like to have.

    Compiled kernels agree: those that are predicted to spill do (``tests/prebuilding``). Of other
    types than 8-bit ones, the rule ``registers`` refuses kernels that do not fit.
    """
    s, a = signature, algorithm
    if not s.dtype_a.bits == s.dtype_b.bits == 8:
        return 0.0
    wanted = registers_wanted(
        tile=a.tile,
        waves=a.warps,
        wave_size=spec.wave_size,
        bytes_a=1,
        bytes_b=1,
        accumulators=sets_of_sums(s, a),
        packing=_BYTE_FRAGMENTS,
        scales=scale_registers(s, a),
    )
    waves = -(-math.prod(a.warps) * a.block_per_cu // spec.simds_per_cu)
    limit = min(spec.vgprs_per_simd_lane // waves, spec.max_vgprs_per_wave)
    return max(0.0, wanted - limit)


def _occupancy(spec: ArchSpec, registers: float, lds: float, waves: int) -> float:
    waves_per_simd = min(spec.vgprs_per_simd_lane // max(registers, 1), spec.max_waves_per_simd)
    by_registers = waves_per_simd * spec.simds_per_cu // waves
    by_lds = spec.lds_bytes // lds if lds else by_registers
    return float(max(1, min(by_registers, by_lds)))


@dataclass(frozen=True, slots=True)
class Columns:
    """Traits of many kernels: one float array of shape [kernels] for each field."""

    tile_m: Floats
    tile_n: Floats
    tile_k: Floats
    waves: Floats
    waves_m: Floats
    waves_n: Floats
    split_k: Floats
    stream: Floats
    loop_step: Floats
    loop_least: Floats
    prefetches: Floats
    bytes_a: Floats
    bytes_b: Floats
    width_a: Floats
    width_b: Floats
    bytes_out: Floats
    b_in_lds: Floats
    merged: Floats
    held_b: Floats
    held_out: Floats
    scale_k: Floats
    chains: Floats
    matrix_rate: Floats
    occupancy: Floats
    registers: Floats
    spills: Floats

    @classmethod
    def stack(cls, rows: Sequence[Traits]) -> Self:
        """Turn rows into columns.

        Raises:
            CkValueError: N005, there is no row.
        """
        if not rows:
            raise error("N005")
        columns: dict[str, Any] = {
            f.name: np.array([getattr(row, f.name) for row in rows], dtype=np.float64)
            for f in fields(cls)
        }
        return cls(**columns)


def _stored_bytes(signature: Signature) -> float:
    """Return the bytes of E for each element of the product."""
    elements = COLUMNS if signature.layout_e.of_blocks else 1
    return signature.dtype_e.bytes / elements


def traits_of(key: GemmKey, spec: ArchSpec, resources: Resources | None = None) -> Traits:
    """Return the traits of a kernel of cklang on the GPU that ``spec`` describes."""
    s, a = key.signature, key.algorithm
    moved = (d for d in s.d if d.kind.written or d.kind in _MATRICES)
    full = sum(d.dtype.bytes / (d.kind.group or 1) for d in moved)
    return Traits.of(
        spec,
        tile=a.tile,
        waves=a.warps,
        rate=matrix_rate(spec, s.multiplied, a.warp_tile, sparse=s.sparse),
        prefetches=_PREFETCHES[a.pipeline],
        bytes_a=s.dtype_a.bits / 8,
        bytes_b=s.dtype_b.bits / 8,
        width_a=a.vector_a * s.dtype_a.bits / 8,
        width_b=a.vector_b * s.dtype_b.bits / 8,
        # To the model a pair is one product with the columns of both.
        bytes_out=(_stored_bytes(s) + full) / s.sums,
        split_k=a.split_k,
        stream=a.block_per_cu if a.stream_k else 0,
        loop=loop_of(s, a, spec.wave_size),
        double_buffer=a.double_buffer,
        merged=a.groups_merged,
        merges_out=s.kind is ProductKind.CONV_GRAD_WEIGHT,
        scale_k=0 if is_mx(s, a) else s.block_k,
        warp_tile=a.warp_tile[:2],
        accumulators=sets_of_sums(s, a),
        scales=scale_registers(s, a),
        blocks_per_cu=a.block_per_cu,
        spills=spilled_registers(s, a, spec),
        resources=resources,
    )
