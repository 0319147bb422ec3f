# SPDX-License-Identifier: MIT
"""Errors of Python functions that become ops."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# F: frontend (001-019 text and names, 020-039 parameters, 040-049 tensors, 050-069
# expressions and calls, 070-079 statements, 080-089 specialisation and results,
# 090-099 attention)
F001 CkTypeError @{decorator} decorates a Python function, not a {got}
    = put it directly above `def`, below no other decorator
F002 CkSyntaxError the source text of {name} cannot be read from {file}
    = define it in a file or a notebook cell. python -c, exec and, before Python 3.13, the REPL keep
      no text: for exec give it to linecache (docs/using_ops.md, Text without a file), in the REPL
      import a file. A file changed since its import no longer fits: restart
F003 CkSyntaxError @{decorator} cannot take {what}
    = write a plain function: def name(x: ck.f16[M, K]) -> ck.f16[M, K]
F004 CkSyntaxError {what} is not part of the language
    = {instead}
F005 CkSyntaxError chained comparisons are not part of the language
    = for tensors write {tensors}
    = for constants write {constants}
F006 CkSyntaxError values cannot be changed in place: {words} = ...
    = make a new value, as in {base} = ck.where(condition, a, b)
F007 CkSyntaxError the value of this line is not used
    = assign it, y = {words}, or remove the line
F008 CkSyntaxError this line is never reached: line {line} ends with {word}
    = remove it, or put the {word} under an `if` on a constant
F009 CkSyntaxError {name} returns nothing
    = end it with `return` and the result
F010 CkSyntaxError the name {name} is not defined
    = {advice}
F011 CkSyntaxError the module {module} has no {name}
    = {advice}
F012 CkSyntaxError {name} calls itself
    = kernels have no recursion: unroll it with `for i in range(n)` over a constant
F013 CkTypeError {words} is a Python {got}, which means nothing here
    = {advice}
F014 CkTypeError {words} is a Python function; a program calls only ck functions, helpers and ops
    = make it a helper: decorate it with @ck.fn
F015 CkTypeError {words} of {library} does not run in a kernel
    = {advice}
F016 CkSyntaxError Python's {name} is not part of the language
    = {advice}
F017 CkValueError {words} was {then} when {name} was decorated, and is {now} now
    = an op keeps the value that a name had at decoration: {advice}
F018 CkSyntaxError {name} takes {receiver}, but @{decorator} in a class makes a static function
    = leave {receiver} out, pass what {name} reads of it as arguments, and call
      {receiver}.{name}(...)
F019 CkSyntaxError {words}, a Python {got}, has no {kind} {name}
    = {advice}
F020 CkSyntaxError the parameter {name} has no fixed number of arguments
    = name each parameter and annotate it
F021 CkSyntaxError the parameter {name} has no annotation
    = write {name}: ck.f16[M, K] (a tensor), {name}: ck.f32 (a run-time scalar) or {name}:
      ck.const[float] (a compile-time constant)
F022 CkTypeError {words} is no annotation for {what}
    = {advice}
F023 CkTypeError the parameter {name}: {type} cannot have the default {default}
    = compile-time constants have defaults, {name}: ck.const[float] = ..., and a tensor that a call
      may leave out is annotated with `| None = None`
F024 CkTypeError the constant {name} must be of type {want}, not {value} of type {got}
    = pass a value of type {want}, or annotate the parameter with another ck.const[...]
F025 CkSyntaxError {name} has no return annotation
    = write -> ck.f16[M, N] with the dtype and the shape of the result
F026 CkTypeError the dim {dim} of the result is in no parameter
    = dims of parameters: {known}
F027 CkTypeError the dtype variable {name} of the result is in no parameter
    = annotate a parameter with it, as in x: {name}[M, K], or name a dtype
F028 CkValueError two dtype variables are called {name}
    = use one variable, or give them different names
F029 CkTypeError the annotation {words} cannot be read: {problem}
    = {advice}
F030 CkTypeError the dtype variable {name} is in no parameter of this op
    = annotate a parameter with it, as in x: {name}[M, K], or name a dtype
F031 CkValueError the loop is too long to unroll: {length} iterations
    = all loops of an op together may have {limit}
F032 CkTypeError kernels have no {dtype} for {what}
    = they have {known}
F033 CkSyntaxError an expression in {name} is nested too deeply
    = assign parts of it to names of their own
F034 CkTypeError {extent} follows from {dim}, but no parameter has an axis of extent {dim}
    = the dims of the parameters: {known}
F035 CkValueError axis {axis} of the {what}: {got} scales for {extent} do not say how long a block
    is
    = {advice}
F036 CkValueError blocks of K are {one} long in the scale of a and {other} in that of b
    = one kernel applies both scales to one sum: give both the same blocks along K
F037 CkTypeError the {what} cannot be {got}
    = {advice}
F040 CkTypeError {what} cannot be used where a tensor or a number is needed
    = {advice}
F041 CkTypeError {name} does not take {got}
    = it takes {want}
    = {advice}
F042 CkValueError shapes {shapes} do not broadcast: {one} is not {other}
    = {advice}
F043 CkValueError the constant {value} is out of the range of {dtype}
    = {dtype} holds numbers from {low} to {high}
F044 CkTypeError the constant {value} does not go with {dtype}
    = f32 goes with numbers, i32 with whole numbers, bool with True and False
    = cast the tensor if that is meant: x.to(ck.f32)
F045 CkTypeError kernels do not convert {source} to {to}
    = they convert floats of 8 to 32 bits, i8, i32, i64 and bool to one another
F046 CkTypeError .{name} takes a matrix; this is {type}, of rank {rank}
    = {advice}
F047 CkTypeError @ takes matrices and vectors; one side is {got}
    = {advice}
F048 CkTypeError @ does not take {a} and {b}
    = it takes {want}
    = {advice}
F049 CkValueError @ of {a} and {b}: {one} is not {other}
    = {advice}
F050 CkTypeError the condition {words} is {got}, known only when the kernel runs
    = choose element by element: ck.where(condition, a, b)
F051 CkSyntaxError {name} has no value yet on the way to this line
    = assign it before, outside of any `if` or loop that is not taken
F052 CkTypeError {what} has no attribute {name}
    = {advice}
F053 CkSyntaxError [{words}] is no index of a tensor
    = an index has integers, extents, slices with steps above 0, None and one `...`, as in x[...,
      1:K//2, None]
F054 CkValueError {got} indices for {type}, which has {rank} axes
    = write one index or slice for each axis, None for a new one
F055 CkValueError {words} cannot be computed: {problem}
    = it is made of constants, so Python computes it when the op is specialised
F056 CkTypeError `{sign}` does not work on {got}
    = {advice}
F057 CkTypeError {what} cannot be {got}
    = write a dtype, as in x.to(ck.f16)
F058 CkValueError ck.einsum({subscripts!r}): {problem}
    = {advice}
F059 CkValueError sparse of ck.gemm is {got}: there is no such sparse operand
    = legal: sparse='a', or leave it out; matrix instructions take a sparse first operand only
F060 CkTypeError {what} cannot be called
    = {advice}
F061 CkTypeError the arguments do not fit {name}: {problem}
    = it is {call}
F062 CkTypeError {name} of Python does not work on {got}
    = {advice}
F063 CkTypeError {name} of ck.{function} must be a constant number, not {got}
    = write it out with ck.where or arithmetic if it must be known only at run time
F064 CkTypeError the argument {name} of {helper} is {got}; its annotation says {want}
    = cast or reshape the argument, or remove the annotation of the helper
F065 CkTypeError {name} returns {got}; its annotation says {want}
    = cast or reshape the result, or remove the annotation of the helper
F066 CkTypeError ck.{op}: {problem}
    = {advice}
F067 CkValueError ck.{op}: {problem}
    = {advice}
F068 CkTypeError the dim {dim} has no extent here: no tensor of the program has it
    = a dim is a number where a tensor has an axis of that name, as in x: ck.f16[M, {dim}]
F069 CkValueError [{words}] leaves the axis, whose extent is {extent}
    = bounds are within the axis, start before stop: nothing is cut off in silence
F070 CkSyntaxError {name} ends without a return here
    = with these constants no `return` is reached: add one at the end
F071 CkSyntaxError {name} must return a value
    = write `return` and the result
F072 CkTypeError a for loop runs over a range or a tuple of constants; {words} is {got}
    = write `for i in range(n)`; whole tensors are computed without loops
F073 CkTypeError {want} names for {got}
    = both sides must have the same length
F074 CkValueError assertion failed: {reason}
    = pass arguments for which the assertion of the op holds
F080 CkValueError {program} has no {what} {name}
    = {known}
F081 CkValueError the {what} {name} of {program} is not given
    = pass {name}=...
F082 CkTypeError the dtype variable {name} of {program} cannot be {got}
    = it can be {legal}
F083 CkTypeError {name} returns {got}; its annotation says {want}
    = an op returns one tensor
F084 CkValueError the result is {got}; the annotation says {want}
    = change the annotation, or bring the result into that shape
F085 CkTypeError the result is {got}; the annotation says {want}
    = only floats are converted automatically: write .to(ck.{want})
F086 CkTypeError the argument {name} of {op} is {got}, not {want}
    = {advice}
F087 CkValueError axis {axis} of the argument {name} of {op} is {got}, but {reason}
    = pass arguments whose shapes fit the annotations of {op}
F090 CkTypeError {name} of ck.attention is {got}
    = legal: q [B, H, S, D], k [B, G, T, D], v [B, G, T, E], tensors of one float dtype; with
      cu_seqlens_q and cu_seqlens_k q [N, H, D], k [M, G, D], v [M, G, E]
F091 CkValueError ck.attention: {problem}
    = {advice}
F092 CkTypeError the {region} of ck.attention has no {got}
    = its parameters, all or some of them in any order: {known}
F093 CkTypeError the {region} of ck.attention gives {got}, not {want}
    = {advice}
F094 CkTypeError {got} cannot be indexed by {problem}
    = {advice}
F095 CkTypeError a lambda means nothing here
    = legal: as score or mask of ck.attention, as activation of ck.moe, and as an argument of a
      function made with @ck.fn, which calls it
F101 CkValueError the constant {name} is an extent of an annotation, and cannot be {got}
    = pass an integer of 0 or more
F100 CkValueError {name} is marked with ck.inout, but no result is an update of it, or it is read
    elsewhere
    = return what ck.scatter or ck.scatter_add gives of it, in its dtype, and read that instead of
      {name}; or annotate it {type}
F096 CkValueError {what} cannot be {got}
    = legal: {legal}
"""
)
