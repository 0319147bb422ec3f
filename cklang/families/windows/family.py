# SPDX-License-Identifier: MIT
"""The family of windows over images, computed by the vector units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from cklang.arch import ArchSpec, arch
from cklang.device.resources import Resources
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families import FAMILIES, plan_of
from cklang.families.closed_source import flag
from cklang.families.conv.host import ConvShim
from cklang.families.conv.plan import FusedConv, convolution_function
from cklang.families.protocol import Family, Launches, Operands, Planning, Sel
from cklang.families.records import Tuning
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.families.windows.cost import WindowCost
from cklang.families.windows.fuse import MAKERS, FusedPool, by_axes, pool_function
from cklang.families.windows.key import WindowAlgorithm, WindowKey, WindowSignature, most_of_block
from cklang.families.windows.problem import WindowProblem, as_window, of_pool
from cklang.families.windows.rules import GRID, RULES
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion, on_plan
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.extents import extent_numbers
from cklang.ir.indices import index_ranges
from cklang.ir.nodes import Function
from cklang.ir.rewrite import renamed
from cklang.keys import AnyKey
from cklang.lowering.pointwise import c_functions, c_result, c_type
from cklang.lowering.render import key_json, listed, template
from cklang.lowering.source import KernelSource
from cklang.types import bool_

_HOLE = "ck_epilogue"


def lower_windows(key: WindowKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel.

    Raises:
        CkUnsupportedError: L001, an op has no C.
    """
    s, a = key.signature, key.algorithm
    kernel = "ck_" + "_".join(s.label(a))
    function = functions["epilogue"]
    types = [c_type(param.type.dtype) for param in function.params]
    names = ["sum", *(f"d{place}" for place in range(len(s.d)))]
    stored = ["ck_tile::int8_t" if d.dtype is bool_ else d.dtype.ck for d in s.d]
    sizes = [math.ceil(d.dtype.bits / 8) for d in s.d]
    text = template("windows.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        words=s.words,
        a=s.dtype_a,
        b=s.dtype_b,
        e=s.dtype_e,
        window=listed(s.window),
        stride=listed(s.stride),
        dilation=listed(s.dilation),
        channels=s.channels,
        features=s.features,
        vector=a.vector,
        columns=a.columns,
        rows=a.rows,
        planes=a.planes,
        threads=a.threads,
        neighbours=flag(s.neighbours),
        chiplets=arch(key.arch).chiplets,
        block=most_of_block(s, a) if s.neighbours else 0,
        d_bytes=listed([*sizes, 0]),
        how=s.how.value,
        operands=[
            f"{type_}, {flag(d.contiguous)}, {flag(d.common)}"
            for type_, d in zip(stored, s.d, strict=True)
        ],
        hole={
            "hole": _HOLE,
            "result": c_result(_HOLE, function),
            "types": listed(types),
            "params": listed(f"{t} {n}" for t, n in zip(types, names, strict=True)),
            "args": listed(names),
        },
    )
    return KernelSource(
        stencil=text,
        fill=c_functions({_HOLE: function}),
        hole=_HOLE,
        kernel=kernel,
        host_headers=False,
    )


