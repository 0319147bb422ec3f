# SPDX-License-Identifier: MIT
"""Make the kernel of an attention.

The kernel reads what is stored, or transposes of it, and writes o, or what is computed of it
element by element (:mod:`cklang.families.attention.fuse_output`); lse comes from the same kernel.
What is computed of q, k or v before is not fused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cklang.errors import CkError, error
from cklang.families.attention.fuse_output import INDICES, OutputRegion
from cklang.families.attention.masks import block_mask_of, split_mask
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.variants import cap_of, is_identity, variant_of
from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import View
from cklang.fusion.sites import identity
from cklang.ir.attention import LENGTHS, MIN_QUERIES, PAGE_STARTS, PAGES, READ_LIMIT, SEEDS, STARTS
from cklang.ir.nodes import Function, Operation, Value
from cklang.types import DType, TensorType, bf16, f16, f32
from cklang.types import Kind as NumberKind

_NAMES = {
    "none": "the score is used as it is",
    "soft cap": "the score function is a soft cap; it is computed as an expression, whose tanh is "
    "closer than CK Tile's own: that would show beside lse, f32 or so large a cap",
    "ALiBi": "the score function is ALiBi; it is computed as an expression: CK Tile's own knows "
    "one sign and reads f32 slopes alone",
    "bias": "the score function adds a bias; it is computed as an expression, which reads it at "
    "any strides",
    "expression": "the score function is an expression",
}
_OWN_CAP = "the score function is a soft cap; CK Tile's own computes it"
_LARGEST_CAPS = {f16: 64.0, bf16: 512.0}
"""The tanh of CK Tile's soft cap is right to 2^-21, wherever it is; times so large a cap that is a
sixteenth of what the rounding of weights to the type of v adds."""


def fuse(maker: KernelMaker, walk: Epilogue) -> FusedAttention | None:
    """Return the kernel of a root whose anchor is an attention or its lse.

    One kernel gives both where both are roots: the one of o; then the root of lse has none. Two do
    where what is stored of o depends on lse.
    """
    flow, anchor = maker.flow, walk.anchor
    twins = _twins(flow, walk.colour)
    lse = twins.get("attention_lse")
    own = [root for root in maker.roots if flow.colour(root) == twins.get("attention")]
    # A kernel does not read what it writes: an o that depends on lse is stored after it.
    own = [root for root in own if lse not in flow.ancestors(root)]
    if anchor.op == "attention_lse":
        if walk.root != walk.colour:
            raise _refusal(flow, walk.root)
        note_operands(maker, walk.colour)
        walk.note_store()
        if own:
            return None
    elif lse not in maker.roots or [walk.root] != sorted(own)[:1]:
        lse = None
    return _kernel(maker, walk, None if lse is None else flow.value(lse))


def _twins(flow: Flow, anchor: int) -> dict[str, int]:
    """Return the nodes of an attention and of its lse, by op: those of equal operands and attrs."""
    operation = flow.expect_operation(anchor)
    same = (operation.operands, operation.attrs)
    return {
        flow.expect_operation(node).op: node
        for node in flow.graph
        if flow.is_anchor(node)
        and (flow.expect_operation(node).operands, flow.expect_operation(node).attrs) == same
    }


def _kernel(maker: KernelMaker, walk: Epilogue, lse: Value | None) -> FusedAttention:
    flow, anchor = maker.flow, walk.anchor
    views = note_operands(maker, walk.colour)
    region = walk.region
    if not isinstance(region, OutputRegion):
        raise error("Z002", what="what follows an attention is written as another region")
    if anchor.op == "attention":
        o, output = flow.value(walk.root), _output(flow, walk)
    else:
        shape = (*anchor.operands[0].type.shape[:-1], anchor.operands[2].type.shape[-1])
        o, output = Value(name=f"{lse}_o"[1:], type=TensorType(dtype=f32, shape=shape)), None
    kernel = kernel_of(flow.function, anchor, views, region.tensors, o=o, lse=lse, output=output)
    log_sum = {} if lse is None else {lse.name: None}
    kernel = replace(kernel, anchors=tuple({anchor.result.name: None, **log_sum}))
    maker.notes += _notes(kernel)
    return kernel


def kernel_of(
    function: Function,
    anchor: Operation,
    views: Sequence[View],
    tensors: Sequence[Value],
    *,
    o: Value,
    lse: Value | None,
    output: Function | None = None,
) -> FusedAttention:
    """Return the kernel of an attention.

    Args:
        function: The program.
        anchor: The attention in it.
        views: What each operand of the attention is a view of.
        tensors: What its functions read.
        o: What is stored of its result.
        lse: Its log-sum-exp, if that is stored too.
        output: What is stored of an element of o; the element if None.
    """
    roles = anchor.attr("roles")
    if not isinstance(roles, tuple):
        raise error("Z002", what="attention without roles passes its rules")
    by_role: dict[str, list[Value]] = {str(role): [] for role in roles}
    for view, role in zip(views, roles, strict=True):
        by_role[str(role)].append(view.value)
    q, k, v = views[:3]
    _check_reads(anchor, tensors)
    score, mask, scale, dropout = (anchor.attr(n) for n in ("score", "mask", "scale", "dropout"))
    if not isinstance(score, Function) or not isinstance(mask, Function):
        raise error("Z002", what="attention without regions passes its rules")
    window, rest = split_mask(mask)
    cap = _own_cap(score, q.value.type.dtype, scale) if lse is None else 0.0
    plain = is_identity(score) and (scale == "auto" or _is_above_0(scale))
    seeds = [by_role[name][0] for name in SEEDS if name in by_role]
    least = next(iter(by_role.get(MIN_QUERIES[0], ())), None)
    body = () if output is None else output.body
    return FusedAttention(
        name=function.name,
        anchors=(anchor.result.name,),
        q=q,
        k=k,
        v=v,
        seed=seeds[0] if seeds else None,
        offset=seeds[1] if seeds else None,
        constants=_constants(function, seeds if least is None else [*seeds, least]),
        starts=tuple(by_role[name][0] for name in STARTS if name in by_role),
        lengths=next(iter(by_role.get(LENGTHS[0], ())), None),
        pages=next(iter(by_role.get(PAGES[0], ())), None),
        page_starts=next(iter(by_role.get(PAGE_STARTS[0], ())), None),
        min_queries=least,
        reads=tuple(tensors),
        score=None if plain else score,
        mask=rest,
        output=output,
        window=window,
        blocks=None if dropout else block_mask_of(rest),
        scale=scale if isinstance(scale, str) else float(str(scale)),
        dropout=float(str(dropout)),
        o=o,
        lse=lse,
        variant=variant_of(score),
        soft_cap=cap,
        spans=spans_of([anchor, *score.body, *mask.body, *body]),
    )


def _output(flow: Flow, walk: Epilogue) -> Function | None:
    """Return the function of what is stored of o; None if that is o itself, rounded."""
    if not _stores(flow, walk.root):
        raise _refusal(flow, walk.root)
    function = walk.run()
    region = walk.region
    tensors = region.tensors if isinstance(region, OutputRegion) else []
    if len(tensors) > READ_LIMIT:
        raise error(
            "X004",
            at=walk.anchor.span,
            what=f"the kernel of {walk.anchor.result}",
            count=len(tensors),
            limit=READ_LIMIT,
            reads=", ".join(map(str, tensors)),
        )
    return function if function.body else None


def _stores(flow: Flow, node: int) -> bool:
    """Tell whether a kernel can store what follows o: floats, with the axes of o in order."""
    rank = flow.value(node).type.rank
    is_float = flow.value(node).type.dtype.kind is NumberKind.FLOAT
    return is_float and rank in INDICES and flow.orientation(node) == identity(rank)


def _refusal(flow: Flow, node: int) -> CkError:
    operation = flow.operation(node)
    name, at = ("a parameter", flow.function.span)
    if operation is not None:
        name, at = operation.op, operation.span or at
    return error("X017", at=at, op=name)


def note_operands(maker: KernelMaker, anchor: int) -> list[View]:
    """Return the view that each operand is of a stored value or constant; note the way to it."""
    flow = maker.flow
    operation = flow.expect_operation(anchor)
    views = []
    for index, operand in enumerate(operation.operands):
        value, axes = maker.stored(anchor, index)
        if None in axes:
            name = operand_name(operation, index)
            at = operation.span
            raise error("X005", at=at, operand=name, operation=operation.op, op="broadcast")
        # Packed rows [N, H, D] are one batch of heads and rows.
        if index < _TENSORS and operand.type.rank == 3:
            row, head, element = axes
            axes = (None, head, row, element)
        views.append(View(value=value, perm=axes))
    return views


_TENSORS = 3
"""q, k and v are the first operands."""


def operand_name(anchor: Operation, index: int) -> str:
    """Return how messages call an operand of an attention."""
    roles = anchor.attr("roles")
    if not isinstance(roles, tuple) or index >= len(roles):
        return str(anchor.operands[index])
    role = str(roles[index])
    return f"what a score or mask reads, {anchor.operands[index]}," if role == "read" else role


def _region(anchor: Operation) -> OutputRegion:
    """Return the region of what follows o; it begins with what score and mask read."""
    roles = anchor.attr("roles")
    named = zip(anchor.operands, roles if isinstance(roles, tuple) else (), strict=True)
    return OutputRegion(anchor, [value for value, role in named if role == "read"])


_MAKER = Maker(
    make=fuse,
    epilogue=True,
    region=_region,
    operand=operand_name,
    constants=True,
    most_reads=READ_LIMIT,
    stores=_stores,
)
MAKERS: Mapping[str, Maker] = {
    "attention": _MAKER,
    # Nothing that follows a log-sum is computed in the kernel that stores it.
    "attention_lse": replace(_MAKER, epilogue=False, stores=None),
}
"""How kernels of attention are made."""


def _own_cap(score: Function, dtype: DType, scale: object) -> float:
    """Return the cap if CK Tile's own soft cap is close enough to the score, else 0."""
    cap = cap_of(score)
    if cap is None or not (scale == "auto" or _is_above_0(scale)):
        return 0.0
    return cap if 0 < cap <= _LARGEST_CAPS.get(dtype, 0.0) else 0.0


