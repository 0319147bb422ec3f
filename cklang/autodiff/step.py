# SPDX-License-Identifier: MIT
"""What a gradient rule is: one operation of the program, seen from the backward function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cklang.autodiff.terms import Emitter, Term
from cklang.ir.nodes import Operation
from cklang.types import f32

Gradients: TypeAlias = Sequence[Term | None]
"""The f32 gradient by each operand; None for one that is zero or has none."""

Pull: TypeAlias = Callable[
    [Emitter, Sequence[Operation], Mapping[str, Term], Sequence[str]], Mapping[str, Term]
]
"""From what appends, operations in order, gradients by some of their results, and the names of the
values asked for: the gradients by these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What rules know beside an operation."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    """The extents of dims, by name, as far as the call is known."""
    by_kernels: bool = True
    """Whether gradients of attention may be ops that have no gradient themselves."""
    notes: list[str] = field(default_factory=list)
    """What was decided, as sentences; rules append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An operation and the gradient by its result."""

    emitter: Emitter
    operation: Operation
    """The operation in the backward function, which computes it again."""
    source: Operation | None = None
    """The one of the program, where ``operation`` is another of the same result."""
    gradient: Term
    """In f32, of the result's shape."""
    needed: tuple[bool, ...]
    """For each operand: whether its gradient is asked for. A rule may give others."""

    pull: Pull
    """Differentiates further operations, such as those of a region."""
    context: Context = field(default_factory=Context)

    log_sums: Term | None = None
    """For an attention: the gradient by the log-sum-exps, which are another operation."""

    @property
    def operands(self) -> tuple[Term, ...]:
        """The operands as terms."""
        return tuple(self.emitter.term(value) for value in self.operation.operands)

    @property
    def result(self) -> Term:
        """The result as a term."""
        return self.emitter.term(self.operation.result)

    def wide(self, place: int) -> Term:
        """Return an operand in f32."""
        return self.operands[place].cast(f32)

    def axes(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        attr = self.operation.attr(name)
        return tuple(int(str(item)) for item in attr) if isinstance(attr, tuple) else ()


Rule: TypeAlias = Callable[[Step], Gradients]
