# SPDX-License-Identifier: MIT
"""Calls of one op with different sizes, in as few launches as their kernels are different.

Products of one signature share a launch: their arguments stand in a table in device memory, one
row each, and the kernel looks up whose tile it computes. The host face makes rows and launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from cklang.arch import ArchSpec
from cklang.errors import error
from cklang.fusion.plan import FusedGemm, FusionPlan
from cklang.keys import Algorithm, KernelKey, Signature
from cklang.runtime.arrays import HOST, Array
from cklang.runtime.bind import Binding
from cklang.runtime.build import Builder
from cklang.runtime.candidates import candidates
from cklang.runtime.convolution import ConvProblem
from cklang.runtime.device import Device, Effort
from cklang.runtime.dispatch import problems, touched
from cklang.runtime.launch import loaded
from cklang.runtime.problem import Problem
from cklang.runtime.record import LaunchRecord
from cklang.runtime.rules import objections
from cklang.runtime.select import Request, find
from cklang.runtime.transfer import Region, staged

__all__ = ["GroupedCall", "Member"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One call of the group: its kernel, its arguments and where its result goes."""

    plan: FusionPlan
    binding: Binding
    out: Array

    @property
    def arrays(self) -> dict[str, Array]:
        """Arguments and result by the name of their value."""
        return {**self.binding.arrays, self.plan.kernels[0].result.name: self.out}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """One product of a launch."""

    problem: Problem
    member: Member

    @property
    def operands(self) -> list[str]:
        """The names of its inputs."""
        return [each.value for each in self.problem.inputs]


class GroupedCall:
    """The launches of a group; made for one call, run once."""

    def __init__(self, device: Device, builder: Builder, request: Request) -> None:
        self.device = device
        self.records: tuple[LaunchRecord, ...] = ()
        self._builder = builder
        self._request = request

    def run(self, members: Sequence[Member], stream: int | None) -> Effort | None:
        """Compute the results of all members; those in host memory are there on return.

        Returns:
            What emulating all launches but the last took.

        Raises:
            CkUnsupportedError: G001, a member takes several kernels; G002, one has a batch; K101,
                K102, no algorithm fits every product of a launch.
        """
        arrays = {id(array): array for member in members for array in member.arrays.values()}
        if not self._copies(members):
            addresses = {key: array.pointer for key, array in arrays.items()}
            return self._launches(members, addresses, stream)
        written = {id(member.out) for member in members}
        regions = [
            Region(pointer=array.pointer, low=piece.low, high=piece.high, written=piece.written)
            for key, array in arrays.items()
            for piece in [touched(array, written=key in written)]
        ]
        with staged(self.device, regions) as copies:
            return self._launches(members, dict(zip(arrays, copies, strict=True)), stream)

    def _copies(self, members: Sequence[Member]) -> bool:
        return not self.device.host_memory and any(m.binding.place == HOST for m in members)

    def _launches(
        self, members: Sequence[Member], addresses: dict[int, int], stream: int | None
    ) -> Effort | None:
        effort: Effort | None = None
        self.device.activate()
        groups = list(_by_signature(members))
        for index, (kernel, products) in enumerate(groups):
            key = self._key(kernel, products)
            self._launch(kernel, products, key, addresses, stream)
            if index < len(groups) - 1:
                more = self.device.effort()
                effort = more if effort is None or more is None else effort + more
        self.device.calls[0] += 1
        return effort

    def _key(self, kernel: FusedGemm, products: Sequence[_Product]) -> KernelKey:
        """Return the key that serves all products: that of one of them, largest first, or any."""
        spec = self.device.spec
        given = [product.problem for product in products]
        given.sort(key=lambda problem: problem.m * problem.n * problem.k, reverse=True)
        signature = given[0].signature
        chosen = (find(each, spec, self._request, kernel.epilogue).key.algorithm for each in given)
        others = () if self._request.algorithm else candidates(signature, spec)
        for algorithm in dict.fromkeys(chain(chosen, others)):
            if not any(_objects(algorithm, problem, spec) for problem in given):
                return KernelKey(signature, algorithm, spec.name)
        raise error("G003", count=len(given), arch=spec.name, signature=signature.layouts)

    def _launch(
        self,
        kernel: FusedGemm,
        products: Sequence[_Product],
        key: KernelKey,
        addresses: dict[int, int],
        stream: int | None,
    ) -> None:
        (artifact,) = self._builder.build_all([(key, kernel.epilogue)])
        built = loaded(self.device, artifact)
        rows, tiles = bytearray(), 0
        for product in products:
            names, arrays = product.operands, product.member.arrays
            pointers = [addresses[id(arrays[name])] for name in names]
            row = built.row(product.problem, pointers, tiles)
            rows += row.kernarg
            tiles += row.grid[0]
        table = np.frombuffer(bytes(rows), np.uint8)
        memory = self.device.allocate(table.nbytes)
        try:
            self.device.copy_in(memory, table.ctypes.data, table.nbytes)
            shape = built.table(products[0].problem, memory, len(products), tiles)
            launch = self.device.launch(built.function, shape.grid, shape.block, shape.kernarg)
            launch(stream)
            # The table must outlive the launch.
            self.device.synchronize(stream)
        finally:
            self.device.free(memory)
        record = LaunchRecord(
            artifact=artifact, problem=products[0].problem, grid=shape.grid, block=shape.block
        )
        self.records = (*self.records, record)


def _by_signature(members: Sequence[Member]) -> Iterator[tuple[FusedGemm, list[_Product]]]:
    """Yield the products of each signature, in the order of their first member."""
    groups: dict[Signature, tuple[FusedGemm, list[_Product]]] = {}
    for index, member in enumerate(members):
        plan = member.plan
        if len(plan.kernels) != 1:
            raise error("G001", name=plan.function.name, count=len(plan.kernels))
        for kernel, problem in problems(plan, member.binding, member.out):
            if isinstance(problem, ConvProblem) or not isinstance(kernel, FusedGemm):
                raise error("G004", name=plan.function.name)
            if problem.batch:
                raise error("G002", index=index, batch=problem.batch)
            product = _Product(problem=replace(problem, grouped=True), member=member)
            groups.setdefault(product.problem.signature, (kernel, []))[1].append(product)
    yield from groups.values()


def _objects(algorithm: Algorithm, problem: Problem, spec: ArchSpec) -> bool:
    found = objections(algorithm, problem.signature, spec, problem)
    return next(iter(found), None) is not None
