# SPDX-License-Identifier: MIT
"""The kernels of a plan, evaluated one after another, compute the function."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cklang.errors import CkUnsupportedError
from cklang.fusion.parts import joined
from cklang.fusion.plan import MAX_READS, Plan, epilogue_text
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.testing import assert_close
from tests.support.plans import kernel_function, plan, product_kernels
from tests.support.programs import arguments, epilogues, gemm_functions, programs


def run(fusion_plan: Plan, arrays: tuple[Any, ...]) -> Any:
    """Evaluate kernels in launch order; each reads parameters and what came before."""
    known = dict(zip((value.name for value in fusion_plan.function.params), arrays, strict=True))
    for kernel in product_kernels(fusion_plan):
        function = verify(kernel_function(kernel), allow_unused=True)
        inputs = [known[value.name] for value in kernel.inputs]
        values = evaluate(function, inputs)
        known |= {value.name: each for value, each in zip(kernel.results, values, strict=True)}
        types = [value.type for value in kernel.results]
        assert [value.type for value in function.results] == types
    return known[product_kernels(fusion_plan)[-1].result.name]


@given(st.data())
def test_one_kernel_is_the_function_bit_for_bit(data: st.DataObject) -> None:
    function = data.draw(gemm_functions(prologues=True))
    fusion_plan = plan(function)
    assert len(fusion_plan.kernels) == 1
    arrays = data.draw(arguments(function, largest=9))
    (want,) = evaluate(function, arrays)
    assert_close(run(fusion_plan, arrays), want, 0.0)


@given(st.data())
def test_kernels_after_one_another_are_the_function(data: st.DataObject) -> None:
    function = data.draw(programs())
    fusion_plan = planned(function)
    if fusion_plan is None:
        return
    arrays = data.draw(arguments(function, largest=9))
    (want,), (bound,) = evaluate_with_bound(function, arrays)
    # The draw has infinities and huge numbers, beside which a sum may be anything.
    assert_close(run(fusion_plan, arrays), want, bound, unchecked=1)
    check_shape(fusion_plan)


def planned(function: Function) -> Plan | None:
    """Plan a random program; None when it reads more than a kernel can."""
    try:
        return plan(function)
    except CkUnsupportedError as refusal:
        if refusal.code != "X004":
            raise
        return None


def check_shape(fusion_plan: Plan) -> None:
    """What every plan promises."""
    function = fusion_plan.function
    ready = {value.name for value in function.params}
    for kernel in product_kernels(fusion_plan):
        assert {value.name for value in kernel.inputs} <= ready
        assert len(kernel.reads) + len(kernel.results) - 1 <= MAX_READS
        assert len(set(kernel.reads)) == len(kernel.reads)
        verify(kernel.epilogue, allow_unused=True)
        assert joined(list(kernel.functions.values())) == kernel.epilogue
        ready |= {value.name for value in kernel.results}
    assert product_kernels(fusion_plan)[-1].result == function.results[0]
    edges = {
        (each.edge.source, each.edge.target, each.edge.operand) for each in fusion_plan.decisions
    }
    assert edges == set(fusion_plan.graph.edges(keys=True))


@given(epilogues())
def test_epilogues_are_canonical(region: Function) -> None:
    assert parse_function(epilogue_text(region)) == region
    names = [value.name for value in region.params]
    assert names == ["acc", *(f"d{index}" for index in range(len(names) - 1))]
    assert [operation.result.name for operation in region.body] == [
        str(index) for index in range(len(region.body))
    ]
    uses = [operand.name for operation in region.body for operand in operation.operands]
    order = dict.fromkeys(name for name in [*uses, region.results[0].name] if name[0] == "d")
    assert list(order) == names[1:]
    keys = [(operation.op, operation.operands, operation.identity[2]) for operation in region.body]
    assert len(set(keys)) == len(keys)


@given(gemm_functions())
def test_fusing_a_fused_kernel_changes_nothing(function: Function) -> None:
    (kernel,) = product_kernels(plan(function))
    again = product_kernels(plan(kernel_function(kernel)))[-1]
    assert again.epilogue == kernel.epilogue
    assert again.reads == kernel.reads
    assert (again.a, again.b) == (kernel.a, kernel.b)


@given(programs())
def test_plans_are_deterministic(function: Function) -> None:
    assert planned(function) == planned(parse_function(str(function)))
