# SPDX-License-Identifier: MIT
"""The functions of the language: names that mean an op of the IR inside ``@ck.op`` and ``@ck.fn``.

Inside a program they become ops. Called anywhere else they compute the same op on NumPy arrays (or
numbers) with its NumPy meaning, so the undecorated Python function of a program that uses them is
runnable NumPy.
"""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any

from cklang.frontend.examples import EXAMPLES
from cklang.frontend.intrinsics import INTRINSICS, Intrinsic

__all__ = [
    "abs",
    "acos",
    "acosh",
    "amax",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "attention",
    "broadcast_to",
    "cast",
    "causal",
    "cbrt",
    "ceil",
    "clamp",
    "concat",
    "conv",
    "conv_grad_input",
    "conv_grad_weight",
    "conv_transpose",
    "copysign",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "einsum",
    "elu",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "gelu",
    "gelu_tanh",
    "gemm",
    "hardsigmoid",
    "hardswish",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "leaky_relu",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "mean_pool",
    "min",
    "minimum",
    "mish",
    "neg",
    "permute",
    "pow",
    "prod",
    "reciprocal",
    "relu",
    "reshape",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "segment_sum",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "sliding_window",
    "softplus",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "square",
    "stack",
    "sum",
    "swapaxes",
    "take",
    "tan",
    "tanh",
    "topk",
    "trunc",
    "where",
]


class _Documentation:
    """What ``help`` shows: of a function its meaning and an example, of the class its docstring."""

    def __init__(self, of_class: str | None) -> None:
        self.of_class = of_class

    def __get__(self, function: EagerFunction | None, of: type[EagerFunction]) -> str | None:
        if function is None:
            return self.of_class
        example = indent(EXAMPLES[function.name].strip(), "    ")
        return f"ck.{function.name}: {function.doc}.\n\nExample:\n{example}\n"


class EagerFunction(Intrinsic):
    """A function of the language, which computes on NumPy arrays where plain Python calls it."""

    __slots__ = ()
    __doc__ = _Documentation(__doc__)

    @classmethod
    def of(cls, name: str) -> EagerFunction:
        """Return the function that the table of the language has under ``name``."""
        row = INTRINSICS[name]
        return cls(
            name=row.name,
            form=row.form,
            signature=row.signature,
            operands=row.operands,
            doc=row.doc,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the op on NumPy arrays; a program being compiled never makes this call."""
        from cklang.frontend.eager import compute

        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return compute(self, bound.arguments)

    def __reduce__(self) -> str:
        """Pickle it by its name in this module."""
        return self.name

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature


abs = EagerFunction.of("abs")  # noqa: A001 - the names NumPy has too
acos = EagerFunction.of("acos")
acosh = EagerFunction.of("acosh")
amax = EagerFunction.of("amax")
arange = EagerFunction.of("arange")
argmax = EagerFunction.of("argmax")
argmin = EagerFunction.of("argmin")
argsort = EagerFunction.of("argsort")
asin = EagerFunction.of("asin")
asinh = EagerFunction.of("asinh")
atan = EagerFunction.of("atan")
atan2 = EagerFunction.of("atan2")
atanh = EagerFunction.of("atanh")
attention = EagerFunction.of("attention")
broadcast_to = EagerFunction.of("broadcast_to")
cast = EagerFunction.of("cast")
causal = EagerFunction.of("causal")
cbrt = EagerFunction.of("cbrt")
ceil = EagerFunction.of("ceil")
clamp = EagerFunction.of("clamp")
concat = EagerFunction.of("concat")
conv = EagerFunction.of("conv")
conv_grad_input = EagerFunction.of("conv_grad_input")
conv_grad_weight = EagerFunction.of("conv_grad_weight")
conv_transpose = EagerFunction.of("conv_transpose")
copysign = EagerFunction.of("copysign")
cos = EagerFunction.of("cos")
cosh = EagerFunction.of("cosh")
cumprod = EagerFunction.of("cumprod")
cumsum = EagerFunction.of("cumsum")
einsum = EagerFunction.of("einsum")
elu = EagerFunction.of("elu")
erf = EagerFunction.of("erf")
erfc = EagerFunction.of("erfc")
exp = EagerFunction.of("exp")
exp2 = EagerFunction.of("exp2")
expm1 = EagerFunction.of("expm1")
floor = EagerFunction.of("floor")
fmod = EagerFunction.of("fmod")
gelu = EagerFunction.of("gelu")
gelu_tanh = EagerFunction.of("gelu_tanh")
gemm = EagerFunction.of("gemm")
hardsigmoid = EagerFunction.of("hardsigmoid")
hardswish = EagerFunction.of("hardswish")
hypot = EagerFunction.of("hypot")
isfinite = EagerFunction.of("isfinite")
isinf = EagerFunction.of("isinf")
isnan = EagerFunction.of("isnan")
leaky_relu = EagerFunction.of("leaky_relu")
log = EagerFunction.of("log")
log10 = EagerFunction.of("log10")
log1p = EagerFunction.of("log1p")
log2 = EagerFunction.of("log2")
logical_and = EagerFunction.of("logical_and")
logical_not = EagerFunction.of("logical_not")
logical_or = EagerFunction.of("logical_or")
logical_xor = EagerFunction.of("logical_xor")
max = EagerFunction.of("max")  # noqa: A001
max_pool = EagerFunction.of("max_pool")
maximum = EagerFunction.of("maximum")
mean = EagerFunction.of("mean")
mean_pool = EagerFunction.of("mean_pool")
min = EagerFunction.of("min")  # noqa: A001
minimum = EagerFunction.of("minimum")
mish = EagerFunction.of("mish")
neg = EagerFunction.of("neg")
permute = EagerFunction.of("permute")
pow = EagerFunction.of("pow")  # noqa: A001
prod = EagerFunction.of("prod")
reciprocal = EagerFunction.of("reciprocal")
relu = EagerFunction.of("relu")
reshape = EagerFunction.of("reshape")
round = EagerFunction.of("round")  # noqa: A001
rsqrt = EagerFunction.of("rsqrt")
scatter = EagerFunction.of("scatter")
scatter_add = EagerFunction.of("scatter_add")
segment_sum = EagerFunction.of("segment_sum")
sigmoid = EagerFunction.of("sigmoid")
sign = EagerFunction.of("sign")
signbit = EagerFunction.of("signbit")
silu = EagerFunction.of("silu")
sin = EagerFunction.of("sin")
sinh = EagerFunction.of("sinh")
sliding_window = EagerFunction.of("sliding_window")
softplus = EagerFunction.of("softplus")
softsign = EagerFunction.of("softsign")
sort = EagerFunction.of("sort")
split = EagerFunction.of("split")
sqrt = EagerFunction.of("sqrt")
square = EagerFunction.of("square")
stack = EagerFunction.of("stack")
sum = EagerFunction.of("sum")  # noqa: A001
swapaxes = EagerFunction.of("swapaxes")
take = EagerFunction.of("take")
tan = EagerFunction.of("tan")
tanh = EagerFunction.of("tanh")
topk = EagerFunction.of("topk")
trunc = EagerFunction.of("trunc")
where = EagerFunction.of("where")
