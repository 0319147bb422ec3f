# SPDX-License-Identifier: MIT
"""Score functions that CK Tile has names for, told by their expressions.

==============  ==============================================================
soft cap        cap tanh(s / cap), cap a constant
ALiBi           s + slope[h] (j - i) or s - slope[h] |j - i|, also by batch
bias            s + bias[b, h, i, j], any of its extents 1, some of b, h and i left out
==============  ==============================================================

They are reported by ``explain``. A soft cap may be CK Tile's own
(:mod:`cklang.families.attention.fuse`); a kernel computes the others as expressions.
"""

from cklang.ir.nodes import Function, Operation, Value

_ROWS = ("b", "h", "i")


def is_identity(score: Function) -> bool:
    """Tell whether a score function gives the score itself."""
    return score.results[0] == score.params[0]


def variant_of(score: Function) -> str:
    """Return what the score function is called: ``none`` or ``expression`` or a name above."""
    if is_identity(score):
        return "none"
    if cap_of(score) is not None:
        return "soft cap"
    if _Reader(score).is_alibi(score.results[0]):
        return "ALiBi"
    return "expression" if added_bias(score) is None else "bias"


def cap_of(score: Function) -> float | None:
    """Return the cap of a score function that is a soft cap and nothing else."""
    return _Reader(score).cap(score.results[0])


def added_bias(score: Function) -> tuple[str, tuple[str, ...]] | None:
    """Return what a score function adds as a bias, if that is all it does.

    Returns:
        The parameter, and the index of each of its axes: some of b, h and i, then j.
    """
    reader = _Reader(score)
    for s, more in _both(reader.of(score.results[0], "add")):
        if reader.is_score(s) and reader.is_bias(more):
            return reader.of(more, "element")[0].name, reader.element(more)
    return None


def read_bias(score: Function) -> str | None:
    """Return the parameter that a score function reads as a bias, whatever it makes of it.

    None if it reads none, or several.
    """
    reader = _Reader(score)
    results = (operation.result for operation in score.body if operation.op == "element")
    names = {reader.of(result, "element")[0].name for result in results if reader.is_bias(result)}
    return names.pop() if len(names) == 1 else None


class _Reader:
    """Reads the expressions of one score function; casts, which widen, are looked through."""

    def __init__(self, score: Function) -> None:
        self.score = score
        self.definitions = score.definitions()

    def of(self, value: Value, op: str) -> tuple[Value, ...]:
        """Return the operands of ``value`` if ``op`` made it, else nothing."""
        operation = self.maker(value)
        return operation.operands if operation is not None and operation.op == op else ()

    def maker(self, value: Value) -> Operation | None:
        operation = self.definitions.get(value.name)
        while operation is not None and operation.op == "cast":
            value = operation.operands[0]
            operation = self.definitions.get(value.name)
        return operation

    def is_bias(self, value: Value) -> bool:
        """Whether a value is an element at some of b, h and i, then j."""
        *own, last = self.element(value) or ("",)
        return last == "j" and set(own) <= set(_ROWS) and len(set(own)) == len(own)

    def is_score(self, value: Value) -> bool:
        return value == self.score.params[0]

    def number(self, value: Value) -> float | None:
        operation = self.maker(value)
        if operation is None or operation.op != "constant":
            return None
        number = operation.attr("value")
        return number if isinstance(number, float) else None

    def element(self, value: Value) -> tuple[str, ...]:
        """Return the names by which an element is indexed, or nothing if ``value`` is none."""
        operands = self.of(value, "element")
        return tuple(operand.name for operand in operands[1:])

    def cap(self, value: Value) -> float | None:
        """Return the cap, above or below 0, if ``value`` is a soft cap of the score."""
        for cap, rest in _both(self.of(value, "mul")):
            (inside,) = self.of(rest, "tanh") or (value,)
            limit = self.number(cap)
            over = self.of(inside, "div")
            if over and limit and self.is_score(over[0]) and self.number(over[1]) == limit:
                return limit
        return None

    def is_alibi(self, value: Value) -> bool:
        added = [(s, more, False) for s, more in _both(self.of(value, "add"))]
        taken = self.of(value, "sub")
        if taken:
            added.append((taken[0], taken[1], True))
        return any(
            self.is_score(s) and self._is_slope_times_distance(more, is_taken)
            for s, more, is_taken in added
        )

    def _is_slope_times_distance(self, value: Value, is_taken: bool) -> bool:
        return any(
            self.element(slope) in (("h",), ("b", "h")) and self._is_distance(other, is_taken)
            for slope, other in _both(self.of(value, "mul"))
        )

    def _is_distance(self, value: Value, is_taken: bool) -> bool:
        size = self.of(value, "abs")
        if size and is_taken:
            return self._is_distance(size[0], False) or self._is_distance(size[0], True)
        names = tuple(operand.name for operand in self.of(value, "sub"))
        return names == (("i", "j") if is_taken else ("j", "i"))


def _both(operands: tuple[Value, ...]) -> list[tuple[Value, Value]]:
    """Return two operands in both orders; nothing if there are not two."""
    return [(operands[0], operands[1]), (operands[1], operands[0])] if len(operands) == 2 else []
