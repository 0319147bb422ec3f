# SPDX-License-Identifier: MIT
"""Arrays for the ops of tests; random ones depend on shape and seed alone.

:func:`drawn` makes all arguments of an op and :func:`drawn_for_gradient` those of its gradient;
:func:`half`, :func:`normal`, :func:`uniform` and :func:`eighths` make one array.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cklang.frontend.signature import Parameter
from cklang.runtime.op import Op
from cklang.types import Blocks, Dim, DType, DTypeVar, Kind, e8m0, f16, i4

Array = np.ndarray[Any, Any]


def half(*shape: int) -> Array:
    """Return zeros of f16, for calls that are planned and not run."""
    return np.zeros(shape, np.float16)


def normal(*shape: int, dtype: DType = f16, seed: int = 0) -> Array:
    """Return normally distributed numbers, the same ones for the same shape and seed."""
    return _rng(seed, *shape).standard_normal(shape).astype(dtype.numpy)


def uniform(*shape: int, dtype: DType = f16, seed: int = 0) -> Array:
    """Return numbers in [-1, 1), the same ones for the same shape and seed."""
    return _rng(seed, *shape).uniform(-1, 1, shape).astype(dtype.numpy)


def eighths(*shape: int, dtype: DType = f16, seed: int = 0) -> Array:
    """Return multiples of 1/8 in [-1, 1]: short sums of their products are exact in f32."""
    return (_rng(seed, *shape).integers(-8, 9, shape) / 8).astype(dtype.numpy)


def mnk(m: int, n: int, k: int) -> dict[str, int]:
    """Return the extents of the dims of a product, as :func:`drawn` takes them."""
    return {"M": m, "N": n, "K": k}


def drawn(op: Op, sizes: Mapping[str, int], *, seed: int = 0, **dtypes: DType) -> list[Any]:
    """Return random arguments of an op, without its compile-time constants.

    Floats are normally distributed. Integers cover 8 bits (``i4``: 4), and scales of ``e8m0`` are
    2**-7 to 2**6.

    Args:
        op: The op, whose parameters are arrays.
        sizes: The extent of each dim, by name.
        seed: Chooses other numbers for the same sizes.
        dtypes: The dtype of each dtype variable, by name.
    """
    rng = _rng(seed, *sizes.values())
    parameters = op.program.signature.tensors
    return [
        random_array(rng, [_extent(each, sizes) for each in _shape(p)], _dtype(p, dtypes))
        for p in parameters
    ]


def drawn_for_gradient(op: Op, sizes: Mapping[str, int], seed: int = 0) -> list[Any]:
    """Return normally distributed arguments of an op's gradient, the results' gradients last."""
    rng = np.random.default_rng(seed)
    function = op.program.specialise()
    types = [each.type for each in (*function.params, *function.results)]
    return [rng.standard_normal(t.extents(sizes)).astype(t.dtype.numpy) for t in types]


def laid_out_as(layouts: str, x: Array, w: Array) -> tuple[Array, Array]:
    """Return A = x [M, K] and the transpose of B, w [N, K], with the strides of such layouts.

    A row-major B is a column-major w.

    Args:
        layouts: Those of A and B: ``"rc"`` leaves both arrays as they are.
        x: A row-major array.
        w: A row-major array.
    """
    return (
        np.asfortranarray(x) if layouts[0] == "c" else x,
        np.asfortranarray(w) if layouts[1] == "r" else w,
    )


def _rng(*seeds: int) -> np.random.Generator:
    return np.random.default_rng(seeds)


def _shape(parameter: Parameter) -> tuple[Any, ...]:
    shape: tuple[Any, ...] = parameter.type.shape  # type: ignore[union-attr]
    return shape


def _extent(extent: Dim | int, sizes: Mapping[str, int]) -> int:
    if isinstance(extent, Blocks):
        return extent.count(sizes[extent.of.name])
    return sizes[extent.name] if isinstance(extent, Dim) else extent


def _dtype(parameter: Parameter, dtypes: Mapping[str, DType]) -> DType:
    var: DTypeVar | None = getattr(parameter.type, "var", None)
    if var is not None:
        return dtypes[var.name]
    dtype: DType = parameter.type.dtype  # type: ignore[union-attr]
    return dtype


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Return random elements of a dtype, as :func:`drawn` has them."""
    if dtype == e8m0:
        return rng.integers(120, 134, shape).astype(np.uint8).view(dtype.numpy)
    if dtype.kind is Kind.INT:
        most = 8 if dtype == i4 else 128
        return rng.integers(-most, most, shape).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)
