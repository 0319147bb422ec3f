# SPDX-License-Identifier: MIT
"""Few long rows: several workgroups share each, where one a row would leave the GPU idle.

A kernel of one stage that stores one number a row becomes two: the first reduces parts of rows as
if they were rows, the second reduces the results of the parts. Any other kernel is first cut at all
of its reductions, which are stored for what follows; what is left is pointwise. The number of parts
follows from the shape and the GPU alone, so that results are the same in each call.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cklang.families.rowwise.functions import named_by_layout
from cklang.families.rowwise.fuse import MAKERS, FusedRows
from cklang.families.rowwise.host import MAX_AXES, MAX_READS
from cklang.families.rowwise.outline import outlined
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor
from cklang.fusion.functions import Functions
from cklang.fusion.partition import COMMON
from cklang.fusion.passes import Pass, fused
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.types import DType, TensorType, f32, i32

LEAST = 1 << 17
"""Elements of a row from which on several workgroups share it: reading it takes one longer than the
launches that are added."""

_PART = 1 << 14
"""Elements of a part, at least."""

_PARTS = 2
"""Parts for each compute unit, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kernel that computes some of another one's work."""

    problem: RowwiseProblem
    functions: Functions
    temporaries: Mapping[str, int]
    """The bytes of the values between such kernels, by name."""
    constants: Mapping[str, int]
    """The numbers that it reads from device memory, by name."""


def is_long(problem: RowwiseProblem) -> bool:
    """Tell whether several workgroups should share the rows of a problem."""
    busy = 2 * problem.count > problem.compute_units
    return bool(problem.signature.reductions) and problem.length >= LEAST and not busy


def shared(kernel: FusedRows, problem: RowwiseProblem) -> tuple[Part, Part] | None:
    """Return the kernels that reduce parts of rows and then the parts; None if there are none.

    None of a kernel of several stages or that stores elements, and of rows whose outermost axis has
    no divisor for the number of parts.
    """
    s = problem.signature
    parts = _parts(problem)
    reads = len(problem.reads) + sum(operand.gathered is not None for operand in problem.reads)
    most = reads + len(s.integers) + sum(map(len, s.reductions)) + 1
    is_plain = len(s.reductions) == 1 and not s.elements
    if not is_plain or parts < 2 or len(problem.rows) >= MAX_AXES or most > MAX_READS:
        return None
    dtypes = [i32 if place in s.integers else f32 for place in range(len(s.reductions[0]))]
    return _first(kernel, problem, dtypes, parts), _second(kernel, problem, dtypes, parts)


