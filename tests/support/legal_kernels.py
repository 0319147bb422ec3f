# SPDX-License-Identifier: MIT
"""Random legal kernels of every family: what is computed, how, and on which GPU.

Each field is drawn on its own, so element types meet features that no other test combines them
with; what rules refuse is drawn again. :func:`compiled` makes machine code of a draw, with every
hole filled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from cklang.arch import ArchSpec, all_archs
from cklang.build.builder import shared_builder, source_of
from cklang.errors import CkError
from cklang.families.attention.helper_keys import Rotary, append_key, combine_key, reduce_key
from cklang.families.attention.key import AttentionKey, AttentionSignature, MaskKind, ScoreKind
from cklang.families.attention_backward.key import AttentionGradKey, AttentionGradSignature
from cklang.families.gemm.key import (
    READ_KINDS,
    Algorithm,
    DOperand,
    GemmKey,
    Layout,
    ProductKind,
    Scale,
    Signature,
    accumulator,
)
from cklang.families.layout_copy.key import layout_copy_key
from cklang.families.rowwise.key import RowwiseSignature
from cklang.families.windows.key import WindowSignature
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.keys import AnyKey
from cklang.lowering.source import KernelSource
from cklang.selection.diagnose import fix
from cklang.selection.rules import violations
from cklang.selection.space import attention_pattern, enumerate_legal, legal_values
from cklang.types import DTYPES, DType, Kind, bf16, e8m0, f16, f32, fp4, i4, i8, i32
from tests.support.attention_harness import build, filled_source

T = TypeVar("T")

_SEARCHED = 40
"""How many legal algorithms of attention one is drawn from."""


def _legal(attempt: Callable[[], T | None]) -> T:
    """Draw until something is legal."""
    while True:
        drawn = attempt()
        if drawn is not None:
            return drawn


def _known(spec: ArchSpec, dtypes: Sequence[DType]) -> list[DType]:
    """Return the types whose encoding the GPU has."""
    return [dtype for dtype in dtypes if dtype.encoding in ("", spec.fp8)]


_FLOATS8 = tuple(DTYPES[name] for name in ("fp8", "bf8", "fp8_fnuz", "bf8_fnuz"))

# --- products and convolutions

_CONV_LAYOUTS = {
    ProductKind.CONV: "rcr",
    ProductKind.CONV_GRAD_INPUT: "rrr",
    ProductKind.CONV_GRAD_WEIGHT: "crr",
}
_PRODUCTS = (ProductKind.GEMM, ProductKind.BATCHED, ProductKind.GROUPED)
_PRODUCT_LAYOUTS = ("rcr", "rrr", "ccr", "crr", "rpr")
_BLANK = Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 16), vector_a=1, vector_b=1, vector_e=1
)
_NOT_DRAWN = ("vector_d", "pad_m", "pad_n", "pad_k")


def product(random: Random) -> GemmKey:
    """Return a legal product: alone, in a batch or in a group."""
    return _matrix_kernel(random, _PRODUCTS)


def convolution(random: Random) -> GemmKey:
    """Return a legal convolution, or the gradient of one."""
    return _matrix_kernel(random, tuple(_CONV_LAYOUTS))


def _matrix_kernel(random: Random, kinds: Sequence[ProductKind]) -> GemmKey:
    def attempt() -> GemmKey | None:
        spec = random.choice(all_archs())
        signature = matrix_signature(random, random.choice(kinds), spec)
        algorithm = _algorithm(random, signature, spec)
        return None if algorithm is None else GemmKey(signature, algorithm, spec.name)

    return _legal(attempt)


def matrix_signature(random: Random, kind: ProductKind, spec: ArchSpec) -> Signature:
    """Return what a product or convolution computes; whether it is legal is the rules' to say."""

    def some(share: float) -> bool:
        return random.random() < share

    a = random.choice(_known(spec, [f16, bf16, f32, i8, fp4, *_FLOATS8]))
    b = random.choice(_known(spec, _FLOATS8)) if a in _FLOATS8 else a
    is_integer = a.kind is Kind.INT
    common: dict[str, Any] = {
        "kind": kind,
        "dtype_a": a,
        "dtype_b": b,
        "dtype_acc": accumulator(a),
        "dtype_e": random.choice(
            [i32, i8, f16] if is_integer else _known(spec, [f16, bf16, f32, *_FLOATS8])
        ),
        "d": tuple(_operand(random, spec) for _ in range(random.choice((0, 0, 1, 2)))),
    }
    if kind in _CONV_LAYOUTS:
        return Signature(**common, **_laid_out(_CONV_LAYOUTS[kind]), spatial=random.randint(1, 3))
    if some(0.1):
        common["dtype_b"] = i4
    if some(0.2):
        common |= {**_scales(random), "dtype_acc": accumulator(a, scaled=True)}
    for side in "ab":
        if some(0.15):
            common[side] = (_operand(random, spec),)
    layouts = _laid_out(random.choice(_PRODUCT_LAYOUTS))
    return Signature(**common, **layouts, sparse=some(0.05))


