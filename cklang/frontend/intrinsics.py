# SPDX-License-Identifier: MIT
"""The table of the language's functions: name, signature, and how a call of each becomes IR.

:mod:`cklang.frontend.functions` has the functions themselves, which users call.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from cklang.frontend.ops.masks import causal_window, sliding
from cklang.ir.ops import OPS
from cklang.ir.reductions import REDUCTIONS
from cklang.ir.windows import DIRECTIONS

__all__ = ["COMPOSITES", "INTRINSICS", "METHODS", "Form", "Intrinsic"]

METHODS = (
    *(
        "argsort",
        "broadcast_to",
        "cumprod",
        "cumsum",
        "permute",
        "reshape",
        "sort",
        "split",
        "swapaxes",
    ),
    *("topk", "transpose"),
)
"""The functions that are methods of tensors too."""


class Form(Enum):
    """How a call becomes IR."""

    POINTWISE = "pointwise"
    CLAMP = "clamp"
    CAST = "cast"
    GEMM = "gemm"
    EINSUM = "einsum"
    ATTENTION = "attention"
    MASK = "mask"
    CONV = "conv"
    REDUCTION = "reduction"
    MOVEMENT = "movement"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Intrinsic:
    """A function of the language: what a call of it means to a program.

    The first ``operands`` parameters of its Python ``signature`` take values; the others take
    compile-time constants, which become attributes of the op.
    """

    name: str
    form: Form
    signature: inspect.Signature
    operands: int
    doc: str

    def __repr__(self) -> str:
        return f"ck.{self.name}{self.signature}"

    @property
    def has_windows(self) -> bool:
        """Whether the extents of its result follow from windows; annotations may name them."""
        return self.form is Form.CONV or self.name in ("max_pool", "mean_pool")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the parameters that become attributes."""
        return tuple(self.signature.parameters)[self.operands :]


def _pointwise(name: str, *operands: str, form: Form = Form.POINTWISE) -> Intrinsic:
    op = OPS[name]
    rows = op.attrs if form is Form.POINTWISE else ()
    parameters = [
        *(_parameter(operand) for operand in operands),
        *(
            _parameter(row.name) if row.default is None else _parameter(row.name, row.default)
            for row in rows
        ),
    ]
    return Intrinsic(
        name=name,
        form=form,
        signature=inspect.Signature(parameters),
        operands=len(operands),
        doc=op.doc,
    )


def _parameter(name: str, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _options(**defaults: object) -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]


_CONV_OPTIONS: Mapping[str, object] = {
    "stride": 1,
    "padding": 0,
    "dilation": 1,
    "groups": None,
    "spatial": None,
    "layout": "",
}


def _convolution(name: str, *extra: inspect.Parameter) -> Intrinsic:
    options = _options(**_CONV_OPTIONS)
    return Intrinsic(
        name=name,
        form=Form.CONV,
        signature=inspect.Signature([*map(_parameter, DIRECTIONS[name].names), *options, *extra]),
        operands=2,
        doc=OPS[name].doc,
    )


_GEMM = Intrinsic(
    name="gemm",
    form=Form.GEMM,
    signature=inspect.Signature(
        [
            *map(_parameter, ("a", "b")),
            *_options(sparse="", scale_a=None, scale_b=None, block_a=None, block_b=None),
        ]
    ),
    operands=2,
    doc=OPS["gemm"].doc,
)
_EINSUM = Intrinsic(
    name="einsum",
    form=Form.EINSUM,
    signature=inspect.Signature([_parameter(name) for name in ("subscripts", "a", "b")]),
    operands=3,
    doc="the sum of products of two tensors whose axes are named by letters, as NumPy's einsum",
)
_ATTENTION = Intrinsic(
    name="attention",
    form=Form.ATTENTION,
    signature=inspect.Signature(
        [
            *map(_parameter, ("q", "k", "v")),
            *_options(
                scale="auto",
                mask=None,
                score=None,
                dropout=0.0,
                seed=None,
                offset=0,
                cu_seqlens_q=None,
                cu_seqlens_k=None,
                seqlens_k=None,
                block_table=None,
                page_starts=None,
                min_seqlen_q=None,
                return_lse=False,
            ),
        ]
    ),
    operands=3,
    doc=OPS["attention"].doc,
)
_MASKS = (
    Intrinsic(
        name="causal",
        form=Form.MASK,
        signature=inspect.signature(causal_window),
        operands=0,
        doc="the mask that hides later keys",
    ),
    Intrinsic(
        name="sliding_window",
        form=Form.MASK,
        signature=inspect.signature(sliding),
        operands=0,
        doc="the mask that shows some keys before the diagonal and some after it",
    ),
)
_CONVOLUTIONS = (
    _convolution("conv"),
    _convolution("conv_grad_input", *_options(size=None)),
    _convolution("conv_grad_weight", *_options(size=None)),
    Intrinsic(
        name="conv_transpose",
        form=Form.CONV,
        signature=inspect.Signature(
            [
                *map(_parameter, ("x", "w")),
                *_options(**_CONV_OPTIONS, size=None, output_padding=0),
            ]
        ),
        operands=2,
        doc="the transposed convolution of x[N, …, K] by w[K, …, C/G], as torch's",
    ),
)


