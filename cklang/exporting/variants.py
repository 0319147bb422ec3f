# SPDX-License-Identifier: MIT
"""One plan of a call for all extents that fulfil its conditions.

Planning runs twice: on the numbers of a call, which chooses the kernels, and on traced numbers
(:mod:`cklang.exporting.traced`) with the same kernels. The second run gives what each kernel's host
shim is asked as polynomials of the free extents and strides, and the conditions under which the
plan holds: those of planning itself and those of the rules by which a selection refuses kernels.
"""

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cklang.arch import ArchSpec
from cklang.codec import dtype_of
from cklang.device.arrays import Array
from cklang.device.host_shim import HostShim
from cklang.errors import error
from cklang.exporting.traced import (
    Condition,
    Polynomial,
    Trace,
    Traced,
    hinted,
    mapped,
    polynomial_of,
)
from cklang.families import AnyFamily, family_of
from cklang.families.stage import Stage
from cklang.families.tensor_layout import packed_strides
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.runtime.described_array import DescribedArray
from cklang.runtime.in_place import in_place_of
from cklang.runtime.launch import sentinel
from cklang.runtime.op import Op
from cklang.runtime.planner import CallStages, Selecting, selecting_of, stages_of
from cklang.runtime.result_orders import with_result_orders
from cklang.runtime.results import planned_results
from cklang.selection.request import Request
from cklang.selection.select import AnySelection
from cklang.types import ConstType, DType, TensorType, TensorVarType, extent_value

FURTHEST = 1 << 40
"""Elements from one row to the next, at most."""

_WORD = 8
_MOST_SPLITS = 32
_APART = 64
"""Elements between rows that do not follow each other, in the calls that are planned."""
_MARKS = (0x3A5C_1F00_0000_0000, 0x2B17_6E00_0000_0000)
_MARK_STEP = 0x0000_0003_0001_0007

