# SPDX-License-Identifier: MIT
"""Kernels that Triton compiles, for the emulator's tests to run: code that we did not write.

Run with a Python that has ``triton`` (any machine; no GPU is needed)::

    python tests/emulator/data/make_triton.py

It writes ``triton/<gpu>/<kernel>.hsaco`` beside this file and ``triton/kernels.json``, which says
what each takes and with which version of Triton it was made. ``triton_kernels.py`` runs them.
"""

import json
import os
from pathlib import Path
from typing import Any

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # smaller files
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = Path(__file__).parent / "triton"
GPUS = {"gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}
FP8 = {"gfx942": "fp8e4b8", "gfx950": "fp8e4nv", "gfx1201": "fp8e4nv"}


@triton.jit
def gemm(
    a,
    b,
    c,
    m,
    n,
    k,
    acc: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
):
    """C[m, n] = A[m, k] B[k, n], all row-major; ragged extents are masked."""
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(1) * block_n + tl.arange(0, block_n)
    total = tl.zeros((block_m, block_n), dtype=acc)
    for start in range(0, k, block_k):
        depth = start + tl.arange(0, block_k)
        inside_a = (rows[:, None] < m) & (depth[None, :] < k)
        inside_b = (depth[:, None] < k) & (columns[None, :] < n)
        left = tl.load(a + rows[:, None] * k + depth[None, :], mask=inside_a, other=0.0)
        right = tl.load(b + depth[:, None] * n + columns[None, :], mask=inside_b, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=acc)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, y, columns, block: tl.constexpr):
    """Softmax of each row; one program a row."""
    at = tl.arange(0, block)
    place = tl.program_id(0) * columns + at
    value = tl.load(x + place, mask=at < columns, other=-float("inf")).to(tl.float32)
    weight = tl.exp(value - tl.max(value, 0))
    tl.store(y + place, (weight / tl.sum(weight, 0)).to(y.dtype.element_ty), mask=at < columns)


