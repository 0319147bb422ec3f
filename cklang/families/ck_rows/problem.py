# SPDX-License-Identifier: MIT
"""One launch of CK Tile's own kernel of rows as numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.families.ck_rows.key import CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.recognise import Match
from cklang.families.lines import LinesRequest, LineTensor
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor

__all__ = ["CkTileRowsProblem", "problem_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CkTileRowsProblem:
    """Rows and elements as kernels of rows count them, and the tensors that CK Tile's reads."""

    signature: CkTileRowsSignature
    rows: tuple[int, ...]
    """Extents of the axes that count rows, outermost first."""
    elements: tuple[int, ...]
    operands: tuple[RowwiseTensor, ...]
    """x, gain and bias, as many as there are."""
    result: RowwiseTensor
    epsilon: float

    @property
    def tensors(self) -> tuple[RowwiseTensor, ...]:
        """All tensors in memory, by whose addresses the shim is asked."""
        return (*self.operands, self.result)

    @property
    def length(self) -> int:
        """The elements of a row."""
        return math.prod(self.elements)

    @property
    def bytes(self) -> int:
        """What is read and written at least, each element once."""
        extents = (*self.rows, *self.elements)
        total = 0
        for each in self.tensors:
            strides = (*each.rows, *each.elements)
            used = (n for n, step in zip(extents, strides, strict=True) if step)
            total += math.prod(used) * each.dtype.bytes
        return total

    def request(self, addresses: Sequence[int]) -> LinesRequest:
        """Return what the host shim is asked, for the addresses of :attr:`tensors`."""
        tensors = tuple(
            LineTensor(pointer=address, outer=each.rows, inner=each.elements)
            for address, each in zip(addresses, self.tensors, strict=False)
        )
        (bits,) = struct.unpack("<i", struct.pack("<f", self.epsilon))
        return LinesRequest(outer=self.rows, inner=self.elements, tensors=tensors, step=bits)

    def __str__(self) -> str:
        rows = "x".join(map(str, self.rows)) or "1"
        return f"[{rows}] rows of {self.length}: {self.signature.words}"


def problem_of(match: Match, rows: RowwiseProblem) -> CkTileRowsProblem:
    """Return the problem of CK Tile's kernel.

    Args:
        match: Which kernel.
        rows: The same problem of our own.
    """
    by_name = {each.value: each for each in rows.reads}
    operands = tuple(by_name[name] for name in match.operands)
    (result,) = rows.outputs
    kernel = match.kernel
    if kernel.copies and not _is_transpose(rows, operands[0], result):
        kernel = UpstreamKernel.PERMUTE
    return CkTileRowsProblem(
        signature=CkTileRowsSignature(kernel=kernel, dtype=operands[0].dtype, result=result.dtype),
        rows=rows.rows,
        elements=rows.elements,
        operands=operands,
        result=result,
        epsilon=match.epsilon,
    )


def _is_transpose(rows: RowwiseProblem, x: RowwiseTensor, y: RowwiseTensor) -> bool:
    """Tell whether a copy exchanges the last two axes of tensors without gaps."""
    if len(rows.rows) > 2 or len(rows.elements) != 1:
        return False
    width, height = rows.rows[-1], rows.elements[0]
    batch = (width * height,) if len(rows.rows) == 2 else ()
    is_read = (x.rows, x.elements) == ((*batch, 1), (width,))
    return is_read and (y.rows, y.elements) == ((*batch, height), (1,))