_AXIS = inspect.Parameter("axis", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
_REDUCTIONS = tuple(
    Intrinsic(
        name=name,
        form=Form.REDUCTION,
        signature=inspect.Signature([_parameter("x"), _AXIS, *_options(keepdims=False)]),
        operands=1,
        doc=OPS[op].doc,
    )
    for name, op in REDUCTIONS.items()
)


def _movement(name: str, doc: str, *names: str, **defaults: object) -> Intrinsic:
    parameters = [
        *map(_parameter, names),
        *(_parameter(each, default) for each, default in defaults.items()),
    ]
    return Intrinsic(
        name=name,
        form=Form.MOVEMENT,
        signature=inspect.Signature(parameters),
        operands=1,
        doc=doc,
    )


_MOVEMENTS = (
    _movement("arange", "the index of each element along an axis: 0, 1, 2, … as i32", "n"),
    _movement(
        "broadcast_to", "x repeated to a shape by NumPy's rules of broadcasting", "x", "shape"
    ),
    _movement(
        "argsort",
        "the indices that sort x along an axis; of equal elements the lowest comes first",
        "x",
        axis=-1,
        descending=False,
    ),
    _movement(
        "cumsum",
        "the sums of all elements up to each along an axis, in f32 or wrapping i32",
        "x",
        "axis",
    ),
    _movement(
        "cumprod",
        "the products of all elements up to each along an axis, in f32 or wrapping i32",
        "x",
        "axis",
    ),
    _movement(
        "sort", "x in order along an axis; nan is the greatest", "x", axis=-1, descending=False
    ),
    _movement(
        "topk",
        "the k greatest (or least) elements along an axis in order, and their indices; of equal "
        "elements the lowest index comes first",
        "x",
        "k",
        axis=-1,
        largest=True,
    ),
    _movement("concat", "tensors one after the other along an axis", "parts", axis=0),
    _movement(
        "max_pool",
        "the largest element of each window of images, in the dtype of x",
        "x",
        "window",
        stride=None,
        padding=0,
        layout="",
    ),
    _movement(
        "mean_pool",
        "the mean of each window of images, in f32",
        "x",
        "window",
        stride=None,
        padding=0,
        layout="",
        count_include_pad=True,
    ),
    _movement("permute", "the axes in another order: axis i is axis axes[i] of x", "x", "axes"),
    _movement(
        "reshape",
        "the elements in order in another shape; -1 in it is the extent that is left",
        "x",
        "shape",
    ),
    _movement(
        "split",
        "parts along an axis: a number of equal ones, or a tuple of extents",
        "x",
        "parts",
        axis=0,
    ),
    _movement("stack", "tensors one after the other along a new axis", "parts", axis=0),
    _movement(
        "take",
        "x at indices along an axis, which the axes of the indices replace",
        "x",
        "indices",
        axis=0,
    ),
    _movement(
        "scatter",
        "x with rows written at indices along an axis; of equal indices, the last row stays, or "
        "any of them unless ordered",
        "x",
        "indices",
        "rows",
        axis=0,
        ordered=True,
    ),
    _movement(
        "scatter_add",
        "x with rows added at indices along an axis, in order or in any, in f32 (integers in i32)",
        "x",
        "indices",
        "rows",
        axis=0,
        ordered=True,
    ),
    _movement(
        "segment_sum",
        "the sum of the rows of each index from 0 to count - 1, in order or in any, in f32 "
        "(integers in i32)",
        "rows",
        "indices",
        "count",
        axis=0,
        ordered=True,
    ),
    _movement("swapaxes", "two axes exchanged", "x", "axis1", "axis2"),
)
# The pointwise functions by the names of their operands.
_UNARY = (
    *("relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "sigmoid", "silu", "softplus", "softsign"),
    *("mish", "hardsigmoid", "hardswish", "tanh", "erf"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "cbrt"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("erfc", "reciprocal", "abs", "neg", "sign", "floor", "ceil", "round", "trunc"),
    *("isnan", "isinf", "isfinite", "signbit", "logical_not"),
)
_BINARY = (
    *("pow", "minimum", "maximum", "hypot", "fmod", "copysign"),
    *("logical_and", "logical_or", "logical_xor"),
)

INTRINSICS: Mapping[str, Intrinsic] = MappingProxyType(
    {
        row.name: row
        for row in (
            _GEMM,
            _EINSUM,
            _ATTENTION,
            *_MASKS,
            *_CONVOLUTIONS,
            *_REDUCTIONS,
            *_MOVEMENTS,
            _pointwise("cast", "x", "dtype", form=Form.CAST),
            _pointwise("clamp", "x", "lo", "hi", form=Form.CLAMP),
            _pointwise("where", "condition", "x", "y"),
            _pointwise("atan2", "y", "x"),
            *(_pointwise(name, "x", "y") for name in _BINARY),
            *(_pointwise(name, "x") for name in _UNARY),
        )
    }
)
"""The functions of the language by name."""

COMPOSITES = (
    *("all", "any", "celu", "cross_entropy", "deg2rad", "fmax", "fmin", "frac"),
    *("group_norm", "hardshrink", "hardtanh", "heaviside", "layer_norm", "lerp"),
    *("log_softmax", "logaddexp", "logaddexp2", "logit", "logsigmoid", "logsumexp"),
    *("nan_to_num", "norm", "prelu", "rad2deg", "relu6", "rms_norm", "selu"),
    *("sinc", "softmax", "softshrink", "tanhshrink", "threshold", "var", "xlogy"),
)
"""The names of the functions that are written in the language (:mod:`.composites`)."""
