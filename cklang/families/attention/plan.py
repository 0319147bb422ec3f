# SPDX-License-Identifier: MIT
"""What fusion decides about attention: one kernel that gives o, and lse beside it if asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from cklang.families.attention.masks import BlockMask, WindowMask
from cklang.fusion.functions import Functions
from cklang.fusion.plan import FusedKernel, View
from cklang.ir.nodes import Function, Value, print_function


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedAttention(FusedKernel):
    """One kernel: ``o = cast(output(attention(q, k, v)))``.

    ``q``, ``k`` and ``v`` are views in the order [batch, head, row, element] of parameters.
    ``score``, ``mask`` and ``output`` are regions of the IR, None if the kernel needs no
    function; the ``window`` holds for the keys beside ``mask``. Regions read ``reads``, as
    parameters d0, d1...
    """

    anchors: tuple[str, ...]
    q: View
    k: View
    v: View
    seed: Value | None
    offset: Value | None
    constants: tuple[tuple[str, int], ...]
    """The constants among seed, offset and ``min_queries``: value names and numbers."""
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
    blocks: BlockMask | None
    """The blocks of scores that it skips, which ``mask`` hides too."""
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

    family: ClassVar[str] = "attention"

    @property
    def functions(self) -> Functions:
        """What fills its stencil."""
        score = None if self.soft_cap else self.score
        blocks = self.blocks
        of_blocks = {} if blocks is None else {"block": blocks.region, "inside": blocks.inside}
        return Functions(score=score, mask=self.mask, output=self.output, **of_blocks)

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.o,) if self.lse is None else (self.o, self.lse)

    @property
    def as_written(self) -> FusedAttention:
        """The same with the score as an expression, whatever CK Tile has of its own."""
        return replace(self, soft_cap=0.0)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once; its constants are none of them."""
        numbers = (
            *(self.seed, self.offset, self.lengths, self.pages, self.page_starts),
            self.min_queries,
        )
        constants = {name for name, _ in self.constants}
        seeds = [value for value in numbers if value is not None and value.name not in constants]
        values = (self.q.value, self.k.value, self.v.value, *seeds, *self.starts, *self.reads)
        return tuple(dict.fromkeys(values))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        results = ", ".join(map(str, self.results))
        stored = "o" if self.output is None else "acc"
        yield f"kernel {self.name}: {results}"
        yield f"  {stored} = softmax(score({self.scale} {self.q} {self.k}')) {self.v}"
        yield from (f"  d{place} = {value}: {value.type}" for place, value in enumerate(self.reads))
        yield f"  keys: {self.window}"
        block = None if self.blocks is None else self.blocks.region
        for region in (self.score, self.mask, self.output, block):
            if region is not None:
                yield from (f"  {line}" for line in print_function(region).splitlines())
                yield f"  {region.name} {region_hash(region)[:12]}"


def region_hash(region: Function | None) -> str:
    """Return the SHA-256 (hex) of a region's text; empty for none."""
    return "" if region is None else hashlib.sha256(print_function(region).encode()).hexdigest()
