# SPDX-License-Identifier: MIT
"""The family of matrix products."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from cklang.arch import ArchSpec, arch
from cklang.device.arrays import Array
from cklang.device.resources import Resources
from cklang.errors import CkUnsupportedError
from cklang.families.gemm.candidates import candidates, shares
from cklang.families.gemm.copies import insert_operand_copies
from cklang.families.gemm.cost import traits
from cklang.families.gemm.cost.model import Ranker, prologue_time
from cklang.families.gemm.fuse.alternatives import alternatives
from cklang.families.gemm.fuse.halves import with_halves
from cklang.families.gemm.fuse.kernel import MAKERS
from cklang.families.gemm.fuse.log_sums import with_log_sums
from cklang.families.gemm.fuse.pairs import pairs_of
from cklang.families.gemm.fuse.picked import with_picked
from cklang.families.gemm.gathering import (
    NO_KERNEL,
    gathered_launches,
    gathered_of,
    host_indices_of,
    obstacle,
)
from cklang.families.gemm.host import GemmProblem, GemmShim
from cklang.families.gemm.k_bands import fitted, launches_of
from cklang.families.gemm.key import Algorithm, GemmKey, Signature
from cklang.families.gemm.launch import request_of
from cklang.families.gemm.layout import problem_of
from cklang.families.gemm.lower import lower
from cklang.families.gemm.memory_order import collapsible_order, summable_order
from cklang.families.gemm.pairs import Apart, apart, pair_of, widened
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.rules import RULES, algorithm, batch, forms, loads
from cklang.families.gemm.rules import problem as problem_rules
from cklang.families.gemm.scattering import scatter_obstacle, scattered_launches, with_scatters
from cklang.families.gemm.space import GRID
from cklang.families.gemm.spelling import algorithm_words
from cklang.families.gemm.unfuse import product_function
from cklang.families.index_arrays import HostIndices
from cklang.families.launch_operands import LaunchOperands, RandomValues
from cklang.families.layout_copy.plan import WithCopies
from cklang.families.protocol import (
    Family,
    Launches,
    Operands,
    Planning,
    Sel,
    Times,
)
from cklang.families.records import AxisOrders, HostArray, Layouts, Spelling, Supply, Tuning
from cklang.families.rule import RuleSet
from cklang.families.scatter.family import SCATTER
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.pairing import paired
from cklang.fusion.passes import Fusion, on_plan, on_program
from cklang.fusion.plan import View
from cklang.ir.nodes import Function, Value
from cklang.keys import AnyKey
from cklang.types import f32, i8, i32

K = TypeVar("K")
P = TypeVar("P")

# Importing them fills the rule set; rules about algorithms are asked first.
_RULES_OF = (algorithm, problem_rules, batch, forms, loads)

_SMALL = 0x3C
"""A byte that makes a small number in every floating format, so that nothing is infinite."""


def small_bytes(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return ``count`` bytes, one at least, that are small numbers in every floating format."""
    return np.full(max(1, count), _SMALL, np.uint8)


_WHY_BEFORE = "so that rows and columns have one stride each, and one of them is contiguous"
_WHY_AFTER = "so that axes are where the program has them; kernels write rows"


