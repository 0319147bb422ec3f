# SPDX-License-Identifier: MIT
"""Signatures, epilogues and algorithms for the tests of rules, registries and selection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cklang.families.gemm.problem import Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.plan import epilogue_hash
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.keys import DKind, DOperand, KernelKey, Layout, Signature
from cklang.types import DType, f16, f32
from tests.support.algorithms import BASE


def epilogue(op: str = "relu") -> Function:
    text = f"func @epilogue(%acc: f32[]) -> f32[] {{\n  %0: f32[] = {op}(%acc)\n  return %0\n}}"
    return parse_function(text)


RELU = epilogue()


def signature(
    dtype: DType = f16,
    layouts: str = "rcr",
    d: tuple[tuple[DType, DKind], ...] = (),
    region: Function = RELU,
) -> Signature:
    a, b, e = (Layout(letter) for letter in layouts)
    return Signature(
        dtype_a=dtype,
        dtype_b=dtype,
        dtype_acc=f32,
        dtype_e=dtype,
        layout_a=a,
        layout_b=b,
        layout_e=e,
        d=tuple(DOperand(dtype=t, kind=kind) for t, kind in d),
        epilogue=epilogue_hash(region),
    )


OPEN = replace(signature(), epilogue="")
"""What a stencil of f16 computes: the epilogue is left open."""


def key(gpu: str = "gfx942", region: Function = RELU, **changes: Any) -> KernelKey:
    return KernelKey(signature(region=region), replace(BASE, **changes), gpu)


def shape(m: int, n: int, k: int, region: Function = RELU, **options: Any) -> Problem:
    return problem(m, n, k, epilogue=epilogue_hash(region), **options)