@triton.jit
def attention(
    q,
    k,
    v,
    o,
    length,
    scale,
    causal: tl.constexpr,
    depth: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    """Flash attention of q, k, v[heads, length, depth]; programs are (rows / block_m, heads)."""
    base = tl.program_id(1) * length * depth
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    inner = tl.arange(0, depth)
    steps = tl.arange(0, block_n)
    query = tl.load(q + base + rows[:, None] * depth + inner[None, :])
    top = tl.full((block_m,), -float("inf"), dtype=tl.float32)
    weight = tl.zeros((block_m,), dtype=tl.float32)
    total = tl.zeros((block_m, depth), dtype=tl.float32)
    end = length
    if causal:
        end = (tl.program_id(0) + 1) * block_m
    for start in range(0, end, block_n):
        at = base + (start + steps[:, None]) * depth + inner[None, :]
        score = tl.dot(query, tl.trans(tl.load(k + at))) * scale
        if causal:
            score = tl.where(rows[:, None] >= start + steps[None, :], score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(top - higher)
        weight = weight * shrink + tl.sum(share, 1)
        values = tl.load(v + at)
        total = tl.dot(share.to(values.dtype), values, total * shrink[:, None])
        top = higher
    out = (total / weight[:, None]).to(o.dtype.element_ty)
    tl.store(o + base + rows[:, None] * depth + inner[None, :], out)


@triton.jit
def running_sums(x, y, columns, block: tl.constexpr):
    """Sums of each row up to each place, and from its end; one program a row."""
    at = tl.arange(0, block)
    place = tl.program_id(0) * columns + at
    value = tl.load(x + place, mask=at < columns, other=0.0)
    forward = tl.cumsum(value, 0)
    tl.store(y + place, forward + 2 * tl.cumsum(value, 0, reverse=True), mask=at < columns)


@triton.jit
def sort_rows(x, y, columns, block: tl.constexpr):
    """Each row in ascending order, then the place of its largest element; one program a row."""
    at = tl.arange(0, block)
    value = tl.load(x + tl.program_id(0) * columns + at)
    out = y + tl.program_id(0) * (columns + 1)
    tl.store(out + at, tl.sort(value))
    tl.store(out + columns, tl.argmax(value, 0))


@triton.jit
def normalise(x, weight, y, total, columns, block: tl.constexpr):
    """Layer norm of each row; the rows' means are added up in `total`."""
    at = tl.arange(0, block)
    place = tl.program_id(0) * columns + at
    value = tl.load(x + place, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(at < columns, value - mean, 0.0)
    scale = tl.math.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    factor = tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)
    tl.store(y + place, (centred * scale * factor).to(y.dtype.element_ty), mask=at < columns)
    tl.atomic_add(total, mean)


@triton.jit
def histogram(x, y, count, block: tl.constexpr):
    """How often each of 16 numbers occurs, over all programs."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < count, other=0)
    tl.atomic_add(y + value, 1, mask=at < count)


@triton.jit
def functions(x, y, out, count, block: tl.constexpr):
    """Eight results for each pair of numbers, one after the other in `out`."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    a = tl.load(x + at, mask=at < count, other=1.0)
    b = tl.load(y + at, mask=at < count, other=1.0)
    results = (
        a / b,
        tl.exp(a) * tl.math.rsqrt(b * b + 1),
        tl.log(a * a + 1) - tl.sqrt(b * b),
        tl.floor(a * 3) + tl.ceil(b / 7),
        tl.where(a > b, tl.minimum(a, 0.5), tl.maximum(b, -0.5)),
        tl.fma(a, b, a - b),
        (a * 100).to(tl.int32).to(out.dtype.element_ty) + tl.abs(b),
        a.to(tl.float16).to(out.dtype.element_ty) * b.to(tl.bfloat16).to(out.dtype.element_ty),
    )
    for n in tl.static_range(8):
        tl.store(out + n * count + at, results[n], mask=at < count)


@triton.jit
def integers(x, y, out, count, block: tl.constexpr):
    """Eight results for each pair of integers, one after the other in `out`."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    a = tl.load(x + at, mask=at < count, other=1)
    b = tl.load(y + at, mask=at < count, other=1)
    results = (a * b, a // b, a % b, a << (b & 15), a >> (b & 15), a ^ b & ~a, a - b, a < b)
    for n in tl.static_range(8):
        tl.store(out + n * count + at, results[n].to(out.dtype.element_ty), mask=at < count)


def _gemm(left: str, right: str, out: str, acc: Any) -> tuple[Any, dict[str, str], dict[str, Any]]:
    blocks = {"acc": acc, "block_m": 64, "block_n": 64, "block_k": 32}
    types = {"a": f"*{left}", "b": f"*{right}", "c": f"*{out}", "m": "i32", "n": "i32", "k": "i32"}
    return gemm, types, blocks


def _attention(dtype: str, causal: bool) -> tuple[Any, dict[str, str], dict[str, Any]]:
    types = dict.fromkeys(("q", "k", "v", "o"), f"*{dtype}") | {"length": "i32", "scale": "fp32"}
    return attention, types, {"causal": causal, "depth": 64, "block_m": 64, "block_n": 32}


def kernels(gpu: str) -> dict[str, tuple[Any, dict[str, str], dict[str, Any]]]:
    """Name: (function, types of its arguments, constants) of everything made for `gpu`."""

    def pairs(kind: str) -> dict[str, str]:
        return dict.fromkeys(("x", "y", "out"), f"*{kind}") | {"count": "i32"}

    rows = {"x": "*fp32", "y": "*fp32", "columns": "i32"}
    by_name = {
        "gemm_f16": _gemm("fp16", "fp16", "fp16", tl.float32),
        "gemm_bf16": _gemm("bf16", "bf16", "fp32", tl.float32),
        "gemm_i8": _gemm("i8", "i8", "i32", tl.int32),
        "softmax_f16": (softmax, {"x": "*fp16", "y": "*fp16", "columns": "i32"}, {"block": 1024}),
        "softmax_f32": (softmax, {"x": "*fp32", "y": "*fp32", "columns": "i32"}, {"block": 1024}),
        "scan_f32": (running_sums, rows, {"block": 512}),
        "scan_i32": (running_sums, {"x": "*i32", "y": "*i32", "columns": "i32"}, {"block": 512}),
        "sort_i32": (sort_rows, {"x": "*i32", "y": "*i32", "columns": "i32"}, {"block": 256}),
        "norm_f16": (
            normalise,
            dict.fromkeys(("x", "weight", "y"), "*fp16") | {"total": "*fp32", "columns": "i32"},
            {"block": 512},
        ),
        "functions_f32": (functions, pairs("fp32"), {"block": 128}),
        "functions_f64": (functions, pairs("fp64"), {"block": 128}),
        "integers_i16": (integers, pairs("i16"), {"block": 128}),
        "integers_i32": (integers, pairs("i32"), {"block": 128}),
        "integers_i64": (integers, pairs("i64"), {"block": 128}),
        "gemm_f32": _gemm("fp32", "fp32", "fp32", tl.float32),
        "histogram": (histogram, {"x": "*i32", "y": "*i32", "count": "i32"}, {"block": 256}),
        "attention_f16": _attention("fp16", False),
        "attention_causal_bf16": _attention("bf16", True),
    }
    if gpu in FP8:
        by_name["gemm_fp8"] = _gemm(FP8[gpu], FP8[gpu], "fp32", tl.float32)
    return by_name


def main() -> None:
    """Compile every kernel for every GPU."""
    compiled: dict[str, dict[str, Any]] = {}
    for gpu, wave in GPUS.items():
        (FOLDER / gpu).mkdir(parents=True, exist_ok=True)
        compiled[gpu] = {}
        for name, (function, types, constants) in kernels(gpu).items():
            # Pointers are aligned to 16 bytes and rows are a multiple of that, so loads are wide.
            wide = {
                (i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t[0] == "*"
            }
            source = ASTSource(
                function,
                signature=types | dict.fromkeys(constants, "constexpr"),
                constexprs=constants,
                attrs=wide,
            )
            built = triton.compile(
                source, target=GPUTarget("hip", gpu, wave), options={"num_warps": 4}
            )
            (FOLDER / gpu / f"{name}.hsaco").write_bytes(built.asm["hsaco"])
            compiled[gpu][name] = {
                "kernel": built.metadata.name,
                "arguments": list(types.values()),
                "threads": built.metadata.num_warps * wave,
                "shared": built.metadata.shared,
            }
    text = json.dumps({"triton": triton.__version__, "kernels": compiled}, indent=1)
    (FOLDER / "kernels.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
