# SPDX-License-Identifier: MIT
"""Errors of fusion, lowering, tests and knobs, and internal errors."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# X: fusion
X001 CkUnsupportedError @{name} returns one value twice; a kernel writes each result once
    = fix: return it once, and use the array twice
X002 CkUnsupportedError no kernel computes {op}
    = legal: products, convolutions, attention, sums, means, products, maxima and minima along axes,
      and what is computed of these and of parameters element by element
    = fix: compute it with NumPy or torch outside the op
X003 CkUnsupportedError operand {operand} of a product is made of constants alone: there is nothing
    to read
    = legal: what depends on a parameter or on another gemm
    = fix: pass the constant as an argument of rank 0
X004 CkUnsupportedError {what} reads {count} values; the limit of a kernel is {limit}
    = they are: {reads}
    = fix: combine some of them before the call
X005 CkUnsupportedError {operand} of {operation} is computed by {op}, but kernels read it from
    memory as it is stored
    = legal: a parameter, what follows the result of another product, or a transpose of these
    = fix: compute it before the call and pass it as an argument
X006 CkUnsupportedError a kernel cannot store {dtype}: %{name} is {type}
    = legal: floats of 8 to 32 bits, i8, i32, i64, bool; cast the result to one of these
X007 CkUnsupportedError {op} has shape [{got}], but the {operation} it depends on gives [{want}]
    = legal: a result of the {operation}'s own shape, or a transpose of it
X010 CkUnsupportedError {root} is the transpose of {operation}: its kernel would exchange the
    operands, and only the first can be sparse
    = legal: a result with the product's own rows and columns; transpose it after the call
X030 CkUnsupportedError the kernel of {operation} cannot compute {root}: it takes the largest of
    groups of columns, and one kernel would have to store a number of each
    = legal: one product, whose quantised result and whose scales one kernel stores
X031 CkUnsupportedError CK Tile has no kernel of rows that computes {name}
    = it has {known}; leave CkTileRows out of using() for kernels of cklang's own
X017 CkUnsupportedError {op} follows an attention, whose kernel writes one result of the shape of o,
    and lse
    = legal: a float computed of o element by element; compute {op} in an op of its own
X018 CkUnsupportedError functions of {operation} cannot read {operand}: it is of {dtype}
    = legal: f16, bf16, f32, i8, i32, bool; convert it before the call
X040 CkUnsupportedError call {index} of the group multiplies rows at indices, which no kernel reads:
    {reason}
    = legal: a table whose rows are contiguous, and a result whose rows are those of the indices; or
      give the rows themselves
X050 CkUnsupportedError call {index} of the group adds or writes rows at indices, and a group has no
    launch before it that fills its result
    = make the calls one after the other; with ck.inout they share one result
# L: lowering
L001 CkUnsupportedError cklang generates no C for {op}, so no kernel can compute it
    = compute it in f32 or i32, or outside the op
L002 CkInternalError the functions take {got}, but the signature gives {want}; D vectors: {vectors}
    = please report it with this text
L003 CkUnsupportedError kernels with {name}={got} cannot be generated
    = legal: {name}={want}
# T: testing
T001 CkMismatchError {count} of {size} elements are outside their bound
    = {worst}
T002 CkMismatchError got {what} {got}, but the reference has {want}
    = compare with an array of the same {what}
T003 CkValueError no tolerance is defined for {got}
    = legal: {known}
T004 CkMismatchError {count} of {size} elements of {what} are not checked: the reference is finite
    and its bound infinite
    = at most a share of {limit} may be: use smaller inputs, or pass unchecked=
T005 CkMismatchError {op} differs from {other} on {device}
    = {worst}
    = the smallest failing call is {call}
T006 CkValueError none of {count} drawn calls of {op} can run
    = the last one, {call}:
    = {reason}
    = allow other extents, dtypes or layouts: dims={{...}}
T007 CkValueError no {what} of {op} is called {name!r}
    = it has: {known}
T008 CkValueError the constant {name!r} of {op} has no default
    = say what it may be: constants={{{name!r}: [...]}}
A140 CkMismatchError {against} returns arrays of the shapes {got}, but {op} returns {want}
    = return one array for each result of the op, in its shape
A141 CkValueError library is {got!r}
    = pass {known}: whose arrays the function takes that results are compared with
A142 CkAttributeError cklang has no {name!r}
    = {advice}
A143 CkValueError cklang has a family of kernels called {name!r}
    = choose another name; taken: {known}
A144 CkValueError {name!r} cannot be the name of an op
    = write a Python identifier, such as linear_relu
A145 CkValueError {path} exists, and cklang new overwrites nothing
    = name another file, --file FILE, or remove this one
# Z: knobs and internal errors
Z001 CkValueError {name}={got!r}: {problem}
    = {doc}
Z010 CkValueError {name!r} was not found: {problem}
    = correct the name; `cklang COMMAND --help` says what a command takes
Z002 CkInternalError internal error: {what}
    = please report it with this text
Z004 CkInternalError internal error: the plan of @{name} is not the program: {what}
    = it would compute something else, so it is not used; please report it with this text:
    = {text}
Z003 CkInternalError internal error: the text of @{name} is not parsed as the program that was
    printed
    = {difference}
    = please report it with this text:
    = {text}
"""
)
