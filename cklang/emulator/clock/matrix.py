# SPDX-License-Identifier: MIT
"""Cycles of a SIMD's matrix unit for each matrix instruction, from its shape and types.

A unit does so many multiply-adds a cycle, by type. Instructions of several blocks came with the
first GPU that had matrix units and run at its rates on later ones too.
"""

import re
from dataclasses import dataclass

from cklang.emulator.clock.constants import MatrixRates

_NAME = re.compile(
    r"v_(?P<kind>mfma|smfmac|wmma|swmmac)_(?:scale_|ld_scale_)?[a-z]+\d+_"
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:(?P<blocks>\d+)b_)?(?P<types>[a-z]\w*)$"
)
KINDS = {
    "f16": "f16",
    "bf16": "bf16",
    "bf16_1k": "bf16",
    "fp8": "f8",
    "bf8": "f8",
    "f8f6f4": "f8",
    "f6f4": "f4",
}
"""Kinds of elements that cost power alike, by the type of A."""

_LANES = 64
_BITS_IN_NAME = re.compile(r"\d+")

_BLOCK_DEPTH = {"f32": 1, "bf16": 2, "bf16_1k": 4, "f16": 4, "i8": 4}
"""K of the instructions of several blocks, by type, where the name does not state the blocks."""
_BLOCKS = {32: 2, 16: 4, 4: 16}
_DOUBLE_BLOCKS = 4
"""Blocks of the 4×4 instruction of f64."""


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """What a matrix instruction multiplies: C[m, n] += A[m, k] B[k, n] in some blocks."""

    m: int
    n: int
    k: int
    blocks: int
    dtype: str
    """The type of A, as the name spells it."""
    sparse: bool

    @property
    def multiplies(self) -> int:
        """Multiply-adds of a wave, those with the zeros of a sparse A too."""
        return self.m * self.n * self.k * self.blocks

    @property
    def lane_bytes(self) -> float:
        """Bytes of A that one of 64 lanes holds."""
        digits = _BITS_IN_NAME.search(self.dtype)
        bits = int(digits[0]) if digits else 0
        return self.m * self.k * self.blocks * bits / 8 / _LANES / (1 + self.sparse)


def _blocks(m: int, k: int, dtype: str) -> int:
    if m == min(_BLOCKS):
        return _DOUBLE_BLOCKS if dtype == "f64" else _BLOCKS[m]
    return _BLOCKS[m] if _BLOCK_DEPTH.get(dtype) == k else 1


_FORMATS = re.compile(r"(?:cbsz|blgp):[2-4]")
_SEVERAL = "f8f6f4"
_NARROW = "f6f4"


def matrix_shape(name: str, formats: str = "") -> MatrixShape | None:
    """Return what an instruction multiplies, or None for one that is no matrix instruction.

    Args:
        name: Of the instruction.
        formats: Its modifiers ``cbsz`` and ``blgp``. Instructions that take elements of 8, 6 and 4
            bits are quicker where neither operand has 8.

    Example:
        >>> matrix_shape("v_mfma_f32_16x16x16_bf16").multiplies
        4096
        >>> matrix_shape("v_mfma_f32_32x32x1f32").blocks
        2
        >>> matrix_shape("v_mfma_f32_16x16x128_f8f6f4", "cbsz:4 blgp:4").dtype
        'f6f4'
    """
    match = _NAME.match(name)
    if match is None:
        return None
    m, n, k = (int(match[axis]) for axis in "mnk")
    long_form = match["types"].endswith("_1k")
    dtype = match["types"].split("_")[0] + ("_1k" if long_form else "")
    if dtype == _SEVERAL and len(_FORMATS.findall(formats)) > 1:
        dtype = _NARROW
    several = match["kind"] == "mfma"
    stated = match["blocks"]
    blocks = int(stated) if stated else _blocks(m, k, dtype) if several else 1
    return MatrixShape(m, n, k, blocks, dtype, match["kind"] in ("smfmac", "swmmac"))


def matrix_cycles(shape: MatrixShape, rates: MatrixRates) -> int | None:
    """Return how many cycles the instruction takes its unit; None for a type without a rate.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> shape = matrix_shape("v_mfma_f32_32x32x8_f16")
        >>> matrix_cycles(shape, constants_of("gfx942").matrix)
        32
    """
    by_type = rates.dense
    if shape.blocks > 1:
        by_type = {**by_type, **rates.blocks}
    elif shape.lane_bytes > rates.long_bytes:
        by_type = {**by_type, **rates.long}
    if (rate := by_type.get(shape.dtype)) is None:
        return None
    return max(rates.least, shape.multiplies // (rate * (1 + shape.sparse)))
