# SPDX-License-Identifier: MIT
"""No step of a program is lost between its kernels: the check of every plan, and what it finds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import cklang as ck
from cklang.errors import CkInternalError
from cklang.families import FAMILIES, plan_of
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.completeness import expect_complete
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.nodes import Function
from tests.support.errors import expect_error
from tests.support.plans import plan_of_statements
from tests.support.written_ops import expression_op

PARAMS = "x: ck.f16[M, K], w: ck.f16[N, K], i: ck.i32[M], y: ck.f16[R, K]"


def program(expression: str) -> Function:
    """Return the program of an expression of x, w, i and y."""
    return expression_op(PARAMS, "ck.f32[M, N]", expression).program.specialise()


def gradients(expression: str) -> Function:
    """Return the gradients of an attention whose q is a function of a product."""
    image = "ck.f16[B, H, S, D]"
    params = f"x: {image}, w: ck.f16[D, D], k: {image}, v: {image}"
    op = expression_op(params, image, f"ck.attention({expression}, k, v)")
    return ck.vjp(op).program.specialise()


BEHIND_NO_EPILOGUE = {
    "scan": lambda: program("((ck.cumsum(x, 1) * 0.5).to(ck.f16)) @ w.T"),
    "scatter": lambda: program("(ck.silu(ck.scatter_add(x, i, x)).to(ck.f16)) @ w.T"),
    "sort": lambda: program("((ck.sort(x, axis=1).to(ck.f32) * 0.5).to(ck.f16)) @ w.T"),
    "attention_backward": lambda: gradients("((x @ w.T) * 0.3).to(ck.f16)"),
}
"""Pointwise steps between a kernel without an epilogue and a product, by the kernel's family."""


@pytest.mark.parametrize("family", BEHIND_NO_EPILOGUE)
def test_a_kernel_that_ignores_its_epilogue_is_an_internal_error(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = BEHIND_NO_EPILOGUE[family]()
    assert family in {kernel.family for kernel in plan_of(function).kernels}
    fusion = FAMILIES[family].fusion
    promised = {op: replace(own, epilogue=True, stores=None) for op, own in fusion.makers.items()}
    monkeypatch.setattr(FAMILIES[family], "fusion", replace(fusion, makers=promised))
    with expect_error("Z004", kind=CkInternalError):
        plan_of(function)


def shortened(function: Function, op: str) -> Function:
    """Return a function that takes what an op would be applied to for its result."""
    (lost,) = (each for each in function.body if each.op == op)

    def new(value: Any) -> Any:
        return lost.operands[0] if value == lost.result else value

    body = (
        replace(each, operands=tuple(map(new, each.operands)))
        for each in function.body
        if each is not lost
    )
    return replace(function, body=tuple(body), results=tuple(map(new, function.results)))


def without_epilogue_op(kernel: Any) -> Any:
    return replace(kernel, epilogue=shortened(kernel.epilogue, "tanh"))


def without_output_op(kernel: Any) -> Any:
    return replace(kernel, output=shortened(kernel.output, "tanh"))


def without_stage_op(kernel: Any) -> Any:
    functions = {name: f for name, f in kernel.functions.items() if name != "store"}
    functions["store"] = shortened(kernel.functions["store"], "tanh")
    stages = replace(kernel.stages, functions=type(kernel.functions)(**functions))
    return replace(kernel, stages=stages)


LOSSES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "gemm": ("ck.tanh(x @ w).to(ck.f16)", without_epilogue_op),
    "gemm, prologue": ("((ck.tanh(x)).to(ck.f16) @ w).to(ck.f16)", without_epilogue_op),
    "conv": (
        "ck.tanh(ck.conv(x, window, padding=1)).to(ck.f16)",
        without_epilogue_op,
    ),
    "attention": ("ck.tanh(ck.attention(x, y, y)).to(ck.f16)", without_output_op),
    "rowwise": ("ck.tanh(ck.softmax(x, axis=-1)).to(ck.f16)", without_stage_op),
}
"""Kernels that lose a step of their functions."""


@pytest.mark.parametrize(("statements", "lose"), LOSSES.values(), ids=LOSSES)
def test_a_function_that_lacks_a_step_is_an_internal_error(
    statements: str, lose: Callable[[AnyKernel], AnyKernel]
) -> None:
    plan = plan_of_statements(f"return {statements}")
    expect_complete(plan)
    wrong = replace(plan, kernels=(*plan.kernels[:-1], lose(plan.kernels[-1])))
    with pytest.raises(CkInternalError, match=r"should compute %\w+, a tanh, and does not"):
        expect_complete(wrong)


@pytest.fixture(scope="module")
def chain() -> Plan:
    """A plan of two products, with a step in the epilogue of the first."""
    return plan_of_statements("return (ck.tanh(x @ w).to(ck.f16) @ w).to(ck.f16)")


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        pytest.param([1], "no kernel before has written", id="a kernel is missing"),
        pytest.param([1, 0], "no kernel before has written", id="in the wrong order"),
        pytest.param([0], "the program returns", id="nothing writes a result"),
        pytest.param([0, 1, 1], "two kernels write", id="two write a value"),
    ],
)
def test_other_kernels_are_an_internal_error(chain: Plan, places: list[int], problem: str) -> None:
    kernels = tuple(chain.kernels[place] for place in places)
    with pytest.raises(CkInternalError, match=problem):
        expect_complete(replace(chain, kernels=kernels))


def test_a_step_that_is_done_twice_is_an_internal_error(chain: Plan) -> None:
    first, second = chain.kernels
    assert isinstance(first, FusedGemm)
    assert isinstance(second, FusedGemm)
    again = replace(second, epilogue=first.epilogue)
    with pytest.raises(CkInternalError, match="for no result"):
        expect_complete(replace(chain, kernels=(first, again)))


def test_a_cast_alone_is_still_part_of_the_kernel_before() -> None:
    scan, product = plan_of(program("ck.cumsum(x, 1).to(ck.f16) @ w.T")).kernels
    assert (scan.family, product.family) == ("scan", "gemm")
    assert [str(value.type) for value in scan.results] == ["f16[M, K]"]


def test_numbers_of_parts_that_no_kernel_stores_are_an_internal_error() -> None:
    plan = plan_of(program("ck.logsumexp(x @ w.T, axis=-1, keepdims=True) + (y @ w.T)[:1]"))
    products = [each for each in plan.kernels if isinstance(each, FusedGemm) and each.log_sums]
    (product,) = products
    silent = replace(product, computed=product.computed[:1])
    kernels = (silent if each is product else each for each in plan.kernels)
    with pytest.raises(CkInternalError, match="no kernel before has written"):
        expect_complete(replace(plan, kernels=tuple(kernels)))