def _laid_out(letters: str) -> dict[str, Any]:
    return {f"layout_{side}": Layout(letter) for side, letter in zip("abe", letters, strict=True)}


def _operand(random: Random, spec: ArchSpec) -> DOperand:
    dtype = random.choice(_known(spec, [f16, bf16, f32, i8, i32, *_FLOATS8]))
    return DOperand(dtype=dtype, kind=random.choice(READ_KINDS))


def _scales(random: Random) -> dict[str, Scale]:
    dtype, block_k = random.choice((f32, e8m0)), random.choice((32, 64, 128))
    return {
        f"scale_{side}": Scale(dtype=dtype, block=(random.choice((1, 128)), block_k))
        for side in random.choice(("a", "b", "ab"))
    }


def _algorithm(random: Random, signature: Signature, spec: ArchSpec) -> Algorithm | None:
    """Return a random point of the space moved to a legal one; None if the signature has none."""
    names = [field.name for field in fields(Algorithm) if field.name not in _NOT_DRAWN]
    values = {name: list(legal_values(name, signature, spec)) for name in names}
    if not all(values.values()):
        return None
    choices = {name: random.choice(each) for name, each in values.items()}
    try:
        drawn = replace(_BLANK, **choices, vector_d=(1,) * len(signature.d))
        return fix(drawn, signature, spec.name).algorithm
    except CkError as problem:
        if problem.code != "K009":
            raise
        return None


# --- attention


def attention(random: Random) -> AttentionKey:
    """Return a legal forward kernel of attention, with any of its features."""

    def attempt() -> AttentionKey | None:
        spec = random.choice([spec for spec in all_archs() if spec.attention_tiles])
        signature = _attention_signature(random, spec, _types(spec, spec.attention_tiles))
        algorithm = _one_of(random, signature, spec)
        return algorithm and AttentionKey(signature, algorithm, spec.name)

    return _legal(attempt)


def attention_grad(random: Random) -> AttentionGradKey:
    """Return a legal kernel of the gradients of q, k and v."""

    def attempt() -> AttentionGradKey | None:
        spec = random.choice([spec for spec in all_archs() if spec.attention_grad_tiles])
        forward = _attention_signature(random, spec, _types(spec, spec.attention_grad_tiles))
        forward = replace(forward, lse=True, split=False, paged=False, output=False)
        bias, deterministic = (random.random() < 0.5 for _ in range(2))
        signature = AttentionGradSignature(
            forward=forward, bias_grad=bias, deterministic=deterministic
        )
        algorithm = _one_of(random, signature, spec)
        return algorithm and AttentionGradKey(signature, algorithm, spec.name)

    return _legal(attempt)


def _types(spec: ArchSpec, tiles: Sequence[Any]) -> list[DType]:
    """Return the types of q, k and v that a GPU has tilings for."""
    names = dict.fromkeys(name for row in tiles for name in row.dtypes)
    return _known(spec, [d for d in DTYPES.values() if d.name.removesuffix("_fnuz") in names])


def _attention_signature(
    random: Random, spec: ArchSpec, dtypes: Sequence[DType]
) -> AttentionSignature:
    dtype = random.choice(dtypes)
    score = random.choice(list(ScoreKind))
    names = ("lse", "dropout", "packed", "paged", "split", "output")
    signature = AttentionSignature(
        dtype=dtype,
        dtype_o=random.choice([f16, bf16, f32]) if dtype.bytes == 1 else dtype,
        dtype_bias=random.choice([f16, bf16, f32]) if score is ScoreKind.BIAS else dtype,
        score=score,
        mask=random.choice(list(MaskKind)),
    )
    flags: dict[str, Any] = {name: random.random() < 0.3 for name in names}
    return replace(signature, **flags)


