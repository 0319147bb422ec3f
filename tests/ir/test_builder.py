# SPDX-License-Identifier: MIT
"""The builder infers types, names values and points errors at the user's place."""

from cklang.ir.builder import Builder
from cklang.ir.verifier import verify
from cklang.source import Source, Span
from cklang.types import Dim, bf16, f16, f32
from tests.support.errors import expect_error

M, N, K = Dim("M"), Dim("N"), Dim("K")


def test_a_linear_layer() -> None:
    b = Builder("linear")
    x, w, bias = b.param("x", f16[M, K]), b.param("w", f16[N, K]), b.param("0", f16[N])
    product = b.append("gemm", x, b.append("transpose", w, perm=(1, 0)))
    total = b.append("add", product, b.broadcast(b.cast(bias, f32), product.type.shape))
    function = verify(b.finish(b.cast(b.append("leaky_relu", total, slope=0.5), bf16)))
    assert str(function) == "\n".join(
        [
            "func @linear(%x: f16[M, K], %w: f16[N, K], %0: f16[N]) -> bf16[M, N] {",
            "  %1: f16[K, N] = transpose(%w) {perm = [1, 0]}",
            "  %2: f32[M, N] = gemm(%x, %1)",
            "  %3: f32[N] = cast(%0) {to = f32}",
            "  %4: f32[M, N] = broadcast(%3) {dims = [1]}",
            "  %5: f32[M, N] = add(%2, %4)",
            "  %6: f32[M, N] = leaky_relu(%5) {slope = 0.5}",
            "  %7: bf16[M, N] = cast(%6) {to = bf16}",
            "  return %7",
            "}",
        ]
    )


def test_casts_and_broadcasts_that_change_nothing_are_not_there() -> None:
    b = Builder("f")
    x = b.param("x", f32[M, N])
    assert b.cast(x, f32) is x
    assert b.broadcast(x, (M, N)) is x
    assert b.finish(x).body == ()


def test_errors_carry_the_users_span() -> None:
    span = Span(
        source=Source(name="user.py", text="y = x + b", first_line=7),
        line=7,
        column=4,
        end_line=7,
        end_column=9,
    )
    b = Builder("f")
    with expect_error("I019", "user.py:7:5", "^^^^^"):
        b.append("add", b.param("x", f32[M, N]), b.param("b", f32[N]), span=span)
