# SPDX-License-Identifier: MIT
"""The identity of a kernel that moves a window over images, and what a thread of it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.codec import later
from cklang.dims import require_integer
from cklang.keys import Key, make_members
from cklang.types import DType

Space: TypeAlias = tuple[int, int, int]
"""A number for each axis z, y and x."""


class Windowed(Enum):
    """What becomes of the elements of a window."""

    PRODUCTS = "products"
    """The sum of their products with weights."""
    LARGEST = "largest"
    MEAN = "mean"
    """Their mean, with zeros beyond the borders."""
    INSIDE = "inside"
    """The mean of those within the borders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOperand:
    """An operand of the function that follows."""

    dtype: DType
    contiguous: bool
    """Whether its channels are neighbours in memory."""
    common: bool
    """Whether all pixels of an image have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSignature:
    """What a kernel computes."""

    how: Windowed
    dtype_a: DType
    """The images' type."""
    dtype_b: DType
    """The weights' type."""
    dtype_e: DType
    window: Space
    stride: Space = (1, 1, 1)
    dilation: Space = (1, 1, 1)
    channels: int = 1
    """Channels of a group."""
    features: int = 1
    """Features of a group."""
    neighbours: bool = True
    """Whether channels are neighbours in memory; else pixels along x are."""
    d: tuple[WindowOperand, ...] = ()
    functions: str = ""
    """Digest of the function that follows; empty in the key of a stencil."""

    family: ClassVar[str] = "windows"

    def __post_init__(self) -> None:
        make_members(self, {"how": Windowed})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        window = "x".join(map(str, self.window))
        kind = f"{self.how.value} of windows of {window}, {self.dtype_a} to {self.dtype_e}"
        return f"{kind}, {'channels' if self.neighbours else 'pixels'} contiguous"

    def label(self, algorithm: WindowAlgorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        a = algorithm
        window = "x".join(map(str, self.window))
        tile = f"{a.vector}x{a.columns}x{a.rows}" + (f"x{a.planes}" if a.planes > 1 else "")
        types = (self.dtype_a.name, self.dtype_e.name)
        return [self.family, self.how.value, *types, window, f"d{len(self.d)}", tile]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAlgorithm:
    """What a thread computes.

    Example:
        >>> ck.dispatch.WindowAlgorithm(vector=2, columns=4, rows=4).pixels
        16
    """

    vector: int
    """Neighbouring channels, or, where pixels are neighbours, features that share them."""
    columns: int
    """Pixels along x."""
    rows: int
    """Pixels along y."""
    threads: int = 256
    """Threads of a workgroup."""
    planes: int = later(default=1)
    """Pixels along z."""

    def __post_init__(self) -> None:
        for name in ("vector", "columns", "rows", "threads", "planes"):
            require_integer(name, getattr(self, name))

    @property
    def pixels(self) -> int:
        """The pixels of a thread."""
        return self.columns * self.rows * self.planes


WindowKey: TypeAlias = Key[WindowSignature, WindowAlgorithm]
"""The identity of such a kernel."""


def read_places(tile: int, stride: int, window: int, dilation: int) -> int:
    """Return how many places along an axis the windows of neighbouring pixels have together.

    Example:
        >>> read_places(4, 1, 3, 1), read_places(4, 2, 1, 1)
        (6, 4)
    """
    return len({t * stride + tap * dilation for t in range(tile) for tap in range(window)})


_LINE = 128
"""Bytes of neighbouring channels that a workgroup has at most."""


def block_of(signature: WindowSignature, algorithm: WindowAlgorithm, vectors: int) -> int:
    """Return how many of the vectors of channels a workgroup has; 1 if it has one channel.

    Blocks are alike, as far as they can be.
    """
    if not signature.neighbours:
        return 1
    blocks = -(-vectors // most_of_block(signature, algorithm))
    return -(-vectors // blocks)


def most_of_block(signature: WindowSignature, algorithm: WindowAlgorithm) -> int:
    """Return how many vectors of channels a workgroup has at most."""
    return _LINE // signature.dtype_a.bytes // algorithm.vector
