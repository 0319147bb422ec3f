# SPDX-License-Identifier: MIT
"""Errors of Python functions that become ops."""

from __future__ import annotations

from cklang.errors.kinds import (
    CkSyntaxError,
    CkTypeError,
    CkValueError,
    Rule,
    row,
)

__all__ = ["TABLE"]

TABLE: tuple[Rule, ...] = (
    # F: frontend (001-019 text and names, 020-039 parameters, 040-049 tensors, 050-069
    # expressions and calls, 070-079 statements, 080-089 specialisation and results,
    # 090-099 attention)
    row(
        "F001",
        CkTypeError,
        "@{decorator} decorates a Python function, not a {got}",
        "put it directly above `def`, below no other decorator",
    ),
    row(
        "F002",
        CkSyntaxError,
        "the source text of {name} cannot be read from {file}",
        "define it in a file or a notebook cell. python -c, exec and, before Python 3.13, the REPL "
        "keep no text: for exec give it to linecache (docs/language.md, Text without a file), in "
        "the REPL import a file. A file changed since its import no longer fits: restart",
    ),
    row(
        "F003",
        CkSyntaxError,
        "@{decorator} cannot take {what}",
        "write a plain function: def name(x: ck.f16[M, K]) -> ck.f16[M, K]",
    ),
    row("F004", CkSyntaxError, "{what} is not part of the language", "{instead}"),
    row(
        "F005",
        CkSyntaxError,
        "chained comparisons are not part of the language",
        "for tensors write {tensors}\nfor constants write {constants}",
    ),
    row(
        "F006",
        CkSyntaxError,
        "values cannot be changed in place: {words} = ...",
        "make a new value, as in {base} = ck.where(condition, a, b)",
    ),
    row(
        "F007",
        CkSyntaxError,
        "the value of this line is not used",
        "assign it, y = {words}, or remove the line",
    ),
    row(
        "F008",
        CkSyntaxError,
        "this line is never reached: line {line} ends with {word}",
        "remove it, or put the {word} under an `if` on a constant",
    ),
    row(
        "F009",
        CkSyntaxError,
        "{name} returns nothing",
        "end it with `return` and the result",
    ),
    row("F010", CkSyntaxError, "the name {name} is not defined", "{advice}"),
    row("F011", CkSyntaxError, "the module {module} has no {name}", "{advice}"),
    row(
        "F012",
        CkSyntaxError,
        "{name} calls itself",
        "kernels have no recursion: unroll it with `for i in range(n)` over a constant",
    ),
    row("F013", CkTypeError, "{words} is a Python {got}, which means nothing here", "{advice}"),
    row(
        "F014",
        CkTypeError,
        "{words} is a Python function; a program calls only ck functions, helpers and ops",
        "make it a helper: decorate it with @ck.fn",
    ),
    row("F015", CkTypeError, "{words} of {library} does not run in a kernel", "{advice}"),
    row("F016", CkSyntaxError, "Python's {name} is not part of the language", "{advice}"),
    row(
        "F017",
        CkValueError,
        "{words} was {then} when {name} was decorated, and is {now} now",
        "an op keeps the value that a name had at decoration: {advice}",
    ),
    row(
        "F018",
        CkSyntaxError,
        "{name} takes {receiver}, but @{decorator} in a class makes a static function",
        "leave {receiver} out, pass what {name} reads of it as arguments, and call "
        "{receiver}.{name}(...)",
    ),
    row(
        "F019",
        CkSyntaxError,
        "{words}, a Python {got}, has no {kind} {name}",
        "{advice}",
    ),
    row(
        "F020",
        CkSyntaxError,
        "the parameter {name} has no fixed number of arguments",
        "name each parameter and annotate it",
    ),
    row(
        "F021",
        CkSyntaxError,
        "the parameter {name} has no annotation",
        "write {name}: ck.f16[M, K] (a tensor), {name}: ck.f32 (a run-time scalar) or "
        "{name}: ck.const[float] (a compile-time constant)",
    ),
    row("F022", CkTypeError, "{words} is no annotation for {what}", "{advice}"),
    row(
        "F023",
        CkTypeError,
        "the parameter {name}: {type} cannot have the default {default}",
        "compile-time constants have defaults, {name}: ck.const[float] = ..., and a tensor that a "
        "call may leave out is annotated with `| None = None`",
    ),
    row(
        "F024",
        CkTypeError,
        "the constant {name} must be of type {want}, not {value} of type {got}",
        "pass a value of type {want}, or annotate the parameter with another ck.const[...]",
    ),
    row(
        "F025",
        CkSyntaxError,
        "{name} has no return annotation",
        "write -> ck.f16[M, N] with the dtype and the shape of the result",
    ),
    row(
        "F026",
        CkTypeError,
        "the dim {dim} of the result is in no parameter",
        "dims of parameters: {known}",
    ),
    row(
        "F027",
        CkTypeError,
        "the dtype variable {name} of the result is in no parameter",
        "annotate a parameter with it, as in x: {name}[M, K], or name a dtype",
    ),
    row(
        "F028",
        CkValueError,
        "two dtype variables are called {name}",
        "use one variable, or give them different names",
    ),
    row("F029", CkTypeError, "the annotation {words} cannot be read: {problem}", "{advice}"),
    row(
        "F030",
        CkTypeError,
        "the dtype variable {name} is in no parameter of this op",
        "annotate a parameter with it, as in x: {name}[M, K], or name a dtype",
    ),
    row(
        "F031",
        CkValueError,
        "the loop is too long to unroll: {length} iterations",
        "all loops of an op together may have {limit}",
    ),
    row(
        "F032",
        CkTypeError,
        "kernels have no {dtype} for {what}",
        "they have {known}",
    ),
    row(
        "F033",
        CkSyntaxError,
        "an expression in {name} is nested too deeply",
        "assign parts of it to names of their own",
    ),
    row(
        "F034",
        CkTypeError,
        "{extent} follows from {dim}, but no parameter has an axis of extent {dim}",
        "the dims of the parameters: {known}",
    ),
    row(
        "F035",
        CkValueError,
        "axis {axis} of the {what}: {got} scales for {extent} do not say how long a block is",
        "{advice}",
    ),
    row(
        "F036",
        CkValueError,
        "blocks of K are {one} long in the scale of a and {other} in that of b",
        "one kernel applies both scales to one sum: give both the same blocks along K",
    ),
    row("F037", CkTypeError, "the {what} cannot be {got}", "{advice}"),
    row(
        "F040",
        CkTypeError,
        "{what} cannot be used where a tensor or a number is needed",
        "{advice}",
    ),
    row("F041", CkTypeError, "{name} does not take {got}", "it takes {want}\n{advice}"),
    row(
        "F042",
        CkValueError,
        "shapes {shapes} do not broadcast: {one} is not {other}",
        "{advice}",
    ),
    row(
        "F043",
        CkValueError,
        "the constant {value} is out of the range of {dtype}",
        "{dtype} holds numbers from {low} to {high}",
    ),
    row(
        "F044",
        CkTypeError,
        "the constant {value} does not go with {dtype}",
        "f32 goes with numbers, i32 with whole numbers, bool with True and False\n"
        "cast the tensor if that is meant: x.to(ck.f32)",
    ),
    row(
        "F045",
        CkTypeError,
        "kernels do not convert {source} to {to}",
        "they convert floats of 8 to 32 bits, i8, i32 and bool to one another",
    ),
    row(
        "F046",
        CkTypeError,
        ".{name} takes a matrix; this is {type}, of rank {rank}",
        "{advice}",
    ),
    row("F047", CkTypeError, "@ takes matrices and vectors; one side is {got}", "{advice}"),
    row("F048", CkTypeError, "@ does not take {a} and {b}", "it takes {want}\n{advice}"),
    row("F049", CkValueError, "@ of {a} and {b}: {one} is not {other}", "{advice}"),
    row(
        "F050",
        CkTypeError,
        "the condition {words} is {got}, known only when the kernel runs",
        "choose element by element: ck.where(condition, a, b)",
    ),
    row(
        "F051",
        CkSyntaxError,
        "{name} has no value yet on the way to this line",
        "assign it before, outside of any `if` or loop that is not taken",
    ),
    row("F052", CkTypeError, "{what} has no attribute {name}", "{advice}"),
    row(
        "F053",
        CkSyntaxError,
        "[{words}] is no index of a tensor",
        "an index has integers, extents, slices with steps above 0, None and one `...`, as in "
        "x[..., 1:K//2, None]",
    ),
    row(
        "F054",
        CkValueError,
        "{got} indices for {type}, which has {rank} axes",
        "write one index or slice for each axis, None for a new one",
    ),
    row(
        "F055",
        CkValueError,
        "{words} cannot be computed: {problem}",
        "it is made of constants, so Python computes it when the op is specialised",
    ),
    row("F056", CkTypeError, "`{sign}` does not work on {got}", "{advice}"),
    row("F057", CkTypeError, "{what} cannot be {got}", "write a dtype, as in x.to(ck.f16)"),
    row(
        "F058",
        CkValueError,
        "ck.einsum({subscripts!r}): {problem}",
        "{advice}",
    ),
    row(
        "F059",
        CkValueError,
        "sparse of ck.gemm is {got}: there is no such sparse operand",
        "legal: sparse='a', or leave it out; matrix instructions take a sparse first operand only",
    ),
    row("F060", CkTypeError, "{what} cannot be called", "{advice}"),
    row("F061", CkTypeError, "the arguments do not fit {name}: {problem}", "it is {call}"),
    row("F062", CkTypeError, "{name} of Python does not work on {got}", "{advice}"),
    row(
        "F063",
        CkTypeError,
        "{name} of ck.{function} must be a constant number, not {got}",
        "write it out with ck.where or arithmetic if it must be known only at run time",
    ),
    row(
        "F064",
        CkTypeError,
        "the argument {name} of {helper} is {got}; its annotation says {want}",
        "cast or reshape the argument, or remove the annotation of the helper",
    ),
    row(
        "F065",
        CkTypeError,
        "{name} returns {got}; its annotation says {want}",
        "cast or reshape the result, or remove the annotation of the helper",
    ),
    row("F066", CkTypeError, "ck.{op}: {problem}", "{advice}"),
    row("F067", CkValueError, "ck.{op}: {problem}", "{advice}"),
    row(
        "F068",
        CkTypeError,
        "the dim {dim} has no extent here: no tensor of the program has it",
        "a dim is a number where a tensor has an axis of that name, as in x: ck.f16[M, {dim}]",
    ),
    row(
        "F069",
        CkValueError,
        "[{words}] leaves the axis, whose extent is {extent}",
        "bounds are within the axis, start before stop: nothing is cut off in silence",
    ),
    row(
        "F070",
        CkSyntaxError,
        "{name} ends without a return here",
        "with these constants no `return` is reached: add one at the end",
    ),
    row("F071", CkSyntaxError, "{name} must return a value", "write `return` and the result"),
    row(
        "F072",
        CkTypeError,
        "a for loop runs over a range or a tuple of constants; {words} is {got}",
        "write `for i in range(n)`; whole tensors are computed without loops",
    ),
    row("F073", CkTypeError, "{want} names for {got}", "both sides must have the same length"),
    row(
        "F074",
        CkValueError,
        "assertion failed: {reason}",
        "pass arguments for which the assertion of the op holds",
    ),
    row("F080", CkValueError, "{program} has no {what} {name}", "{known}"),
    row("F081", CkValueError, "the {what} {name} of {program} is not given", "pass {name}=..."),
    row(
        "F082",
        CkTypeError,
        "the dtype variable {name} of {program} cannot be {got}",
        "it can be {legal}",
    ),
    row(
        "F083",
        CkTypeError,
        "{name} returns {got}; its annotation says {want}",
        "an op returns one tensor",
    ),
    row(
        "F084",
        CkValueError,
        "the result is {got}; the annotation says {want}",
        "change the annotation, or bring the result into that shape",
    ),
    row(
        "F085",
        CkTypeError,
        "the result is {got}; the annotation says {want}",
        "only floats are converted automatically: write .to(ck.{want})",
    ),
    row("F086", CkTypeError, "the argument {name} of {op} is {got}, not {want}", "{advice}"),
    row(
        "F087",
        CkValueError,
        "axis {axis} of the argument {name} of {op} is {got}, but {reason}",
        "pass arguments whose shapes fit the annotations of {op}",
    ),
    row(
        "F090",
        CkTypeError,
        "{name} of ck.attention is {got}",
        "legal: q [B, H, S, D], k [B, G, T, D], v [B, G, T, E], tensors of one float dtype; with "
        "cu_seqlens_q and cu_seqlens_k q [N, H, D], k [M, G, D], v [M, G, E]",
    ),
    row("F091", CkValueError, "ck.attention: {problem}", "{advice}"),
    row(
        "F092",
        CkTypeError,
        "the {region} of ck.attention has no {got}",
        "its parameters, all or some of them in any order: {known}",
    ),
    row("F093", CkTypeError, "the {region} of ck.attention gives {got}, not {want}", "{advice}"),
    row("F094", CkTypeError, "{got} cannot be indexed by {problem}", "{advice}"),
    row(
        "F095",
        CkTypeError,
        "a lambda means nothing here",
        "legal: as score or mask of ck.attention; for a helper, write a function at module level "
        "and decorate it with @ck.fn",
    ),
    row(
        "F101",
        CkValueError,
        "the constant {name} is an extent of an annotation, and cannot be {got}",
        "pass an integer of 0 or more",
    ),
    row(
        "F100",
        CkValueError,
        "{name} is marked with ck.inout, but no result is an update of it, or it is read elsewhere",
        "return what ck.scatter or ck.scatter_add gives of it, in its dtype, and read that instead "
        "of {name}; or annotate it {type}",
    ),
    row("F096", CkValueError, "{what} cannot be {got}", "legal: {legal}"),
)
