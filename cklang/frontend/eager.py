# SPDX-License-Identifier: MIT
"""The functions of the language on NumPy arrays, outside any program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.frontend.eager_attention import eager_attention
from cklang.frontend.eager_movement import eager_movement
from cklang.frontend.intrinsics import Form, Intrinsic
from cklang.frontend.ops.attention import WINDOWS
from cklang.frontend.ops.convolution import Call, as_direction, layout_of, read_call
from cklang.frontend.ops.gemm import GEMMS
from cklang.frontend.ops.scaled import read_blocks
from cklang.ir import rules
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.reductions import REDUCTIONS, SINGLE_AXIS, read_axes
from cklang.ir.windows import DIRECTIONS, Direction
from cklang.types import DType

__all__ = ["compute"]


def compute(function: Intrinsic, arguments: Mapping[str, Any]) -> Any:
    """Return ``function`` of NumPy arrays or numbers.

    16-bit floats are widened to float32 first, as in a kernel; float64 stays float64. A cast
    returns the NumPy dtype of its dtype.
    """
    values = list(arguments.values())
    with np.errstate(all="ignore"):
        own = _FORMS.get(function.form)
        return _pointwise(function, values) if own is None else own(function.name, arguments)


def _pointwise(function: Intrinsic, values: Sequence[Any]) -> Any:
    op = OPS[function.name]
    operands = _arrays(values[: function.operands])
    if op.dtype is rules.FLOAT_DTYPE:
        # A number may be written as an integer; the op's meaning is of floats.
        operands = [x.astype(np.float64) if x.dtype.kind in "iu" else x for x in operands]
    attributes = dict(zip(function.attributes, values[function.operands :], strict=True))
    return op.numpy(*operands, **attributes)


def _clamp(x: Any, lo: Any, hi: Any) -> Array:
    x, lo, hi = _arrays((x, lo, hi))
    return np.asarray(np.minimum(np.maximum(x, lo), hi))


def _einsum(subscripts: str, a: Any, b: Any) -> Array:
    return np.asarray(np.einsum(subscripts, _array(a), _array(b)))


def _convolution(name: str, arguments: Mapping[str, Any]) -> Array:
    called = name
    name, arguments = as_direction(called, arguments)
    direction = DIRECTIONS[name]
    a, b = (_array(arguments[operand]) for operand in direction.names)
    try:
        layout = layout_of(arguments["layout"], (a.ndim, b.ndim))
        if layout is not None:
            left, right = direction.operands
            a, b = a.transpose(layout.perm(left)), b.transpose(layout.perm(right))
        call = read_call(name, a.shape, b.shape, arguments, layout)
        shape = _result_shape(call, direction, (a.shape, b.shape))
    except ValueError as refusal:
        problem, advice = refusal.args
        raise error("F067", op=called, problem=problem, advice=advice) from None
    attrs: dict[str, Any] = dict(call.attrs)
    result = OPS[name].numpy(a, b, shape=shape, **attrs)
    return result.transpose(call.layout.back(direction.result))


def _result_shape(
    call: Call, direction: Direction, shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    tensors = dict(zip(direction.operands, shapes, strict=True))
    extents: dict[int, Any] = {}
    sizes: Iterator[Any] = iter(call.size or ())
    longer: Iterator[int | None] = iter(call.output_padding or (None,) * call.geometry.spatial)
    for relation in call.geometry.relations:
        known = {
            role: tensors[role][axis]
            for role, axis in relation.axes.items()
            if role is not direction.result
        }
        allowed = relation.allowed(direction.result, known)
        size = next(sizes) if call.size and relation.window else None
        extra = next(longer) if relation.window else None
        place = 0 if len(allowed) == 1 else extra
        choice = allowed[place] if allowed and size is None and place is not None else size
        if choice not in allowed:
            operand_extents = " and ".join(
                f"{role.value} {extent}" for role, extent in known.items()
            )
            problem = f"along {relation.name}, {operand_extents} do not decide the result's extent"
            if not allowed or size is not None:
                problem = f"along {relation.name}, {operand_extents} do not fit"
            raise ValueError(problem, f"rule: {relation.formula}\n{call.convention}")
        if direction.result in relation.axes:
            extents[relation.axes[direction.result]] = choice
    return tuple(extents[axis] for axis in range(call.geometry.rank))


def _gemm(
    a: Any, b: Any, sparse: object, scale_a: Any, scale_b: Any, block_a: Any, block_b: Any
) -> Array:
    left, right = _array(a), _array(b)
    if not isinstance(sparse, str) or sparse not in GEMMS:
        raise error("F059", got=repr(sparse))
    if scale_a is None and scale_b is None and block_a is None and block_b is None:
        return OPS[GEMMS[sparse]].numpy(left, right)
    if sparse:
        raise error("F059", got=f"{sparse!r} beside scales")
    scales = [None if scale is None else _array(scale) for scale in (scale_a, scale_b)]
    blocks = read_blocks(
        (left.shape, right.shape),
        [None if scale is None else scale.shape for scale in scales],
        (block_a, block_b),
        error,
    )
    factors = [scale for scale in scales if scale is not None]
    return OPS["scaled_gemm"].numpy(left, right, *factors, **blocks)


def _reduction(name: str, x: Any, axis: object, keepdims: bool) -> Array:
    array, op = _array(x), REDUCTIONS[name]
    try:
        axes = read_axes(axis, array.ndim, is_single=op in SINGLE_AXIS)
    except ValueError as refusal:
        problem, advice = refusal.args
        raise error("F067", op=name, problem=problem, advice=advice) from None
    operand = array.astype(np.int64) if array.dtype.kind in "biu" else array
    if name == "mean" and operand.dtype.kind == "i":
        operand = operand.astype(np.float64)
    result = OPS[op].numpy(operand, axes)
    if array.dtype == np.bool_ and name in ("max", "amax", "min"):
        result = result > 0
    return np.expand_dims(result, axes) if keepdims else result


def _cast(x: Any, dtype: object) -> Array:
    if not isinstance(dtype, DType):
        raise error("F057", what="the dtype of a cast", got=repr(dtype))
    return OPS["cast"].numpy(_array(x), to=dtype).astype(dtype.numpy)


def _arrays(values: Sequence[Any]) -> list[Array]:
    """Return operands as arrays; Python's numbers take the dtype of the floats beside them."""
    arrays = [_array(value) for value in values]
    pairs = list(zip(values, arrays, strict=True))
    floats = [x.dtype for v, x in pairs if not _is_plain_number(v) and x.dtype.kind == "f"]
    if not floats:
        return arrays
    dtype = np.result_type(*floats)
    return [x.astype(dtype) if _is_plain_number(v) else x for v, x in pairs]


def _is_plain_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | np.generic)


def _array(value: Any) -> Array:
    array = np.asarray(value)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize < 4
    # ml_dtypes' bfloat16 is of NumPy's kind for unknown data.
    return array.astype(np.float32) if narrow or array.dtype.kind == "V" else array


_FORMS: Mapping[Form, Callable[[str, Mapping[str, Any]], Any]] = MappingProxyType(
    {
        Form.ATTENTION: lambda _name, arguments: eager_attention(**arguments),
        Form.CAST: lambda _name, arguments: _cast(*arguments.values()),
        Form.CLAMP: lambda _name, arguments: _clamp(**arguments),
        Form.CONV: _convolution,
        Form.EINSUM: lambda _name, arguments: _einsum(**arguments),
        Form.GEMM: lambda _name, arguments: _gemm(**arguments),
        Form.MASK: lambda name, arguments: WINDOWS[name](**arguments),
        Form.MOVEMENT: eager_movement,
        Form.REDUCTION: lambda name, arguments: _reduction(name, **arguments),
    }
)
"""What a function computes, by how a call becomes IR."""
