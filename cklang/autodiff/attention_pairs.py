# SPDX-License-Identifier: MIT
"""Which operations of a function are one attention: its result and its log-sum-exps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cklang.ir.nodes import Operation, attr_key

_ATTENTION, _LOG_SUMS = "attention", "attention_lse"


class Pair(NamedTuple):
    """An attention and its log-sum-exps, of equal operands and attributes."""

    attention: Operation
    log_sums: Operation
    second: Operation
    """Which of them a function has later."""


def attention_pairs(body: Sequence[Operation]) -> Mapping[str, Pair]:
    """Return the pairs among operations, by the names of both results."""
    pairs: dict[str, Pair] = {}
    earlier: dict[object, Operation] = {}
    for operation in body:
        if operation.op not in (_ATTENTION, _LOG_SUMS):
            continue
        first = earlier.setdefault((operation.operands, attr_key(operation.attrs)), operation)
        if first.op != operation.op:
            by_op = {step.op: step for step in (first, operation)}
            pair = Pair(by_op[_ATTENTION], by_op[_LOG_SUMS], operation)
            pairs |= {step.result.name: pair for step in (first, operation)}
    return pairs
