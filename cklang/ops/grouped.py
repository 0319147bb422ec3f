# SPDX-License-Identifier: MIT
"""Calls of one op with different sizes, in as few launches as their kernels are different.

Products of one signature share a launch: their arguments stand in a table in device memory, one
row each, and the kernel looks up whose tile it computes. The host shim makes rows and launch, once;
a repeated group writes its addresses into the rows.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from cklang.arch import ArchSpec
from cklang.build.builder import Builder
from cklang.device.arrays import Array
from cklang.device.artifact import Artifact
from cklang.device.constants import Cell, cell
from cklang.device.device import Device
from cklang.device.pinned_buffers import Upload
from cklang.errors import error
from cklang.families.gemm.bands import bands_of
from cklang.families.gemm.gathering import gathered_of, obstacle
from cklang.families.gemm.host import GemmProblem, GemmShim
from cklang.families.gemm.key import Algorithm, GemmKey, Signature
from cklang.families.gemm.launch import request_of
from cklang.families.gemm.layout import problem_of
from cklang.families.gemm.pairs import Apart, pair_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.rules.problem import launchable, tiles_of
from cklang.families.protocol import HostCheck
from cklang.families.views import MemoryView
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding
from cklang.runtime.call_plan import CallPlan, Step, access_range, step_on
from cklang.runtime.launch import PlannedLaunch, describe
from cklang.runtime.planner import host_checks, memory_of, numbers_of
from cklang.runtime.workspace import Temporary, planned_workspace
from cklang.selection.request import Request
from cklang.selection.rules import candidates, violations
from cklang.selection.select import find

_ADDRESS = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One call of the group and where its result goes.

    Raises:
        CkUnsupportedError: G001, G004, G005, its plan is not one matrix product.
    """

    plan: Plan
    binding: Binding
    out: Array

    def __post_init__(self) -> None:
        _product_of(self.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """One product of a launch."""

    problem: Problem
    slots: tuple[int | None, ...]
    """For each input of the problem: which address of the call it is; None for a number."""
    moves: tuple[int, ...] = ()
    """For each of them: bytes to add to the address; none for a product that is not cut."""
    numbers: Mapping[int, int | range] = field(default_factory=dict)
    """The inputs that are numbers, by place."""


def prepare_group(
    members: Sequence[Member], device: Device, builder: Builder, request: Request
) -> CallPlan:
    """Return the launches of a group, with every kernel built and loaded.

    Its addresses are those of the arguments, call by call, and then those of the results.

    Raises:
        CkUnsupportedError: G002, a member has a batch; K101, K102, G003, no algorithm fits every
            product of a launch.
        CkValueError: A026, the arrays are in several places.
    """
    places = sorted({member.binding.place for member in members})
    if len(places) > 1:
        raise error("A026", where=", ".join(places))
    arrays = [array for member in members for array in member.binding.arrays.values()]
    pieces = [access_range(array, written=False) for array in arrays]
    pieces += [access_range(member.out, written=True) for member in members]
    steps: list[Step] = []
    tables: list[Temporary] = []
    for kernel, products in _by_signature(members):
        key = _key(kernel, products, device.spec, request)
        (artifact,) = builder.build_all([(key, kernel.functions)])
        step, table = _step(artifact, products, device, len(pieces) + len(steps))
        steps.append(step)
        place = len(tables)
        tables.append(Temporary(bytes=table.bytes, first=place, last=place))
    workspace = planned_workspace(tables)
    return CallPlan(device, steps, pieces, workspace, places[0], outs=len(members))


@dataclass(frozen=True, slots=True)
class _GroupChecks:
    """What the calls of a group check in host memory, each with its part of the addresses."""

    checks: tuple[tuple[HostCheck, slice], ...]

    def check(self, addresses: Sequence[int]) -> None:
        """Check a group whose arguments have these addresses."""
        for check, own in self.checks:
            check.check(addresses[own])


def group_checks(members: Sequence[Member]) -> HostCheck | None:
    """Return what each group like this one checks before it launches; None if there is nothing."""
    checks: list[tuple[HostCheck, slice]] = []
    first = 0
    for member in members:
        last = first + len(member.binding.arrays)
        own = host_checks(member.plan, member.binding)
        checks += [] if own is None else [(own, slice(first, last))]
        first = last
    return _GroupChecks(tuple(checks)) if checks else None


def _product_of(plan: Plan) -> FusedGemm:
    """Return the one kernel of a plan, which is a matrix product."""
    name = plan.function.name
    if len(plan.kernels) != 1:
        raise error("G001", name=name, count=len(plan.kernels))
    (kernel,) = plan.kernels
    if len(kernel.results) != 1:
        raise error("G010", name=name, count=len(kernel.results))
    if isinstance(kernel, FusedGemm):
        return kernel
    if kernel.family == "conv":
        raise error("G004", name=name)
    raise error("G005", what="grouped", name=name, family=kernel.family)


def _by_signature(members: Sequence[Member]) -> Iterator[tuple[FusedGemm, list[_Product]]]:
    """Yield the products of each signature, in the order of their first member."""
    groups: dict[Signature, tuple[FusedGemm, list[_Product]]] = {}
    first, result = 0, sum(len(member.binding.arrays) for member in members)
    for index, member in enumerate(members):
        plan, names = member.plan, list(member.binding.arrays)
        slots = {name: first + place for place, name in enumerate(names)}
        slots[plan.function.results[0].name] = result + index
        first += len(names)
        kernel = _product_of(plan)
        if kernel.scatter is not None:
            raise error("X050", index=index)
        memory = memory_of(plan, member.binding, [member.out])
        for view in memory.views.values():
            if view.source is not None:
                raise error("G011", index=index, value=view.source, layout=view.layout.name)
        reason = None if gathered_of(kernel) is None else obstacle(kernel, memory.layouts)
        if reason is not None:
            raise error("X040", index=index, reason=reason)
        slots |= {
            name: slots[view.memory] for name, view in memory.views.items() if view.memory in slots
        }
        numbers = numbers_of(plan.function, member.binding.dims)
        make = problem_of if kernel.b2 is None else pair_of
        full_problem = make(kernel, memory.layouts, member.binding.dims, kernel.functions.digest)
        if isinstance(full_problem, Apart):
            raise error("G012", index=index, reason=full_problem.reason)
        parts = () if full_problem is None else bands_of(replace(full_problem, grouped=True))
        for problem, band in parts:
            if problem.batch:
                raise error("G002", index=index, batch=problem.batch)
            product = _Product(
                problem=problem,
                slots=tuple(slots.get(input_.value) for input_ in problem.inputs),
                numbers={
                    place: numbers[input_.value]
                    for place, input_ in enumerate(problem.inputs)
                    if input_.value in numbers
                },
                moves=_moved(problem, memory.views, band.moves),
            )
            groups.setdefault(product.problem.signature, (kernel, []))[1].append(product)
    yield from groups.values()


def _moved(
    problem: Problem, views: Mapping[str, MemoryView], moves: Sequence[int]
) -> tuple[int, ...]:
    """Return how many bytes each operand of a product is behind the start of its memory."""
    names = [input_.value for input_ in problem.inputs]
    own = [views[name].bytes if name in views else 0 for name in names]
    if not any(own):
        return tuple(moves)
    return tuple(a + b for a, b in zip(own, moves or [0] * len(own), strict=True))


def _key(
    kernel: FusedGemm, products: Sequence[_Product], spec: ArchSpec, request: Request
) -> GemmKey:
    """Return the key that serves all products: that of one of them, largest first, or any."""
    problems = [product.problem for product in products]
    problems.sort(key=lambda problem: problem.m * problem.n * problem.k, reverse=True)
    signature = problems[0].signature
    chosen = (find(problem, spec, request, kernel.functions).key.algorithm for problem in problems)
    others = () if request.algorithm else candidates(signature, spec)
    for algorithm in dict.fromkeys(chain(chosen, others)):
        together = sum(tiles_of(problem, algorithm) for problem in problems)
        fits = launchable(together, algorithm, spec) is None
        if fits and not any(_objects(algorithm, problem, spec) for problem in problems):
            return GemmKey(signature, algorithm, spec.name)
    raise error("G003", count=len(problems), arch=spec.name, signature=signature.layouts)


def _objects(algorithm: Algorithm, problem: Problem, spec: ArchSpec) -> bool:
    rejections = violations(algorithm, problem.signature, spec, problem)
    return next(iter(rejections), None) is not None


def _step(
    artifact: Artifact, products: Sequence[_Product], device: Device, slot: int
) -> tuple[Step, Upload]:
    """Return the launch of all products and its table, which address ``slot`` is for."""
    rows, patches, tiles = bytearray(), [], 0
    cells: list[Cell] = []
    for product in products:
        problem, first = product.problem, tiles

        def row(addresses: Sequence[int], problem: Problem = problem, first: int = first) -> Any:
            return replace(request_of(problem, addresses), first_tile=first)

        count = len(product.slots)
        described = describe(artifact, GemmShim, row, count, problem)
        moves = product.moves or (0,) * count
        before = len(rows) // 8
        own = {place: cell(device, number) for place, number in product.numbers.items()}
        cells += own.values()
        patches += [
            (before + word, address, bytes_)
            for place, (address, bytes_) in enumerate(zip(product.slots, moves, strict=True))
            for word in described.words(place)
            if address is not None
        ]
        rows += described.shape.kernarg
        for place, held in own.items():
            for word in described.words(place):
                _ADDRESS.pack_into(rows, 8 * (before + word), held.address)
        tiles += described.shape.grid[0]
    some = products[0].problem
    blocks = device.spec.compute_units * artifact.key.algorithm.block_per_cu

    def launch(addresses: Sequence[int]) -> GemmProblem:
        # The extents are those of any product; rows and tiles are counted apart.
        *operands, groups = addresses
        return replace(
            request_of(some, operands),
            blocks=blocks,
            groups=groups,
            group_count=len(products),
            first_tile=tiles,
        )

    last = len(some.inputs)
    described = describe(artifact, GemmShim, launch, last + 1, some)
    shape = described.shape
    table = Upload(device, bytes(rows), patches, cells)
    planned = PlannedLaunch(
        grid=shape.grid,
        block=shape.block,
        kernarg=shape.kernarg,
        patches=tuple((word, slot) for word in described.words(last)),
        workspace=slot,
    )
    step = replace(step_on(device, artifact, planned, lambda: some), table=table)
    return step, table