def _is_above_0(scale: object) -> bool:
    # CK Tile takes the largest product before it scales.
    return isinstance(scale, float) and scale > 0


def _check_reads(anchor: Operation, tensors: Sequence[Value]) -> None:
    for value in tensors:
        if value.type.dtype.encoding:
            dtype = value.type.dtype
            raise error("X018", at=anchor.span, operation=anchor.op, operand=value, dtype=dtype)


def _constants(function: Function, seeds: Sequence[Value]) -> tuple[tuple[str, int], ...]:
    definitions = function.definitions()
    constants = ((seed.name, definitions.get(seed.name)) for seed in dict.fromkeys(seeds))
    return tuple((name, int(str(op.attr("value")))) for name, op in constants if op is not None)


def _notes(kernel: FusedAttention) -> tuple[str, ...]:
    why = _OWN_CAP if kernel.soft_cap else _NAMES[kernel.variant]
    notes = [f"variant {kernel.variant}: {why}"]
    if kernel.window.is_open and kernel.mask is None:
        notes.append("mask none: every key is seen")
    elif not kernel.window.is_open:
        notes.append(f"mask {kernel.window}: tiles outside are skipped")
    if kernel.blocks is not None:
        notes.append(f"mask {kernel.blocks}: tiles that it hides are skipped")
    elif kernel.dropout and block_mask_of(kernel.mask) is not None:
        notes.append("mask of blocks: with dropout every tile is computed")
    if kernel.mask is not None:
        notes.append("mask expression: asked for each key of the tiles that are left")
    if kernel.output is not None:
        notes.append("output expression: computed of o in f32 as it is stored")
    if kernel.lse is not None:
        notes.append("lse: the same kernel writes it")
    return tuple(notes)
