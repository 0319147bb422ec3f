# SPDX-License-Identifier: MIT
"""What each pass makes of programs, as golden texts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import cklang as ck
from cklang import knobs
from cklang.families import plan_of
from cklang.ir.nodes import print_function
from tests.support.after_passes import after_passes, texts_of_alternatives
from tests.support.written_ops import written_op

GOLDEN = Path(__file__).parent / "golden" / "passes.txt"
DIMS = "B H S D M N K T R"
PARAMS = (
    "x: ck.f16[M, K], w: ck.f16[N, K], u: ck.f16[K, N], b: ck.f32[N], c: ck.f16[K, N], g: ck.f16[K]"
)
PROGRAMS = {
    "cross_entropy": (
        "x: ck.f16[M, K], w: ck.f16[N, K], t: ck.i32[M]",
        "ck.f32[M]",
        "ck.cross_entropy(x @ w.T, t)",
    ),
    "capped_logsumexp": (PARAMS, "ck.f32[M]", "ck.logsumexp(ck.tanh(x @ w.T + b), axis=-1)"),
    "swiglu": (PARAMS, "ck.f16[M, N]", "(ck.silu(x @ c) * (x @ u)).to(ck.f16)"),
    "halves": (
        PARAMS,
        "ck.f32[M, N // 2]",
        "ck.silu((x @ w.T + b)[:, :N // 2]) * (x @ w.T + b)[:, N // 2:]",
    ),
    "split": (PARAMS, "ck.f32[M, N // 2]", "ck.silu((x @ w.T)[:, ::2]) * (x @ w.T)[:, 1::2]"),
    "computed_operands": (
        PARAMS,
        "tuple[ck.f32[M, N], ck.f32[M, N]]",
        "ck.gelu(x) @ w.T, ck.gelu(x) @ u",
    ),
    "norm": (PARAMS, "ck.f32[M, N]", "ck.relu(ck.rms_norm(x, g).to(ck.f16) @ w.T + b)"),
    "argmax": (PARAMS, "ck.i32[M]", "ck.argmax(x @ w.T, axis=-1)"),
    "largest": (PARAMS, "ck.f32[M]", "ck.max(ck.abs(x @ w.T), axis=-1)"),
    "quantised": (
        "x: ck.f16[M, K], w: ck.f16[256, K]",
        "tuple[ck.i8[M, 256], ck.f32[M, 1]]",
        (
            "((x @ w.T) / (ck.max(ck.abs(x @ w.T), axis=-1, keepdims=True) / 127.0)).to(ck.i8), "
            "ck.max(ck.abs(x @ w.T), axis=-1, keepdims=True) / 127.0"
        ),
    ),
    "gate": ("x: ck.f16[M, K]", "tuple[ck.f32[M, 4], ck.i32[M, 4]]", "ck.topk(ck.softmax(x), 4)"),
    "scattered": (
        "x: ck.f16[M, K], w: ck.f16[N, K], y: ck.f32[T, N], rows: ck.i32[M]",
        "ck.f32[T, N]",
        "ck.scatter_add(y, rows, ck.silu(x @ w.T), ordered=False)",
    ),
    "scattered_in_order": (
        "x: ck.f16[M, K], w: ck.f16[N, K], y: ck.f32[T, N], rows: ck.i32[M]",
        "ck.f32[T, N]",
        "ck.scatter_add(y, rows, x @ w.T)",
    ),
    "gathered": (
        "x: ck.f16[T, K], w: ck.f16[N, K], rows: ck.i32[M]",
        "ck.f32[M, N]",
        "ck.relu(x[rows] @ w.T)",
    ),
    "joined": (
        PARAMS,
        "ck.f16[2 * M, K]",
        "ck.concat([x, ck.rms_norm(x, g).to(ck.f16)], axis=0)",
    ),
    "views": (PARAMS, "ck.f16[N, M]", "(x @ w.T).to(ck.f16).reshape(N, M)"),
    "attention": (
        "q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D], w: ck.f16[D, D]",
        "ck.f16[B, H, S, D]",
        "(ck.relu(ck.attention(q, k, v, mask=ck.causal())) @ w.T).to(ck.f16)",
    ),
    "cumsum": (PARAMS, "ck.f32[M, N]", "ck.cumsum(x, 1).to(ck.f16) @ w.T"),
    "convolution": (
        "x: ck.f16[B, H, S, D], f: ck.f16[D, 3, 3, D], b: ck.f32[D]",
        "ck.f16[B, H, S, D]",
        "ck.relu(ck.conv(x, f, padding=1) + b).to(ck.f16)",
    ),
}
GRADIENTS = ("norm",)


def functions() -> Iterator[tuple[str, ck.Op]]:
    """Yield the programs and their names."""
    for name, (params, result, expression) in PROGRAMS.items():
        text = f"@ck.op\ndef {name}({params}) -> {result}:\n    return {expression}\n"
        op = written_op(text, DIMS, name)
        yield name, op
        if name in GRADIENTS:
            yield f"gradient of {name}", ck.vjp(op)


def test_passes_make_of_programs_what_they_made(request: pytest.FixtureRequest) -> None:
    lines: list[str] = []
    for name, op in functions():
        function = op.program.specialise()
        lines += [f"=== {name}", print_function(function)]
        for title, text in after_passes(function, named=name == "gate"):
            lines += [f"--- {title}", text]
        for title, text in texts_of_alternatives(function):
            lines += [f"--- alternative {title}", text]
    text = "\n".join([*lines, ""])
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_a_program_is_printed_after_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    params, result, expression = PROGRAMS["halves"]
    text = f"@ck.op\ndef halves({params}) -> {result}:\n    return {expression}\n"
    with knobs.scope(CKLANG_PRINT_AFTER="halves"):
        plan_of(written_op(text, DIMS, "halves").program.specialise())
    printed = capsys.readouterr().err
    assert printed.startswith("@halves after halves\nfunc @halves(")
    assert printed.count(" = gemm(") == 2
