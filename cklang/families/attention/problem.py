# SPDX-License-Identifier: MIT
"""What one attention asks of a kernel: its signature, extents, strides, and where tensors are.

Any layout of batch, heads and rows is a matter of strides: BHSD and BSHD arrays are the same
problem with other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cklang.errors import error
from cklang.families.attention.host import AttentionOperand, AttentionProblem, AttentionTensor
from cklang.families.attention.key import AttentionSignature, MaskKind, ScoreKind
from cklang.families.attention.masks import WindowMask
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention_backward.key import AttentionGradSignature
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.plan import View
from cklang.ir.attention import (
    LENGTHS,
    MIN_QUERIES,
    PAGE_STARTS,
    PAGES,
    STARTS,
    group_size,
    scale_of,
    weight_scale,
)
from cklang.ir.nodes import Function, Value
from cklang.types import f32

TENSORS = ("q", "k", "v", "o", "lse", "partial_o", "partial_lse", "random")
"""The tensors of a problem that a kernel reads or writes by itself."""

PARTS = TENSORS[5:7]
"""The tensors in which splits of the keys leave their parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCase:
    """One attention with its arrays; addresses are known at the launch alone."""

    signature: AttentionSignature
    problem: AttentionProblem
    """The problem, with 0 for all addresses."""
    values: Mapping[str, str]
    """The value that each tensor of the problem is, by the field: also seed and offset."""
    reads: tuple[str, ...]
    """The values that score and mask read."""
    steps: Mapping[str, int]
    """The stride of the last axis of each tensor, in elements; 1 if it has one element."""
    alignments: Mapping[str, int]
    """The alignment of each tensor's address, in bytes."""
    lists: Mapping[str, int]
    """The stride of the last axis of each list of numbers: lengths, starts, pages."""
    functions: Functions = NO_FUNCTIONS
    """All functions of the attention; where splits are combined, that kernel calls ``output``."""
    folded: int = 1
    """As many heads of a group are rows of one head of the problem."""

    def __hash__(self) -> int:
        return hash((self.signature, self.problem))

    def __str__(self) -> str:
        p, s = self.problem, self.signature
        heads = f"{p.heads} heads" + (f" on {p.kv_heads}" if p.kv_heads != p.heads else "")
        return (
            f"attention of {p.batch} x {heads}, {p.seqlen_q} queries, {p.seqlen_k} keys, "
            f"head sizes {p.hdim_q} and {p.hdim_v}, {s.dtype} to {s.dtype_o}"
            + (f", {self.folded} heads of a group as rows" if self.folded > 1 else "")
            + (f", in {p.splits} splits" if p.splits > 1 else "")
        )

    def split(self, count: int) -> AttentionCase:
        """Return the case in which ``count`` workgroups share the keys of a tile of queries."""
        p = self.problem
        rows = (p.heads * p.seqlen_q, p.seqlen_q, 1)
        o, lse = (
            AttentionTensor(
                stride_batch=rows[0] * width, stride_head=rows[1] * width, stride_seq=width
            )
            for width in (p.hdim_v, 1)
        )
        return replace(
            self,
            signature=replace(
                self.signature,
                split=True,
                output=False,
                functions=self.functions.without("output").digest,
            ),
            problem=replace(
                p,
                splits=count,
                partial_o=o,
                partial_lse=lse,
                stride_split_o=p.batch * rows[0] * p.hdim_v,
                stride_split_lse=p.batch * rows[0],
            ),
            values={
                **self.values,
                **{name: f"{name} of all splits of {self.values['o']}" for name in PARTS},
            },
        )

    def in_splits(self, count: int) -> AttentionCase:
        """Return a split case with another number of splits; with one, the whole case."""
        if count > 1:
            return self.split(count)
        p = self.problem
        functions = self.functions
        return replace(
            self,
            signature=replace(
                self.signature,
                split=False,
                output="output" in functions,
                functions=functions.digest,
            ),
            problem=replace(
                p,
                splits=1,
                partial_o=AttentionTensor(),
                partial_lse=AttentionTensor(),
                stride_split_o=0,
                stride_split_lse=0,
            ),
            values={name: value for name, value in self.values.items() if name not in PARTS},
        )

    @property
    def combined(self) -> AttentionCase:
        """The case of the kernel that combines splits: all packed rows are one sequence."""
        batch = 1 if self.signature.packed else self.problem.batch
        return replace(self, problem=replace(self.problem, batch=batch))

    @property
    def part_bytes(self) -> dict[str, int]:
        """The bytes of the partial results of splits, by value name; empty without splits."""
        p = self.problem
        sizes = (p.stride_split_o, p.stride_split_lse)
        part_sizes = zip(PARTS, sizes, strict=True)
        return {self.values[n]: 4 * p.splits * size for n, size in part_sizes if n in self.values}

    @property
    def bytes(self) -> int:
        """What the kernel that combines splits moves: their partial results, and o."""
        p = self.problem
        elements = p.batch * p.heads * p.seqlen_q * p.hdim_v
        return sum(self.part_bytes.values()) + elements * self.signature.dtype_o.bytes

    @property
    def has_scores(self) -> bool:
        """Whether there is a query that meets a key."""
        p = self.problem
        return bool(p.batch and p.heads and p.seqlen_q and p.seqlen_k)

    @property
    def is_empty(self) -> bool:
        """Whether no result has an element."""
        p = self.problem
        return not (p.batch and p.heads and p.seqlen_q) or (
            not p.hdim_v and "lse" not in self.values
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradCase:
    """The gradients of one attention: of q, k and v, from that of o."""

    forward: AttentionCase
    """The forward case, with lse, and with o in new memory."""
    deterministic: bool
    bias_grad: bool = False
    derivative: Function | None = None
    """The derivative of the score, where it is not 1 or what has a gradient is no bias of CK
    Tile's."""

    def __str__(self) -> str:
        one = ", added in one order" if self.deterministic else ""
        bias = ", with that of what the score reads" if self.bias_grad else ""
        return f"the gradient of {self.forward}{one}{bias}"

    @property
    def signature(self) -> AttentionGradSignature:
        """What its kernel computes: the parts of the gradients in f32."""
        forward = self.forward.signature
        return AttentionGradSignature(
            forward=replace(forward, dtype_o=f32, lse=True, split=False, blocks=None, functions=""),
            bias_grad=self.bias_grad,
            deterministic=self.deterministic,
            derivative=self.derivative is not None,
            lengths="lengths_k" in self.forward.values,
            functions=self.functions.digest,
        )

    @property
    def functions(self) -> Functions:
        """What fills its kernel: a bias that has a gradient is CK Tile's own, no expression."""
        functions = self.forward.functions.without("output", "block", "inside")
        if self.derivative is not None:
            return Functions(**functions, derivative=self.derivative)
        return functions.without("score") if self.bias_grad else functions


def case_of(
    kernel: FusedAttention,
    storage: Mapping[str, TensorLayout],
    dims: Mapping[str, int],
    *,
    transposed_v: bool = False,
) -> AttentionCase:
    """Return the problem of a kernel.

    ``storage`` has o, and lse if it is wanted. If ``transposed_v``, the keys of v lie side by side,
    and are to be read so.
    """
    named = {"q": kernel.q, "k": kernel.k, "v": kernel.v, "o": result_view(kernel.o)}
    shapes = {name: viewed(view, storage) for name, view in named.items()}
    batch, heads, queries, size = shapes["q"].shape
    kv_heads, keys = shapes["k"].shape[1:3]
    if heads * batch:
        group_size(heads, kv_heads)
    batch = _sequences(kernel, storage, batch)
    _check_lengths(kernel, storage, batch)
    read_as = shapes | {"v": _turned(shapes["v"]) if transposed_v else shapes["v"]}
    paging = _paging(kernel.pages, storage, keys)
    of_weights = weight_scale(storage[kernel.v.value.name].dtype, kernel.dropout)
    problem = AttentionProblem(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        seqlen_q=queries,
        seqlen_k=keys * paging.pages,
        hdim_q=size,
        hdim_v=shapes["v"].shape[3],
        q=AttentionTensor.of(read_as["q"].strides),
        k=AttentionTensor.of(read_as["k"].strides),
        v=AttentionTensor.of(read_as["v"].strides),
        o=AttentionTensor.of(read_as["o"].strides),
        lse=_row_tensor(kernel.lse, storage),
        scale=scale_of(kernel.scale, size),
        soft_cap=kernel.soft_cap,
        scale_p=of_weights,
        scale_o=1 / of_weights,
        dropout=kernel.dropout,
        page_size=paging.size,
        pages_stride=paging.stride,
        left=kernel.window.keys_left,
        right=kernel.window.keys_right,
        from_bottom_right=kernel.window.from_bottom_right,
        sink=kernel.window.sink,
        operands=tuple(_operand(value, storage, dims) for value in kernel.reads),
    )
    lists = _lists(kernel)
    return AttentionCase(
        signature=replace(_signature(kernel, storage), transposed_v=transposed_v),
        problem=problem,
        values={name: view.value.name for name, view in named.items()} | _scalars(kernel) | lists,
        reads=tuple(value.name for value in kernel.reads),
        steps={name: _step(layout) for name, layout in read_as.items()},
        lists={name: _step(storage[value]) for name, value in lists.items()},
        alignments={name: layout.alignment for name, layout in shapes.items()},
        functions=kernel.functions,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paging:
    """How keys lie in pages."""

    size: int = 0
    pages: int = 1
    stride: int = 0


def _paging(table: Value | None, storage: Mapping[str, TensorLayout], keys: int) -> _Paging:
    if table is None:
        return _Paging()
    layout = storage[table.name]
    return _Paging(size=keys, pages=layout.shape[-1], stride=layout.strides[0])


def _sequences(kernel: FusedAttention, storage: Mapping[str, TensorLayout], batch: int) -> int:
    """Return how many sequences there are: as many as starts, if there are any, but one."""
    return max(storage[kernel.starts[-1].name].shape[0] - 1, 0) if kernel.starts else batch


def _row_tensor(lse: Value | None, storage: Mapping[str, TensorLayout]) -> AttentionTensor:
    """Return lse, whose rows have one element."""
    if lse is None:
        return AttentionTensor()
    *rest, head, row = storage[lse.name].strides
    return AttentionTensor(stride_batch=rest[0] if rest else 0, stride_head=head, stride_seq=row)


def _scalars(kernel: FusedAttention) -> dict[str, str]:
    """Return the values beside q, k, v and o that are no lists, by the field of the problem."""
    values = {
        "lse": kernel.lse,
        "seed": kernel.seed,
        "offset": kernel.offset,
        MIN_QUERIES[0]: kernel.min_queries,
    }
    return {name: value.name for name, value in values.items() if value is not None}


def _lists(kernel: FusedAttention) -> dict[str, str]:
    """Return the values that are lists of numbers, by the field of the problem."""
    names = (*STARTS[: len(kernel.starts)], *LENGTHS, *PAGES, *PAGE_STARTS)
    values = (*kernel.starts, kernel.lengths, kernel.pages, kernel.page_starts)
    return {
        name: value.name for name, value in zip(names, values, strict=True) if value is not None
    }


def _check_lengths(kernel: FusedAttention, storage: Mapping[str, TensorLayout], batch: int) -> None:
    """Raise A061 unless packed sequences have a length each."""
    if kernel.starts and kernel.lengths is not None:
        count = storage[kernel.lengths.name].shape[0]
        if count != batch:
            raise error(
                "A061",
                name=kernel.lengths.name,
                starts=kernel.starts[0].name,
                count=count,
                batch=batch,
                entries=batch + 1,
            )


def result_view(value: Value) -> View:
    """Return o as batch, head, row and element."""
    packed = value.type.rank == 3
    return View(value=value, perm=(None, 1, 0, 2) if packed else (0, 1, 2, 3))


def viewed(view: View, storage: Mapping[str, TensorLayout]) -> TensorLayout:
    """Return the storage of a view, its axes in the view's order."""
    layout = storage[view.value.name]
    return replace(
        layout,
        shape=tuple(1 if axis is None else layout.shape[axis] for axis in view.perm),
        strides=tuple(0 if axis is None else layout.strides[axis] for axis in view.perm),
    )


def _turned(layout: TensorLayout) -> TensorLayout:
    """Return a layout with its last two axes exchanged."""
    shape, strides = list(layout.shape), list(layout.strides)
    for axes in (shape, strides):
        axes[-2:] = axes[:-3:-1]
    return replace(layout, shape=tuple(shape), strides=tuple(strides))


def _step(layout: TensorLayout) -> int:
    moves = layout.shape[-1] > 1 and 0 not in layout.shape
    return layout.strides[-1] if moves else 1


def _operand(
    value: Value, storage: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> AttentionOperand:
    """Return what a function reads; one without elements is a zero that nobody sees."""
    extents = value.type.extents(dims)
    if math.prod(extents) == 0:
        return AttentionOperand(pointer=0, extents=(1,) * len(extents), strides=(0,) * len(extents))
    strides = storage[value.name].strides
    flat = [0 if n == 1 else stride for n, stride in zip(extents, strides, strict=True)]
    return AttentionOperand(pointer=0, extents=extents, strides=tuple(flat))


def _signature(kernel: FusedAttention, storage: Mapping[str, TensorLayout]) -> AttentionSignature:
    dtype = storage[kernel.q.value.name].dtype
    return AttentionSignature(
        dtype=dtype,
        dtype_o=kernel.o.type.dtype,
        dtype_bias=dtype,
        score=_score_kind(kernel),
        mask=mask_kind(kernel.window) if kernel.mask is None else MaskKind.FUNCTION,
        lse=kernel.lse is not None,
        dropout=kernel.dropout > 0,
        packed=bool(kernel.starts),
        paged=kernel.pages is not None,
        output=kernel.output is not None,
        blocks=None if kernel.blocks is None else kernel.blocks.size,
        functions=kernel.functions.digest,
    )


def _score_kind(kernel: FusedAttention) -> ScoreKind:
    if kernel.soft_cap:
        return ScoreKind.SOFT_CAP
    return ScoreKind.NONE if kernel.score is None else ScoreKind.FUNCTION


def mask_kind(window: WindowMask) -> MaskKind:
    """Return the kind of a mask that is a window and nothing else."""
    if window.is_open:
        return MaskKind.NONE
    plain = WindowMask(right=0, from_bottom_right=window.from_bottom_right)
    return MaskKind.CAUSAL if window == plain else MaskKind.WINDOW
