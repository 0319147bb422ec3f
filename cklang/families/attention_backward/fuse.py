# SPDX-License-Identifier: MIT
"""Make the kernel of the gradients of an attention: one gives dq, dk and dv of the same operands.

It reads what is stored and writes sums of f32, or these rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from cklang.families.attention.fuse import kernel_of, note_operands, operand_name
from cklang.families.attention.plan import FusedAttention
from cklang.fusion.flow import Flow
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker
from cklang.fusion.plan import View
from cklang.ir.attention_gradients import GRADIENTS, MORE, forward_of
from cklang.ir.nodes import Value
from cklang.ir.ops import Kind
from cklang.source import Span
from cklang.types import bf16, f16, f32

__all__ = ["MAKERS", "FusedAttentionGrad", "GradientOut"]

_STORED = (f32, f16, bf16)
"""What sums may be stored as."""


class GradientOut(NamedTuple):
    """A gradient that is stored."""

    side: str
    """dq, dk or dv."""
    value: Value
    axes: tuple[int, ...]
    """The axis of [batch, head, row, element] that runs with each of the value's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedAttentionGrad:
    """One kernel, with the sums behind it: the gradients of an attention by q, k and v."""

    name: str
    forward: FusedAttention
    """The attention; its ``lse`` is read, and ``o`` is nothing that the program has."""
    grad: View
    """The gradient of o."""
    inner: Value
    """The sums along heads of o times its gradient."""
    outs: tuple[GradientOut, ...]
    """What is stored; one gradient may be stored in two dtypes."""
    spans: tuple[Span, ...] = field(default=(), compare=False)

    family: ClassVar[str] = "attention_backward"

    @property
    def lse(self) -> Value:
        """The log-sum-exps of the attention."""
        return self.forward.results[-1]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        more = (self.grad.value, self.lse, self.inner)
        return tuple(dict.fromkeys((*self.forward.inputs, *more)))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return tuple(out.value for out in self.outs)

    @property
    def functions(self) -> Functions:
        """Those of the attention."""
        return self.forward.functions

    def renamed(self, name: str) -> FusedAttentionGrad:
        """Return the same kernel with another name."""
        return replace(self, name=name)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{o.side} as {o.value.type.dtype} {o.value}" for o in self.outs)
        f = self.forward
        yield f"kernel {self.name}: {written}"
        yield f"  the gradients of softmax(score({f.scale} {f.q} {f.k}')) {f.v} from {self.grad}"
        yield f"  weights from {self.lse}, sums along heads in {self.inner}"
        yield f"  keys: {f.window}"


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedAttentionGrad | None:
    """Return the kernel of all gradients of one attention; None but for the first of its roots."""
    flow = maker.flow
    walk.run()
    views = note_operands(maker, walk.colour)
    twins = _twins(flow, walk.colour)
    roots = sorted(root for root in maker.roots if flow.colour(root) in twins)
    if walk.root != roots[0]:
        return None
    forward = forward_of(walk.anchor)
    roles = forward.attr("roles")
    reads = zip(forward.operands, roles if isinstance(roles, tuple) else (), strict=True)
    grad, lse, inner = views[-MORE:]
    o = Value(name=f"{walk.anchor.result.name}_o", type=grad.value.type)
    kernel = kernel_of(
        flow.function,
        forward,
        views[:-MORE],
        [value for value, role in reads if role == "read"],
        o=replace(o, type=replace(o.type, shape=forward.result.type.shape)),
        lse=lse.value,
    )
    outs = (_out(flow, twins, root) for root in roots)
    maker.notes.append(
        f"gradients of {forward.result.type} from {grad.value}: one kernel gives "
        f"{', '.join(dict.fromkeys(twins.values()))}, and stores no matrix of scores"
    )
    return FusedAttentionGrad(
        name=flow.function.name,
        forward=kernel,
        grad=grad,
        inner=inner.value,
        outs=tuple(outs),
        spans=kernel.spans,
    )


def _out(flow: Flow, twins: Mapping[int, str], root: int) -> GradientOut:
    colour = flow.colour(root)
    axes = tuple(axis for axis in flow.orientation(root) if axis is not None)
    side = twins[root if colour is None else colour]
    return GradientOut(side=side, value=flow.value(root), axes=axes)


def _twins(flow: Flow, anchor: int) -> dict[int, str]:
    """Return dq, dk or dv for each node of the gradients of one attention."""
    own = flow.expect_operation(anchor)
    operations = ((node, flow.operation(node)) for node in flow.graph)
    return {
        node: f"d{GRADIENTS[each.op]}"
        for node, each in operations
        if each is not None
        and each.op in GRADIENTS
        and (each.operands, each.attrs) == (own.operands, own.attrs)
    }


def _stores(flow: Flow, node: int) -> bool:
    """Tell whether the kernel can store a value that follows: its sums, rounded once.

    Axes may be in another order, but for the elements of a head, which are side by side.
    """
    rank = flow.value(node).type.rank
    if flow.value(node).type.dtype not in _STORED or flow.orientation(node)[-1] != rank - 1:
        return False
    casts = 0
    while not flow.is_anchor(node):
        if flow.kind(node) not in (Kind.CAST, Kind.SHAPE):
            return False
        casts += flow.kind(node) is Kind.CAST
        (node,) = flow.operands(node)
    return casts <= 1


_MAKER = Maker(make=_fuse, operand=operand_name, most_reads=0, stores=_stores)
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys(GRADIENTS, _MAKER))
"""How kernels of the gradients of attention are made."""
