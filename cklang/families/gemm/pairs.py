# SPDX-License-Identifier: MIT
"""Two products of one A: as one problem, or apart where no kernel computes it.

Apart, the first product stores its sums in f32 (i32 of integers) in memory of the call's own, and
the epilogue of the second reads them as one operand more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from cklang.errors import CkError
from cklang.families.gemm.cost.model import Extents
from cklang.families.gemm.key import Layout
from cklang.families.gemm.layout import problem_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Matrix, PairProblem, Problem
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.parts import joined
from cklang.fusion.plan import Read
from cklang.ir.nodes import Function, Value


@dataclass(frozen=True, slots=True)
class Apart:
    """Why a pair is no one launch."""

    reason: str


def pair_of(
    kernel: FusedGemm, storage: Mapping[str, TensorLayout], dims: Mapping[str, int], functions: str
) -> PairProblem | Apart | None:
    """Return a pair as one launch, or why it is none; None if its result has no element."""
    problems = []
    for side in (kernel.b, kernel.b2 or kernel.b):
        try:
            single = problem_of(replace(kernel, b=side, b2=None), storage, dims, functions)
        except CkError as refusal:
            return Apart(f"one of its products is refused by itself: {refusal.code}")
        if single is None:
            return None
        problems.append(single)
    one, other = problems
    b, b2 = one.b, other.b
    if not isinstance(b, Matrix) or not isinstance(b2, Matrix) or replace(other, b=b) != one:
        return Apart("their batches fold into rows and columns in two ways")
    if one.batch:
        return Apart("a batch is left")
    for matrix in (b, b2):
        if matrix.prepared is not None:
            return Apart(f"{matrix.value} is prepared")
    if b.layout is not b2.layout:
        return Apart(f"{b.value} is {_words(b)}, and {b2.value} {_words(b2)}")
    own = {field.name: getattr(one, field.name) for field in fields(Problem) if field.init}
    return PairProblem(**own, b2=b2)


def _words(matrix: Matrix) -> str:
    axis = "N" if matrix.layout is Layout.ROW else "K"
    return f"contiguous along {axis}"


@dataclass(frozen=True, slots=True)
class Widened:
    """A problem as the cost model sees it.

    A pair is one product with the columns of both; segments are products of equal sizes.
    """

    m: int
    n: int
    k: int
    products: int


def widened(problem: Extents) -> Extents:
    """Return what the cost model is asked about a problem of a product or convolution."""
    if not isinstance(problem, Problem) or (problem.ends is None and problem.sums == 1):
        return problem
    if problem.has_segments_of_k:
        return Widened(problem.m, problem.n, -(-problem.k // problem.products), problem.products)
    segments = min(problem.segments, problem.m) or 1
    products = problem.products * segments
    return Widened(-(-problem.m // segments), problem.n * problem.sums, problem.k, products)


def apart(kernel: FusedGemm) -> tuple[FusedGemm, FusedGemm, Value]:
    """Return the two products of a pair in launch order, and the sums that the first stores."""
    function = kernel.functions["epilogue"]
    acc, acc1, *reads = function.params
    taken = {value.name for value in (*kernel.inputs, *kernel.results)}
    name = f"{kernel.result.name}_pair"
    while name in taken:
        name += "_"
    shape = tuple(kernel.result.type.shape)
    sums = Value(name=name, type=replace(acc.type, shape=shape))
    alone = replace(function, params=(acc,), body=(), results=(acc,))
    first = replace(
        kernel, b=kernel.b2 or kernel.b, b2=None, epilogue=alone, reads=(), more=(), result=sums
    )
    operand = replace(acc1, name=f"d{len(reads)}")
    own = _with_operand(function, acc1, (acc, *reads, operand))
    read = Read(value=sums, axes=kernel.axes)
    second = replace(kernel, b2=None, epilogue=joined([own]), reads=(*kernel.reads, read))
    return first, second, sums


def products_of(kernel: FusedGemm) -> tuple[FusedGemm, ...]:
    """Return the single products of a kernel."""
    return (kernel,) if kernel.b2 is None else apart(kernel)[:2]


def _with_operand(function: Function, sum_: Value, params: tuple[Value, ...]) -> Function:
    """Return a region that reads ``sum_`` as its last operand."""
    names = {sum_.name: params[-1]}
    return replace(
        function,
        params=params,
        body=tuple(
            replace(operation, operands=tuple(names.get(x.name, x) for x in operation.operands))
            for operation in function.body
        ),
        results=tuple(names.get(result.name, result) for result in function.results),
    )
