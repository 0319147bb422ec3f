# SPDX-License-Identifier: MIT
"""Make the kernel of the gradients of an attention: one gives dq, dk, dv, ds of the same operands.

It reads what is stored and writes sums of f32, or these rounded once; ds, the gradient by a bias
that the score adds, in the dtype of q.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from cklang.errors import error
from cklang.families.attention.fuse import kernel_of, note_operands, operand_name
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.variants import added_bias
from cklang.families.attention_backward.stages import AddedBias
from cklang.fusion.flow import Flow
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker
from cklang.fusion.plan import FusedKernel, View
from cklang.ir.attention_gradients import DERIVATIVE, GRADIENTS, MORE, SCORES, forward_of
from cklang.ir.nodes import Function, Operation, Value, print_function
from cklang.ir.ops import Kind
from cklang.ir.score_derivative import is_one
from cklang.types import bf16, f16, f32

_STORED = (f32, f16, bf16)
"""What sums may be stored as."""

_DS = f"d{GRADIENTS[SCORES]}"
_PACKED = 3
"""The axes of packed sequences: row, head and element."""


class GradientOut(NamedTuple):
    """A gradient that is stored."""

    side: str
    """dq, dk, dv or ds."""
    value: Value
    axes: tuple[int, ...]
    """The axis of [batch, head, row, element] that runs with each of the value's; of ds, whose
    elements are keys, of [batch, head, query, key]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedAttentionGrad(FusedKernel):
    """One kernel, with the sums behind it: the gradients of an attention by q, k and v."""

    anchors: tuple[str, ...]
    forward: FusedAttention
    """The attention; its ``lse`` is read, and ``o`` is nothing that the program has."""
    grad: View
    """The gradient of o."""
    inner: View
    """The sums along heads of o times its gradient."""
    outs: tuple[GradientOut, ...]
    """What is stored; one gradient may be stored in two dtypes."""
    bias: AddedBias | None = None
    """What the score adds, if ds is stored and CK Tile's own bias gives it."""
    derivative: Function | None = None
    """The derivative of the score, where it is not 1 or ds is stored without such a bias."""

    family: ClassVar[str] = "attention_backward"

    @property
    def lse(self) -> Value:
        """The log-sum-exps of the attention."""
        return self.forward.results[-1]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        more = (self.grad.value, self.lse, self.inner.value)
        return tuple(dict.fromkeys((*self.forward.inputs, *more)))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return tuple(out.value for out in self.outs)

    @property
    def is_square(self) -> bool:
        """Whether ds is stored."""
        return any(out.side == _DS for out in self.outs)

    @property
    def functions(self) -> Functions:
        """The attention's functions and the derivative; CK Tile's own bias replaces the score."""
        functions = Functions(**self.forward.functions, derivative=self.derivative)
        return functions if self.bias is None else functions.without("score")

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{o.side} as {o.value.type.dtype} {o.value}" for o in self.outs)
        f = self.forward
        yield f"kernel {self.name}: {written}"
        yield f"  the gradients of softmax(score({f.scale} {f.q} {f.k}')) {f.v} from {self.grad}"
        yield f"  weights from {self.lse}, sums along heads in {self.inner}"
        yield f"  keys: {f.window}"
        if self.derivative is not None:
            yield from (f"  {line}" for line in print_function(self.derivative).splitlines())


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
    outs = tuple(_out(flow, twins, root) for root in roots)
    colours = {flow.colour(root) for root in roots}
    is_square = any(out.side == _DS for out in outs)
    bias = _bias(kernel) if is_square else None
    derivative = None if bias is not None else _derivative(walk.anchor, is_square)
    # What the kernel writes of all scores is a gradient that the program asks for.
    note = "that of what each score reads" if is_square else "no matrix of scores"
    how = "" if derivative is None else "; it calls the derivative of the score function"
    maker.notes.append(
        f"gradients of {forward.result.type} from {grad.value}: one kernel gives "
        f"{', '.join(dict.fromkeys(twins.values()))}, and stores {note}{how}"
    )
    return FusedAttentionGrad(
        name=flow.function.name,
        anchors=tuple(flow.value(node).name for node in twins if node in colours),
        forward=replace(kernel, blocks=None),  # backward kernels compute every tile
        grad=_with_heads(grad),
        inner=inner,
        outs=outs,
        bias=bias,
        derivative=derivative,
        spans=kernel.spans,
    )


