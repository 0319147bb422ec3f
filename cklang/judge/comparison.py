# SPDX-License-Identifier: MIT
"""Results beside the reference's in float64, with a bound that follows from dtypes.

An element may differ by a few roundings of the narrowest dtype of floats among inputs and results,
relative to itself and to the root mean square of all, and by four times what the reference in its
own dtypes differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

_ROUNDINGS = 8
"""How many of the narrowest dtype an element may be off."""
_SUM = 64 * 2.0**-24
"""What sums in f32 may be off, which kernels take in another order."""
_OF_OWN = 4


def compared(got: Any, exact: Any, own: Any, inputs: Sequence[Any], *, special: bool) -> str:
    """Return how results differ from the reference; empty if they do not.

    Args:
        got: The submission's.
        exact: The reference's, in float64 where that could be.
        own: The reference's in its own dtypes.
        inputs: The arguments, whose dtypes count.
        special: Whether infinities and NaNs may be anywhere, so that bounds are per element.
    """
    results, wanted, natural = (_tensors(value) for value in (got, exact, own))
    if len(results) != len(wanted):
        return f"{len(results)} results, and the reference has {len(wanted)}"
    narrow = _roundoff([*_tensors(inputs), *natural])
    for number, rows in enumerate(zip(results, wanted, natural, strict=True)):
        value, want, natively = (row.cpu() for row in rows)
        problem = _difference(value, want, natively, narrow, special=special)
        if problem:
            return f"result {number}: {problem}"
    return ""


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _roundoff(tensors: Sequence[torch.Tensor]) -> float:
    """Return the largest relative error of a rounding to one of the dtypes."""
    floats = [torch.finfo(tensor.dtype).eps / 2 for tensor in tensors if tensor.is_floating_point()]
    return max(floats, default=0.0)


def _difference(
    got: torch.Tensor, exact: torch.Tensor, own: torch.Tensor, narrow: float, *, special: bool
) -> str:
    if got.shape != exact.shape:
        return f"shape {tuple(got.shape)}, and the reference's is {tuple(exact.shape)}"
    if got.dtype != own.dtype:
        return f"dtype {got.dtype}, and the reference's is {own.dtype}"
    if not exact.is_floating_point():
        wrong = got != exact
        return _first(wrong, got, exact) if bool(wrong.any()) else ""
    value, want, near = got.double(), exact.double(), own.double()
    finite = want.isfinite() & near.isfinite()
    odd = ~finite & ~(value.isnan() & near.isnan()) & (value != near)
    size = want[finite].square().mean().sqrt() if bool(finite.any()) else torch.zeros(())
    scale = want.abs() if special else want.abs() + size
    distance = (near - want).abs()
    slack = distance if special else distance[finite].max() if bool(finite.any()) else size
    bound = (_ROUNDINGS * narrow + _SUM) * scale + _OF_OWN * slack
    wrong = odd | (finite & ~((value - want).abs() <= bound))
    return _first(wrong, value, want) if bool(wrong.any()) else ""


def _first(wrong: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> str:
    at = wrong.nonzero()[0].tolist()
    place, count = tuple(at), int(wrong.sum())
    return (
        f"{count} of {wrong.numel()} elements differ; element {at} is {got[place].item():.6g}, "
        f"and the reference's is {want[place].item():.6g}"
    )
