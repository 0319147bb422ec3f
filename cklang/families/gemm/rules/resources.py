# SPDX-License-Identifier: MIT
"""What an algorithm takes of a compute unit, before it is compiled: LDS bytes and registers.

The sizes follow the pinned CK Tile tree and our epilogue, which keeps accumulators in f32.
"""

from cklang.arch import ArchSpec
from cklang.families.gemm.cost.traits import registers_wanted, scale_registers, sets_of_sums
from cklang.families.gemm.key import Algorithm, Signature
from cklang.families.gemm.pipelines import PIPELINES

_LDS_UNIT = 16
"""Each tile in LDS starts at a multiple of this many bytes."""


def warps_of(a: Algorithm) -> int:
    """Return the warps of a workgroup."""
    return a.warps[0] * a.warps[1] * a.warps[2]


def repeats(a: Algorithm) -> tuple[int, int]:
    """Return how many warp tiles a wave computes along M and N."""
    m, n = (a.tile[i] // (a.warps[i] * a.warp_tile[i]) for i in range(2))
    return m, n


def staged_bytes(a: Algorithm, s: Signature) -> int:
    """Return the LDS bytes of one tile of A and one of B, or of the sums that follow them there."""
    m, n, k = a.tile
    row = PIPELINES.get(a.pipeline)
    sizes = [m * k * s.dtype_a.bits // 8]
    if row is None or not row.prepared:
        sizes.append(n * k * s.dtype_b.bits // 8)
    staged = sum(-(-size // _LDS_UNIT) * _LDS_UNIT for size in sizes)
    if row is not None and row.acc_in_lds:
        return max(staged, m * n * s.dtype_acc.bits // 8)
    return staged


def joined_tiles(a: Algorithm, spec: ArchSpec) -> int:
    """Return how many warp tiles along M the cshuffle epilogue passes through LDS at once.

    Several if a lane owns fewer elements of one than a store moves (CK Tile's rule for a row-major
    E), but no more than a wave has.
    """
    per_lane = a.warp_tile[0] * a.warp_tile[1] // spec.wave_size
    if not 0 < per_lane < a.vector_e:
        return 1
    return max(1, min(a.vector_e // per_lane, repeats(a)[0]))


def shuffle_extents(a: Algorithm, spec: ArchSpec) -> tuple[int, int]:
    """Return rows and columns of E that the cshuffle epilogue passes through LDS at once."""
    rows = a.warp_tile[0] * a.warps[0] * joined_tiles(a, spec)
    return rows, a.warp_tile[1] * a.warps[1]


def shuffled_bytes(a: Algorithm, s: Signature, spec: ArchSpec) -> int:
    """Return the LDS bytes of the cshuffle epilogue, which holds accumulators."""
    rows, columns = shuffle_extents(a, spec)
    return rows * columns * s.dtype_acc.bits // 8


def registers(a: Algorithm, s: Signature, spec: ArchSpec) -> int:
    """Return an estimate of the vector registers that a lane would like to have."""
    wanted = registers_wanted(
        tile=a.tile,
        waves=a.warps,
        wave_size=spec.wave_size,
        bytes_a=s.dtype_a.bits / 8,
        bytes_b=s.dtype_b.bits / 8,
        accumulators=sets_of_sums(s, a),
        scales=scale_registers(s, a),
    )
    return round(wanted)


def register_limit(a: Algorithm, spec: ArchSpec) -> int:
    """Return the registers that a lane may have if ``block_per_cu`` workgroups share a unit."""
    waves = -(-warps_of(a) * a.block_per_cu // spec.simds_per_cu)
    return min(spec.vgprs_per_simd_lane // waves, spec.max_vgprs_per_wave)
