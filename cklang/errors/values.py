# SPDX-License-Identifier: MIT
"""Errors of gradients, and of single values: sizes, names, algorithms, options of commands."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# G020 to G039: gradients of any op
G020 CkUnsupportedError a gradient of @{name} passes {op}, which has no gradient rule
    = {fix}; or leave out of wrt= the parameters that reach the result through it
G021 CkValueError wrt names {got!r}, which is no parameter of @{name} that has a gradient
    = legal, each once: f16, bf16 and f32 tensors and run-time scalars, here {legal}
G022 CkValueError ck.grad takes an op with one result of one element; @{name} returns {got}
    = reduce the result in the op, as in ck.mean(loss), or take ck.vjp(op) and pass the gradient by
      each result
G023 CkValueError the gradient by {got} of @{name} is asked for, but the call leaves {got} out
    = for calls without it name the others: wrt={others}
G024 CkValueError @{name} has no gradient: {why}
    = a gradient needs a parameter and a result of f16, bf16 or f32
G025 CkUnsupportedError the gradient of an attention in @{name} has no rule for {what}
    = {fix}
G026 CkUnsupportedError the gradient rule of {op} in @{name} is not differentiable, so there is no
    second derivative
    = {fix}; or leave out of wrt= the parameters that reach the result through it
G027 CkTypeError {what} takes an op made by @ck.op or ck.parse, not {got}
    = decorate the function with @ck.op
G035 CkValueError saved= names {got}, which the gradient of @{name} does not compute again
    = legal: "auto", "everything", "nothing", or some of {legal}, which op.ir(...) shows
# K: numbers
K011 CkValueError {name} must be an integer of {least} or more, not {got!r}
    = write a whole number without a fraction or a unit; True and False are none
K012 CkValueError {name} must be a tuple of {count} integers of 1 or more, not {got!r}
    = write {count} integers in parentheses, separated by commas
K013 CkValueError {name} must be a triple of integers (m, n, k), not {got!r}
    = write the extents along M, N and K in parentheses: {name}=(m, n, k)
K014 CkValueError {name} must be three triples of integers (m, n, k), not {got!r}
    = write one triple for q k' and do v', one for dv and dk, one for dq
# K: dims, extents, constants
K015 CkValueError {got!r} cannot be the name of a dim
    = write a Python identifier, such as M or n_heads
K016 CkValueError the dim {got} counts blocks and cannot be divided into blocks again
    = divide the dim that it was made of: {dim} / size
K017 CkValueError a tensor extent must be a dim or an integer of 0 or more, not {got!r}
    = write a name, an integer or a dim; of one dim ck.dims gives a tuple too: M, = ck.dims("M")
K018 CkValueError ck.const[...] takes a type of Python numbers or text, not {got!r}
    = write one of {known} in the brackets
K019 CkValueError no {what} is given for {name}
    = pass {name}=...
# K: programs
K020 CkValueError ck.parse takes the text of a program in the IR, not {got!r}
    = pass a str, as str(op.ir(...)) gives it
K021 CkValueError @{name} has no result
    = return one value or more: a kernel that writes nothing is never launched
# K: algorithms and registries
K022 CkValueError the algorithm must be {want}, not {got!r}
    = each family of kernels has a class of algorithms: make one of the class named above
K023 CkValueError the pattern describes {got}, but these kernels take {want}
    = write a pattern of the fields of {want}
K024 CkValueError the pattern leaves {name} no value: {got!r}
    = write a value, a list with one value or more, or '*' for all
K025 CkValueError registry must be a cklang.dispatch.Registry, not {got!r}
    = make one with cklang.dispatch.Registry(name)
K026 CkValueError a kernel of the registry names function {got!r} of a list of {count}
    = the record was cut or edited: write it again with Registry.to_json
K027 CkValueError the pads {got!r} of the profile are not four of t and f
    = write one letter each for queries, keys, heads of q and heads of v: t if padded, as in 'tftt'
K028 CkValueError no kernel of {arch} takes this weight in the order of warp_tile={got!r}
    = legal (n, k): {known}
# K: problems without arrays
K030 CkValueError page_size={got!r} does not divide the {keys} keys
    = pass a divisor of the number of keys, 1 or more
K031 CkValueError layouts={got!r} does not give the layouts of A, B and the result
    = write three letters such as 'rcr': {known}
K032 CkValueError prepared={got!r} does not fit the layout of B in {layouts!r}
    = pass the order of B if its layout is p, and None if it is another
# K: tuning
K033 CkValueError {got!r} is not a budget of time
    = write seconds, a number of 0 or more, or text with a unit: '60s', '5m', '1h'
K034 CkValueError the cost of a measurement must be a number or null, not {got!r}
    = the record was edited: export the measurements again
# K: the command line
K040 CkValueError no op is named
    = name one, as in model.py:linear, or {instead}
K041 CkValueError nothing says which kernels the file has
    = name an op, or give --signature or --profile
K042 CkValueError {path} is not the name of a picture
    = pictures are of the types .svg and .png: name it {stem}.svg
K043 CkValueError --signature {got!r} is neither TYPES:LAYOUTS nor TYPES:LAYOUTS:OPERANDS
    = as in f16:rcr, fp8,fp8,bf16:rcr:row=f32,full or f16:rcr:row,b.full=i8,b.column=f32
K044 CkValueError --signature has {count} element types, {got!r}
    = write one for all, or three: those of A, of B and of the result
K045 CkValueError the operand {got!r} of --signature is of {side!r}, which has no function
    = begin with a. for A's function, with b. for B's, and with the kind for the epilogue
K046 CkValueError the operand {got!r} of --signature is of {dtype}, which functions cannot read
    = legal: {known}
K047 CkValueError {what} is given as NAME=VALUE, not as {got!r}
    = write the name, = and the value, without spaces
K048 CkValueError operands of kinds {got} are no operands of {of}
    = legal: operands that are read; further results of the epilogue after all of those
K049 CkValueError {path} is no registry: {problem}
    = name a file that cklang registry export or json.dumps(registry.to_json()) has written
K095 CkValueError {path} is not empty
    = name a folder that is, or a new one
"""
)
