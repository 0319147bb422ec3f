# SPDX-License-Identifier: MIT
"""What rewrites of a function share: names for new values, and operations that results need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cklang.ir.nodes import Function, Operation, Value


class FreshNames:
    """Gives names that no value of a function has.

    >>> from cklang.ir.parser import parse_function
    >>> names = FreshNames(parse_function("func @f(%copy0: f32[]) -> f32[] { return %copy0 }"))
    >>> names.new("copy"), names.new("copy")
    ('copy1', 'copy2')
    """

    def __init__(self, function: Function) -> None:
        self._taken = {value.name for value in function.values()}

    def new(self, stem: str) -> str:
        """Return a name of ``stem`` and a number, which is then taken."""
        count = 0
        while f"{stem}{count}" in self._taken:
            count += 1
        self._taken.add(f"{stem}{count}")
        return f"{stem}{count}"


def needed_operations(body: Sequence[Operation], results: Iterable[Value]) -> list[Operation]:
    """Return the operations that ``results`` depend on, in their order."""
    needed = {value.name for value in results}
    operations = []
    for operation in reversed(body):
        if operation.result.name in needed:
            needed |= {value.name for value in operation.operands}
            operations.append(operation)
    return operations[::-1]