def _with_heads(view: View) -> View:
    """Return packed rows [N, H, E] as a batch of heads and rows."""
    if len(view.perm) != _PACKED:
        return view
    row, head, element = view.perm
    return View(value=view.value, perm=(None, head, row, element))


def _derivative(operation: Operation, is_square: bool) -> Function | None:
    """Return the derivative that a kernel calls; None if it may take it to be 1."""
    derivative = operation.attr(DERIVATIVE)
    if not isinstance(derivative, Function):
        raise error("Z002", what="a gradient of attention without a derivative passes its rules")
    return derivative if is_square or not is_one(derivative) else None


def _bias(kernel: FusedAttention) -> AddedBias | None:
    """Return what the score adds, if that is all it does and CK Tile reads it as a bias.

    It has the dtype of q, and an element for each key.
    """
    bias = None if kernel.score is None else added_bias(kernel.score)
    if bias is None or kernel.starts:
        return None
    name, indices = bias
    value = kernel.reads[int(name.removeprefix("d"))]
    extents = dict(zip(indices, value.type.shape, strict=True))
    k = kernel.k
    keys = k.value.type.shape[k.perm[2] or 0]
    if value.type.dtype != kernel.q.value.type.dtype or extents["j"] != keys:
        return None
    axes = (indices.index(name) if extents.get(name, 1) != 1 else None for name in "bhi")
    return AddedBias(value=value, axes=tuple(axes))


def _out(flow: Flow, twins: Mapping[int, str], root: int) -> GradientOut:
    colour = flow.colour(root)
    axes = tuple(axis for axis in flow.orientation(root) if axis is not None)
    if len(axes) == _PACKED:
        axes = tuple((2, 1, 3)[axis] for axis in axes)
    side = twins[root if colour is None else colour]
    return GradientOut(side=side, value=flow.value(root), axes=axes)


def _twins(flow: Flow, anchor: int) -> dict[int, str]:
    """Return dq, dk, dv or ds for each node of the gradients of one attention."""
    own = flow.expect_operation(anchor)
    operations = ((node, flow.operation(node)) for node in flow.graph)
    return {
        node: f"d{GRADIENTS[step.op]}"
        for node, step in operations
        if step is not None
        and step.op in GRADIENTS
        and (step.operands, step.attrs) == (own.operands, own.attrs)
    }


def _stores(flow: Flow, root: int) -> bool:
    """Tell whether the kernel can store a value that follows: its sums, rounded once.

    Axes may be in another order, but for the elements of a head, which are side by side.
    """
    use = flow.occurrence(root)
    casts = 0
    while not flow.is_anchor(use.node):
        if flow.kind(use.node) not in (Kind.CAST, Kind.SHAPE):
            return False
        casts += flow.kind(use.node) is Kind.CAST
        (use,) = flow.below(use)
    anchor = flow.expect_operation(use.node)
    rank = anchor.result.type.rank
    is_whole = set(use.axes) == set(range(rank)) and use.axes[-1] == rank - 1
    if flow.value(root).type.dtype not in _STORED or not is_whole:
        return False
    own = anchor.operands[0].type.dtype
    return casts <= 1 and (anchor.op != SCORES or flow.value(root).type.dtype == own)


_MAKER = Maker(make=_fuse, operand=operand_name, constants=True, stores=_stores)
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys(GRADIENTS, _MAKER))
"""How kernels of the gradients of attention are made."""
