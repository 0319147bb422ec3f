# SPDX-License-Identifier: MIT
"""``ck.gemm`` with scales: which block of its operand each element of a scale is for.

A scale has the axes of its operand, and along the last two one element for each block; the shapes
say how large blocks are where extents are dims (``K`` and ``K / 128``) or divide, and ``block_a``
and ``block_b`` say it everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cklang.dims import is_integer
from cklang.errors import CkError, error
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.ops.gemm import GEMMS, matmul, product
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir import rules
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.rules import Shape, covers
from cklang.types import Blocks, Dim, Quotient

__all__ = ["gemm"]

_SIDES = ("a", "b")
_WHOLE = "a scale of the whole axis is a factor of the sum: multiply the result of the gemm with it"


def _shapes(*tensors: Any) -> list[Any]:
    """Return the shapes of tensors or arrays, None for one that is left out."""
    return [None if tensor is None else tensor.shape for tensor in tensors]


def _computed(
    a: Any, b: Any, sparse: object, scale_a: Any, scale_b: Any, block_a: Any, block_b: Any
) -> Array:
    left, right = as_array(a), as_array(b)
    if not isinstance(sparse, str) or sparse not in GEMMS:
        raise error("F059", got=repr(sparse))
    if all(item is None for item in (scale_a, scale_b, block_a, block_b)):
        return OPS[GEMMS[sparse]].numpy(left, right)
    if sparse:
        raise error("F059", got=f"{sparse!r} beside scales")
    factors, blocks = scale_arrays((left, right), (scale_a, scale_b), (block_a, block_b))
    return OPS["scaled_gemm"].numpy(left, right, *factors, **blocks)


def scale_arrays(
    matrices: Sequence[Array], scales: Sequence[Any], blocks: Sequence[Any]
) -> tuple[list[Array], dict[str, tuple[int, ...]]]:
    """Return the scales that there are, and the attributes block_a and block_b, of arrays."""
    arrays = [None if scale is None else as_array(scale) for scale in scales]
    attrs = read_blocks(_shapes(*matrices), _shapes(*arrays), blocks, error)
    return [array for array in arrays if array is not None], attrs


@function(
    OPS["gemm"].doc,
    eager=_computed,
    example="""
    >>> a, b = np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((4, 2))
    >>> ck.gemm(a, b)
    array([[10., 10.]])
    >>> ck.gemm(ck.sparse24.prune(a), b, sparse="a")  # 3 + 4
    array([[7., 7.]])
    """,
    explains_numpy=False,
)
def gemm(
    scope: Scope,
    node: Located,
    a: Item,
    b: Item,
    *,
    sparse: Item = "",
    scale_a: Item = None,
    scale_b: Item = None,
    block_a: Item = None,
    block_b: Item = None,
) -> Tensor:
    """Multiply two matrices; with scales, each block of K by itself.

    Raises:
        CkValueError: F059 for a sparse operand beside scales.
        CkTypeError: F037 for a scale or a block that is none, F048 for the dtypes; as
            :func:`cklang.frontend.ops.gemm.matmul`.
        CkValueError: F035 for blocks that are unknown or do not fit, F036 for blocks of K of two
            lengths.
    """
    scale_items = [scale_a, scale_b]
    if all(item is None for item in (*scale_items, block_a, block_b)):
        return matmul(scope, node, a, b, sparse)
    if sparse != "":
        raise scope.error("F059", node, got=f"{describe(sparse)} beside scales")
    matrices, origins = product(scope, node, a, b)
    operands, attrs = scaled_operands(scope, node, matrices, scale_items, (block_a, block_b))
    values = [emit.materialise(scope, node, operand) for operand in operands]
    value = scope.unit.append("scaled_gemm", *values, attrs=attrs, span=scope.span(node))
    return Tensor.plain(value, origins)


def scaled_operands(
    scope: Scope,
    node: Located,
    matrices: Sequence[Tensor],
    scale_items: Sequence[Item],
    block_items: Sequence[Item],
) -> tuple[list[Tensor], dict[str, Attr]]:
    """Return the matrices of a product and their scales, and the attributes block_a and block_b."""
    scales = [
        _scale(scope, node, *side) for side in zip(_SIDES, scale_items, matrices, strict=True)
    ]
    blocks = read_blocks(
        _shapes(*matrices),
        _shapes(*scales),
        block_items,
        lambda code, **names: scope.error(code, node, **names),
    )
    operands = [matrix for matrix in (*matrices, *scales) if matrix is not None]
    dtypes = tuple(operand.dtype for operand in operands)
    if rules.SCALED_DTYPE.apply(dtypes, {}) is None:
        text = rules.SCALED_DTYPE.text
        names = {"a": dtypes[0], "b": f"{dtypes[1]} with scales {', '.join(map(str, dtypes[2:]))}"}
        advice = "cast the scales: s.to(ck.f32)"
        raise scope.error("F048", node, **names, want=text, advice=advice)
    return operands, dict(blocks)


def _scale(scope: Scope, node: Located, side: str, scale: Item, matrix: Tensor) -> Tensor | None:
    """Return a scale with all axes of its matrix: those before the last two may be missing."""
    if scale is None:
        return None
    missing = len(matrix.shape) - len(scale.shape) if isinstance(scale, Tensor) else -1
    if not isinstance(scale, Tensor) or missing < 0 or len(scale.shape) < 2:
        advice = f"a scale of {side} is a tensor with the axes of {side}, one element a block"
        got = describe(scale)
        raise scope.error("F037", node, what=f"scale of {side}", got=got, advice=advice)
    shape = (*matrix.shape[:-2], *scale.shape[-2:])
    if scale.shape == shape:
        return scale
    axes = tuple(axis + missing for axis in scale.axes)
    origins = (*matrix.origins[:-2], *scale.origins[-2:])
    return replace(scale, shape=shape, axes=axes, origins=origins)


def read_blocks(
    matrices: Sequence[Shape],
    scales: Sequence[Shape | None],
    blocks: Sequence[Any],
    fail: Callable[..., CkError],
) -> dict[str, tuple[int, ...]]:
    """Return the attributes block_a and block_b of ``scaled_gemm``; empty for no scale.

    ``matrices`` are the shapes of a and b, ``scales`` those of their scales. ``fail`` makes the
    error of a code and its names.
    """
    attrs: dict[str, tuple[int, ...]] = {}
    for side, matrix, scale, block in zip(_SIDES, matrices, scales, blocks, strict=True):
        attrs[f"block_{side}"] = () if scale is None else _block(side, matrix, scale, block, fail)
        if scale is None and block is not None:
            advice = f"pass scale_{side} with it"
            raise fail("F037", what=f"block of {side}", got="there without a scale", advice=advice)
    if all(attrs.values()) and attrs["block_a"][1] != attrs["block_b"][0]:
        raise fail("F036", one=attrs["block_a"][1], other=attrs["block_b"][0])
    return attrs


def _block(
    side: str, matrix: Shape, scale: Shape, block: Any, fail: Callable[..., CkError]
) -> tuple[int, ...]:
    if block is not None and not _is_block(block):
        advice = "write two integers of 1 or more, as in (1, 128)"
        raise fail("F037", what=f"block of {side}", got=repr(block), advice=advice)
    sizes = []
    for axis in (-2, -1):
        extent, count = matrix[axis], scale[axis]
        size = block[axis] if block is not None else _size(extent, count)
        if size is None or not covers(count, extent, size):
            advice = _advice(side, extent, count)
            what = f"scale of {side}"
            raise fail("F035", axis=axis, what=what, got=count, extent=extent, advice=advice)
        sizes.append(size)
    return tuple(sizes)


def _is_block(block: Any) -> bool:
    return (
        isinstance(block, tuple)
        and len(block) == 2
        and all(type(size) is int and size >= 1 for size in block)
    )


def _size(extent: Dim | int, count: Dim | int) -> int | None:
    """Return the size of a block if ``count`` blocks cover ``extent``, where that is known."""
    if count == extent:
        return 1
    if isinstance(count, Blocks | Quotient) and is_integer(size := count.size):
        return size if count.of in (extent, extent + (size - 1)) else None
    if isinstance(extent, int) and isinstance(count, int) and count > 0 and extent % count == 0:
        return extent // count
    return None


def _advice(side: str, extent: Dim | int, count: Dim | int) -> str:
    if count == 1:
        return _WHOLE
    if type(count) is Dim and isinstance(extent, Dim):
        return f"write {extent} / 128 in the annotation of the scale for blocks of 128"
    return f"say how large blocks are: block_{side}=(1, 128)"
