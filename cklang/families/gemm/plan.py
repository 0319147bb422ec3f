# SPDX-License-Identifier: MIT
"""What fusion decides about a product: one kernel with its operands and functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cklang.families.scatter.fuse import FusedScatter
from cklang.fusion.explain import function_lines, kernel_lines
from cklang.fusion.functions import Functions
from cklang.fusion.parts import split
from cklang.fusion.plan import BlockScale, Computed, FusedKernel, Gathered, Read, View
from cklang.ir.grouped import GROUPED_GEMM_K
from cklang.ir.log_sums import LOG_SUMS
from cklang.ir.nodes import Function, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedGemm(FusedKernel):
    """One kernel: ``result = cast(epilogue(a @ b, reads…))``.

    With ``scale_a`` or ``scale_b`` the sum over each block of K is multiplied by them.

    ``a``, ``b`` and ``reads`` name parameters of the function or results of earlier kernels.
    ``epilogue`` is a region of rank-0 values in canonical form: parameters ``%acc`` (f32, or i32
    of an integer product), then ``%d0``, ``%d1``… one for each read in order (narrow floats arrive
    widened to f32, others as they are), one result: i32 where integers are stored, else f32. The
    store rounds f32 to ``result.type.dtype``: the only cast that is not in the region. Operations
    of the region carry the user's spans.

    If ``a`` is computed, the region goes on with parameters ``%a0``… for its reads and one more
    result, its element, which is rounded to the operand's dtype in the same way; so for ``b``.
    :attr:`functions` takes the region apart.

    Of a pair ``b2`` is a second B, and the epilogue takes ``%acc1`` after ``%acc``: a @ b2.

    ``more`` are further results: the epilogue gives one value for each after that of ``result``,
    and ``axes`` of each say which of its axes runs with each axis of the kernel, as for reads.

    With ``group`` the epilogue takes one parameter more after its reads: the largest, over that
    many columns, of its last result, which is not stored. Of the results named in ``numbers`` one
    element is stored for each such group.

    ``axes`` are the result's axes in the order of the kernel's: batch axes, then rows and columns,
    None if a product of vectors has none. ``depth`` is how many axes A and B have for K.
    With ``parts`` the result is not stored: its memory has what that op gives of each row and block
    of columns (:mod:`cklang.ir.log_sums`), in rows.

    With ``scatter`` the result is not stored either: its rows are written or added to those of a
    tensor at indices, as that kernel would do with them.

    ``ends`` say where segments of rows end. Each has a B of its own, along the first axis of B,
    which runs with no axis of the result. Sums are 0 behind the last segment. Or they say where
    those of K end: the first axis of the result counts them.

    ``computed`` are the names of what it computes of the program without a function: the gemm, the
    second product of a pair, rows that it reads at indices, the largest of a group, numbers for
    parts of rows. ``op`` is the
    gemm's op, ``transposed`` whether the kernel computes its transpose, with A and B exchanged.
    ``spans`` are the user's places in it: the anchor's, then the region's, each once.
    """

    a: View | Computed
    b: View | Computed
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    more: tuple[Read, ...] = ()
    parts: str = ""
    scatter: FusedScatter | None = None
    ends: Read | None = None
    b2: View | None = None
    group: int = 0
    numbers: frozenset[str] = frozenset()
    computed: tuple[str, ...]
    op: str = "gemm"
    axes: tuple[int | None, ...] = (0, 1)
    depth: int = 1
    transposed: bool = False
    scale_a: BlockScale | None = None
    scale_b: BlockScale | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once, in the order a, b, b2, their scales, reads."""
        values: list[Value] = []
        for side in (self.a, self.b, *([] if self.b2 is None else [self.b2])):
            values += (read.value for read in side.reads)
        values += (scale.view.value for scale in (self.scale_a, self.scale_b) if scale)
        values += (read.value for read in self.reads)
        values += [] if self.ends is None else [self.ends.value]
        if self.scatter is not None:
            values += (input_ for input_ in self.scatter.inputs if input_ != self.result)
        return tuple(dict.fromkeys(values))

    family: ClassVar[str] = "gemm"

    @property
    def anchors(self) -> tuple[str, ...]:
        """What it computes without a function, with the rows that it writes at indices."""
        return (*self.computed, *(() if self.scatter is None else self.scatter.anchors))

    @property
    def log_sums(self) -> bool:
        """Whether log-sum-exps are stored in the place of the result."""
        return self.parts == LOG_SUMS

    @property
    def has_segments_of_k(self) -> bool:
        """Whether each product sums over a part of K of its own."""
        return self.op == GROUPED_GEMM_K

    @property
    def shares_numbers(self) -> bool:
        """Whether rows share numbers: blocks of A or B their scales, segments their ends."""
        return any(part is not None for part in (self.scale_a, self.scale_b, self.ends))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.stored.value, *(result.value for result in self.more))

    @property
    def stored(self) -> Read:
        """Where its first result is: the value in memory, and the axes that run with its own."""
        if self.scatter is None:
            return Read(value=self.result, axes=self.axes)
        return Read(value=self.scatter.result, axes=self.scatter.result_axes(self.axes))

    @property
    def places(self) -> Read | None:
        """The indices of rows at which its result is stored; None if they follow each other."""
        if self.scatter is None:
            return None
        axes = self.scatter.index_axes(self.axes)
        return Read(value=self.scatter.indices.value, axes=axes)

    @property
    def functions(self) -> Functions:
        """The function of ``epilogue``, and those of ``a`` and ``b`` if they are computed."""
        sides = {"prologue_a": self.a, "prologue_b": self.b}
        computed = {name: side for name, side in sides.items() if isinstance(side, Computed)}
        sums = 1 if self.b2 is None else 2
        own = sums + len(self.reads) + bool(self.group)
        counts = [own, *(len(side.reads) for side in computed.values())]
        parts = split(self.epilogue, counts, first=len(self.results) + bool(self.group))
        return Functions(**dict(zip(("epilogue", *computed), parts, strict=True)))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        yield from kernel_lines(self, ["m", "n"], _product_lines(self))
        if self.ends is not None and self.has_segments_of_k:
            yield f"  k is summed from {self.ends.value}[b0 - 1] up to {self.ends.value}[b0]"
        elif self.ends is not None:
            yield f"  b0 is the first for which m < {self.ends.value}[b0]; acc = 0 if there is none"
        if self.scatter is not None:
            yield f"  its rows go to {self.scatter.place}"
        if self.group:
            function = self.functions["epilogue"]
            peak, largest = function.params[-1], function.results[-1]
            yield f"  {peak} is the largest {largest} of {self.group} columns; stored for each of"
            yield f"  these groups: {', '.join(sorted(self.numbers))}"


