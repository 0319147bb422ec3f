# SPDX-License-Identifier: MIT
"""The table of gradient rules, and why the other ops of the op table have none."""

from collections.abc import Mapping
from types import MappingProxyType

from cklang.autodiff.attention import ATTENTION
from cklang.autodiff.indices import INDICES
from cklang.autodiff.pointwise import POINTWISE
from cklang.autodiff.products import PRODUCTS
from cklang.autodiff.reductions import REDUCTIONS
from cklang.autodiff.step import Rule
from cklang.autodiff.structure import STRUCTURE
from cklang.ir.attention_gradients import GRADIENTS
from cklang.ir.block_results import BLOCK_FIRST, BLOCK_PEAK
from cklang.ir.log_sums import PARTIALS
from cklang.ir.ops import OPS

RULES: Mapping[str, Rule] = MappingProxyType(
    {**POINTWISE, **REDUCTIONS, **PRODUCTS, **ATTENTION, **INDICES, **STRUCTURE}
)
"""The rule of each op that has one."""

_ADVICE = {
    "take": "write table[ids] as a product with a one-hot matrix, or compute the gradient of "
    "the table outside: a scatter of dy to rows ids",
    "gemm24": "differentiate the dense product a @ b and prune the gradient by the pattern",
    "scaled_gemm": "differentiate the product of the operands before quantisation, in f16 or bf16",
    "element": "read the tensor outside of score and mask functions",
    "moe_weights": "take the scores, ck.softmax or ck.sigmoid, at the indices by ck.take",
    "scatter": "write it with scatter_add, whose rows have gradients",
    **dict.fromkeys(
        (*PARTIALS, BLOCK_PEAK, BLOCK_FIRST),
        "differentiate the op that was written, not a part of its plan",
    ),
    **dict.fromkeys(
        GRADIENTS, "differentiate the op that was written, whose gradient these are a part of"
    ),
}
ADVICE: Mapping[str, str] = MappingProxyType(
    {name: fix for name, fix in _ADVICE.items() if name in OPS and name not in RULES}
)
"""The ops that floats pass and that have no rule, with what to write instead."""

ONCE: Mapping[str, str] = MappingProxyType(
    {
        "reduce_prod": "write the product as ck.exp(ck.sum(ck.log(x))) where all elements are "
        "above 0",
        "cumprod": "write the products as ck.exp(ck.cumsum(ck.log(x), axis)) where all elements "
        "are above 0",
    }
)
"""Ops whose rule is not to be differentiated again, since it distinguishes zeros, with advice."""

_CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne", "isnan", "isfinite", "isinf", "signbit")
_NUMBERS = (
    "constant",
    "extent",
    "arange",
    "reduce_argmax",
    "reduce_argmin",
    "argsort",
    "moe_indices",
    "group_ends",
    "group_order",
)
WITHOUT_FLOATS = frozenset(
    (
        *(name for name in OPS if name.startswith(("bitwise_", "logical_"))),
        *("left_shift", "right_shift"),
        *_CONDITIONS,
        *(name for name in _NUMBERS if name in OPS),
    )
)
"""Ops that no gradient reaches: their results are integers and conditions, or constants."""