def _one_of(random: Random, signature: Any, spec: ArchSpec) -> Any:
    """Return one of the first legal algorithms of a random tiling; None if there is none."""
    names = [name for name in ("tile", "pipeline") if legal_values(name, signature, spec)]
    chosen = {name: random.choice(list(legal_values(name, signature, spec))) for name in names}
    is_gradient = isinstance(signature, AttentionGradSignature)
    pads = {} if is_gradient else dict.fromkeys(("pad_q", "pad_k", "pad_d", "pad_dv"), "*")
    among = attention_pattern(gradient=is_gradient, block_per_cu="*", **pads, **chosen)
    some = list(islice(enumerate_legal(signature, spec, among), _SEARCHED))
    return random.choice(some) if some else None


# --- kernels around them


def helper(random: Random) -> AnyKey:
    """Return a kernel around attention, or one that copies a tensor."""
    spec = random.choice([spec for spec in all_archs() if spec.attention_tiles])
    flags = [random.random() < 0.5 for _ in range(2)]
    dtype = random.choice((f16, bf16, f32))
    dtype8 = random.choice(_known(spec, [dtype, *_FLOATS8]))
    widths = [random.choice((1, 2, 4)) for _ in range(2)]
    size = random.choice((1, 2, 4))
    kinds: tuple[AnyKey, ...] = (
        combine_key(spec.name, dtype, lse=flags[0], output=flags[1]),
        append_key(spec.name, dtype, random.choice(list(Rotary)), paged=flags[0], cache=dtype8),
        reduce_key(spec.name, dtype, dot=flags[0]),
        layout_copy_key(spec.name, size, widths[0] * 4 // size, widths[1] * 4 // size),
    )
    return random.choice(kinds)


DRAWS: Mapping[str, Callable[[Random], AnyKey]] = {
    "product": product,
    "convolution": convolution,
    "attention": attention,
    "attention_grad": attention_grad,
    "helper": helper,
}
"""What draws a kernel of each family."""


def objected(key: AnyKey) -> list[str]:
    """Return what rules say of a kernel; helpers have no rules."""
    spec = next(spec for spec in all_archs() if spec.name == key.arch)
    return [str(each) for each in violations(key.algorithm, key.signature, spec)]


# --- machine code


def source(key: AnyKey) -> KernelSource:
    """Return the C++ of a kernel whose holes are filled with functions of all arguments."""
    if key.family in _FUNCTIONS:
        return source_of(key, _FUNCTIONS[key.family](key.signature))
    return filled_source(key, _fill(key))


def compiled(key: AnyKey) -> Path:
    """Return the code object of a kernel whose holes are filled with functions of all arguments.

    Raises:
        CkBuildError: Clang refuses.
    """
    if key.family in _FUNCTIONS:
        functions = _FUNCTIONS[key.family](key.signature)
        (artifact,) = shared_builder().build_all([(key, functions)])
        return artifact.code_object
    if key.family == "layout_copy":
        return shared_builder().build_all([(key, NO_FUNCTIONS)])[0].code_object
    return build(key, _fill(key)).code


def _functions(signature: Signature) -> Functions:
    """Return functions in which every operand is added to what the kernel computes."""
    s, acc = signature, signature.dtype_acc
    params, lines, total = [f"%acc: {acc}[]"], list[str](), "acc"
    if s.sums > 1:
        params.append(f"%acc1: {acc}[]")
        lines.append(f"  %both: {acc}[] = mul(%acc, %acc1)")
        total = "both"
    for index, operand in enumerate(s.reads):
        term = _widened(f"d{index}", operand.dtype, acc, params, lines)
        lines.append(f"  %sum{index}: {acc}[] = add(%{total}, %{term})")
        total = f"sum{index}"
    if s.group:
        params.append(f"%peak: {acc}[]")
        lines.append(f"  %scaled: {acc}[] = mul(%{total}, %peak)")
        total = "scaled"
    further = (total, "acc")[: len(s.d) - len(s.reads) + bool(s.group)]
    functions = {"epilogue": _region(params, lines, total, acc, further)}
    for name, operands, dtype in (("a", s.a, s.dtype_a), ("b", s.b, s.dtype_b)):
        params, lines = [], []
        terms = [
            _widened(f"{name}{i}", each.dtype, f32, params, lines)
            for i, each in enumerate(operands)
        ]
        if not terms:
            continue
        for index, term in enumerate(terms[1:]):
            lines.append(f"  %{name}sum{index}: f32[] = add(%{terms[0]}, %{term})")
            terms[0] = f"{name}sum{index}"
        lines.append(f"  %{name}f: f32[] = neg(%{terms[0]})")
        lines.append(f"  %{name}r: {dtype}[] = cast(%{name}f) {{to = {dtype}}}")
        result = f"{name}{'f' if dtype == f32 else 'r'}"
        functions[f"prologue_{name}"] = _region(params, lines, result, dtype)
    return Functions(**functions)


def _row_functions(signature: RowwiseSignature) -> Functions:
    """Return functions in which what is read is kept, joined and stored."""
    s = signature
    kept = [f"%k{place}: f32[]" for place in range(s.kept + s.common)]
    parts = [len(stage) for stage in s.reductions]
    counts = {f"part{place}": (kept, count) for place, count in enumerate(parts)}
    counts |= {"common": ([], s.common), "load": ([], s.kept), "store": (kept, len(s.elements))}
    functions = {
        hole: _copies(hole, params or ["%c0: f32[]"], count)
        for hole, (params, count) in counts.items()
        if count
    }
    if s.rows:
        functions["finish"] = _copies("finish", ["%r0: f32[]"], len(s.rows))
    return Functions(**functions)


def _window_functions(signature: WindowSignature) -> Functions:
    """Return an epilogue that adds every operand."""
    params, lines, total = ["%acc: f32[]"], list[str](), "acc"
    for index, operand in enumerate(signature.d):
        term = _widened(f"d{index}", operand.dtype, f32, params, lines)
        lines.append(f"  %sum{index}: f32[] = add(%{total}, %{term})")
        total = f"sum{index}"
    return Functions(epilogue=_region(params, lines, total, f32))


def _copies(hole: str, params: list[str], count: int) -> Function:
    """Return a region whose results are its first parameter."""
    types, first = ", ".join(["f32[]"] * count), params[0].partition(":")[0]
    head = f"func @{hole}({', '.join(params)}) -> {types} {{"
    return parse_function(f"{head}\n  return {', '.join([first] * count)}\n}}")


_FUNCTIONS: Mapping[str, Callable[[Any], Functions]] = {
    "gemm": _functions,
    "conv": _functions,
    "rowwise": _row_functions,
    "windows": _window_functions,
}
"""Functions for the kernels of a family whose functions are IR."""


def _widened(name: str, dtype: DType, wide: DType, params: list[str], lines: list[str]) -> str:
    params.append(f"%{name}: {dtype}[]")
    if dtype == wide:
        return name
    lines.append(f"  %{name}w: {wide}[] = cast(%{name}) {{to = {wide}}}")
    return f"{name}w"


def _region(
    params: list[str], lines: list[str], result: str, dtype: DType, further: Sequence[str] = ()
) -> Function:
    types = ", ".join([f"{dtype}[]"] * (1 + len(further)))
    results = ", ".join(f"%{each}" for each in (result, *further))
    head = f"func @epilogue({', '.join(params)}) -> {types} {{"
    return parse_function("\n".join([head, *lines, f"  return {results}", "}"]))


_HOLES = """#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 0.25f * (float)(j - i); }
CK_FUNCTION float ck_derivative(float s, CK_ATTENTION_PARAMS) { return 1.0f + 0.5f * s; }
CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS) { return (i + j + h) % 3 != 0; }
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
"""


def _fill(key: AnyKey) -> str:
    head, *functions = _HOLES.splitlines()[1:]
    opened: list[str] = []
    if key.family in ("attention", "attention_backward"):
        s = key.signature if key.family == "attention" else key.signature.forward
        opened += ["ck_score"] if s.score is ScoreKind.FUNCTION else []
        opened += ["ck_mask"] if s.mask is MaskKind.FUNCTION else []
        opened += ["ck_output"] if s.output else []
        is_gradient = key.family == "attention_backward"
        opened += ["ck_derivative"] if is_gradient and key.signature.derivative else []
    if key.family == "combine" and key.signature.output:
        opened.append("ck_output")
    chosen = [line for line in functions if any(name in line for name in opened)]
    return "\n".join([_HOLES.splitlines()[0], head, *chosen, ""]) if chosen else ""
