# SPDX-License-Identifier: MIT
"""One attention of one call as plain data, and what one of its kernels costs.

The result is that of a whole call, with the kernel that combines splits. What is held against the
reference is a part of it where all would take too long: some sequences, queries and keys of the
same arrays, so that strides, addresses and head sizes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.families.attention.key import AttentionKey
from cklang.keys import AnyKey
from cklang.runtime.ir_text import op_from_ir
from cklang.tune.task import TuningTask, attention_of
from cklang.types import Dim

__all__ = ["called", "error_ratio_of", "operands_of", "part_of", "part_of_task"]

Array = npt.NDArray[Any]

_SEQUENCES = 2
_ROWS = 300
"""Sequences, queries and keys that are held against the reference; more than any tile has."""


def part_of_task(task: TuningTask) -> TuningTask:
    """Return some sequences, queries and keys of a task; itself if packed or in pages."""
    kernel, dims = attention_of(task.fused), dict(task.dims)
    if kernel.starts or kernel.pages is not None:
        return task
    axes = [(kernel.q, 0, _SEQUENCES), (kernel.q, 2, _ROWS), (kernel.k, 2, _ROWS)]
    for view, place, most in axes:
        axis = view.perm[place]
        extent = None if axis is None else view.value.type.shape[axis]
        if isinstance(extent, Dim):
            dims[extent.name] = min(dims[extent.name], most)
    values = (*kernel.inputs, *kernel.results)
    layouts = tuple(
        replace(layout, shape=value.type.extents(dims))
        for value, layout in zip(values, task.layouts, strict=True)
    )
    return replace(task, layouts=layouts, dims=tuple(dims.items()))


def operands_of(task: TuningTask, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays of a call: ``arrays`` with lists of lengths and places that are legal.

    Args:
        task: What is called.
        arrays: Numbers for each parameter, laid out as its storage says; lists are overwritten.
    """
    kernel = attention_of(task.fused)
    by_name = {p.name: a for p, a in zip(kernel.inputs, arrays, strict=True)}
    problem = task.problem
    forward = (problem.forward if task.gradient else problem).problem
    rows = {"q": forward.seqlen_q, "k": forward.seqlen_k}
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


def part_of(task: TuningTask, arrays: Sequence[Array]) -> list[Array]:
    """Return what the part of a task has of the arrays of the whole; none has more keys."""
    part = part_of_task(task)
    kernel = attention_of(part.fused)
    problem = part.problem
    keys = (problem.forward if task.gradient else problem).problem.seqlen_k
    some = {
        value.name: array[tuple(slice(0, extent) for extent in layout.shape)]
        for value, array, layout in zip(kernel.inputs, arrays, part.layouts, strict=False)
    }
    lengths = kernel.lengths
    if lengths is not None:
        some[lengths.name] = np.minimum(some[lengths.name], np.int32(keys))
    return list(some.values())


def error_ratio_of(task: TuningTask, key: AttentionKey, arrays: Sequence[Array]) -> float:
    """Call the op with a part of ``arrays``; return its largest error in units of its bound."""
    from cklang.reference.bounds import evaluate_with_bound
    from cklang.reference.distance import largest_ratio

    part = part_of_task(task)
    some = part_of(task, arrays)
    got = called(part, key, some)[0]
    want, bound = evaluate_with_bound(part.program, some)
    return max(
        largest_ratio(each, wanted, within)
        for each, wanted, within in zip(got, want, bound, strict=True)
    )


def called(
    task: TuningTask, key: AnyKey, arrays: Sequence[Array]
) -> tuple[tuple[Array, ...], int | None]:
    """Call the op with one algorithm; return its results and the instructions that it took."""
    op = op_from_ir(task.program).using(key.algorithm, splits=task.splits)
    returned = op(*arrays)
    results = returned if isinstance(returned, tuple) else (returned,)
    last = op.last
    return results, None if last is None else last.instructions
