# SPDX-License-Identifier: MIT
"""The mini-IR in torch, op by op: a second opinion on gradients, by torch's autograd in float64."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from cklang.ir.nodes import Function, Operation
from cklang.ir.ops import OPS
from cklang.ir.rules import AttrKind
from cklang.ir.views import bounds_of
from cklang.types import Dim, DType, Kind, bf16, extent_value, f16, f32

Tensor = torch.Tensor

_FLOATS = {f16: torch.float16, bf16: torch.bfloat16, f32: torch.float32}
_KINDS: Mapping[type, torch.dtype] = {float: torch.float64, int: torch.int64, bool: torch.bool}


def run(function: Function, tensors: Sequence[Tensor], dims: Mapping[str, int]) -> list[Tensor]:
    """Return the results of a function, in float64, int64 and bool."""
    values = {param.name: tensor for param, tensor in zip(function.params, tensors, strict=True)}
    for operation in function.body:
        operands = [values[operand.name] for operand in operation.operands]
        values[operation.result.name] = _apply(operation, operands, dims)
    return [values[result.name] for result in function.results]


def gradients(
    function: Function, arrays: Sequence[Any], wrt: Sequence[str], cotangents: Sequence[Any]
) -> list[Any]:
    """Return what autograd gives for parameters of a function; zeros where they do not matter."""
    tensors = [torch.tensor(_wide(array)) for array in arrays]
    dims = _dims(function, tensors)
    names = [param.name for param in function.params]
    inputs = [tensors[names.index(name)].requires_grad_() for name in wrt]
    results = run(function, tensors, dims)
    pairs = [
        (result, torch.tensor(_wide(each)))
        for result, each in zip(results, cotangents, strict=True)
        if result.requires_grad
    ]
    if not pairs:
        return [np.zeros(each.shape) for each in inputs]
    grads = torch.autograd.grad(
        [result for result, _ in pairs], inputs, [each for _, each in pairs], allow_unused=True
    )
    return [
        np.zeros(own.shape) if each is None else each.numpy()
        for own, each in zip(inputs, grads, strict=True)
    ]


def derivative(function: Function, arrays: Sequence[Any], steps: Sequence[Any]) -> Any:
    """Return the derivative of a function's one result along ``steps``, by forward mode."""
    tensors = tuple(torch.tensor(_wide(array)) for array in arrays)
    dims = _dims(function, tensors)

    def result(*inputs: Tensor) -> Tensor:
        return run(function, inputs, dims)[0]

    along = tuple(torch.tensor(_wide(step)) for step in steps)
    return torch.func.jvp(result, tensors, along)[1].numpy()


def _dims(function: Function, tensors: Sequence[Tensor]) -> dict[str, int]:
    return {
        extent.name: got
        for param, tensor in zip(function.params, tensors, strict=True)
        for extent, got in zip(param.type.shape, tensor.shape, strict=True)
        if isinstance(extent, Dim)
    }


def _wide(array: Any) -> Any:
    array = np.asarray(array)
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64}
    return array.astype(kinds.get(array.dtype.kind, np.float64))


def _apply(operation: Operation, operands: Sequence[Tensor], dims: Mapping[str, int]) -> Tensor:
    attrs = {
        name: float(np.float32(attr)) if isinstance(attr, float) else attr
        for name, attr in operation.attrs
    }
    for row in OPS[operation.op].attrs:
        if row.kind is AttrKind.BOUNDS:
            bounds = bounds_of(operation, row.name)
            attrs[row.name] = tuple(extent_value(bound, dims) for bound in bounds)
    if OPS[operation.op].shape.declared:
        attrs["shape"] = operation.result.type.extents(dims)
    return TORCH[operation.op](*operands, **attrs)


def _cast(x: Tensor, to: DType) -> Tensor:
    if to.kind is not Kind.FLOAT:
        return x.to(torch.bool if to.kind is Kind.BOOL else torch.int64)
    if not x.is_floating_point():
        return x.to(torch.float64)
    # Not torch's own cast, which rounds the gradient too.
    rounded = x.detach().to(_FLOATS[to]).double()
    return x + (rounded - x).detach()


def _broadcast(x: Tensor, dims: Sequence[int], shape: Sequence[int]) -> Tensor:
    for axis in range(len(shape)):
        if axis not in dims:
            x = x.unsqueeze(axis)
    return x.expand(*shape)


def _sliced(x: Tensor, axes: Any, start: Any, stop: Any, step: Any, shape: Any) -> Tensor:
    del axes
    return x[tuple(map(slice, start, stop, step))].reshape(shape)


def _contract(a: Tensor, b: Tensor, rows: int, columns: int, summed: int) -> Tensor:
    letters = "klmnop"[:summed]
    m, n = "x" * rows, "y" * columns
    return torch.einsum(f"...{m}{letters},...{letters}{n}->...{m}{n}", a, b)


