# SPDX-License-Identifier: MIT
"""What fusion decides about attention: one kernel that gives o, and lse beside it if asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cklang.families.attention.masks import WindowMask
from cklang.fusion.graph import build_graph
from cklang.fusion.plan import View
from cklang.ir.nodes import Function, Value
from cklang.ir.printer import print_function
from cklang.source import Span

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["AttentionFunctions", "AttentionPlan", "FusedAttention", "region_hash"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFunctions:
    """The user's functions that a kernel of attention calls; None where it calls none."""

    score: Function | None
    mask: Function | None
    output: Function | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedAttention:
    """One kernel: ``o = cast(output(attention(q, k, v)))``.

    ``q``, ``k`` and ``v`` are views in the order [batch, head, row, element] of parameters.
    ``score``, ``mask`` and ``output`` are regions of the IR, None where the kernel needs no
    function; the ``window`` holds for the keys beside ``mask``. Regions read ``reads``, as
    parameters d0, d1...
    """

    name: str
    q: View
    k: View
    v: View
    seed: Value | None
    offset: Value | None
    constants: tuple[tuple[str, int], ...]
    """Those of seed, offset and ``min_queries`` that are constants: value names and numbers."""
    starts: tuple[Value, ...]
    """Where packed sequences begin, in q and in k (in q alone of keys in pages); empty if they
    are not packed."""
    lengths: Value | None
    """How many keys each sequence has, if not all of them."""
    pages: Value | None
    """The pages of each sequence, which the first axis of k and v counts."""
    page_starts: Value | None
    """Where each sequence begins in ``pages``, if that is one list."""
    min_queries: Value | None
    """Packed sequences of as many queries or fewer are skipped."""
    reads: tuple[Value, ...]
    score: Function | None
    mask: Function | None
    output: Function | None
    """What is stored of an element of o."""
    window: WindowMask
    scale: float | str
    """A number, or "auto" for one over the root of the head size."""
    dropout: float
    o: Value
    """What is stored of the result; of type f32 and not a result where only lse is asked for."""
    lse: Value | None
    variant: str
    """What CK Tile calls the score function."""
    soft_cap: float = 0.0
    """The cap of CK Tile's own soft cap, which stands for ``score``; 0 of a kernel without."""
    spans: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def functions(self) -> AttentionFunctions:
        """What fills its stencil."""
        score = None if self.soft_cap else self.score
        return AttentionFunctions(score=score, mask=self.mask, output=self.output)

    @property
    def as_written(self) -> FusedAttention:
        """The same with the score as an expression, whatever CK Tile has of its own."""
        return replace(self, soft_cap=0.0)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        numbers = (
            *(self.seed, self.offset, self.lengths, self.pages, self.page_starts),
            self.min_queries,
        )
        seeds = [value for value in numbers if value is not None]
        values = (self.q.value, self.k.value, self.v.value, *seeds, *self.starts, *self.reads)
        return tuple(dict.fromkeys(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPlan:
    """The kernel of a function that is an attention, and why it is that."""

    function: Function
    kernel: FusedAttention
    notes: tuple[str, ...]

    @property
    def graph(self) -> nx.MultiDiGraph:
        """The graph of the function."""
        return build_graph(self.function)

    def explain(self) -> str:
        """Return the kernel and the decisions as text."""
        kernel = self.kernel
        results = ", ".join(str(value) for value in (kernel.o, kernel.lse) if value is not None)
        made = "o" if kernel.output is None else "acc"
        lines = [
            f"@{self.function.name}: 1 kernel",
            f"kernel {kernel.name}: {results}",
            f"  {made} = softmax(score({kernel.scale} {kernel.q} {kernel.k}')) {kernel.v}",
            *(f"  d{place} = {value}: {value.type}" for place, value in enumerate(kernel.reads)),
            f"  keys: {kernel.window}",
        ]
        for region in (kernel.score, kernel.mask, kernel.output):
            if region is not None:
                text = print_function(region).splitlines()
                lines += [f"  {line}" for line in text]
                lines.append(f"  {region.name} {region_hash(region)[:12]}")
        return "\n".join([*lines, "decisions", *(f"  {note}" for note in self.notes)])


def region_hash(region: Function | None) -> str:
    """Return the SHA-256 (hex) of a region's text; empty for none."""
    return "" if region is None else hashlib.sha256(print_function(region).encode()).hexdigest()
