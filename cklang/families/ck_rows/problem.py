# SPDX-License-Identifier: MIT
"""One launch of CK Tile's own kernel of rows as numbers."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.families.ck_rows.key import CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.recognise import Match
from cklang.families.lines import LinesRequest, LineTensor
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor

_MATRICES = {UpstreamKernel.ELEMENTWISE_ADD: 2, UpstreamKernel.ADD_RMSNORM2D_RDQUANT: 2}
"""How many operands have rows, where it is not one."""

_BY_ROW = (
    UpstreamKernel.REDUCE_SUM,
    UpstreamKernel.REDUCE_MAX,
    UpstreamKernel.SMOOTHQUANT,
    UpstreamKernel.ADD_RMSNORM2D_RDQUANT,
)
"""Kernels whose last result has one element for each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CkTileRowsProblem:
    """Rows and elements as kernels of rows count them, and the tensors that CK Tile's reads."""

    signature: CkTileRowsSignature
    rows: tuple[int, ...]
    """Extents of the axes that count rows, outermost first."""
    elements: tuple[int, ...]
    operands: tuple[RowwiseTensor, ...]
    """x, y, gain and bias, as many as there are."""
    results: tuple[RowwiseTensor, ...]
    """The sum that a norm is of, what is computed, and the scales of rows: as many as there are."""
    epsilon: float
    most: float = 0.0
    """What the largest of a row becomes where rows are quantised."""
    wanted: int = 0
    """The elements of a row that a gate gives."""

    @property
    def tensors(self) -> tuple[RowwiseTensor, ...]:
        """All tensors in memory, by whose addresses the shim is asked."""
        return (*self.operands, *self.results)

    @property
    def matrices(self) -> tuple[RowwiseTensor, ...]:
        """The operands that have rows."""
        return self.operands[: _MATRICES.get(self.signature.kernel, 1)]

    @property
    def vectors(self) -> tuple[RowwiseTensor, ...]:
        """The others, which have one row for all."""
        return self.operands[len(self.matrices) :]

    @property
    def of_elements(self) -> tuple[RowwiseTensor, ...]:
        """The results that have an element for each of a row's."""
        return self.results[: len(self.results) - (self.signature.kernel in _BY_ROW)]

    @property
    def of_rows(self) -> tuple[RowwiseTensor, ...]:
        """The results that have one for each row."""
        return self.results[len(self.of_elements) :]

    @property
    def result(self) -> RowwiseTensor:
        """The only result, or the first one."""
        return self.results[0]

    @property
    def length(self) -> int:
        """The elements of a row."""
        return math.prod(self.elements)

    @property
    def bytes(self) -> int:
        """What is read and written at least, each element once."""
        extents = (*self.rows, *self.elements)
        total = 0
        for tensor in self.tensors:
            strides = (*tensor.rows, *tensor.elements)
            used = (n for n, step in zip(extents, strides, strict=True) if step)
            total += math.prod(used) * tensor.dtype.bytes
        return total

    def request(self, addresses: Sequence[int]) -> LinesRequest:
        """Return what the host shim is asked, for the addresses of :attr:`tensors`."""
        tensors = tuple(
            LineTensor(pointer=address, outer=tensor.rows, inner=tensor.elements)
            for address, tensor in zip(addresses, self.tensors, strict=False)
        )
        (bits,) = struct.unpack("<i", struct.pack("<f", self.epsilon))
        return LinesRequest(
            outer=self.rows, inner=self.elements, tensors=tensors, step=bits, extent=self.wanted
        )

    def __str__(self) -> str:
        rows = "x".join(map(str, self.rows)) or "1"
        return f"[{rows}] rows of {self.length}: {self.signature.words}"


WINDOW_AXES = 3
"""Axes of rows that are windows: down and across the image, and lines of a window or channels."""

_POOLS = {
    UpstreamKernel.REDUCE_SUM: UpstreamKernel.POOL_SUM,
    UpstreamKernel.REDUCE_MAX: UpstreamKernel.POOL_MAX,
}
"""What reduces along two axes at once."""


def problem_of(match: Match, rows: RowwiseProblem) -> CkTileRowsProblem:
    """Return the problem of CK Tile's kernel."""
    by_name = {operand.value: operand for operand in rows.reads}
    operands = tuple(by_name[name] for name in match.operands)
    outputs = {output.value: output for output in rows.outputs}
    results = tuple(outputs[name] for name in match.results)
    kernel = match.kernel
    if kernel.copies:
        kernel = _copy(rows, operands[0], results[0])
    if len(rows.elements) > 1:
        kernel = _POOLS.get(kernel, kernel)
    written = results[-2 if kernel.quantises else 0]
    return CkTileRowsProblem(
        signature=CkTileRowsSignature(kernel=kernel, dtype=operands[0].dtype, result=written.dtype),
        rows=rows.rows,
        elements=rows.elements,
        operands=operands,
        results=results,
        epsilon=match.epsilon,
        most=match.most,
    )


def _copy(rows: RowwiseProblem, x: RowwiseTensor, y: RowwiseTensor) -> UpstreamKernel:
    """Return what copies x to y."""
    if _is_transpose(rows, x, y):
        return UpstreamKernel.BATCHED_TRANSPOSE
    return UpstreamKernel.IMAGE_TO_COLUMN if _has_windows(rows, x) else UpstreamKernel.PERMUTE


def _has_windows(rows: RowwiseProblem, x: RowwiseTensor) -> bool:
    """Tell whether rows are places down and across and lines of a window, side by side in x."""
    if len(rows.rows) != WINDOW_AXES or len(rows.elements) != 1 or x.elements != (1,):
        return False
    down, across, line = x.rows
    return across == rows.elements[0] and down == rows.rows[-1] * line


def _is_transpose(rows: RowwiseProblem, x: RowwiseTensor, y: RowwiseTensor) -> bool:
    """Tell whether a copy exchanges the last two axes of tensors without gaps."""
    if len(rows.rows) > 2 or len(rows.elements) != 1:
        return False
    width, height = rows.rows[-1], rows.elements[0]
    batch = (width * height,) if len(rows.rows) == 2 else ()
    is_read = (x.rows, x.elements) == ((*batch, 1), (width,))
    return is_read and (y.rows, y.elements) == ((*batch, height), (1,))