def _taken(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    limited = indices.clamp(0, x.shape[axis] - 1)
    picked = x.index_select(axis, limited.reshape(-1))
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _by_index(indices: Tensor, rows: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return indices as a list, and the rows with their axes in its place."""
    rest = rows.shape[axis + indices.ndim :]
    return indices.reshape(-1), rows.reshape(*rows.shape[:axis], indices.numel(), *rest)


def _scattered(indices: Tensor, rows: Tensor, x: Tensor, axis: int, **_how: Any) -> Tensor:
    return x.index_copy(axis, *_by_index(indices, rows, axis))


def _scattered_sum(
    indices: Tensor, rows: Tensor, *base: Tensor, axis: int, shape: Any, **_how: Any
) -> Tensor:
    places, listed = _by_index(indices, rows, axis)
    start = base[0] if base else listed.new_zeros(shape)
    inside = ((places >= 0) & (places < shape[axis])).nonzero().reshape(-1)
    return start.index_add(axis, places[inside], listed.index_select(axis, inside))


def _ordered(x: Tensor, axis: int, count: int, descending: int) -> tuple[Tensor, Tensor]:
    both = torch.sort(x, dim=axis, descending=bool(descending), stable=True)
    kept = slice(0, count or None)
    return tuple(each.movedim(axis, 0)[kept].movedim(0, axis) for each in both)  # type: ignore[return-value]


def _attended(
    q: Tensor, k: Tensor, v: Tensor, *reads: Tensor, score: Function, mask: Function, **attrs: Any
) -> tuple[Tensor, Tensor]:
    """Return o and the log-sum-exps of an attention without lengths, pages and dropout."""
    assert set(attrs["roles"][3:]) <= {"read"}, "tensors that a score or mask reads"
    groups = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(groups, 1) for each in (k, v))
    scale = attrs["scale"] if attrs["scale"] != "auto" else q.shape[-1] ** -0.5
    scores = q @ k.mT * scale
    sizes = dict(zip("bhij", scores.shape, strict=True))
    indices = {
        name: torch.arange(extent).reshape([-1 if each == name else 1 for each in sizes])
        for name, extent in sizes.items()
    }
    indices |= {"q_len": torch.tensor(sizes["i"]), "k_len": torch.tensor(sizes["j"])}

    def called(region: Function, first: Sequence[Tensor]) -> Tensor:
        tensors = [indices[param.name] for param in region.params if param.name in indices]
        return run(region, [*first, *tensors, *reads], {})[0].expand(scores.shape)

    scores = called(score, [scores])
    seen = called(mask, [])
    lse = torch.where(seen, scores, -math.inf).logsumexp(-1)
    weights = torch.where(seen, torch.exp(scores - lse[..., None]), 0.0)
    return weights @ v, lse


def _conv(
    x: Tensor, w: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, shape: Any
) -> Tensor:
    del shape
    spatial = len(stride)
    pads = [pad for pair in reversed(padding) for pad in pair]
    image, weight = functional.pad(x.movedim(-1, 1), pads), w.movedim(-1, 1)
    convolve: Callable[..., Tensor] = (functional.conv1d, functional.conv2d, functional.conv3d)[
        spatial - 1
    ]
    return convolve(image, weight, None, stride, 0, dilation, groups).movedim(1, -1)


def _reduced(reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, axes: reduce(x.double() if x.is_floating_point() else x, axes)


def _prod(x: Tensor, axes: Sequence[int]) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis)
    return x


def _routed(
    x: Tensor, *, count: int, groups: int, kept: int, renormalised: int, scale: float, sigmoid: int
) -> tuple[Tensor, Tensor]:
    """Return the weights of experts and the experts, of softmax and without groups."""
    assert kept == groups
    assert not sigmoid
    weights, experts = torch.topk(torch.softmax(x, -1), count)
    total = weights.sum(-1, keepdim=True) if renormalised else 1.0
    return scale * weights / total, experts


def _windows(
    x: Tensor,
    fill: float,
    axes: Sequence[int],
    size: Sequence[int],
    step: Sequence[int],
    before: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Return the elements of all windows, along one axis more at the end."""
    pads = dict(zip(axes, before, strict=True))
    sides = [pads.get(axis, 0) for axis in reversed(range(x.ndim)) for _ in range(2)]
    x = functional.pad(x, sides, value=fill)
    for axis, length, every, apart in zip(axes, size, step, dilation, strict=True):
        x = x.unfold(axis, (length - 1) * apart + 1, every)[..., ::apart]
    return x.flatten(-len(axes))


def _max_pool(x: Tensor, *, shape: object, **windows: Any) -> Tensor:
    return torch.amax(_windows(x, -torch.inf, **windows), -1)


def _avg_pool(x: Tensor, *, shape: object, padding: int, **windows: Any) -> Tensor:
    counts = _windows(torch.ones_like(x), float(padding), **windows)
    return _windows(x, 0.0, **windows).sum(-1) / counts.sum(-1)


def _grouped_gemm(x: Tensor, w: Tensor, ends: Tensor) -> Tensor:
    result, begin = torch.zeros(len(x), w.shape[-1], dtype=x.dtype), 0
    for matrix, end in zip(w, torch.clamp(ends, 0, len(x)).tolist(), strict=True):
        result[begin:end] = x[begin:end] @ matrix
        begin = end
    return result


def _grouped_gemm_k(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    bounds = [0, *torch.clamp(ends, 0, len(y)).tolist()]
    return torch.stack([x[:, a:b] @ y[a:b] for a, b in pairwise(bounds)])


def _group_ends(ids: Tensor, *, shape: tuple[int, ...]) -> Tensor:
    return (ids >= 0).logical_and(ids <= torch.arange(shape[0])[:, None]).sum(1)


def _group_order(ids: Tensor, ends: Tensor) -> Tensor:
    inside = (ids >= 0).logical_and(ids < len(ends))
    return torch.argsort(torch.where(inside, ids, len(ends)), stable=True)


TORCH: Mapping[str, Callable[..., Tensor]] = {
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "gemm": torch.matmul, "contract": _contract, "conv": _conv, "reduce_sum": _reduced(torch.sum),
    "reduce_mean": _reduced(torch.mean), "reduce_max": _reduced(torch.amax),
    "reduce_min": _reduced(torch.amin), "reduce_prod": _prod,
    "transpose": lambda x, perm: x.permute(*perm), "broadcast": _broadcast, "slice": _sliced,
    "reshape": lambda x, shape: x.reshape(shape),
    "concat": lambda *parts, axis, shape: torch.cat(parts, axis),
    "stack": lambda *parts, axis, shape: torch.stack(parts, axis), "cast": _cast,
    "constant": lambda value: torch.tensor(value, dtype=_KINDS[type(value)]),
    "extent": lambda x, axis: torch.tensor(x.shape[axis]),
    "arange": lambda shape: torch.arange(shape[0]), "take": _taken, "scatter": _scattered,
    "take_along": lambda x, places, axis: torch.gather(x, axis, places.long()),
    "scatter_add": _scattered_sum, "cumsum": lambda x, axis: torch.cumsum(x, axis),
    "cumprod": lambda x, axis: torch.cumprod(x, axis),
    "sort": lambda x, **order: _ordered(x, **order)[0],
    "argsort": lambda x, **order: _ordered(x, **order)[1],
    "moe_weights": lambda x, **attrs: _routed(x, **attrs)[0],
    "moe_indices": lambda x, **attrs: _routed(x, **attrs)[1],
    "grouped_gemm": _grouped_gemm, "grouped_gemm_k": _grouped_gemm_k,
    "group_ends": _group_ends, "group_order": _group_order,
    "reduce_argmax": lambda x, axes: torch.argmax(x, axes[0]),
    "reduce_argmin": lambda x, axes: torch.argmin(x, axes[0]),
    "element": lambda x, *places: x[tuple(places)], "apart": lambda x, call: x,
    "attention": lambda *operands, **attrs: _attended(*operands, **attrs)[0],
    "attention_lse": lambda *operands, **attrs: _attended(*operands, **attrs)[1], "add": torch.add,
    "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"), "mod": torch.remainder,
    "neg": torch.neg, "abs": torch.abs, "reciprocal": torch.reciprocal, "square": torch.square,
    "minimum": torch.minimum, "maximum": torch.maximum,
    "clamp": lambda x, lo, hi: torch.clamp(x, lo, hi), "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "trunc": torch.trunc, "sign": torch.sign, "pow": torch.pow,
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log,
    "log2": torch.log2, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "tanh": torch.tanh, "erf": torch.erf, "relu": torch.relu,
    "leaky_relu": lambda x, slope: functional.leaky_relu(x, slope), "elu": functional.elu,
    "sigmoid": torch.sigmoid, "silu": functional.silu, "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "softplus": lambda x: functional.softplus(x, threshold=math.inf), "mish": functional.mish,
    "hardsigmoid": functional.hardsigmoid, "hardswish": functional.hardswish,
    "softsign": functional.softsign, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "eq": torch.eq, "ne": torch.ne, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "logical_not": torch.logical_not, "isnan": torch.isnan, "sin": torch.sin, "cos": torch.cos,
    "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
    "atan2": torch.atan2, "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh,
    "acosh": torch.acosh, "atanh": torch.atanh, "erfc": torch.erfc, "hypot": torch.hypot,
    "fmod": torch.fmod, "copysign": torch.copysign, "log10": torch.log10,
    "isfinite": torch.isfinite, "isinf": torch.isinf, "signbit": torch.signbit,
    "cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3), "where": torch.where,
}  # fmt: skip
"""What each op is in torch; gradients of attention and convolution are not here."""