_SMALL = 0x3C
"""A byte that makes a small number in every floating format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedWindow(FusedConv):
    """A convolution for which somebody named an algorithm of this family."""

    family: ClassVar[str] = "windows"


def _as_named(plan: Plan) -> Plan:
    """Return a plan whose convolutions are windows."""

    def named(kernel: AnyKernel) -> AnyKernel:
        if not isinstance(kernel, FusedConv):
            return kernel
        return FusedWindow(**{f.name: getattr(kernel, f.name) for f in fields(kernel)})

    return replace(plan, kernels=tuple(map(named, plan.kernels)))


def _as_function(kernel: FusedConv | FusedPool) -> Function:
    """Return a kernel as a function of its own."""
    if isinstance(kernel, FusedPool):
        return pool_function(kernel)
    return convolution_function(kernel)


def _otherwise(
    kernel: FusedConv | FusedPool, planning: Planning[Sel], refusal: CkUnsupportedError
) -> Iterator[Launches[Sel]]:
    """Yield the launches of what no kernel of the family computes; none of a convolution."""
    if not isinstance(kernel, FusedPool):
        raise refusal
    try:
        yield from _by_axes(kernel, planning)
    except CkValueError:  # somebody named an algorithm of this family
        raise refusal from None


def _by_axes(kernel: FusedPool, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
    """Yield the launches of kernels of rows that compute a pooling."""
    function = renamed(by_axes(kernel), kernel.result)
    inner = [step.result for step in function.body if step.result != kernel.result]
    layouts = {value.name: TensorLayout.packed(value, planning.dims) for value in inner}
    own = replace(planning, layouts={**layouts, **planning.layouts})
    dims = planning.dims
    numbers: Mapping[str, int | range] = {
        **extent_numbers(function, dims),
        **index_ranges(function, dims),
    }
    stored = {value.name: value for value in inner if value.name not in numbers}
    for part in plan_of(function).kernels:
        for launches in FAMILIES[part.family].plan(part, own):
            main, used = launches.main, set(launches.main.values)
            sizes = {name: stored[name].type.bytes(planning.dims) for name in used & stored.keys()}
            known = {name: numbers[name] for name in used & numbers.keys()}
            main = replace(
                main,
                temporaries={**main.temporaries, **sizes},
                constants={**main.constants, **known},
            )
            yield replace(launches, main=main)


class Windows(Family[FusedConv | FusedPool, WindowSignature, WindowAlgorithm, WindowProblem]):
    """Pooling, and convolutions of few channels a group: each pixel is loaded for many windows."""

    name = "windows"
    signature = WindowSignature
    algorithm = WindowAlgorithm
    algorithm_text: ClassVar[str] = "a cklang.dispatch.WindowAlgorithm for windows over images"
    fusion = Fusion(makers=MAKERS, passes={"sliding": on_plan(_as_named)})
    rules: RuleSet = RULES
    grid = GRID
    tuning = Tuning(measurable=lambda _problem: False, as_function=_as_function)

    def cost(
        self, keys: Sequence[WindowKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> WindowCost:
        """Return the cost model, which does not ask for built kernels."""
        return WindowCost(keys, spec)

    lower = staticmethod(lower_windows)

    def problem(
        self,
        kernel: FusedConv | FusedPool,
        layouts: Mapping[str, TensorLayout],
        dims: Mapping[str, int],
    ) -> WindowProblem | None:
        """Return the window of a kernel; None of a convolution that is none, or without elements.

        Raises:
            CkValueError: A035, elements of the result of a pooling overlap.
        """
        if isinstance(kernel, FusedPool):
            return of_pool(kernel, layouts, dims)
        return as_window(kernel, layouts, dims)

    def plan(
        self, kernel: FusedConv | FusedPool, planning: Planning[Sel]
    ) -> Iterator[Launches[Sel]]:
        """Yield the one launch of a kernel, or those of a pooling along one axis after the other.

        Raises:
            CkUnsupportedError: K101, no kernel of the family computes a convolution.
        """
        problem = self.problem(kernel, planning.layouts, planning.dims)
        if problem is None:
            return
        try:
            selection = planning.select(problem, kernel.functions)
        except CkUnsupportedError as refusal:
            yield from _otherwise(kernel, planning, refusal)
            return
        main = window_stage(problem, selection.key, kernel.functions)
        yield Launches(selection=selection, main=main)

    def algorithm_words(self, algorithm: WindowAlgorithm) -> str:
        """Return an algorithm as one line of text."""
        a = algorithm
        return (
            f"threads of {a.columns}x{a.rows}x{a.planes} pixels of {a.vector} channels, "
            f"{a.threads} together"
        )

    def candidate_words(self, algorithm: WindowAlgorithm) -> str:
        """Return all choices."""
        return f"{algorithm.vector}x{algorithm.columns}x{algorithm.rows}x{algorithm.planes}"

    def operands(self, problem: WindowProblem, key: WindowKey, functions: Functions) -> Operands:
        """Return memory of small numbers for every tensor."""
        contents = {
            tensor.value: np.full(tensor.span * tensor.dtype.bytes, _SMALL, np.uint8)
            for tensor in problem.inputs
        }
        return Operands(contents=contents, stages=(window_stage(problem, key, functions),))


def window_stage(problem: WindowProblem, key: WindowKey, functions: Functions) -> Stage:
    """Return the launch of a kernel."""
    return Stage(
        key=key,
        functions=functions,
        problem=problem,
        shim=ConvShim,
        values=tuple(tensor.value for tensor in problem.inputs),
        written=frozenset((problem.e.value,)),
        request=problem.request,
    )


WINDOWS = Windows()
