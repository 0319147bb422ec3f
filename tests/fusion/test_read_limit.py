# SPDX-License-Identifier: MIT
"""Kernels of rows that would read more than they can: a value on the way is stored."""

from __future__ import annotations

import numpy as np
import pytest

import cklang as ck
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.host import MAX_READS
from cklang.fusion.unfuse import kernel_program
from cklang.reference.evaluate import evaluate
from tests.support.written_ops import written_op

SIZES = {"M": 3, "K": 8, "N": 12}


def layers(count: int) -> ck.Op:
    """Return layers of BERT without attention: two products and a norm around a residual."""
    weights = ", ".join(
        f"u{at}: ck.f16[N, K], d{at}: ck.f16[K, N], g{at}: ck.f16[K], b{at}: ck.f16[K]"
        for at in range(count)
    )
    steps = "\n".join(
        f"    y = ck.layer_norm(x, g{at}, b{at}).to(ck.f16)\n"
        f"    x = x + (ck.gelu(y @ u{at}.T).to(ck.f16) @ d{at}.T)"
        for at in range(count)
    )
    text = f"@ck.op\ndef f(x: ck.f32[M, K], {weights}) -> ck.f32[M, K]:\n{steps}\n    return x\n"
    return written_op(text, "M N K")


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_gradient_of_many_layers_is_cut_where_a_kernel_would_read_too_much(count: int) -> None:
    op = ck.vjp(layers(count))
    plan = op._plan_for(op.program.specialise())
    rows = [each for each in plan.kernels if isinstance(each, FusedRows)]
    assert max(len(each.reads) for each in rows) <= MAX_READS
    assert len(plan.kernels) <= 12 * count


def test_sums_of_many_tensors_are_two_kernels() -> None:
    names = [f"x{at}" for at in range(MAX_READS + 4)]
    params = ", ".join(f"{name}: ck.f32[M, K]" for name in names)
    body = " + ".join(f"ck.tanh({name})" for name in names)
    op = written_op(f"@ck.op\ndef f({params}) -> ck.f32[M, K]:\n    return {body}\n", "M K")
    function = op.program.specialise()
    plan = op._plan_for(function)
    assert len(plan.kernels) == 2
    rng = np.random.default_rng(0)
    known = {name: rng.standard_normal((3, 8)).astype("f") for name in names}
    for kernel in plan.kernels:
        part = kernel_program(plan.function, kernel)
        results = evaluate(part, [known[value.name] for value in kernel.inputs])
        known |= dict(zip((value.name for value in kernel.results), results, strict=True))
    (want,) = evaluate(function, [known[name] for name in names])
    np.testing.assert_allclose(known[plan.function.results[0].name], want, rtol=1e-6)
