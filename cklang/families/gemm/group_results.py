# SPDX-License-Identifier: MIT
"""The epilogue that takes the largest of a group of columns: one function, which is called twice.

An epilogue function computes one element. The group maximum is therefore passed in as an extra
parameter, and its operand is returned as an extra result. The kernel calls the function once for
that result, joins lanes, and calls it again for the others. Each call is inlined, and the compiler
keeps what both compute.
"""

from dataclasses import replace

from cklang.ir.block_results import BLOCK_PEAK
from cklang.ir.nodes import Function, Value


def with_peak(function: Function) -> tuple[Function, int]:
    """Return an epilogue with the maximum of a group as parameter, and the columns of a group.

    A region without ``block_peak`` is returned as it is, with 0 columns.
    """
    peaks = [operation for operation in function.body if operation.op == BLOCK_PEAK]
    columns = {operation.attr("columns") for operation in peaks}
    if len(peaks) != 1:
        return function, 0
    (peak,), (count,) = peaks, columns
    names = {value.name for value in function.params}
    parameter = Value(name=f"d{sum(name.startswith('d') for name in names)}", type=peak.result.type)

    def new(value: Value) -> Value:
        return parameter if value == peak.result else value

    body = tuple(
        replace(each, operands=tuple(map(new, each.operands)))
        for each in function.body
        if each is not peak
    )
    results = (*map(new, function.results), *peak.operands)
    own = replace(function, params=(*function.params, parameter), body=body, results=results)
    return own, count if isinstance(count, int) else 0
