# SPDX-License-Identifier: MIT
"""Signatures, epilogues and algorithms for the tests of rules, registries and selection."""

from dataclasses import replace
from typing import Any

from cklang.families.gemm.key import DKind, DOperand, GemmKey, Layout, Signature
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.types import DType, f16, f32
from tests.support.algorithms import BASE


def epilogue(op: str = "relu") -> Functions:
    text = f"func @epilogue(%acc: f32[]) -> f32[] {{\n  %0: f32[] = {op}(%acc)\n  return %0\n}}"
    return Functions(epilogue=parse_function(text))


RELU = epilogue()


def signature(
    dtype: DType = f16,
    layouts: str = "rcr",
    d: tuple[tuple[DType, DKind], ...] = (),
    region: Functions = RELU,
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
        functions=region.digest,
    )


OPEN = replace(signature(), functions="")
"""What a stencil of f16 computes: the epilogue is left open."""


def key(gpu: str = "gfx942", region: Functions = RELU, **changes: Any) -> GemmKey:
    return GemmKey(signature(region=region), replace(BASE, **changes), gpu)


def shape(m: int, n: int, k: int, region: Functions = RELU, **options: Any) -> Problem:
    return problem(m, n, k, functions=region.digest, **options)
