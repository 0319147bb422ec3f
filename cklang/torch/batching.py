# SPDX-License-Identifier: MIT
"""``torch.vmap`` of an op: one call for each element of the batch, stacked.

An op has the batch axes that it declares. One that is to run over a batch in one launch declares
the axis, ``x: ck.f16[B, M, K]``.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["register_loop"]


def register_loop(overload: Any, qualname: str, library: torch.library.Library) -> None:
    """Let ``torch.vmap`` call an overload in a loop."""

    def loop(info: Any, in_dims: Any, *values: Any, **options: Any) -> tuple[Any, Any]:
        results = [
            overload(*_at(values, in_dims, index), **options) for index in range(info.batch_size)
        ]
        if not results:
            return _none_of(overload(*_zeros(values, in_dims), **options))
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        stacked = tuple(map(torch.stack, zip(*results, strict=True)))
        return stacked, (0,) * len(stacked)

    torch.library.register_vmap(qualname, loop, lib=library)


def _at(values: Any, in_dims: Any, index: int) -> list[Any]:
    pairs = zip(values, in_dims, strict=True)
    return [value if dim is None else value.select(dim, index) for value, dim in pairs]


def _zeros(values: Any, in_dims: Any) -> list[Any]:
    """Return arguments of one call where the batch has no element to take them from."""
    return [
        value
        if dim is None
        else value.new_zeros([n for axis, n in enumerate(value.shape) if axis != dim])
        for value, dim in zip(values, in_dims, strict=True)
    ]


def _none_of(result: Any) -> tuple[Any, Any]:
    if isinstance(result, torch.Tensor):
        return result.new_empty((0, *result.shape)), 0
    return tuple(each.new_empty((0, *each.shape)) for each in result), (0,) * len(result)
