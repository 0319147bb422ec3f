# SPDX-License-Identifier: MIT
"""Kernels are launched behind those whose results they read, and read nothing that they write."""

from __future__ import annotations

import pytest

import cklang as ck
from cklang.families import plan_of
from cklang.ir.ops import OPS, Kind
from tests.support.written_ops import written_op

HEADS = "ck.f16[B, 2, S, 64]"
BODIES = {
    # The product that reads lse is before what is stored of o.
    "lse is needed before o": "((q @ k.mT - l[..., None]) @ k) * 0.5 + dy * o",
    "o depends on lse": "o * ck.exp(l * 0.1)[..., None] + dy",
    "lse of a norm": "ck.rms_norm(o) * ck.sigmoid(l)[..., None]",
}


def op_of(body: str) -> ck.Op:
    text = f"@ck.op\ndef f(q: {HEADS}, k: {HEADS}, v: {HEADS}, dy: {HEADS}) -> {HEADS}:\n"
    text += "    o, l = ck.attention(q, k, v, return_lse=True)\n"
    return written_op(f"{text}    return {body}\n", "B S")


def expect_order(op: ck.Op) -> None:
    plan = plan_of(op.program.specialise())
    views = (Kind.JOIN, Kind.VIEW, Kind.SHAPE)
    bases = {
        each.result.name: [value.name for value in each.operands]
        for each in plan.function.body
        if OPS[each.op].kind in views
    }
    computed = {each.result.name for each in plan.function.body} - set(bases)
    written: set[str] = set()
    for kernel in plan.kernels:
        names = [value.name for value in kernel.inputs]
        while names:
            name = names.pop()
            names += bases.get(name, [])
            kind = next((e.op for e in plan.function.body if e.result.name == name), "constant")
            is_number = kind in ("constant", "extent", "arange")
            assert name in written or name not in computed or is_number, name
        written |= {value.name for value in kernel.results}


@pytest.mark.parametrize("name", BODIES)
def test_attention_beside_readers_of_its_log_sum(name: str) -> None:
    expect_order(op_of(BODIES[name]))


def test_a_constant_beside_another_result() -> None:
    text = """
    func @f(%x: f32[M]) -> f16[M], f16[M] {
      %0: f32[] = constant() {value = 0.0}
      %1: f32[M] = broadcast(%0) {dims = []}
      %2: f16[M] = cast(%1) {to = f16}
      %3: f32[M] = exp(%x)
      %4: f16[M] = cast(%3) {to = f16}
      return %4, %2
    }"""
    expect_order(ck.parse(text))


def test_the_gradient_of_an_attention() -> None:
    expect_order(ck.vjp(op_of("o + dy")))
