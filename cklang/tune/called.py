# SPDX-License-Identifier: MIT
"""Kernels that are measured and compared through calls of their op.

The result is that of a call, with all kernels that it takes, such as the one that combines splits.
What is compared with the reference may be a part of it:
:attr:`cklang.families.records.Tuning.part`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from cklang.families import FAMILIES
from cklang.keys import AnyKey
from cklang.runtime.ir_text import op_from_ir
from cklang.tune.task import TuningTask

Array = npt.NDArray[Any]


def part_of_task(task: TuningTask) -> TuningTask:
    """Return the part of a task that is compared with the reference."""
    kernel, dims = task.fused, dict(task.dims)
    part = FAMILIES[kernel.family].tuning.part(kernel, dims)
    if part == dims:
        return task
    values = (*kernel.inputs, *kernel.results)
    layouts = tuple(
        replace(layout, shape=value.type.extents(part))
        for value, layout in zip(values, task.layouts, strict=True)
    )
    return replace(task, layouts=layouts, dims=tuple(part.items()))


def operands_of(task: TuningTask, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays of a call: ``arrays`` with lists of lengths and places that are legal.

    ``arrays`` are numbers for each parameter, laid out as the task says; lists are overwritten.
    """
    by_name = _by_name(task, arrays)
    for name, numbers in _lists(task, by_name).items():
        by_name[name][...] = numbers
    return list(by_name.values())


def part_of(task: TuningTask, arrays: Sequence[Array]) -> list[Array]:
    """Return what the part of a task has of the arrays of the whole."""
    part = part_of_task(task)
    some = {
        name: array[tuple(slice(0, extent) for extent in layout.shape)]
        for (name, array), layout in zip(_by_name(part, arrays).items(), part.layouts, strict=False)
    }
    if part is not task:
        some |= {
            name: numbers.astype(some[name].dtype) for name, numbers in _lists(part, some).items()
        }
    return list(some.values())


def _by_name(task: TuningTask, arrays: Sequence[Array]) -> dict[str, Array]:
    names = (value.name for value in task.fused.inputs)
    return dict(zip(names, arrays, strict=True))


def _lists(task: TuningTask, arrays: dict[str, Array]) -> dict[str, Array]:
    kernel = task.fused
    sizes = {name: array.shape for name, array in arrays.items()}
    return dict(FAMILIES[kernel.family].tuning.lists(kernel, task.forward, sizes))


def error_ratio_of(task: TuningTask, key: AnyKey, arrays: Sequence[Array]) -> float:
    """Call the op with a part of ``arrays``; return its largest error in units of its bound."""
    from cklang.reference.bounds import evaluate_with_bound
    from cklang.reference.distance import largest_ratio

    part = part_of_task(task)
    some = part_of(task, arrays)
    results = called(part, key, some)[0]
    want, bound = evaluate_with_bound(part.program, some)
    return max(map(largest_ratio, results, want, bound))


def called(
    task: TuningTask, key: AnyKey, arrays: Sequence[Array]
) -> tuple[tuple[Array, ...], int | None]:
    """Call the op with one algorithm; return its results and the instructions that it took."""
    op = op_from_ir(task.program).using(key.algorithm, splits=task.splits)
    returned = op(*arrays)
    results = returned if isinstance(returned, tuple) else (returned,)
    last = op.last
    return results, None if last is None else last.instructions
