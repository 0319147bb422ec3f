# SPDX-License-Identifier: MIT
"""Which elements of tensors lanes hold, found by their values.

A register that was loaded from a tensor holds bytes that the tensor has in one place, if they are
enough. That says which tile of the tensor a wave has, and how CK Tile distributes it over lanes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ENOUGH = 4
"""Bytes; fewer are in too many places."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Elements of a tensor that follow each other along its last axis."""

    tensor: str
    index: tuple[int, ...]
    """Index of the first element."""
    count: int

    def __str__(self) -> str:
        *outer, last = self.index
        return f"{self.tensor}[{', '.join([*map(str, outer), f'{last}:{last + self.count}'])}]"


def _places(piece: bytes, data: bytes, size: int) -> list[int]:
    """Return the first elements at which bytes are found; two at most."""
    places: list[int] = []
    at = data.find(piece)
    while at >= 0 and len(places) < 2:
        if at % size == 0:
            places.append(at // size)
        at = data.find(piece, at + 1)
    return places


def origin_of(
    values: npt.NDArray[np.generic], tensors: Mapping[str, npt.NDArray[np.generic]]
) -> Origin | None:
    """Return where values are in tensors of their dtype; None if nowhere or in several places.

    Example:
        >>> x = np.arange(12, dtype=np.float16).reshape(3, 4)
        >>> str(origin_of(np.array([6, 7], np.float16), {"x": x}))
        'x[1, 2:4]'
        >>> origin_of(np.array([7, 8], np.float16), {"x": x}) is None
        True
    """
    piece = values.tobytes()
    if len(piece) < _ENOUGH or not values.astype(bool).any():
        return None
    origins = []
    for name, tensor in tensors.items():
        if tensor.dtype != values.dtype:
            continue
        for place in _places(piece, tensor.tobytes(), values.itemsize):
            index = tuple(int(position) for position in np.unravel_index(place, tensor.shape))
            if index[-1] + len(values) <= tensor.shape[-1]:
                origins.append(Origin(name, index, len(values)))
    return origins[0] if len(origins) == 1 else None


def origins_text(
    values: npt.NDArray[np.generic], tensors: Mapping[str, npt.NDArray[np.generic]]
) -> str:
    """Return the origin of each lane's values [lane, element], a line each.

    Example:
        >>> x = np.arange(8, dtype=np.float32).reshape(2, 4)
        >>> print(origins_text(np.array([[1, 2], [5, 6], [9, 9]], np.float32), {"x": x}))
        lane 0: x[0, 1:3]
        lane 1: x[1, 1:3]
        lane 2: in no tensor, or in several places
    """
    rows = (origin_of(lane, tensors) for lane in values)
    unknown = "in no tensor, or in several places"
    return "\n".join(
        f"lane {lane}: {unknown if row is None else row}" for lane, row in enumerate(rows)
    )
