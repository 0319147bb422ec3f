# SPDX-License-Identifier: MIT
"""Calls with free extents: the plans that cklang makes over a range, and which one is whose.

The extents of a problem that are a ``range`` or ``...`` are free. cklang plans the call at many
extents; each gives a :class:`~cklang.exporting.variants.Variant`: a plan with the
conditions under which it holds. Tables say which variant was chosen where; a launcher tries that
one first, then those that were chosen nearest, until the conditions of one hold.

With one free dim the tables have the choice of every extent that was planned, and where neighbours
differ the exact place: the choice is cklang's. With several they are a grid, and what cklang would
have chosen between its points may be another kernel. :attr:`FreeCall.agreement` is measured.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.errors import CkError, error
from cklang.exporting import loader
from cklang.exporting.fewer import with_fewer_kernels
from cklang.exporting.registers import variant_data
from cklang.exporting.variants import (
    FURTHEST,
    Identity,
    PlannedCall,
    Variant,
    identity_of,
    number_range,
    planned_call,
    request_bytes,
    temporary_sizes,
    traced_variant,
)
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.runtime.op import Op
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.types import Dim, TensorType, TensorVarType
from cklang.widths import I32_MAX

ANY = range(1, I32_MAX + 1)
"""The extents that ``...`` allows."""

_WHOLE, _WHOLE_BYTES = 8, 16
"""Extents that are multiples of it are tabled apart: vectors of 16 bytes fit them."""

_STEPS = ((512, 8), (4096, 64), (1 << 15, 512))
"""The steps in which one free dim is planned, and the extents up to which they apply."""

_ALL = 65
"""Below which it is planned at every extent."""

_TWO = (8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384)
"""Where it is planned along each of two free dims."""

_MORE = (16, 64, 256, 1024, 4096)
"""Along each of three or more."""

_DRAWS = 64
_JUDGED = 100
"""At how many extents fewer kernels are judged."""

_MOST_DRAWN = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeCall:
    """A call whose extents are free in part, on one kind of GPU."""

    gpu: str
    kernels: tuple[tuple[AnyKey, Functions], ...]
    """The kernels that its variants launch, each once."""
    symbols: tuple[str, ...]
    """The function of each kernel's host shim."""
    data: Mapping[str, Any]
    """What the JSON file holds; launches name kernels by their place in ``kernels``."""
    agreement: tuple[int, int]
    """How many of the drawn extents (the second number) get the same kernels as cklang chooses."""

    def __str__(self) -> str:
        dims = ", ".join(dim["name"] for dim in self.data["dims"])
        same, total = self.agreement
        return (
            f"  {self.gpu}: any {dims}, {len(self.kernels)} kernels; of {total} drawn extents, "
            f"{same} take the kernels that cklang chooses among them"
        )


def free_dims(problem: Mapping[str, Any]) -> dict[str, range]:
    """Return the extents of a problem that are free.

    Example:
        >>> from cklang.exporting.free import ANY, free_dims
        >>> free_dims({"M": range(1, 257), "N": ..., "K": 64}) == {"M": range(1, 257), "N": ANY}
        True
    """
    free = {
        name: ANY if value is ... else value
        for name, value in problem.items()
        if value is ... or isinstance(value, range)
    }
    for name, extents in free.items():
        if not extents or extents.step < 1 or extents[0] < 1 or extents[-1] > ANY[-1]:
            raise error("K074", name=name, got=extents)
    return free


def free_call(op: Op, problem: Mapping[str, Any], gpu: str, kernels: int | None = None) -> FreeCall:
    """Plan a call at many of its extents for a GPU.

    ``kernels`` is how many to choose among; None: all that cklang would choose.
    """
    explorer = _explorer(op, problem, arch(gpu))
    tables = explorer.tables()
    if kernels is not None and len(explorer.kernels) > kernels:
        explorer = explorer.fewer(kernels)
        tables = explorer.tables()
    if not explorer.variants:
        raise explorer.failures[0]
    orders = explorer.orders()
    data = {
        **explorer.facts,
        "tables": [
            {"edges": edges, "cells": [len(orders) - 1 if c is None else c for c in cells]}
            for edges, cells in tables
        ],
        "orders": orders,
        "variants": [variant.data for variant in explorer.variants],
    }
    agreement = explorer.agreement(data)
    symbols = {
        (launch.key, launch.functions.digest): launch.shim.symbol
        for variant in explorer.variants
        for launch in variant.variant.launches
    }
    return FreeCall(
        gpu=explorer.spec.name,
        kernels=tuple(explorer.kernels.values()),
        symbols=tuple(symbols[kernel] for kernel in explorer.kernels),
        data=data,
        agreement=agreement,
    )


