# SPDX-License-Identifier: MIT
"""A second evaluator, in float32 as a kernel computes: what bounds must hold for.

Sums run in a shuffled order and round, truncate, or run in blocks.
"""

from typing import Any

import numpy as np

from cklang.ir.nodes import Function, Operation
from cklang.ir.ops import OPS
from cklang.lowering.pointwise import WIDE
from cklang.types import Dim, Kind

MODES = ("nearest", "truncate", "blocks")


def evaluate32(function: Function, arrays: tuple[Any, ...], mode: str, seed: int) -> Any:
    """Return the result of ``function`` computed in float32."""
    rng = np.random.default_rng(seed)
    known: dict[str, Any] = {}
    sizes: dict[Dim, int] = {}
    for param, value in zip(function.params, arrays, strict=True):
        array = np.asarray(value)
        sizes |= {
            e: n for e, n in zip(param.type.shape, array.shape, strict=True) if isinstance(e, Dim)
        }
        known[param.name] = array
    with np.errstate(all="ignore"):
        for operation in function.body:
            operands = [known[operand.name] for operand in operation.operands]
            known[operation.result.name] = _step(operation, operands, sizes, mode, rng)
    return known[function.results[0].name]


def _step(
    operation: Operation, operands: list[Any], sizes: dict[Dim, int], mode: str, rng: Any
) -> Any:
    attrs: dict[str, Any] = dict(operation.attrs)
    result = operation.result.type
    if operation.op == "gemm":
        return _gemm(operands[0], operands[1], mode, rng)
    if operation.op == "constant":
        return np.asarray(attrs["value"], result.dtype.numpy)
    if operation.op == "broadcast":
        attrs["shape"] = tuple(sizes[e] if isinstance(e, Dim) else e for e in result.shape)
    if operation.op == "cast":
        return _cast(operands[0], operation)
    attrs = {n: np.float32(a) if isinstance(a, float) else a for n, a in attrs.items()}
    if operation.op in WIDE and result.dtype.kind is Kind.FLOAT:
        operands = [x.astype(np.float64) for x in operands]
    out = np.asarray(OPS[operation.op].numpy(*operands, **attrs))
    return out.astype(result.dtype.numpy)


def _cast(x: Any, operation: Operation) -> Any:
    to = operation.result.type.dtype
    if to.kind is Kind.INT and x.dtype.kind not in "biu":
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
        return np.trunc(np.clip(wide, -(2.0**31), 2.0**31 - 1)).astype(np.int32)
    if to.kind is Kind.BOOL:
        return x.astype(np.float64) != 0
    return x.astype(np.float32).astype(to.numpy)


def _gemm(a: Any, b: Any, mode: str, rng: Any) -> Any:
    order = rng.permutation(a.shape[1])
    left, right = a.astype(np.float32)[:, order], b.astype(np.float32)[order]
    if mode == "blocks":
        parts = [left[:, k : k + 8] @ right[k : k + 8] for k in range(0, len(order), 8)]
        while len(parts) > 1:
            parts = [sum(parts[i : i + 2], np.float32(0)) for i in range(0, len(parts), 2)]
        return parts[0].astype(np.float32) if parts else _zeros(left, right)
    total = _zeros(left, right)
    for k in range(len(order)):
        product = left[:, k, None].astype(np.float64) * right[k]
        exact = total.astype(np.float64) + product
        total = _truncate(exact) if mode == "truncate" else exact.astype(np.float32)
    return total


def _zeros(left: Any, right: Any) -> Any:
    return np.zeros((left.shape[0], right.shape[1]), np.float32)


def _truncate(x: Any) -> Any:
    """Cut to float32 toward zero."""
    near = x.astype(np.float32)
    over = np.isfinite(x) & (np.abs(near.astype(np.float64)) > np.abs(x))
    return np.where(over, np.nextafter(near, np.float32(0)), near)
