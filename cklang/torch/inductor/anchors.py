# SPDX-License-Identifier: MIT
"""Products and convolutions of Inductor as programs of the IR, by the emissions of the backend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.nodes import Function
from cklang.ir.rewrite import needed_operations
from cklang.ir.verifier import verify
from cklang.runtime.ir_text import op_from_ir
from cklang.runtime.op import Op
from cklang.torch.backend.aten import EMISSIONS
from cklang.torch.backend.call import Call
from cklang.torch.backend.emitter import Emitter, Tensor, dtype_of
from cklang.torch.backend.extents import Shape, Unsupported

aten = torch.ops.aten

DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
"""The dtypes of operands; all of one kernel have the same."""

TARGETS: Mapping[str, Any] = MappingProxyType(
    {
        "mm": aten.mm.default,
        "bmm": aten.bmm.default,
        "addmm": aten.addmm.default,
        "convolution": aten.convolution.default,
    }
)
"""The aten op of each name that Inductor has for a choice of kernels."""

_OPERANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mm": ("a", "b"),
        "bmm": ("a", "b"),
        "addmm": ("c", "a", "b"),
        "convolution": ("x", "w", "bias"),
    }
)
"""The names of operands; a convolution may have no bias."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as Inductor lays it out."""

    shape: Shape
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class _Result:
    """What an emission asks of the result: its shape, and f32, so that nothing is rounded."""

    shape: Shape
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a kernel computes before its epilogue."""

    name: str
    """A key of :data:`TARGETS`."""
    attrs: tuple[Any, ...] = ()
    """The arguments of the aten op after its operands."""

    def emitted(self, to: Emitter, operands: Sequence[Operand], shape: Shape) -> Tensor:
        """Append the anchor, with a parameter for each operand; return its sum in f32."""
        names = _OPERANDS[self.name]
        params = [
            to.param(name, dtype_of(operand.dtype), operand.shape)
            for name, operand in zip(names, operands, strict=False)
        ]
        if self.name == "convolution":
            if not all(isinstance(extent, int) for extent in shape):
                raise Unsupported("the extents of its result vary")
            params += [None] * (len(names) - len(params))  # type: ignore[list-item]
        result = EMISSIONS[TARGETS[self.name]](Call(to, (_Result(shape),)), *params, *self.attrs)
        if not isinstance(result, Tensor):
            raise Unsupported("it has several results")
        return result


def finished(to: Emitter, results: Sequence[Tensor]) -> Function:
    """Return the function of an emitter, verified, without operations that nothing reads."""
    function = to.builder.finish(*(result.value for result in results))
    body = needed_operations(function.body, function.results)
    return verify(replace(function, body=tuple(body)))


@cache
def op_of(anchor: Anchor, operands: tuple[Operand, ...], shape: Shape, dtype: torch.dtype) -> Op:
    """Return the op that computes an anchor alone, with its axes as torch sees them.

    Example:
        >>> import torch
        >>> half = Operand((8, 16), torch.float16), Operand((16, 4), torch.float16)
        >>> op_of(Anchor("mm"), half, (8, 4), torch.float16).program.name
        'mm'
    """
    to = Emitter(anchor.name)
    result = to.settled(to.result(anchor.emitted(to, operands, shape), dtype))
    return op_from_ir(finished(to, [Tensor(to.plain(result), shape)]))
