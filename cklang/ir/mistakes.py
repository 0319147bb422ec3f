# SPDX-License-Identifier: MIT
"""Typical mistakes in mini-IR text, each with what to say and texts that make it.

The parser finds the row with an example that stops it at the same place of the grammar.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One kind of mistake: what is wrong, how to write it, and examples of it."""

    problem: str
    fix: str
    examples: tuple[str, ...]


def _row(problem: str, fix: str, *examples: str) -> Mistake:
    return Mistake(problem=problem, fix=fix, examples=examples)


_HEAD = "func @f(%x: f32[]) -> f32[] { "

MISTAKES: tuple[Mistake, ...] = (
    _row("a text starts with a function", "write: func @name(...)", "module {", "%0: f32[]", "@f("),
    _row("a function's name starts with @", "write: func @name(...)", "func f(", "func %f("),
    _row("a parameter list is missing", "write: func @name(%x: f16[M, K])", "func @f {",
         "func @f ->"),
    _row("a value's name starts with %", "write: %x: f16[M, K]", "func @f(x: f16[M])",
         "func @f(%x: f16[], y"),
    _row("a parameter needs a type", "write: %x: f16[M, K]", "func @f(%x)",
         "func @f(%x, %y: f32[])"),
    _row("a type needs brackets for its shape", "write: f32[] for a scalar, f16[M, K] for a matrix",
         "func @f(%x: f32)", "func @f(%x: f32, %y: f32[])", "func @f(%x: f32[]) -> f32 {",
         _HEAD + "%0: f32 = exp(%x) return %0 }"),
    _row("an extent is a dim or an integer of 0 or more", "write: f16[M, 128]",
         "func @f(%x: f32[%M])", "func @f(%x: f32[M, ])", "func @f(%x: f32[M N])",
         'func @f(%x: f32["M"])'),
    _row("a function says what it returns", "write: func @f(...) -> f32[M, N] {",
         "func @f(%x: f32[]) {", "func @f() {"),
    _row("results are types, separated by commas", "write: -> f32[M, N] {   or, for none: -> () {",
         "func @f() -> {", "func @f() -> (f32[]) {", "func @f() -> %x {"),
    _row("a result needs its type before the =", "write: %0: f32[M, N] = add(%a, %b)",
         _HEAD + "%0 = exp(%x)"),
    _row("operands stand in parentheses after the op", "write: %0: f32[] = add(%a, %b)",
         _HEAD + "%0: f32[] = exp %x", _HEAD + "%0: f32[] = exp return",
         _HEAD + "%0: f32[] = exp {"),
    _row("there are no infix operators or nested expressions",
         "write each step as an operation: %0: f32[] = add(%a, %b)", _HEAD + "%0: f32[] = %x + %x",
         _HEAD + "%0: f32[] = %x", _HEAD + "%0: f32[] = 1.0", _HEAD + "%0: f32[] = (%x)",
         _HEAD + "%0: f32[] = -1"),
    _row("operands are values", "a number is an operation: %0: f32[] = constant() {value = 1.0}",
         _HEAD + "%0: f32[] = add(%x, 1.0)", _HEAD + "%0: f32[] = add(1, %x)",
         _HEAD + "%0: f32[] = add(x, %x)", _HEAD + "%0: f32[] = add(%x, exp(%x))"),
    _row("an attribute is written name = value", "write: {perm = [1, 0]}",
         _HEAD + "%0: f32[] = f(%x) {perm: [1, 0]}", _HEAD + "%0: f32[] = f(%x) {perm [1, 0]}",
         _HEAD + "%0: f32[] = f(%x) {1}", _HEAD + "%0: f32[] = f(%x) {[1, 0]}"),
    _row("an attribute is a number, a string, true, false, a dtype, a list or a function",
         "write: {perm = [1, 0]}   {to = f16}   {value = -1.5}",
         _HEAD + "%0: f32[] = f(%x) {a = %x}", _HEAD + "%0: f32[] = f(%x) {a = (1, 0)}",
         _HEAD + "%0: f32[] = f(%x) {a = }", _HEAD + "%0: f32[] = f(%x) {a = [%x]}",
         _HEAD + "%0: f32[] = f(%x) {a = @f}"),
    _row("a function ends with return", "write: return %0", _HEAD + "}",
         _HEAD + "%0: f32[] = f() }", _HEAD + "%0: f32[] = f() {a = 1} }"),
    _row("return takes values", "write: return %0", _HEAD + "return 1.0 }", _HEAD + "return x }",
         _HEAD + "return add(%x, %x) }"),
    _row("nothing may follow return", "close the function with }",
         _HEAD + "return %x %0: f32[] = f()", _HEAD + "return %x return"),
)  # fmt: skip
"""In order of the text."""