@dataclass(slots=True)
class _Known:
    """A variant as data, where it was chosen, and its twins for rows that are apart."""

    variant: Variant
    data: dict[str, Any]
    samples: list[tuple[int, ...]] = field(default_factory=list)
    apart: list[int] = field(default_factory=list)
    is_apart: bool = False

    @property
    def centre(self) -> list[float]:
        """The logarithms of the extents at which it was chosen, on average."""
        columns = zip(*self.samples, strict=True)
        return [sum(map(math.log2, column)) / len(column) for column in columns]


@dataclass(slots=True)
class _Explorer:
    """What is known of the plans of a call."""

    op: Op
    fixed: Mapping[str, int]
    free: Mapping[str, range]
    others: Mapping[str, Any]
    spec: ArchSpec
    facts: dict[str, Any]
    variants: list[_Known] = field(default_factory=list)
    kernels: dict[tuple[AnyKey, str], tuple[AnyKey, Functions]] = field(default_factory=dict)
    failures: list[CkError] = field(default_factory=list)
    _chosen: dict[tuple[int, ...], int | None] = field(default_factory=dict)
    _reasons: dict[str, int] = field(default_factory=dict)

    def tables(self) -> list[tuple[list[list[int]], list[int | None]]]:
        """Return edges along each dim and the variant of each cell, for each class of extents."""
        classes = list(itertools.product((False, True), repeat=len(self.free)))
        if not self.facts["each"]:
            classes = [classes[0], classes[-1]]
        # The first dim is the lowest bit of a class.
        tables = [self._table(kind[::-1] if self.facts["each"] else kind) for kind in classes]
        self.facts["reasons"] = list(self._reasons)
        return tables

    def fewer(self, most: int) -> _Explorer:
        """Return one that chooses among fewer of the kernels that were found, and knows nothing."""
        known = sorted(self._chosen)
        places = known[:: max(len(known) // _JUDGED, 1)]
        calls = [{**self.fixed, **dict(zip(self.free, place, strict=True))} for place in places]
        kernels = list(self.kernels.values())
        op = with_fewer_kernels(self.op, calls, self.others, self.spec, kernels, most)
        return _Explorer(
            op=op,
            fixed=self.fixed,
            free=self.free,
            others=self.others,
            spec=self.spec,
            facts={**self.facts, "tensors": [], "reasons": []},
        )

    def _table(self, whole: Sequence[bool]) -> tuple[list[list[int]], list[int | None]]:
        pairs = zip(self.free.values(), whole, strict=True)
        points = [self._points(extents, own) for extents, own in pairs]
        if len(points) == 1:
            return self._line(points[0])
        cells = [self.chosen(place) for place in itertools.product(*points)]
        return [point[:-1] for point in points], cells

    def _points(self, extents: range, whole: bool) -> list[int]:
        """Return the extents at which one dim is planned, in ascending order."""
        unit = self.facts["whole"]
        count = len(self.free)
        points = {extents[0], *(_line() if count == 1 else _TWO if count == 2 else _MORE)}
        points = {point for point in points if point <= extents[-1]} | {
            min(extents[-1], max(points))
        }
        near = {_member(extents, point if whole else point - 1, unit, whole) for point in points}
        known = sorted(place for place in near if place is not None)
        return known or [extents[0]]

    def _line(self, points: Sequence[int]) -> tuple[list[list[int]], list[int | None]]:
        """Return the exact edges between points along one dim."""
        edges: list[int] = []
        cells = [self.chosen((points[0],))]
        for low, high in itertools.pairwise(points):
            for edge, variant in self._edges(low, high):
                if variant != cells[-1]:
                    edges.append(edge)
                    cells.append(variant)
        return [edges], cells

    def _edges(self, low: int, high: int) -> Iterator[tuple[int, int | None]]:
        """Yield where the choice changes between two extents: the last one before, the choice."""
        (extents,), unit = self.free.values(), self.facts["whole"]
        last = self.chosen((high,))
        while self.chosen((low,)) != last:
            whole = high % unit == 0
            middle = _member(extents, (low + high) // 2, unit, whole)
            if middle is None or not low < middle < high:
                yield low, last
                return
            if self.chosen((middle,)) == self.chosen((low,)):
                low = middle
            else:
                high, last = middle, self.chosen((middle,))

    def chosen(self, place: tuple[int, ...]) -> int | None:
        """Return the variant for packed tensors of these extents; None if there is none."""
        if place not in self._chosen:
            try:
                self._chosen[place] = self._planned(place)
            except CkError as mistake:
                self.failures.append(mistake)
                self._chosen[place] = None
        return self._chosen[place]

    def _planned(self, place: tuple[int, ...]) -> int:
        call = self._call(place)
        identity = identity_of(call.stages.stages)
        for index, entry in enumerate(self.variants):
            if not entry.is_apart and entry.variant.identity == identity and self._is(entry, call):
                entry.samples.append(place)
                return index
        own = self._added(place, identity, apart=False)
        self._add_apart(own, place)
        return own

    def _call(self, place: tuple[int, ...]) -> PlannedCall:
        dims = {**self.fixed, **dict(zip(self.free, place, strict=True))}
        return planned_call(self.op, dims, self.others, self.spec)

    def _added(self, place: tuple[int, ...], identity: Identity | None, *, apart: bool) -> int:
        """Trace the plan of a call and return its variant."""
        dims = {**self.fixed, **dict(zip(self.free, place, strict=True))}
        variant = traced_variant(self.op, dims, self.free, self.others, self.spec, apart=apart)
        if identity is not None and variant.identity != identity:
            raise error("K075", dims=dims)
        kernels = [self._kernel(launch.key, launch.functions) for launch in variant.launches]
        data = variant_data(variant, dict(enumerate(kernels)), self._reasons)
        self.variants.append(_Known(variant, data, samples=[place], is_apart=apart))
        self.facts["reasons"] = list(self._reasons)
        if not self.facts["tensors"]:
            self.facts |= _facts_of(variant)
        if identity is not None and not self._is(self.variants[-1], self._call(place)):
            raise error("K075", dims=dims)
        return len(self.variants) - 1

    def _kernel(self, key: AnyKey, functions: Functions) -> int:
        """Return the place of a kernel."""
        self.kernels.setdefault((key, functions.digest), (key, functions))
        return list(self.kernels).index((key, functions.digest))

    def _add_apart(self, own: int, place: tuple[int, ...]) -> None:
        """Add the plan for rows that are apart, if the kernels that are there anyway serve it."""
        before = dict(self.kernels)
        try:
            other = self._added(place, None, apart=True)
        except CkError:
            return
        if self.kernels != before or not self.variants[other].data["strides"]:
            del self.variants[other]
            self.kernels = before
        else:
            self.variants[own].apart.append(other)

    def _is(self, known: _Known, call: PlannedCall) -> bool:
        """Whether a variant is the plan of a call, whose numbers it gives then."""
        served = self._served(known, call)
        if served is None:
            return False
        extents, registers = served
        if list(_numbers_of(known.data, registers)) != list(_numbers(call)):
            raise error("K075", dims=dict(zip(self.free, extents, strict=True)))
        return True

    def _served(
        self, known: _Known, call: PlannedCall
    ) -> tuple[Sequence[int], Sequence[int]] | None:
        """Return a call's extents and a variant's numbers; None if it may not serve the call."""
        tensors = [
            {"dtype": a.dtype.name, "shape": list(a.shape), "strides": list(a.strides)}
            for _, a in call.tensors
        ]
        extents = loader.extents_of(self.facts, tensors)
        if isinstance(extents, str):
            return None
        registers = loader.registers_of(self.facts, known.data, extents, tensors)
        refusal = loader.refusal_of(self.facts, known.data, registers, tensors)
        return (extents, registers) if refusal is None else None

    def orders(self) -> list[list[int]]:
        """Return for each variant in which order to try them, and last the order without one."""
        plain = [index for index, entry in enumerate(self.variants) if not entry.is_apart]
        orders = []
        for own in self.variants:
            centre = own.centre
            near = sorted(plain, key=lambda place: math.dist(self.variants[place].centre, centre))
            orders.append(self._with_twins(near))
        return [*orders, self._with_twins(plain)]

    def _with_twins(self, order: Sequence[int]) -> list[int]:
        return [place for index in order for place in (index, *self.variants[index].apart)]

    def agreement(self, data: Mapping[str, Any]) -> tuple[int, int]:
        """Draw extents, and return for how many the tables have cklang's own choice."""
        draw = random.Random(0)  # noqa: S311
        same = total = 0
        for _ in range(_DRAWS):
            place = tuple(_drawn(names, data["whole"], draw) for names in self.free.values())
            try:
                call = self._call(place)
            except CkError:
                continue
            total += 1
            identity = identity_of(call.stages.stages)
            offers = (self.variants[index] for index in loader.candidates(data, place))
            taken = next((offer for offer in offers if self._fits(offer, call)), None)
            same += taken is not None and taken.variant.identity == identity
        return same, total

    def _fits(self, known: _Known, call: PlannedCall) -> bool:
        """Whether a variant may serve a call, whose plan may have other kernels."""
        if known.variant.identity == identity_of(call.stages.stages):
            return self._is(known, call)
        return self._served(known, call) is not None


def _explorer(op: Op, problem: Mapping[str, Any], spec: ArchSpec) -> _Explorer:
    free = free_dims(problem)
    # Names and numbers are checked as those of a listed problem.
    least = {name: extents[0] for name, extents in free.items()}
    packed_arguments(op.program.signature, {**problem, **least})
    places = {name: _place(op, name, problem) for name in free}
    rest = {name: value for name, value in problem.items() if name not in free}
    dims = {name: value for name, value in rest.items() if type(value) is int}
    types = [parameter.type for parameter in op.program.signature.parameters]
    bytes_ = [tensor.dtype.bytes for tensor in types if isinstance(tensor, TensorType)]
    facts = {
        "gpu": spec.name,
        "dims": [
            {
                "name": name,
                "tensor": places[name][0],
                "axis": places[name][1],
                "first": extents[0],
                "last": extents[-1],
                "step": extents.step,
            }
            for name, extents in free.items()
        ],
        "whole": _WHOLE_BYTES if 1 in bytes_ else _WHOLE,
        "each": len(free) <= 2,
        "furthest": FURTHEST,
        "tensors": [],
        "reasons": [],
        "results": 0,
    }
    return _Explorer(op=op, fixed=dims, free=free, others=rest, spec=spec, facts=facts)


def _place(op: Op, dim: str, problem: Mapping[str, Any]) -> tuple[int, int]:
    """Return an argument and its axis that have a dim's extent; each dim has one."""
    types = [
        parameter.type
        for parameter in op.program.signature.parameters
        if isinstance(parameter.type, TensorType | TensorVarType)
        and not (parameter.optional and problem.get(parameter.name, ...) is None)
    ]
    return next(
        (place, axis)
        for place, type_ in enumerate(types)
        for axis, extent in enumerate(type_.shape)
        if type(extent) is Dim and extent.name == dim
    )


def _facts_of(variant: Variant) -> dict[str, Any]:
    """Return what all variants have in common."""
    tensors = [
        {
            "name": tensor.name,
            "dtype": tensor.dtype,
            "rank": len(tensor.shape),
            "argument": tensor.argument,
        }
        for tensor in variant.tensors
    ]
    return {"tensors": tensors, "results": variant.results}


def _line() -> Iterator[int]:
    """Yield the extents at which a single free dim is planned, if they are whole."""
    yield from range(1, _ALL)
    low = 0
    for high, step in _STEPS:
        yield from range(low + step, high + 1, step)
        low = high


def _member(extents: range, near: int, unit: int, whole: bool) -> int | None:
    """Return an extent of a class close to a number; None if there is none near it."""
    start = max(near - extents.start, 0) // extents.step
    for place in range(start, min(start + 2 * unit, len(extents))):
        if (extents[place] % unit == 0) == whole:
            return extents[place]
    for place in range(min(start, len(extents) - 1), max(start - 2 * unit, -1), -1):
        if (extents[place] % unit == 0) == whole:
            return extents[place]
    return None


def _drawn(extents: range, unit: int, draw: random.Random) -> int:
    """Return one of the extents; small ones as often as large ones."""
    low, high = math.log2(extents[0]), math.log2(min(extents[-1], _MOST_DRAWN) + 0.99)
    near = int(2 ** draw.uniform(low, max(low, high)))
    member = _member(extents, near, unit, whole=draw.random() < 0.5)
    return extents[0] if member is None else member


def _numbers(call: PlannedCall) -> Iterator[Any]:
    """Yield what the launches of a call are told, in numbers."""
    stages = call.stages
    for stage in stages.stages:
        yield request_bytes(stage, len(stage.values) + 1)
        yield list(stage.offsets or (0,) * len(stage.values))
        used = [number for name, number in stage.constants.items() if name in stage.values]
        yield sorted(list(number_range(number)) for number in used)
        yield [stage.temporaries.get(name, stages.sizes.get(name, 0)) for name in stage.zeroed]
    yield list(temporary_sizes(stages).values())


def _numbers_of(data: Mapping[str, Any], registers: Sequence[int]) -> Iterator[Any]:
    """Yield what the launches of a variant are told, in numbers, as :func:`_numbers` does."""
    for launch in data["launches"]:
        yield bytes(loader.request_of(launch, registers))
        yield [registers[register] for register in launch["moves"]]
        yield sorted([registers[first], count] for first, count in launch["constants"])
        yield [registers[register] for _, register in launch["clears"]]
    yield [registers[size] for size, *_ in data["temporaries"]]
