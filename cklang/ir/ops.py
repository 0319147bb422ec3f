# SPDX-License-Identifier: MIT
"""The op table: one row is everything cklang knows about an op.

Parser, verifier, frontend names, reference, fusion and lowering read it here; what a row says is
in :mod:`cklang.ir.op`. This module has the ops of whole tensors.

The tables of rows are left to hand (``fmt: skip``), here and in the pointwise part: a row of few
lines is compared with its neighbours at a glance, where a line for each field would hide them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from cklang.ir import (
    attention,
    attention_gradients,
    block_results,
    contraction,
    convolution,
    expert_gate,
    extents,
    grouped,
    indices,
    joins,
    log_sums,
    numeric,
    order,
    pooling,
    reductions,
    rules,
    sampling,
    scatter,
    views,
)
from cklang.ir.op import AttrRow, Kind, Op
from cklang.ir.pointwise_ops import POINTWISE
from cklang.ir.rules import AttrKind, DTypeRule, ShapeRule
from cklang.types import f32, i32

__all__ = ["OPS", "AttrRow", "Kind", "Op"]


def _attrs(kind: AttrKind, *names: str) -> tuple[AttrRow, ...]:
    return tuple(AttrRow(name=name, kind=kind) for name in names)


_AXIS = _attrs(AttrKind.INT, "axis")


def _convolution(name: str, doc: str) -> Op:
    return Op(
        name=name,
        operands=2,
        kind=Kind.ANCHOR,
        doc=doc,
        numpy=convolution.numpy_of(name),
        attrs=(
            *_attrs(AttrKind.EXTENTS, "stride"),
            *_attrs(AttrKind.PAIRS, "padding"),
            *_attrs(AttrKind.EXTENTS, "dilation"),
            *_attrs(AttrKind.INT, "groups"),
        ),
        shape=convolution.SHAPES[name],
        dtype=rules.GEMM_DTYPE,
    )


_ANCHORS = (
    Op(name="gemm", operands=2, kind=Kind.ANCHOR,
       doc="the matrix products of a[…, M, K] and b[…, K, N], summed in f32, of integers in i32",
       numpy=np.matmul, shape=rules.GEMM_SHAPE, dtype=rules.GEMM_DTYPE),
    Op(
        name="contract",
        operands=2,
        kind=Kind.ANCHOR,
        doc="gemm over several axes or none: the sums over K... of a[…, M, K...] b[…, K..., N]; "
        "without M if rows is 0, without N if columns is 0",
        numpy=contraction.contract,
        attrs=_attrs(AttrKind.INT, "rows", "columns", "summed"),
        shape=contraction.CONTRACTION_SHAPE,
        dtype=rules.CONTRACT_DTYPE,
    ),
    Op(name=grouped.GROUPED_GEMM, operands=3, kind=Kind.ANCHOR,
       doc="the product of each group of rows of x[M, K] and its matrix of w[G, K, N]: group g ends"
       " before row ends[g], where the next begins; rows behind the last group are 0",
       numpy=grouped.grouped_gemm, shape=grouped.GROUPED_SHAPE, dtype=grouped.GROUPED_DTYPE),
    Op(name=grouped.SCALED_GROUPED_GEMM, operands=4, optional=1, kind=Kind.ANCHOR,
       doc="grouped_gemm in which the sum over each block of K is multiplied by its scales, as in "
       "scaled_gemm: those of x[M, K], those of w[G, K, N], or both, before the ends",
       numpy=grouped.scaled_grouped_gemm, attrs=_attrs(AttrKind.EXTENTS, "block_a", "block_b"),
       shape=grouped.SCALED_GROUPED_SHAPE, dtype=grouped.SCALED_GROUPED_DTYPE),
    Op(name=grouped.GROUPED_GEMM_K, operands=3, kind=Kind.ANCHOR,
       doc="the product of x[M, K] and y[K, N] over each group along K, as [G, M, N]: group g ends"
       " before ends[g], where the next begins",
       numpy=grouped.grouped_gemm_k, shape=grouped.GROUPED_K_SHAPE, dtype=grouped.GROUPED_DTYPE),
    _convolution("conv", "the convolution of x[N, …, C] by w[K, …, C/G] in one to three axes"),
    _convolution("conv_grad_input", "the gradient of conv by its input: of dy[N, …, K] and w"),
    _convolution("conv_grad_weight", "the gradient of conv by its weight: of x[N, …, C] and dy"),
    Op(name="gemm24", operands=2, kind=Kind.ANCHOR,
       doc="gemm in which the first two nonzero elements of each four of a along K count",
       numpy=lambda a, b: np.matmul(numeric.kept24(a), b), shape=rules.GEMM_SHAPE,
       dtype=rules.SPARSE_DTYPE),
    Op(
        name="scaled_gemm",
        operands=3,
        optional=1,
        kind=Kind.ANCHOR,
        doc="gemm(a, b) in which the sum over each block of K is multiplied by its scales: "
        "a scale of a (block_a: rows, K), one of b (block_b: K, columns), or both; [] for none",
        numpy=numeric.scaled_gemm,
        attrs=_attrs(AttrKind.EXTENTS, "block_a", "block_b"),
        shape=rules.SCALED_SHAPE,
        dtype=rules.SCALED_DTYPE,
    ),
)  # fmt: skip


def _reduction(
    name: str,
    doc: str,
    *,
    shape: ShapeRule = reductions.REDUCED_SHAPE,
    dtype: DTypeRule = reductions.REDUCE_DTYPE,
) -> Op:
    return Op(
        name=name,
        operands=1,
        kind=Kind.ANCHOR,
        doc=doc,
        numpy=reductions.MEANINGS[name],
        attrs=_attrs(AttrKind.AXES, "axes"),
        shape=shape,
        dtype=dtype,
    )


_REDUCTIONS = (
    _reduction("reduce_sum", "the sum along axes, in f32 or wrapping i32; 0 for no elements"),
    _reduction("reduce_mean", "the mean along axes, in f32", dtype=reductions.MEAN_DTYPE),
    _reduction("reduce_max", "the greatest along axes; nan if there is one"),
    _reduction("reduce_min", "the least along axes; nan if there is one"),
    _reduction("reduce_prod", "the product along axes, in f32 or wrapping i32; 1 for no elements"),
    _reduction("reduce_argmax",
        "the index of the greatest along one axis, the first of several, of the first nan if there "
        "is one", shape=reductions.INDEX_SHAPE, dtype=reductions.ARG_DTYPE),
    _reduction("reduce_argmin",
        "the index of the least along one axis, the first of several, of the first nan if there is "
        "one", shape=reductions.INDEX_SHAPE, dtype=reductions.ARG_DTYPE),
)  # fmt: skip

_SCATTER_ATTRS = _attrs(AttrKind.INT, "axis", scatter.IN_PLACE, scatter.UNORDERED)

_SCATTERS = (
    Op(
        name=scatter.SCATTER,
        operands=3,
        kind=Kind.ANCHOR,
        doc="a tensor with rows written at indices of an axis, the last one of equal indices, or "
        "any of them with `unordered`; indices outside of the axis write nothing",
        numpy=scatter.scattered,
        attrs=_SCATTER_ATTRS,
        shape=scatter.SCATTER_SHAPE,
        dtype=scatter.SCATTER_DTYPE,
        check=scatter.check,
    ),
    Op(
        name=scatter.SCATTER_ADD,
        operands=2,
        optional=1,
        kind=Kind.ANCHOR,
        doc="a tensor, or zeros, with rows added at indices along an axis, in f32 or wrapping i32, "
        "in order or, with `unordered`, in any; indices outside of the axis add nothing",
        numpy=scatter.scattered_sum,
        attrs=_SCATTER_ATTRS,
        shape=scatter.SCATTER_SHAPE,
        dtype=scatter.SCATTER_ADD_DTYPE,
        check=scatter.check,
    ),
)

_ORDER_ATTRS = _attrs(AttrKind.INT, "axis", order.COUNT, order.DESCENDING)

_ORDERS = (
    *(
        Op(
            name=name,
            operands=1,
            kind=Kind.ANCHOR,
            doc=f"the {what} of all elements up to each along an axis, in f32 or wrapping i32",
            numpy=numpy,
            attrs=_AXIS,
            shape=order.CUMSUM_SHAPE,
            dtype=order.CUMSUM_DTYPE,
        )
        for name, what, numpy in (
            (order.CUMSUM, "sums", order.cumsum),
            (order.CUMPROD, "products", order.cumprod),
        )
    ),
    Op(name=order.SORT, operands=1, kind=Kind.ANCHOR,
       doc="the elements along an axis in order, the first of them or all; nan is the greatest",
       numpy=order.in_order, attrs=_ORDER_ATTRS, shape=order.SORT_SHAPE, dtype=order.SORT_DTYPE),
    Op(name=order.ARGSORT, operands=1, kind=Kind.ANCHOR,
       doc="the indices of what sort gives; of equal elements the lowest index comes first",
       numpy=order.argsorted, attrs=_ORDER_ATTRS, shape=order.SORT_SHAPE,
       dtype=order.ARGSORT_DTYPE),
)  # fmt: skip

_POOLING = tuple(
    Op(
        name=name,
        operands=1,
        kind=Kind.ANCHOR,
        doc=f"the {what} of each window along axes; a window begins `before` an axis and ends as "
        "far behind it at most",
        numpy=numpy,
        attrs=(
            *_attrs(AttrKind.AXES, "axes"),
            *_attrs(AttrKind.EXTENTS, "size", "step", "before", "dilation"),
            *_attrs(AttrKind.INT, *more),
        ),
        shape=pooling.POOL_SHAPE,
        dtype=pooling.POOL_DTYPES[name],
    )
    for name, what, numpy, more in (
        (pooling.MAX_POOL, "largest element", pooling.largest, ()),
        (
            pooling.AVG_POOL,
            "mean, with `padding` 1 zeros beyond an axis included,",
            pooling.mean,
            ("padding",),
        ),
    )
)

_GATES = tuple(
    Op(
        name=name,
        operands=1,
        optional=1,
        kind=Kind.ANCHOR,
        doc=doc,
        numpy=numpy,
        attrs=tuple(AttrRow(name=attr, kind=kind) for attr, kind in expert_gate.ATTRS.items()),
        shape=expert_gate.MOE_SHAPE,
        dtype=expert_gate.dtype_rule(dtype),
    )
    for name, numpy, dtype, doc in (
        (
            expert_gate.MOE_WEIGHTS,
            expert_gate.weights,
            f32,
            "the weights of the experts to which the logits along the last axis lead",
        ),
        (
            expert_gate.MOE_INDICES,
            expert_gate.indices,
            i32,
            "these experts, those of greater scores first; of equal ones the lowest index",
        ),
    )
)

_GROUPS = (
    Op(name=grouped.GROUP_ENDS, operands=1, kind=Kind.ANCHOR,
       doc="how many of the ids are of groups up to each", numpy=grouped.group_ends,
       shape=grouped.ENDS_SHAPE, dtype=grouped.IDS_DTYPE),
    Op(name=grouped.GROUP_ORDER, operands=2, kind=Kind.ANCHOR,
       doc="the places of ids in the order of their groups, as many as there are ends; those of no "
       "group come last, and equal ones stay in order", numpy=grouped.group_order,
       shape=grouped.ORDER_SHAPE, dtype=grouped.IDS_DTYPE),
)  # fmt: skip

_SAMPLING = (
    Op(name=sampling.SAMPLE, operands=len(sampling.OPERANDS), kind=Kind.ANCHOR,
       doc="a token of each row of logits, drawn by the softmax of those that pass",
       numpy=sampling.sample, shape=sampling.SAMPLE_SHAPE, dtype=sampling.SAMPLE_DTYPE),
)  # fmt: skip

_ATTENTION_ATTRS = (
    *_attrs(AttrKind.FLOAT, "dropout"),
    *_attrs(AttrKind.REGION, "mask"),
    *_attrs(AttrKind.NAMES, "roles"),
    *_attrs(AttrKind.SCALE, "scale"),
    *_attrs(AttrKind.REGION, "score"),
)

_ATTENTION = (
    Op(name="attention", operands=3, optional=attention.MOST_OPTIONAL, kind=Kind.ATTENTION,
       doc="the values v weighted by the softmax of the scores of q and k", numpy=attention.attend,
       attrs=_ATTENTION_ATTRS, shape=attention.OUTPUT_SHAPE, dtype=attention.INPUT_DTYPE,
       check=attention.check),
    Op(name="attention_lse", operands=3, optional=attention.MOST_OPTIONAL, kind=Kind.ATTENTION,
       doc="the logarithm of the sum of exponentials that attention divides by",
       numpy=attention.log_sum, attrs=_ATTENTION_ATTRS, shape=attention.LSE_SHAPE,
       dtype=attention.INPUT_DTYPE, check=attention.check),
    Op(name="element", operands=1, optional=attention.MOST_AXES, kind=Kind.READ,
       doc="one element of a tensor, at an index for each axis that is limited to the axis",
       numpy=attention.element, shape=attention.ELEMENT_SHAPE, dtype=attention.ELEMENT_DTYPE),
    *(
        Op(
            name=name,
            operands=3 + attention_gradients.MORE,
            optional=attention.MOST_OPTIONAL,
            kind=Kind.ATTENTION,
            doc=f"the gradient of attention by {side} (s: of each score), from that by o",
            numpy=attention_gradients.gradient(side),
            attrs=(
                *_attrs(AttrKind.REGION, attention_gradients.DERIVATIVE),
                *_ATTENTION_ATTRS,
            ),
            shape=attention_gradients.shape_like(side),
            dtype=attention_gradients.GRADIENT_DTYPE,
            check=attention_gradients.check,
        )
        for name, side in attention_gradients.GRADIENTS.items()
    ),
)  # fmt: skip

_STRUCTURE = (
    Op(name="transpose", operands=1, kind=Kind.SHAPE,
       doc="axes in another order: result axis i is operand axis perm[i]",
       numpy=lambda x, perm: np.transpose(x, perm),
       attrs=_attrs(AttrKind.AXES, "perm"), shape=rules.TRANSPOSE_SHAPE, dtype=rules.KEEP_DTYPE),
    Op(
        name="broadcast",
        operands=1,
        kind=Kind.SHAPE,
        doc="repetition along axes: operand axis i is result axis dims[i], other axes repeat",
        # The evaluator passes the result's extents, which the IR declares in the type.
        numpy=lambda x, dims, shape: np.broadcast_to(
            np.expand_dims(x, tuple(axis for axis in range(len(shape)) if axis not in dims)), shape
        ),
        attrs=_attrs(AttrKind.AXES, "dims"),
        shape=rules.BROADCAST_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(
        name=views.SLICE,
        operands=1,
        kind=Kind.VIEW,
        doc="part of a tensor: elements start, start + step, ... before stop along each axis",
        numpy=views.sliced,
        attrs=(
            *_attrs(AttrKind.AXES, "axes"),
            *_attrs(AttrKind.BOUNDS, *views.BOUND_NAMES),
            *_attrs(AttrKind.EXTENTS, "step"),
        ),
        shape=views.SLICE_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(name=views.RESHAPE, operands=1, kind=Kind.VIEW,
       doc="the elements in order, the last axis fastest, in another shape", numpy=views.reshaped,
       shape=views.RESHAPE_SHAPE, dtype=rules.KEEP_DTYPE),
    Op(
        name=views.APART,
        operands=1,
        kind=Kind.VIEW,
        doc="the same tensor in memory, between an op that is called apart and what is around it: "
        "no kernel computes parts of both",
        numpy=views.apart,
        attrs=_attrs(AttrKind.INT, "call"),
        shape=rules.SAME_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    *(
        Op(
            name=name,
            operands=1,
            kind=Kind.PARTIAL,
            doc=f"{what} of each {log_sums.COLUMNS} elements of the last axis, which the "
            "kernel of the operand stores in its place",
            numpy=numpy,
            shape=log_sums.LOG_SUMS_SHAPE,
        )
        for name, what, numpy in (
            (log_sums.LOG_SUMS, "the log-sum-exp", log_sums.log_sums),
            (log_sums.BLOCK_SUMS, "the sum", log_sums.block_sums),
            (log_sums.BLOCK_MAXIMA, "the largest", log_sums.block_maxima),
        )
    ),
    Op(name=block_results.BLOCK_PEAK, operands=1, kind=Kind.BLOCK,
       doc="for each element the largest of its block of columns", numpy=block_results.peak,
       attrs=_attrs(AttrKind.INT, "columns")),
    Op(name=block_results.BLOCK_FIRST, operands=1, kind=Kind.PARTIAL,
       doc="a number for each block of columns, which the kernel of the operand stores",
       numpy=block_results.first, attrs=_attrs(AttrKind.INT, "columns"),
       shape=block_results.BLOCK_FIRST_SHAPE, dtype=rules.KEEP_DTYPE),
    *(
        Op(
            name=name,
            operands=1,
            optional=joins.MOST_PARTS - 1,
            kind=Kind.JOIN,
            doc=f"tensors one after the other along {axis}",
            numpy=numpy,
            attrs=_AXIS,
            shape=shape,
            dtype=joins.JOIN_DTYPE,
        )
        for name, axis, numpy, shape in (
            (joins.CONCAT, "an axis", joins.concatenated, joins.CONCAT_SHAPE),
            (joins.STACK, "a new axis", joins.stacked, joins.STACK_SHAPE),
        )
    ),
    Op(name="cast", operands=1, kind=Kind.CAST, doc="conversion to another dtype",
       numpy=numeric.cast, attrs=_attrs(AttrKind.DTYPE, "to"), dtype=rules.CAST_DTYPE),
    Op(name="constant", operands=0, kind=Kind.CONSTANT,
       doc="a number known when the kernel is built", numpy=lambda value: np.asarray(value),
       attrs=_attrs(AttrKind.NUMBER, "value"), shape=rules.SCALAR_SHAPE,
       dtype=rules.CONSTANT_DTYPE, c="{value}", c_int="{value}"),
    Op(name=extents.EXTENT, operands=1, kind=Kind.EXTENT,
       doc="the extent of an axis of a tensor whose elements are not read", numpy=extents.extent,
       attrs=_AXIS, shape=extents.EXTENT_SHAPE, dtype=extents.EXTENT_DTYPE),
    Op(name=indices.ARANGE, operands=0, kind=Kind.INDEX,
       doc="the index of each element along an axis: 0, 1, 2, ...", numpy=indices.arange,
       shape=indices.ARANGE_SHAPE, dtype=indices.ARANGE_DTYPE),
    Op(name=indices.TAKE, operands=2, kind=Kind.GATHER,
       doc="a tensor at indices along an axis, each limited to the axis", numpy=indices.taken,
       attrs=_AXIS, shape=indices.TAKE_SHAPE, dtype=indices.TAKE_DTYPE),
    Op(name=indices.TAKE_ALONG, operands=2, kind=Kind.GATHER,
       doc="an element of a tensor for each index along an axis, limited to the axis",
       numpy=indices.taken_along, attrs=_AXIS, shape=indices.ALONG_SHAPE, dtype=indices.TAKE_DTYPE),
)  # fmt: skip

OPS: Mapping[str, Op] = MappingProxyType(
    {
        op.name: op
        for op in (
            *_ANCHORS,
            *_REDUCTIONS,
            *_SCATTERS,
            *_ORDERS,
            *_POOLING,
            *_GATES,
            *_GROUPS,
            *_SAMPLING,
            *_ATTENTION,
            *_STRUCTURE,
            *POINTWISE,
        )
    }
)
"""All ops by name."""
