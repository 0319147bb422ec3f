# SPDX-License-Identifier: MIT
"""An axis as NumPy's functions name it."""

from __future__ import annotations

__all__ = ["read_axis"]


def read_axis(axis: object, rank: int) -> int:
    """Return an axis counted from the first."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise ValueError(  # noqa: TRY004 - becomes F067, a value error
            f"the axis is {axis!r}", "legal: an integer"
        )
    if not -rank <= axis < rank:
        raise ValueError(
            f"the axis is {axis}, but there are {rank} axes", f"legal: {-rank} to {rank - 1}"
        )
    return axis % rank
