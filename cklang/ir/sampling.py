# SPDX-License-Identifier: MIT
"""The op ``sample``: a token of each row of logits, drawn by the softmax of those that pass.

The operands beside the logits are of rank 0, or have a number for each row. A row is read so:

- The *weight* of a logit x is exp((x - m) / temperature), m being the greatest of the row, in whole
  multiples of 2**-40: what is below that is never drawn. nan counts as -inf, whose weight is 0, and
  inf as the largest f32.
- A temperature below 1e-5, or nan, takes the first of the greatest logits.
- Logits below m + temperature log(min_p) do not pass: their weight is below ``min_p``. One below 0,
  or nan, lets every one pass; above 1 it counts as 1.
- Nor do those below the ``top_k`` greatest. All that equal the last of them pass. ``top_k`` below 1
  or of all logits lets every one pass.
- Nor do those for which the greater ones that pass so far have ``top_p`` of their weights or more.
  Equal logits pass together. A ``top_p`` of 1 or more, or nan, lets every one pass.
- The greatest logit always passes. The token is the first at which the weights that pass, added up
  in the order of tokens, exceed the share r / 2**64 of their sum.
- r are 64 bits of Philox (:mod:`cklang.ir.philox`) with the seed as key and the offset as counter;
  the upper half of the counter is the number of the row if all have one seed, else 0.
- In a row without a logit above -inf the token is 0.
"""

import math
from collections.abc import Mapping

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array, largest
from cklang.ir.philox import philox
from cklang.ir.reductions import MOST_AXES, ROW_DTYPES
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, f32, i32, i64

SAMPLE = "sample"
"""The name of the op."""

OPERANDS: Mapping[str, tuple[DType, ...]] = {
    "logits": ROW_DTYPES,
    "seed": (i32, i64),
    "offset": (i32, i64),
    "temperature": (f32,),
    "top_k": (i32,),
    "top_p": (f32,),
    "min_p": (f32,),
}
"""The operands and their dtypes."""

ONE = 2.0**40
"""The weight of the greatest logit as an integer."""

_LEAST_TEMPERATURE = float(np.float32(1e-5))
_COLDEST = 2.0**-100
"""The least that logits are multiplied by, for an infinite temperature."""


def is_greedy(temperature: float) -> bool:
    """Tell whether the greatest logit is taken."""
    return not temperature >= _LEAST_TEMPERATURE


def limited(x: Array) -> Array:
    """Return the logits of a row as kernels take them."""
    return np.where(np.isnan(x), -np.inf, np.minimum(x, largest("f32")))


def factor(temperature: float) -> float:
    """Return what differences of logits are multiplied by."""
    return max(1.0 / temperature, _COLDEST)


def reach(temperature: float, min_p: float) -> float:
    """Return how far below the greatest logit others pass.

    >>> reach(2.0, 1.0), reach(1.0, 0.0)
    (0.0, inf)
    """
    return math.log(1.0 / min(min_p, 1.0)) / factor(temperature) if min_p > 0.0 else math.inf


def fixed_point(weights: Array) -> Array:
    """Return weights as whole multiples of 2**-40.

    >>> fixed_point(np.array([1.0, 2.0**-40, 2.0**-41])).tolist()
    [1099511627776, 1, 0]
    """
    return (weights * ONE).astype(np.uint64)


def passing(x: Array, weights: Array, top_k: int, top_p: float, span: float) -> Array:
    """Tell which of the logits of a row may be drawn; those beyond a span below the first may not.

    >>> x = np.array([2.0, 5.0, 4.0, 4.0])
    >>> passing(x, fixed_point(np.exp(x - 5)), 2, 0.8, np.inf).tolist()
    [False, True, True, True]
    """
    passes: Array = x >= x.max() - span
    if 0 < top_k < x.size:
        passes &= x >= np.partition(x, x.size - top_k)[x.size - top_k]
    if top_p < 1.0:
        kept = np.where(passes, weights, 0)
        least = at_least(top_p, int(kept.sum()))
        order = np.argsort(-x, kind="stable")
        until = np.cumsum(kept[order])
        # The first that reaches it, and all that equal it.
        passes &= x >= x[order[np.argmax(until >= least)]]
    return passes


def at_least(top_p: float, total: int) -> float:
    """Return what the weights that pass are to sum up to."""
    return max(float(np.ceil(top_p * float(total))), 1.0)


def random_bits(seed: Array, offset: Array, rows: tuple[int, ...]) -> list[int]:
    """Return the 64 bits by which the token of each row is drawn."""
    numbers = [np.broadcast_to(number, rows).astype(np.int64).ravel() for number in (seed, offset)]
    key, counter = (number.astype(np.uint64) for number in numbers)
    stream = np.arange(key.size, dtype=np.uint64) * np.uint64(not seed.ndim)
    words = philox(counter, stream, key)
    return [int(high) << 32 | int(low) for low, high, *_ in words]


def sample(x: Array, seed: Array, offset: Array, *numbers: Array) -> Array:
    """Return a token of each row; ``numbers`` are the other operands."""
    rows = x.shape[:-1]
    bits = random_bits(seed, offset, rows)
    columns = [np.broadcast_to(number, rows).ravel().tolist() for number in numbers]
    lines = x.reshape(len(bits), x.shape[-1])
    tokens = [_token(*row) for row in zip(lines, bits, *columns, strict=True)]
    return np.array(tokens, np.int64).reshape(rows)


def _token(x: Array, bits: int, temperature: float, top_k: int, top_p: float, min_p: float) -> int:
    x = limited(x)
    if is_greedy(temperature) or x.max() == -np.inf:
        return int(x.argmax())
    weights = fixed_point(np.exp((x - x.max()) * factor(temperature)))
    passes = passing(x, weights, top_k, top_p, reach(temperature, min_p))
    until = np.cumsum(np.where(passes, weights, 0))
    return int(np.argmax(until > bits * int(until[-1]) >> 64))


def _shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    logits, *numbers = shapes
    if not 1 <= len(logits) <= MOST_AXES:
        return None
    rows = logits[:-1]
    return rows if all(shape in ((), rows) for shape in numbers) else None


def _dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    fits = (dtype in legal for dtype, legal in zip(dtypes, OPERANDS.values(), strict=True))
    return i32 if all(fits) else None


SAMPLE_SHAPE = ShapeRule(
    text=f"logits of one to {MOST_AXES} axes; the others are of rank 0 or have all of its axes but "
    "the last",
    apply=_shape,
)
SAMPLE_DTYPE = DTypeRule(
    text="logits of f16, bf16 or f32; seed and offset of i32 or i64; top_k of i32, temperature, "
    "top_p and min_p of f32; gives i32",
    apply=_dtype,
)