def _product_lines(kernel: FusedGemm) -> Iterator[str]:
    """Yield A, B and the sums of a product as lines of text."""
    functions = kernel.functions
    summed = ["k"] if kernel.depth == 1 else [f"k{place}" for place in range(kernel.depth)]
    own_a, own_b = ["m", *summed], [*summed, "n"]
    yield from _side("a", own_a, kernel.a, functions)
    yield from _side("b", own_b, kernel.b, functions)
    turned = " (the transpose of the product in the program)" if kernel.transposed else ""
    if kernel.op == "contract":
        sides = f"{_operand(kernel.a, own_a)} * {_operand(kernel.b, own_b)}"
        yield f"  acc = the sum over {', '.join(summed)} of {sides}{turned}"
    else:
        yield f"  acc = {kernel.a} @ {kernel.b}{turned}"
        if kernel.b2 is not None:
            yield f"  acc1 = {kernel.a} @ {kernel.b2}"
    yield from (f"  scaled by {scale}" for scale in (kernel.scale_a, kernel.scale_b) if scale)


def _operand(side: View | Computed, names: Sequence[str]) -> str:
    if isinstance(side, Computed):
        return str(side)
    batch = [f"b{place}" for place in range(len(side.perm) - len(names))]
    return side.indexed([*batch, *names])


def _side(
    letter: str, names: Sequence[str], side: View | Computed, functions: Mapping[str, Function]
) -> Iterator[str]:
    if isinstance(side, Gathered):
        batch = [f"b{place}" for place in range(len(side.perm) - len(names))]
        yield f"  {side} = {side.gathered([*batch, *names])}, as it is loaded"
    if isinstance(side, View):
        return
    function = functions[f"prologue_{letter}"]
    yield from function_lines(letter, names, side.reads, function)
    yield f"  {side} = {function.results[0]} as {side.value.type.dtype}, as it is loaded"