def _parts(problem: RowwiseProblem) -> int:
    """Return among how many workgroups a row is shared: a divisor of its outermost axis.

    All of it where up to twice as many workgroups have an axis less then, whose elements may be
    contiguous.
    """
    extent, parts = problem.elements[0], problem.length // _PART
    most = min(extent, parts, _PARTS * problem.compute_units // max(problem.count, 1))
    if len(problem.elements) > 1 and extent <= min(parts, 2 * most):
        return extent
    return max((count for count in range(1, most + 1) if extent % count == 0), default=1)


def _first(kernel: FusedRows, problem: RowwiseProblem, dtypes: Sequence[DType], parts: int) -> Part:
    """Return the kernel that reduces parts of rows as if they were rows."""
    chunk, *others = problem.elements[0] // parts, *problem.elements[1:]
    own_elements = tuple(others) if others and chunk == 1 else (chunk, *others)

    def cut(tensor: RowwiseTensor) -> RowwiseTensor:
        rows, steps = (*tensor.rows, tensor.elements[0] * chunk), tensor.elements
        return replace(tensor, rows=rows, elements=steps[len(steps) - len(own_elements) :])

    outputs = _partials(kernel, problem, dtypes, parts, len(own_elements))
    results = [Value(name=f"r{place}", type=TensorType(dtype=t)) for place, t in enumerate(dtypes)]
    finish = Function(name="finish", params=tuple(results), body=(), results=tuple(results))
    functions = Functions(**{**kernel.functions, "finish": finish})
    own = replace(
        problem,
        rows=(*problem.rows, parts),
        elements=own_elements,
        reads=tuple(map(cut, problem.reads)),
        outputs=tuple(outputs),
    )
    return _part(own, functions, dtypes, outputs, {})


def _second(
    kernel: FusedRows, problem: RowwiseProblem, dtypes: Sequence[DType], parts: int
) -> Part:
    """Return the kernel that reduces what the first one has made of parts."""
    count = len(problem.reads)
    partials = [
        replace(partial, rows=partial.rows[:-1], elements=(1,))
        for partial in _partials(kernel, problem, dtypes, parts, 1)
    ]
    taken = [
        Value(name=f"d{count + place}", type=TensorType(dtype=dtype))
        for place, dtype in enumerate(dtypes)
    ]
    part = Function(name="part0", params=tuple(taken), body=(), results=tuple(taken))
    finish = kernel.functions["finish"]
    reads = [*(replace(operand, elements=(0,)) for operand in problem.reads), *partials]
    constants: dict[str, int] = {}
    if any(param.name == "n" for param in finish.params):
        name = f"{kernel.results[0].name}_length"
        constants[name] = problem.length
        finish = _with_length(finish, f"d{len(reads)}")
        repeated = (0,) * len(problem.rows)
        reads.append(RowwiseTensor(value=name, dtype=i32, rows=repeated, elements=(0,)))
    own = replace(
        problem,
        elements=(parts,),
        reads=tuple(reads),
        outputs=tuple(replace(output, elements=(0,)) for output in problem.outputs),
    )
    functions = Functions(finish=finish, part0=part)
    rows = [output.dtype for output in problem.outputs]
    return _part(own, functions, rows, partials, constants, is_last=True)


def _partials(
    kernel: FusedRows, problem: RowwiseProblem, dtypes: Sequence[DType], parts: int, axes: int
) -> list[RowwiseTensor]:
    """Return what is stored of each part, as the first kernel writes it."""
    extents = (*problem.rows, parts)
    strides = tuple(math.prod(extents[place + 1 :]) for place in range(len(extents)))
    nowhere = (0,) * axes
    name = kernel.results[0].name
    return [
        RowwiseTensor(value=f"{name}_part{place}", dtype=dtype, rows=strides, elements=nowhere)
        for place, dtype in enumerate(dtypes)
    ]


def _part(
    problem: RowwiseProblem,
    functions: Functions,
    rows: Sequence[DType],
    partials: Sequence[RowwiseTensor],
    constants: Mapping[str, int],
    *,
    is_last: bool = False,
) -> Part:
    named = named_by_layout(functions, [operand.access for operand in problem.reads])
    signature = replace(
        problem.signature,
        rows=tuple(rows),
        row_axes=len(problem.rows),
        functions=named.digest,
        kept=0 if is_last else problem.signature.kept,
        common=0 if is_last else problem.signature.common,
    )
    count = math.prod(problem.rows) * (math.prod(problem.elements) if is_last else 1)
    return Part(
        problem=replace(problem, signature=signature),
        functions=functions,
        temporaries={partial.value: count * partial.dtype.bytes for partial in partials},
        constants=constants,
    )


def _with_length(finish: Function, read: str) -> Function:
    """Return a function that takes the length of a row from an i32 in memory."""
    (length,) = (param for param in finish.params if param.name == "n")
    number = Value(name=read, type=TensorType(dtype=i32))
    widened = Operation(op="cast", operands=(number,), attrs=make_attrs(to=f32), result=length)
    params = tuple(number if param == length else param for param in finish.params)
    return replace(finish, params=params, body=(widened, *finish.body))


def cut_kernels(kernel: FusedRows) -> Iterator[FusedRows]:
    """Yield the kernels of what another one computes, cut at all reductions.

    What they store for each other has names that begin with that of the kernel's first result.
    """
    body = kernel.body
    results = {value.name for value in body.results}
    stem = body.results[0].name

    def own(value: Value) -> Value:
        is_inner = value not in body.params and value.name not in results
        return replace(value, name=f"{stem}_of_{value.name}") if is_inner else value

    operations = tuple(
        replace(step, operands=tuple(map(own, step.operands)), result=own(step.result))
        for step in body.body
    )
    function = replace(body, body=operations)
    rows = Pass("rows", "rowwise", partial(outlined, cuts=True))
    program = fused(function, MAKERS, (COMMON["placement"], rows, COMMON["partition"]))
    yield from (kernel for kernel in program.kernels if isinstance(kernel, FusedRows))
