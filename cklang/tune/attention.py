# SPDX-License-Identifier: MIT
"""One attention of one call as plain data, and what one of its kernels costs.

The result is that of a whole call, with the kernel that combines splits. What is held against the
reference is a part of it where all would take too long: some sequences, queries and keys of the
same arrays, so that strides, addresses and head sizes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cklang.attention_keys import AttentionKey
from cklang.codec import decode, encode
from cklang.errors import error
from cklang.families.attention.plan import AttentionFunctions, AttentionPlan
from cklang.families.attention.problem import AttentionCase, case_of
from cklang.families.gemm.problem import Storage
from cklang.ir.printer import print_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.distance import largest_ratio
from cklang.runtime.call_plan import packed, stored
from cklang.types import Dim

if TYPE_CHECKING:
    from cklang.runtime.bind import Binding

__all__ = ["AttentionRun", "called", "error_ratio_of", "part_of", "run_of", "run_operands"]

Array = npt.NDArray[Any]

_SEQUENCES = 2
_ROWS = 300
"""Sequences, queries and keys that are held against the reference; more than any tile has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRun:
    """One attention of one call."""

    function: str
    """The program for the call's dtypes and constants, as IR text."""
    storage: tuple[Storage, ...]
    """How each parameter of the program lies in memory."""
    dims: tuple[tuple[str, int], ...]
    splits: int = 1
    """Workgroups that share the keys of a tile of queries."""

    @property
    def plan(self) -> AttentionPlan:
        """What fusion makes of the program."""
        return _planned(self.function)

    @property
    def filling(self) -> AttentionFunctions:
        """What fills the kernel's stencil; what follows o belongs to the one that combines."""
        functions = self.plan.kernel.functions
        return replace(functions, output=None) if self.splits > 1 else functions

    @property
    def places(self) -> dict[str, Storage]:
        """How each parameter and each result lies in memory, by name."""
        plan, dims = self.plan, dict(self.dims)
        params = zip(plan.function.params, self.storage, strict=True)
        found = {value.name: held for value, held in params}
        for value in (plan.kernel.o, plan.kernel.lse):
            if value is not None:
                found[value.name] = packed(value, dims)
        return found

    @property
    def problem(self) -> AttentionCase:
        """The problem that the kernel is selected and launched for.

        Raises:
            CkValueError: I045, heads do not fit; N008, the result has no element.
        """
        kernel = self.plan.kernel
        case = case_of(kernel, self.places, dict(self.dims))
        if case.is_empty:
            raise error("N008", name=kernel.name)
        return case.split(self.splits) if self.splits > 1 else case

    def in_splits(self, count: int) -> AttentionRun:
        """Return the same with the keys shared by ``count`` workgroups."""
        return replace(self, splits=count)

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        data: dict[str, Any] = encode(self)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> AttentionRun:
        """Read it back."""
        return decode(AttentionRun, dict(data), "attention")

    @property
    def part(self) -> AttentionRun:
        """Some sequences, queries and keys of it; itself if it is small, packed or in pages."""
        kernel, dims = self.plan.kernel, dict(self.dims)
        if kernel.starts or kernel.pages is not None:
            return self
        axes = [(kernel.q, 0, _SEQUENCES), (kernel.q, 2, _ROWS), (kernel.k, 2, _ROWS)]
        for view, place, most in axes:
            axis = view.perm[place]
            extent = None if axis is None else view.value.type.shape[axis]
            if isinstance(extent, Dim):
                dims[extent.name] = min(dims[extent.name], most)
        storage = tuple(
            replace(held, shape=value.type.extents(dims))
            for value, held in zip(self.plan.function.params, self.storage, strict=True)
        )
        return replace(self, storage=storage, dims=tuple(dims.items()))


@lru_cache(maxsize=64)
def _planned(text: str) -> AttentionPlan:
    from cklang.fusion.partition import plan_of
    from cklang.ir.parser import parse_function

    found = plan_of(parse_function(text))
    if not isinstance(found, AttentionPlan):
        raise error("Z002", what=f"@{found.function.name} is taken for an attention")
    return found


def run_of(plan: AttentionPlan, binding: Binding) -> tuple[AttentionRun, ...]:
    """Return the attention of a bound call; none if its result has no element."""
    held = binding.arrays
    run = AttentionRun(
        function=print_function(plan.function),
        storage=tuple(stored(each.name, held[each.name]) for each in plan.function.params),
        dims=tuple(binding.dims.items()),
    )
    return () if case_of(plan.kernel, run.places, binding.dims).is_empty else (run,)


def run_operands(run: AttentionRun, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays of a call: ``arrays`` with lists of lengths and places that are legal.

    Args:
        run: What is called.
        arrays: Numbers for each parameter, laid out as its storage says; lists are overwritten.
    """
    kernel = run.plan.kernel
    by_name = {p.name: a for p, a in zip(run.plan.function.params, arrays, strict=True)}
    rows = {"q": run.problem.problem.seqlen_q, "k": run.problem.problem.seqlen_k}
    for side, starts in zip("qk", kernel.starts, strict=False):
        by_name[starts.name][:] = np.linspace(0, rows[side], by_name[starts.name].size)
    if kernel.lengths is not None:
        by_name[kernel.lengths.name][:] = rows["k"]
    if kernel.page_starts is not None:
        by_name[kernel.page_starts.name][:] = 0
    if kernel.pages is not None:
        table = by_name[kernel.pages.name]
        count = max(by_name[kernel.k.value.name].shape[0], 1)
        table[:] = (np.arange(table.size) % count).reshape(table.shape)
    return list(by_name.values())


def part_of(run: AttentionRun, arrays: Sequence[Array]) -> list[Array]:
    """Return what the part of a run has of the arrays of the whole; no sequence has more keys."""
    part = run.part
    lengths, keys = part.plan.kernel.lengths, part.problem.problem.seqlen_k
    some = {
        value.name: array[tuple(slice(0, extent) for extent in held.shape)]
        for value, array, held in zip(part.plan.function.params, arrays, part.storage, strict=True)
    }
    if lengths is not None:
        some[lengths.name] = np.minimum(some[lengths.name], np.int32(keys))
    return list(some.values())


def error_ratio_of(run: AttentionRun, key: AttentionKey, arrays: Sequence[Array]) -> float:
    """Call the op with a part of ``arrays``; return its largest error in units of its bound."""
    part = run.part
    some = part_of(run, arrays)
    got = called(part, key, some)[0]
    want, bound = evaluate_with_bound(part.plan.function, some)
    return max(
        largest_ratio(each, wanted, within)
        for each, wanted, within in zip(got, want, bound, strict=True)
    )


def called(
    run: AttentionRun, key: AttentionKey, arrays: Sequence[Array]
) -> tuple[tuple[Array, ...], int | None]:
    """Call the op with one algorithm; return its results and the instructions that it took."""
    from cklang.runtime.op import op_from_ir

    op = op_from_ir(run.function).using(key.algorithm, splits=run.splits)
    given = op(*arrays)
    results = given if isinstance(given, tuple) else (given,)
    last = op.last
    return results, None if last is None else last.instructions