Identity = tuple[tuple[AnyKey, str, tuple[str, ...]], ...]
"""The kernels of a plan in order: each with the digest of its functions, and its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """What a call launches, and its tensors."""

    tensors: tuple[tuple[str, Array], ...]
    """Its arguments, then its results."""
    results: int
    updated: Mapping[int, int]
    """The position of the argument that each result is written into."""
    stages: CallStages


Strides = Callable[[str, tuple[int, ...], tuple[int, ...]], tuple[int, ...]]
"""Returns the strides of a tensor, from its name, shape and packed strides."""


def planned_call(
    op: Op,
    dims: Mapping[str, int],
    others: Mapping[str, Any],
    spec: ArchSpec,
    strides: Strides | None = None,
    selecting: Selecting | None = None,
) -> PlannedCall:
    """Plan a call with these extents.

    Extents in ``dims`` may be traced. ``others`` has dtypes and constants, None for tensors left
    out, ``strides`` those of tensors that are not packed.
    """
    arguments = dict(_arguments(op, dims, others, strides))
    binding = op._bound((), arguments)
    # The plan of a program holds for all extents; a cost model chose it for these.
    plan = op._planned(hinted(binding), f"emu:{spec.name}")
    binding = with_result_orders(plan, binding)
    outs = planned_results(binding.results, binding)
    parameters = op.program.parameters
    updates = {row.result: row.slot for row in in_place_of(plan.function, parameters, binding)}
    names = _result_names(len(outs))
    own = list(binding.arrays.values())
    if strides is not None:
        outs = tuple(
            replace(out, strides=strides(name, out.shape, out.strides))
            for name, out in zip(names, outs, strict=True)
        )
    outs = tuple(own[updates[i]] if i in updates else out for i, out in enumerate(outs))
    return PlannedCall(
        tensors=(*binding.arrays.items(), *zip(names, outs, strict=True)),
        results=len(outs),
        updated=updates,
        stages=stages_of(plan, binding, outs, spec, op.request, selecting),
    )


def _result_names(count: int) -> list[str]:
    return ["result"] if count == 1 else [f"result{index}" for index in range(count)]


def _arguments(
    op: Op, dims: Mapping[str, int], others: Mapping[str, Any], strides: Strides | None
) -> Iterator[tuple[str, Any]]:
    for parameter in op.program.signature.parameters:
        type_, name = parameter.type, parameter.name
        if isinstance(type_, ConstType) or (parameter.optional and others.get(name, ...) is None):
            if name in others:
                yield name, others[name]
            continue
        if isinstance(type_, TensorType | TensorVarType):
            dtype = _dtype(type_, others)
            if dtype.packed:
                raise error("K070", name=name, what="an array of packed 4-bit numbers, whose dtype")
            shape = tuple(extent_value(extent, dims) for extent in type_.shape)
            packed = packed_strides(shape)
            yield (
                name,
                DescribedArray(
                    dtype=dtype,
                    shape=shape,
                    strides=packed if strides is None else strides(name, shape, packed),
                ),
            )


def _dtype(type_: TensorType | TensorVarType, others: Mapping[str, Any]) -> DType:
    return type_.dtype if isinstance(type_, TensorType) else dtype_of(others[type_.var.name])


def identity_of(stages: Sequence[Stage]) -> Identity:
    """Return what tells the kernels of a plan from those of another one."""
    return tuple((stage.key, stage.functions.digest, stage.values) for stage in stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeTensor:
    """An argument or a result whose extents follow from the free ones."""

    name: str
    dtype: str
    shape: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    argument: int = -1
    """For a result that is written into an argument: the index of this argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplate:
    """What the host shim of a kernel is asked, with places for numbers and addresses."""

    key: AnyKey
    functions: Functions
    shim: type[HostShim[Any]]
    request: bytes
    """The C struct; zeros stand where something is put."""
    puts: tuple[tuple[int, Polynomial], ...]
    """(offset in bytes, a 64-bit number)."""
    addresses: tuple[tuple[int, int], ...]
    """(offset in bytes, index of the address among ``values``, the workspace being last)."""
    values: tuple[str, ...]
    offsets: tuple[Polynomial, ...]
    """For each of ``values``: bytes from its address to the part that the launch is for."""
    constants: Mapping[str, tuple[Polynomial, int]]
    """A number of 64 bits in device memory and 0 for each value, or the first of several and their
    count."""
    zeroed: tuple[tuple[str, Polynomial], ...]
    """Values that are 0 before the launch, and their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A plan, and the conditions under which it is that of a call."""

    identity: Identity
    trace: Trace
    variables: tuple[str, ...]
    """The free dims, then the strides that are free: ``x.0`` is that of the first axis of x."""
    tensors: tuple[FreeTensor, ...]
    names: tuple[str, ...]
    """Their values in the program, in the same order."""
    results: int
    """How many tensors are results, the last ones."""
    launches: tuple[LaunchTemplate, ...]
    sizes: tuple[tuple[str, Polynomial], ...]
    """The bytes of values that only the call has."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What must hold for it."""
        return tuple(self.trace.conditions.values())


def traced_variant(
    op: Op,
    dims: Mapping[str, int],
    free: Mapping[str, range],
    others: Mapping[str, Any],
    spec: ArchSpec,
    *,
    apart: bool,
) -> Variant:
    """Return the plan of a call for all extents for which it is the same.

    ``dims`` has the extents of the call that is planned, ``free`` those that free ones may have. If
    rows of tensors need not follow each other (``apart``), strides are free too.
    """
    trace = Trace()
    known = {name: dims[name] for name in dims if name not in free}
    known |= {name: _extent(trace, name, dims[name], extent) for name, extent in free.items()}
    strides = _FreeStrides(trace)
    call = planned_call(op, known, others, spec, strides if apart else None, _selecting(trace))
    stages = call.stages.stages
    return Variant(
        identity=identity_of(stages),
        trace=trace,
        variables=(*free, *strides.names),
        tensors=tuple(_tensors(call)),
        names=call.stages.names,
        results=call.results,
        launches=tuple(_template(stage, call.stages) for stage in stages),
        sizes=tuple(
            (name, polynomial_of(size)) for name, size in temporary_sizes(call.stages).items()
        ),
    )


