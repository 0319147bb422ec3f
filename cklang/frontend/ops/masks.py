# SPDX-License-Identifier: MIT
"""The named masks of attention, windows around the diagonal, and masks joined by & and |."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cklang.errors import error
from cklang.widths import I32_MAX

CORNERS = ("top_left", "bottom_right")
"""Which corner of the matrix of scores the diagonal starts in: they differ if lengths do."""


JOINS: Mapping[str, str] = MappingProxyType({"&": "logical_and", "|": "logical_or"})
"""The operators that join masks, with the op that computes each."""


class Mask:
    """A mask without a function: ``&`` and ``|`` join it with other masks and with functions."""

    __slots__ = ()

    def __and__(self, other: object) -> Joined:
        return join_masks("&", self, other)

    def __rand__(self, other: object) -> Joined:
        return join_masks("&", other, self)

    def __or__(self, other: object) -> Joined:
        return join_masks("|", self, other)

    def __ror__(self, other: object) -> Joined:
        return join_masks("|", other, self)


@dataclass(frozen=True, slots=True)
class Joined(Mask):
    """Two masks and the sign that joins them; each is a :class:`Mask` or a function of indices."""

    sign: str
    left: Any
    right: Any


def join_masks(sign: str, left: Any, right: Any) -> Joined:
    """Return two masks as one.

    Raises:
        CkValueError: F096, an operand is neither a mask nor a function.
    """
    for side in (left, right):
        if not isinstance(side, Mask) and not callable(side):
            legal = "a mask or a function, as in ck.causal() & (lambda i, j: i // 7 == j // 7)"
            raise error(
                "F096", what=f"operand of {sign} beside a mask", got=repr(side), legal=legal
            )
    return Joined(sign, left, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Mask):
    """Which keys a query row sees.

    Row i sees key j where ``i + d - left <= j <= i + d + right``, d being 0 with the corner
    top_left and k_len - q_len with bottom_right; None is no limit. ``sink`` keys at the start are
    not subject to the left limit.
    """

    left: int | None = None
    right: int | None = None
    corner: str = "top_left"
    sink: int = 0

    def __post_init__(self) -> None:
        for name in ("left", "right", "sink"):
            value = getattr(self, name)
            legal = type(value) is int and 0 <= value <= I32_MAX
            if not legal and (value is not None or name == "sink"):
                raise error("F096", what=name, got=value, legal="an integer of 0 or more")
        if self.corner not in CORNERS:
            legal_corners = " or ".join(repr(corner) for corner in CORNERS)
            raise error("F096", what="corner", got=repr(self.corner), legal=legal_corners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(Mask):
    """Which keys a query row sees, by blocks of scores.

    Row i sees key j where ``blocks[b, h, i // rows, j // keys]`` is 2, or 1 and ``mask`` shows it;
    where it is above 0 if ``mask`` is None.
    """

    blocks: Any
    mask: Any = None
    size: tuple[int, int] = (128, 128)

    def __post_init__(self) -> None:
        is_pair = isinstance(self.size, tuple) and len(self.size) == 2
        if not is_pair or not all(type(n) is int and 0 < n <= I32_MAX for n in self.size):
            legal = "two integers above 0, the rows and keys of a block"
            raise error("F096", what="size", got=repr(self.size), legal=legal)


def causal_window(corner: str = "top_left", sink: int = 0) -> Window:
    """Return the mask that hides later keys."""
    return Window(right=0, corner=corner, sink=sink)


def sliding(
    left: int | None = None,
    right: int | None = 0,
    corner: str = "top_left",
    sink: int = 0,
) -> Window:
    """Return the mask that shows ``left`` keys before the diagonal and ``right`` after it."""
    return Window(left=left, right=right, corner=corner, sink=sink)


def visible(window: Window, i: Any, j: Any, q_len: Any, k_len: Any) -> Any:
    """Return which of the keys ``j`` the rows ``i`` see; arrays or numbers."""
    row = i + (k_len - q_len) if window.corner == "bottom_right" else i
    is_visible = j == j
    if window.right is not None:
        is_visible = is_visible & (j <= row + window.right)
    if window.left is not None:
        is_visible = is_visible & ((j >= row - window.left) | (j < window.sink))
    return is_visible