class ProductCost:
    """The cost model of kernels of products or convolutions."""

    def __init__(
        self, keys: Sequence[GemmKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> None:
        used = {
            key: traits.Resources(
                vgprs=resources.vgprs, lds_bytes=resources.lds_bytes, spills=resources.vgpr_spills
            )
            for key, resources in built.items()
        }
        self.ranker = Ranker(keys=tuple(keys), spec=spec, resources=used)

    def times(self, problem: Any) -> Times:
        """Return the predicted time of each kernel in µs."""
        return self.ranker.times_of(widened(problem))

    def table(self, places: Sequence[int], problem: Any) -> list[str]:
        """Return the terms of one or two kernels as lines of text."""
        keys = [self.ranker.keys[place] for place in places]
        return self.ranker.table(keys, widened(problem))

    def terms(self, place: int, problem: Any) -> Mapping[str, float]:
        """Return what makes up the time of a kernel, in µs."""
        return self.ranker.estimate(self.ranker.keys[place], widened(problem)).terms


def _usual(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a signature whose other types are those of A, and layouts ``rcr``."""
    dtype = data.get("dtype_a")
    if dtype is None:
        return data
    exact = dtype == i8.name and not (data.get("scale_a") or data.get("scale_b"))
    acc = {"dtype_acc": i32.name if exact else f32.name}
    return {"dtype_b": dtype, **acc, "dtype_e": dtype, "layout_a": "r", "layout_b": "c", **data}


def _kind(algorithm: Algorithm) -> object:
    """Return the tile, and among how many workgroups its sums are shared."""
    return algorithm.tile, algorithm.split_k, algorithm.stream_k


def _plain_functions(signature: Signature) -> Functions | None:
    """Return the epilogue of a product alone; None of a kernel whose functions read more."""
    if signature.d or signature.a or signature.b:
        return None
    number = f"{signature.dtype_acc}[]"
    text = f"func @epilogue(%acc: {number}) -> {number} {{\n  return %acc\n}}"
    return Functions.parse({"epilogue": text})


def _tiling(key: GemmKey) -> object:
    """Return a key without what follows from the width of accesses."""
    a = key.algorithm
    return (key.arch, key.signature, a.tile, a.warps, a.warp_tile, a.pipeline)


def _completed(algorithm: Algorithm, signature: Signature) -> Algorithm:
    """Give it as many widths of D as there are D operands, the missing ones of one element."""
    widths = (*algorithm.vector_d, *(1 for _ in signature.d))[: len(signature.d)]
    return replace(algorithm, vector_d=widths)


def _spelled(text: str, extents: tuple[int, int, int]) -> tuple[Problem, Functions]:
    """Return a problem of a signature like ``f16:rcr:row``, and functions for it."""
    from cklang.families.gemm.spelling import spelled

    return spelled(text, extents)


def compared(
    as_function: Callable[[Any], Function],
) -> Callable[[Any, Sequence[HostArray], Sequence[HostArray]], float]:
    """Return what computes the largest error of a kernel, of some rows if there are many."""

    def compare(kernel: Any, inputs: Sequence[HostArray], results: Sequence[HostArray]) -> float:
        from cklang.families.gemm.sampled_rows import error_ratio

        return error_ratio(as_function(kernel), kernel, inputs, results)

    return compare


class ProductFamily(Family[K, Signature, Algorithm, P]):
    """What products and convolutions have alike: keys, main loop and cost model."""

    signature = Signature
    algorithm = Algorithm
    algorithm_text: ClassVar[str] = "a cklang.dispatch.Algorithm for a product or convolution"
    grid = GRID
    supply = Supply(presets=True, kind=_kind, models_resources=True)
    spelling: Spelling[Signature, Algorithm, Any] = Spelling(
        usual=_usual,
        plain_functions=_plain_functions,
        completed=_completed,
        tiling=_tiling,
        problem=_spelled,
    )

    candidates = staticmethod(candidates)
    cost = staticmethod(ProductCost)  # a convolution is a product to it
    lower = staticmethod(lower)
    algorithm_words = staticmethod(algorithm_words)

    def stage(self, problem: Any, key: GemmKey, functions: Functions, spec: ArchSpec) -> Stage:
        """Return the launch of one kernel for one problem."""
        raise NotImplementedError

    def operands(self, problem: Any, key: GemmKey, functions: Functions) -> Operands:
        """Return all that a kernel reads or writes, as small numbers."""
        sizes = {input_.value: input_.span * input_.dtype.bits // 8 for input_ in problem.inputs}
        return Operands(
            contents={name: small_bytes(size) for name, size in sizes.items()},
            stages=(self.stage(problem, key, functions, arch(key.arch)),),
        )


def _launch_operands(kernel: FusedGemm, problem: Problem, values: RandomValues) -> LaunchOperands:
    """Return random operands of a launch, which may be one of several."""
    from cklang.families.gemm.launch_operands import launch_operands_of

    return launch_operands_of(kernel, problem, values)


def _own_layouts(kernel: FusedGemm, layouts: Layouts, dims: Mapping[str, int]) -> Layouts:
    """Return the layouts with the copies of operands and of the result in their places."""
    return insert_operand_copies(kernel, layouts, dims).places


def _own_order(kernel: FusedGemm, _layouts: Layouts) -> Sequence[int] | None:
    """Return the order in which as many batch axes as can be are rows or columns."""
    return collapsible_order(kernel) if kernel.scatter is None else None


def _can_write(kernel: FusedGemm, value: Value, order: Sequence[int]) -> bool:
    """Tell whether the columns stay contiguous."""
    axes = next((result.axes for result in kernel.more if result.value == value), kernel.axes)
    return axes[-1] in (None, order[-1])


def _measurable(problem: Problem) -> bool:
    """Whether a product stores what a check of its kernel alone can compare: its result.

    In a batch of rows at indices each product has indices of its own, which no one op takes. Of
    segments the ends decide how long a kernel takes.
    """
    s = problem.signature
    is_known = s.scatter is None and (s.gather is None or not problem.batch) and not problem.ends
    return is_known and not problem.e.layout.of_blocks and not s.group


class Gemm(ProductFamily[FusedGemm, Problem]):
    """Matrix products with fused prologues and epilogues, batched or not."""

    name = "gemm"
    compile_seconds = 5.0
    supply = Supply(presets=True, shares=shares, kind=_kind, models_resources=True)
    fusion = Fusion(
        makers=MAKERS,
        passes={
            "picked": on_program(with_picked),
            "log_sums": on_program(with_log_sums),
            "halves": on_program(with_halves),
            "pairs": lambda draft: paired(draft, pairs_of),
            "scattering": on_plan(with_scatters),
        },
        alternatives=alternatives,
    )
    rules: RuleSet = RULES
    orders = AxisOrders(
        own=_own_order,
        reader=summable_order,
        matrices=lambda kernel: tuple(
            side.value for side in (kernel.a, kernel.b) if isinstance(side, View)
        ),
        can_write=_can_write,
    )
    tuning = Tuning(
        own_layouts=_own_layouts,
        launches=lambda kernel, problem: (
            (own, part) for own, part, _ in launches_of(kernel, problem)
        ),
        measurable=_measurable,
        as_function=product_function,
        compared=compared(product_function),
        timed_by_launch=True,
        launch_operands=_launch_operands,
    )

    def stage(self, problem: Problem, key: GemmKey, functions: Functions, spec: ArchSpec) -> Stage:
        """Return the launch of one kernel for one problem."""
        a = key.algorithm
        blocks = spec.compute_units * a.block_per_cu
        return Stage(
            key=key,
            functions=functions,
            problem=problem,
            shim=GemmShim,
            values=tuple(input_.value for input_ in problem.inputs),
            written=problem.written,
            request=partial(_request, problem, a.split_k, blocks),
        )

    def function_time(
        self, problem: Problem, key: GemmKey, functions: Functions, spec: ArchSpec
    ) -> float:
        """Return what computing operands adds: each is computed again for each tile that loads it.

        The cost model charges the loads of stored operands.
        """
        return prologue_time(problem, key, functions, spec)

    def problem(
        self, kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> Problem | None:
        """Return the product of a kernel, not cut.

        None if its result has no element, if it is a pair that takes two products, or if its rows
        are copied before or stored at indices by another kernel.
        """
        if gathered_of(kernel) is not None and obstacle(kernel, layouts) is not None:
            return None
        if kernel.scatter is not None and scatter_obstacle(kernel.scatter, layouts) is not None:
            return None
        problem = _problem_of(insert_operand_copies(kernel, layouts, dims), dims)
        return None if isinstance(problem, Apart) else problem

    def plan(self, kernel: FusedGemm, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield a launch for each band of the result, with the copies around them.

        A pair that no kernel computes is two products. Rows that no kernel reads at indices, or not
        as fast, are copied.
        """
        side = gathered_of(kernel)
        if side is None:
            yield from self._stored(kernel, planning)
            return
        yield from gathered_launches(kernel, side, planning, self._stored)

    def _stored(self, kernel: FusedGemm, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launches of a product as it reads its operands."""
        if kernel.scatter is None:
            yield from self._planned(kernel, planning)
            return
        yield from scattered_launches(kernel, kernel.scatter, planning, self._planned)

    def _planned(self, kernel: FusedGemm, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launches of a product as it reads its operands and stores its result."""
        placed = insert_operand_copies(kernel, planning.layouts, planning.dims)
        problem = _problem_of(placed, planning.dims)
        if problem is None:
            return
        if not isinstance(problem, Apart):
            try:
                launches = list(self._launches(placed, problem, planning))
            except CkUnsupportedError as refusal:
                if problem.sums == 1 or refusal.code not in NO_KERNEL:
                    raise
                problem = Apart(f"no kernel serves it ({refusal.code})")
            else:
                yield from launches
                return
        yield from self._apart(kernel, problem.reason, planning)

    def _apart(
        self, kernel: FusedGemm, reason: str, planning: Planning[Sel]
    ) -> Iterator[Launches[Sel]]:
        """Yield the launches of both products of a pair."""
        first, second, sums = apart(kernel)
        layout = TensorLayout.packed(sums, planning.dims, _own_order(kernel, planning.layouts))
        own = replace(planning, layouts={**planning.layouts, sums.name: layout})
        size = {sums.name: sums.type.bytes(planning.dims)}
        place = 0
        for product in (first, second):
            placed = insert_operand_copies(product, own.layouts, own.dims)
            problem = problem_of(placed.kernel, placed.storage, own.dims, product.functions.digest)
            if problem is None:
                continue
            for launch in self._launches(placed, problem, own):
                main = replace(launch.main, temporaries={**size, **launch.main.temporaries})
                note = "\n  ".join(
                    filter(None, (f"pair       two products: {reason}", launch.note))
                )
                yield replace(launch, main=main, note=note, band=place)
                place += 1

    def _launches(
        self, placed: WithCopies[FusedGemm], problem: Problem, planning: Planning[Sel]
    ) -> Iterator[Launches[Sel]]:
        """Yield the launches of one problem, with the copies around them."""
        before, after = (
            tuple(stage for copy in copies for stage in copy.stages(planning.spec, why))
            for copies, why in ((placed.before, _WHY_BEFORE), (placed.after, _WHY_AFTER))
        )
        launches = list(launches_of(placed.kernel, problem))
        for place, (own, part, band) in enumerate(launches):
            functions = own.functions
            selection = planning.select(part, functions, partial(fitted, band=band))
            stage = self.stage(part, selection.key, functions, planning.spec)
            sums = {} if band.temporary is None else dict([band.temporary])
            yield Launches(
                selection=selection,
                main=replace(stage, offsets=band.moves, temporaries=sums),
                before=before,
                after=after if place == len(launches) - 1 else (),
                note=f"cut        into {band.cut}" if band.cut else "",
                band=band.number,
            )

    def host_check(
        self, kernel: FusedGemm, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
    ) -> HostIndices | None:
        """Return the indices of rows that are in host memory."""
        own = host_indices_of(kernel, arrays, dims, place)
        if kernel.scatter is None:
            return own
        return HostIndices.joined(own, SCATTER.host_check(kernel.scatter, arrays, dims, place))


def _problem_of(placed: WithCopies[FusedGemm], dims: Mapping[str, int]) -> Problem | Apart | None:
    kernel = placed.kernel
    make = problem_of if kernel.b2 is None else pair_of
    return make(kernel, placed.storage, dims, kernel.functions.digest)


def _request(problem: Problem, split_k: int, blocks: int, addresses: Sequence[int]) -> GemmProblem:
    *pointers, workspace = addresses
    request = request_of(problem, pointers)
    return replace(request, k_batch=split_k, workspace=workspace, blocks=blocks)


GEMM = Gemm()