def _extent(trace: Trace, name: str, hint: int, extents: range) -> Any:
    """Return a free extent: a variable, or so many steps from the first one."""
    if extents.step == 1:
        return trace.variable(name, hint, (extents[0], extents[-1]))
    steps = trace.variable(name, extents.index(hint), (0, len(extents) - 1))
    return extents.start + extents.step * steps


class _FreeStrides:
    """Strides of tensors as variables, but that of the axis whose elements follow each other."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[str, tuple[int, ...]] = {}
        self.names: list[str] = []

    def __call__(
        self, name: str, shape: tuple[int, ...], packed: tuple[int, ...]
    ) -> tuple[int, ...]:
        if name not in self._known:
            steps = spread(hinted(shape), hinted(packed))
            last = max((axis for axis, step in enumerate(hinted(packed)) if step == 1), default=-1)
            self._known[name] = tuple(
                1 if axis == last else self._variable(f"{name}.{axis}", step)
                for axis, step in enumerate(steps)
            )
        return self._known[name]

    def _variable(self, name: str, hint: int) -> Any:
        self.names.append(name)
        return self._trace.variable(name, hint, (0, FURTHEST))


def spread(shape: tuple[int, ...], packed: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of a tensor whose rows are further apart than packed ones.

    Example:
        >>> from cklang.exporting.variants import spread
        >>> spread((3, 5, 100), (500, 100, 1))
        (820, 164, 1)
    """
    order = sorted(range(len(shape)), key=lambda axis: packed[axis])
    strides, step = [1] * len(shape), 1
    for place, axis in enumerate(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
        step += _APART if place == 0 and len(shape) > 1 else 0
    return tuple(strides)


def _selecting(trace: Trace) -> Selecting:
    """Return what selects kernels for the call that is planned, and notes when they are legal."""

    def selecting(spec: ArchSpec, request: Request) -> Any:
        select = selecting_of(spec, request)

        def own(
            problem: Any, functions: Functions, adapt: Callable[[Any], Any] | None = None
        ) -> AnySelection:
            selection = select(hinted(problem), functions, adapt)
            return _traced(selection, problem, trace, spec, request)

        return own

    return selecting


def _traced(
    selection: AnySelection, problem: Any, trace: Trace, spec: ArchSpec, request: Request
) -> AnySelection:
    """Return a selection for the traced problem, in the variant that was chosen."""
    family = family_of(problem.signature)
    key = selection.key
    offers = _offers(family, problem, key.algorithm, request)
    own = next((offer for offer in offers if hinted(offer) == selection.problem), None)
    if own is None:
        raise error("K073", what=f"the family {family.name}", why="its variants")
    rules = getattr(family, "rules", None)
    for rule in () if rules is None else rules.problems:
        with trace.asked_by(f"{rule.id}: {rule.sentence}"):
            rule.check(own, key.algorithm, spec)
    return replace(selection, problem=own)


def _offers(family: AnyFamily, problem: Any, algorithm: Any, request: Request) -> Iterator[Any]:
    """Yield the variants of a problem that may have been chosen."""
    yield problem
    yield family.variants.clamped(problem, algorithm)
    counts = range(1, _MOST_SPLITS + 1) if request.splits is None else (request.splits,)
    for count in counts:
        for variant in family.variants.of(problem, count):
            yield variant
            yield family.variants.clamped(variant, algorithm)


def _tensors(call: PlannedCall) -> Iterator[FreeTensor]:
    first = len(call.tensors) - call.results
    for place, (name, array) in enumerate(call.tensors):
        yield FreeTensor(
            name=name,
            dtype=array.dtype.name,
            shape=tuple(map(polynomial_of, array.shape)),
            strides=tuple(map(polynomial_of, array.strides)),
            argument=call.updated.get(place - first, -1),
        )


def temporary_sizes(stages: CallStages) -> dict[str, int]:
    """Return the bytes of the values that live within a call, in the order of their first use."""
    sizes: dict[str, int] = {}
    for stage in stages.stages:
        for name in stage.values:
            if name in stages.names or name in stage.constants:
                continue
            size = max(stages.sizes.get(name, 0), stage.temporaries.get(name, 0))
            sizes[name] = max(sizes.get(name, 0), size)
    return sizes


def request_bytes(stage: Stage, count: int) -> bytes:
    """Return the C struct that a stage's host shim is asked, with sentinels for addresses."""
    request = stage.request([sentinel(index) for index in range(count)])
    return _bytes(stage.shim.to_c(request))


def _bytes(problem: ctypes.Structure) -> bytes:
    return bytes(memoryview(problem).cast("B"))


def _template(stage: Stage, stages: CallStages) -> LaunchTemplate:
    """Return what a stage's host shim is asked, with places for what is not known."""
    count = len(stage.values) + 1
    request = stage.request([sentinel(index) for index in range(count)])
    numbers: dict[Polynomial, int] = {}

    def collect(traced: Traced) -> Traced:
        numbers.setdefault(traced.polynomial, len(numbers))
        return traced

    mapped(request, collect)

    def marked(mark: int) -> bytes:
        def number(traced: Traced) -> int:
            return mark + numbers[traced.polynomial] * _MARK_STEP

        try:
            return _bytes(stage.shim.to_c(mapped(request, number)))
        except TypeError as mistake:  # a traced number that no field of a record is
            raise _untraceable(stage) from mistake

    first, second = map(marked, _MARKS)
    words = [struct.unpack(f"<{len(data) // _WORD}Q", data) for data in (first, second)]
    puts: list[tuple[int, Polynomial]] = []
    left = set(numbers)
    template = bytearray(first)
    by_mark = {
        tuple(mark + index * _MARK_STEP for mark in _MARKS): polynomial
        for polynomial, index in numbers.items()
    }
    for place, pair in enumerate(zip(*words, strict=True)):
        polynomial = by_mark.get(pair)
        if polynomial is None and pair[0] != pair[1]:
            raise _untraceable(stage)
        if polynomial is not None:
            puts.append((place * _WORD, polynomial))
            left.discard(polynomial)
            template[place * _WORD : (place + 1) * _WORD] = bytes(_WORD)
    if left or len(first) % _WORD:
        raise _untraceable(stage)
    marks = {sentinel(index): index for index in range(count)}
    addresses = [(at * _WORD, marks[word]) for at, word in enumerate(words[0]) if word in marks]
    for at, _ in addresses:
        template[at : at + _WORD] = bytes(_WORD)
    return LaunchTemplate(
        key=stage.key,
        functions=stage.functions,
        shim=stage.shim,
        request=bytes(template),
        puts=tuple(puts),
        addresses=tuple(addresses),
        values=stage.values,
        offsets=tuple(map(polynomial_of, stage.offsets or (0,) * len(stage.values))),
        constants={
            name: _constant(size) for name, size in stage.constants.items() if name in stage.values
        },
        zeroed=tuple(
            (name, polynomial_of(stage.temporaries.get(name, stages.sizes.get(name, 0))))
            for name in stage.zeroed
        ),
    )


def _untraceable(stage: Stage) -> Exception:
    return error("K073", what=f"the family {stage.key.family}", why="its host shim")


def _constant(number: int | range) -> tuple[Polynomial, int]:
    first, count = number_range(number)
    return polynomial_of(first), count


def number_range(content: int | range) -> tuple[int, int]:
    """Return the first number and how many 32-bit ones follow from it; 0 for one of 64 bits."""
    if isinstance(content, range):
        return content.start, max(content.stop, 1) - content.start
    return content, 0
