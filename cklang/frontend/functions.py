# SPDX-License-Identifier: MIT
"""The functions of the language: names that mean an op of the IR inside ``@ck.op`` and ``@ck.fn``.

Inside a program they become ops. Called anywhere else they compute the same op on NumPy arrays (or
numbers) with its NumPy meaning, so the undecorated Python function of a program that uses them is
runnable NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from cklang.frontend.masks import causal_window, sliding
from cklang.ir.ops import OPS
from cklang.ir.windows import DIRECTIONS

__all__ = [
    "abs",
    "attention",
    "cast",
    "causal",
    "ceil",
    "clamp",
    "conv",
    "conv_grad_input",
    "conv_grad_weight",
    "einsum",
    "elu",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "gelu",
    "gelu_tanh",
    "gemm",
    "hardsigmoid",
    "hardswish",
    "isnan",
    "leaky_relu",
    "log",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mish",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "silu",
    "sliding_window",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "tanh",
    "trunc",
    "where",
]


GEMMS: Mapping[str, str] = MappingProxyType({"": "gemm", "a": "gemm24"})
"""The op of ``ck.gemm`` by its argument ``sparse``."""


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Intrinsic:
    """A function of the language.

    The first ``operands`` parameters of its Python ``signature`` take values; the others take
    compile-time constants, which become attributes of the op.
    """

    name: str
    form: Form
    signature: inspect.Signature
    operands: int
    doc: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the op on NumPy arrays; a program being compiled never makes this call."""
        from cklang.frontend.eager import compute

        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return compute(self, bound.arguments)

    def __reduce__(self) -> str:
        """Pickle it by its name in this module."""
        return self.name

    def __repr__(self) -> str:
        return f"ck.{self.name}{self.signature}"

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the parameters that become attributes."""
        return tuple(self.signature.parameters)[self.operands :]


def _intrinsic(name: str, *operands: str, form: Form = Form.POINTWISE) -> Intrinsic:
    op = OPS[name]
    rows = op.attrs if form is Form.POINTWISE else ()
    parameters = [
        *(_parameter(operand) for operand in operands),
        *(_parameter(row.name, row.default) for row in rows),
    ]
    return Intrinsic(
        name=name,
        form=form,
        signature=inspect.Signature(parameters),
        operands=len(operands),
        doc=op.doc,
    )


def _parameter(name: str, default: object = None) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=empty if default is None else default)


def _option(name: str, default: object = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


gemm = Intrinsic(
    name="gemm",
    form=Form.GEMM,
    signature=inspect.Signature(
        [
            *(_parameter(name) for name in ("a", "b")),
            _option("sparse", ""),
            *(_option(name) for name in ("scale_a", "scale_b", "block_a", "block_b")),
        ]
    ),
    operands=2,
    doc=OPS["gemm"].doc,
)
cast = _intrinsic("cast", "x", "dtype", form=Form.CAST)
clamp = _intrinsic("clamp", "x", "lo", "hi", form=Form.CLAMP)
einsum = Intrinsic(
    name="einsum",
    form=Form.EINSUM,
    signature=inspect.Signature([_parameter(name) for name in ("subscripts", "a", "b")]),
    operands=3,
    doc="the sum of products of two tensors whose axes are named by letters, as NumPy's einsum",
)
attention = Intrinsic(
    name="attention",
    form=Form.ATTENTION,
    signature=inspect.Signature(
        [
            *(_parameter(name) for name in ("q", "k", "v")),
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                for name, default in (
                    ("scale", "auto"),
                    ("mask", None),
                    ("score", None),
                    ("dropout", 0.0),
                    ("seed", None),
                    ("offset", 0),
                    ("cu_seqlens_q", None),
                    ("cu_seqlens_k", None),
                    ("seqlens_k", None),
                    ("block_table", None),
                    ("page_starts", None),
                    ("min_seqlen_q", None),
                    ("return_lse", False),
                )
            ),
        ]
    ),
    operands=3,
    doc=OPS["attention"].doc,
)
causal = Intrinsic(
    name="causal",
    form=Form.MASK,
    signature=inspect.signature(causal_window),
    operands=0,
    doc="the mask that hides later keys",
)
sliding_window = Intrinsic(
    name="sliding_window",
    form=Form.MASK,
    signature=inspect.signature(sliding),
    operands=0,
    doc="the mask that shows some keys before the diagonal and some after it",
)


def _convolution(name: str, *extra: inspect.Parameter) -> Intrinsic:
    names = DIRECTIONS[name].names
    numbers = {"stride": 1, "padding": 0, "dilation": 1, "groups": None, "spatial": None}
    given = [*numbers.items(), ("layout", "")]
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(key, keyword, default=value) for key, value in given]
    return Intrinsic(
        name=name,
        form=Form.CONV,
        signature=inspect.Signature([*map(_parameter, names), *options, *extra]),
        operands=2,
        doc=OPS[name].doc,
    )


_SIZE = inspect.Parameter("size", inspect.Parameter.KEYWORD_ONLY, default=None)

conv = _convolution("conv")
conv_grad_input = _convolution("conv_grad_input", _SIZE)
conv_grad_weight = _convolution("conv_grad_weight", _SIZE)
where = _intrinsic("where", "condition", "x", "y")

relu = _intrinsic("relu", "x")
leaky_relu = _intrinsic("leaky_relu", "x")
elu = _intrinsic("elu", "x")
gelu = _intrinsic("gelu", "x")
gelu_tanh = _intrinsic("gelu_tanh", "x")
sigmoid = _intrinsic("sigmoid", "x")
silu = _intrinsic("silu", "x")
softplus = _intrinsic("softplus", "x")
softsign = _intrinsic("softsign", "x")
mish = _intrinsic("mish", "x")
hardsigmoid = _intrinsic("hardsigmoid", "x")
hardswish = _intrinsic("hardswish", "x")
tanh = _intrinsic("tanh", "x")
erf = _intrinsic("erf", "x")

exp = _intrinsic("exp", "x")
exp2 = _intrinsic("exp2", "x")
expm1 = _intrinsic("expm1", "x")
log = _intrinsic("log", "x")
log2 = _intrinsic("log2", "x")
log1p = _intrinsic("log1p", "x")
sqrt = _intrinsic("sqrt", "x")
rsqrt = _intrinsic("rsqrt", "x")
square = _intrinsic("square", "x")
reciprocal = _intrinsic("reciprocal", "x")
pow = _intrinsic("pow", "x", "y")  # noqa: A001 - the names NumPy has too
abs = _intrinsic("abs", "x")  # noqa: A001
neg = _intrinsic("neg", "x")
sign = _intrinsic("sign", "x")
floor = _intrinsic("floor", "x")
ceil = _intrinsic("ceil", "x")
round = _intrinsic("round", "x")  # noqa: A001
trunc = _intrinsic("trunc", "x")
minimum = _intrinsic("minimum", "x", "y")
maximum = _intrinsic("maximum", "x", "y")

isnan = _intrinsic("isnan", "x")
logical_and = _intrinsic("logical_and", "x", "y")
logical_or = _intrinsic("logical_or", "x", "y")
logical_not = _intrinsic("logical_not", "x")
