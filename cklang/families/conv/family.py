# SPDX-License-Identifier: MIT
"""The family of convolutions and their gradients."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cklang.arch import ArchSpec
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families import FAMILIES
from cklang.families.conv import rules
from cklang.families.conv.host import ConvRequest, ConvShim, request_of
from cklang.families.conv.plan import (
    FEW_CHANNELS,
    MAKERS,
    FusedConv,
    convolution_function,
    insert_layout_copies,
)
from cklang.families.conv.problem import ConvProblem, conv_problem_of
from cklang.families.gemm.family import ProductFamily, compared
from cklang.families.gemm.key import GemmKey
from cklang.families.layout_copy.plan import LayoutCopy
from cklang.families.protocol import Launches, Planning, Sel
from cklang.families.records import AxisOrders, Layouts, Tuning
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.ir.nodes import Value
from cklang.ir.windows import DIRECTIONS, Role

_BEFORE = "so that channels are last"
_AFTER = "so that channels are where the program has them"


def _kept_order(
    kernel: FusedConv, order_of: Callable[[Value], Sequence[int] | None]
) -> tuple[int, ...] | None:
    """Return the channels last for an input that has them there, as torch keeps them.

    The gradient of the weight lies as its shape.
    """
    channels = kernel.a.perm[-1]
    image = order_of(kernel.a.value)
    weighs = DIRECTIONS[kernel.operation.op].result is Role.WEIGHT
    if weighs or image is None or image[-1] != channels or channels == len(kernel.a.perm) - 1:
        return None
    return kernel.axes


def _own_order(kernel: FusedConv, layouts: Layouts) -> tuple[int, ...]:
    """Return the channels last, but first for what a window over such an image writes.

    A first layer, of one group, stays a product where its readers want the channels last.
    """
    order, operation = kernel.axes, kernel.operation
    image, weights = (layouts.get(view.value.name) for view in (kernel.a, kernel.b))
    if image is None or weights is None:
        return order  # where views lie is known only when all orders are
    has_groups = operation.op == "conv" and operation.attr("groups") != 1
    is_window = has_groups and _has_few_planes(kernel, image, weights)
    return (order[0], order[-1], *order[1:-1]) if is_window else order


def _has_few_planes(kernel: FusedConv, image: TensorLayout, weights: TensorLayout) -> bool:
    """Whether groups have few channels, which lie in planes of the image."""
    channels = kernel.b.perm[-1]
    column, channel = (0 if axis is None else image.strides[axis] for axis in kernel.a.perm[-2:])
    few = channels is None or weights.shape[channels] <= FEW_CHANNELS
    return few and channel > column


class Conv(ProductFamily[FusedConv, ConvProblem]):
    """Convolutions, with copies around a kernel where memory has the channels elsewhere."""

    name = "conv"
    compile_seconds = 6.0
    fusion = Fusion(makers=MAKERS)
    rules: RuleSet = rules.RULES
    # The channels are last, wherever the program has them.
    orders = AxisOrders(own=_own_order, kept=_kept_order)
    tuning = Tuning(
        own_layouts=lambda kernel, layouts, _: insert_layout_copies(kernel, layouts).places,
        as_function=convolution_function,
        compared=compared(convolution_function),
        timed_by_launch=True,
    )

    def stage(
        self, problem: ConvProblem, key: GemmKey, functions: Functions, spec: ArchSpec
    ) -> Stage:
        """Return the launch of one kernel for one problem."""
        a = key.algorithm
        blocks = spec.compute_units * a.block_per_cu
        return Stage(
            key=key,
            functions=functions,
            problem=problem,
            shim=ConvShim,
            values=tuple(input_.value for input_ in problem.inputs),
            written=frozenset((problem.e.value,)),
            request=partial(_request, problem, a.split_k, blocks),
        )

    def problem(
        self, kernel: FusedConv, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> ConvProblem | None:
        """Return the convolution of a kernel; None if its result has no element."""
        placed = insert_layout_copies(kernel, layouts)
        return conv_problem_of(placed.kernel, placed.storage, dims, kernel.functions.digest)

    def plan(self, kernel: FusedConv, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launch of a convolution: what is predicted to be quicker of two ways.

        As a product, with the copies around it, or as a window that vector units move over the
        image.
        """
        window = next(_as_window(kernel, planning), None)
        try:
            product = next(self._product(kernel, planning), None)
        except CkUnsupportedError:
            if window is None:
                raise
            product = None
        if product is None:
            yield from () if window is None else (window,)
        else:
            yield product if window is None else _quicker(product, window, planning.spec)

    def _product(self, kernel: FusedConv, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launch of a convolution as a product, with the copies around it."""
        functions = kernel.functions
        placed = insert_layout_copies(kernel, planning.layouts)
        digest = functions.digest
        problem = conv_problem_of(placed.kernel, placed.storage, planning.dims, digest)
        if problem is None:
            return
        selection = planning.select(problem, functions)
        yield Launches(
            selection=selection,
            main=self.stage(problem, selection.key, functions, planning.spec),
            before=tuple(copy.stage(planning.spec, _BEFORE) for copy in placed.before),
            after=tuple(copy.stage(planning.spec, _AFTER) for copy in placed.after),
        )


def _as_window(kernel: FusedConv, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
    """Yield the launch of a convolution as a window, if a kernel computes it so."""
    try:
        yield from FAMILIES["windows"].plan(kernel, planning)
    except (CkUnsupportedError, CkValueError):  # none does, or somebody named another algorithm
        return


def _quicker(product: Launches[Sel], window: Launches[Sel], spec: ArchSpec) -> Launches[Sel]:
    """Return the launches that are predicted to take less time, and both times."""
    own, other = product.selection.predicted, window.selection.predicted
    if own is None or other is None:
        return window if own is None else product
    copies = (stage.problem for stage in (*product.before, *product.after))
    own += sum(c.predicted(spec) for c in copies if isinstance(c, LayoutCopy))
    chosen, what = (window, "a window") if other < own else (product, "a product")
    note = (
        f"as {what}: {own:.2f} µs predicted as a product with its copies, {other:.2f} as a window"
    )
    return replace(chosen, note=note)


def _request(
    problem: ConvProblem, split_k: int, blocks: int, addresses: Sequence[int]
) -> ConvRequest:
    *pointers, workspace = addresses
    request = request_of(problem, pointers)
    return replace(request, split_k=split_k, workspace=workspace, blocks=blocks)


CONV = Conv()
