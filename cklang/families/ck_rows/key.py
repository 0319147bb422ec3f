# SPDX-License-Identifier: MIT
"""The identity of one of CK Tile's own kernels of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.codec import later
from cklang.dims import require_integer
from cklang.keys import Key, make_members
from cklang.types import DType


class UpstreamKernel(Enum):
    """Which of CK Tile's kernels: the name of its folder there."""

    RMSNORM2D = "rmsnorm2d"
    LAYERNORM2D = "layernorm2d"
    REDUCE_SUM = "reduce_sum"
    """``reduce`` with additions."""
    REDUCE_MAX = "reduce_max"
    """``reduce`` with maxima: an operation of ours, since CK Tile's loses nan."""
    ELEMENTWISE_ADD = "elementwise_add"
    """``elementwise`` with an addition."""
    SMOOTHQUANT = "smoothquant"
    """Rows times a vector, each divided by its own scale, and the scales."""
    ADD_RMSNORM2D_RDQUANT = "add_rmsnorm2d_rdquant"
    """A sum of matrices, which is stored too, its norm over a scale of each row, and the scales."""
    POOL_SUM = "pool_sum"
    """``pooling`` with additions: sums over windows of an image."""
    POOL_MAX = "pool_max"
    """``pooling`` with the maxima of ``reduce_max``."""
    TOPK_SOFTMAX = "topk_softmax"
    """The greatest elements of the softmax of each row, and their indices."""
    BATCHED_TRANSPOSE = "batched_transpose"
    """A copy that exchanges the last two axes."""
    IMAGE_TO_COLUMN = "image_to_column"
    """A copy of the windows of an image, side by side, into a row each."""
    PERMUTE = "permute"
    """Any other copy into memory without gaps, an element a thread."""

    @property
    def copies(self) -> bool:
        """Whether it only moves elements."""
        kernel = UpstreamKernel
        return self in (kernel.BATCHED_TRANSPOSE, kernel.PERMUTE, kernel.IMAGE_TO_COLUMN)

    @property
    def quantises(self) -> bool:
        """Whether it divides each row by a scale, which it stores."""
        return self in (UpstreamKernel.SMOOTHQUANT, UpstreamKernel.ADD_RMSNORM2D_RDQUANT)

    @property
    def pools(self) -> bool:
        """Whether it reduces windows of an image."""
        return self in (UpstreamKernel.POOL_SUM, UpstreamKernel.POOL_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CkTileRowsSignature:
    """What a kernel computes. Epsilon and extents are numbers of a launch."""

    kernel: UpstreamKernel
    dtype: DType
    """The dtype of what is read, gain and bias included; scales are f32."""
    result: DType
    """The dtype of what is written; of the quantised result where there are several."""
    functions: str = ""
    """No function of the user's is called."""
    experts: int = later(default=0)
    """The elements of the longest row of a gate, a power of two; 0 of other kernels."""

    family: ClassVar[str] = "ck_rows"

    def __post_init__(self) -> None:
        make_members(self, {"kernel": UpstreamKernel})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"CK Tile's {self.kernel.value} of {self.dtype} to {self.result}"

    def label(self, algorithm: CkTileRows) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        a = algorithm
        shape = f"{a.threads}x{a.vector}x{a.repeats}"
        passes = ["two_pass"] if a.two_pass else []
        passes += [f"of{self.experts}"] if self.experts else []
        return [self.family, self.kernel.value, str(self.dtype), str(self.result), *passes, shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class CkTileRows:
    """How one of CK Tile's own kernels of rows runs, for ``op.using``.

    Which kernel it is follows from what the op computes.

    Example:
        >>> ck.dispatch.CkTileRows(threads=256, vector=8, repeats=2).longest
        4096
    """

    threads: int = 256
    """Threads of a workgroup, which has one row, or of a transpose one tile of 64 by 64."""
    vector: int = 8
    """Elements that one access loads; 1 of a transpose for extents that are no multiples of 64, and
    of every permutation."""
    repeats: int = 1
    """Vectors of a row that each thread of a norm keeps; rows that each has of a gate; elsewhere,
    vectors that it loads at once."""
    two_pass: bool = False
    """Whether a norm reads its row twice, for rows that do not fit."""

    def __post_init__(self) -> None:
        for name in ("threads", "vector", "repeats"):
            require_integer(name, getattr(self, name))

    @property
    def longest(self) -> int:
        """The elements of a row that the threads load at once."""
        return self.threads * self.vector * self.repeats


CkTileRowsKey: TypeAlias = Key[CkTileRowsSignature, CkTileRows]
"""The identity of a kernel."""
