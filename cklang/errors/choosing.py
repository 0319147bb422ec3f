# SPDX-License-Identifier: MIT
"""Errors of kernel keys, rules, selection and tuning."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# K: keys, rules, selection
K001 CkValueError {what} {got!r} is unknown
    = known: {known}
    = nearest: {nearest}
K002 CkValueError {what} must be {want}, not {got!r}
    = correct the value, or write the record again with the to_json of this version
K003 CkValueError the {what} record has schema version {got!r}; this cklang reads version {want}
    = export it again with this version, or rebuild
K004 CkValueError GPU {got!r} has no entry in arch_specs
    = known GPUs: {known}
K005 CkValueError arch_specs/{name}.json: {problem}
    = correct the file; arch_specs/schema.json says what it may hold
K006 CkValueError no {name} has {got} compute units
    = known: {known}
K007 CkValueError {label} belongs to the functions {want}, not to {got}
    = declare it with the functions of its signature; Registry.declare does so for an op
K008 CkValueError no algorithm of {among} is legal for {signature} on {arch}
    = ck.dispatch.advise(algorithm, signature, gpu) says which rules reject one
K009 CkUnsupportedError nothing legal was found near {algorithm} for {signature} on {arch}
    = begin with another algorithm, or leave op.using(...) out and let cklang choose
K010 CkValueError autotune builds the kernels that it times, so it needs their epilogue
    = pass epilogue=..., select from a registry, or call an op
K103 CkValueError {label} in {path} is no legal kernel: {rejection}
    = change the field that the rule names, or remove it; ck.dispatch.fix(signature, algorithm, gpu)
      finds the nearest legal one
K101 CkUnsupportedError no kernel serves {problem} on {arch}: the rules reject {what}
    = pass arrays that the rules below allow, for instance contiguous copies. If you named an
      algorithm, name none, and cklang chooses a legal one
K102 CkUnsupportedError there is no algorithm for {signature} on {arch}
    = docs/coverage.md lists what each GPU computes
# N: tuning
N002 CkUnsupportedError arch_specs gives {gpu} no matrix rate for {dtype}
    = rates are known for: {known}
N003 CkValueError tuning constants {name}: {problem}
    = write the file again with the fit that made it (docs/tuning.md), or install cklang again
N004 CkValueError the kernels to rank are for {got} and for {want}
    = rank each GPU's by itself
N005 CkValueError there is no kernel to rank
    = give one key or more, such as those of ck.dispatch.Registry or ck.dispatch.pattern
N006 CkValueError {path} is not a complete tuning database: {problem}
    = nothing of it was read or changed; move it away, or import an export of it into a new one
N007 CkValueError autotune has no problem to tune for
    = pass problems=[...]: the extents of the op's dims, or the arguments of a call
N008 CkValueError @{name} has nothing to measure: its result has no element
    = give every dim an extent of 1 or more
N009 CkValueError {path} cannot be read: {problem}
    = name a file that can be read: a CSV with a header, or what cklang tune --export wrote
N010 CkUnsupportedError pictures are drawn by matplotlib, which is not installed
    = pip install 'cklang[plot]'; tables and reports need nothing
N013 CkInternalError the process that measures kernels failed: {problem}
    = nothing was stored for this kernel, and what was measured before it is kept; report this
# G: groups of calls
G001 CkUnsupportedError @{name} takes {count} kernels; a grouped call is made of ops that take one
    = legal: one product with what is fused to it; call .grouped of each step
G002 CkUnsupportedError call {index} of the group has a batch of {batch}, which its strides do not
    fold into rows
    = legal: matrices; pass each matrix of the batch as a call of the group
G010 CkUnsupportedError @{name} has {count} results; a call of a group has one
    = legal: one result; call @{name} for each member, or split it into ops of one result
G004 CkUnsupportedError @{name} is a convolution; grouped calls are made of matrix products
    = legal: one call for each image size; images of one size are a batch
G003 CkUnsupportedError no algorithm fits all {count} products of the group ({signature}) on {arch}
    = fix: make strides and addresses of the group alike, make it smaller if its tiles are more than
      a launch has (rule grid), or call the op once for each
G005 CkUnsupportedError op.{what} is for matrix products; @{name} is of the family {family}
    = sequences of different lengths share the launch of an attention if they are packed:
      ck.attention(..., cu_seqlens_q=, cu_seqlens_k=)
G007 CkUnsupportedError @{name} is not one attention of whole tensors, so it has no gradient here
    = give ck.attention_grad an op that returns ck.attention(...) of its parameters, packed or not;
      instead of seqlens_k, a mask: lambda b, i, j: j < lengths[b]; or write ck.vjp(op), which takes
      any op
G008 CkUnsupportedError the score of @{name} adds no bias whose gradient a kernel gives, but {got}
    = legal: lambda s, b, h, i, j: s + bias[b, h, i, j], where b, h and i may be missing or their
      extents be 1, with a bias of the dtype of q that is contiguous along the keys, and without
      packed sequences
G011 CkValueError call {index} of the group reads {value} as %{layout}, which no strides give
    = a group copies nothing: pass an array that is contiguous in that shape
G012 CkUnsupportedError call {index} of the group multiplies one left operand by two right ones,
    which no kernel does here: {reason}
    = give both right operands one layout, or make two ops and a group of each
K050 CkUnsupportedError the clock has no {what} for {name}
    = arch_specs/timing has them for: {known}
K070 CkUnsupportedError {name} is {what} an exported call cannot check
    = export a call with plain arrays there
K071 CkValueError {got!r} is no name for an exported op: it is not an identifier of C and Python
    = name it with letters, digits and underscores, as in name='linear'
K072 CkValueError there is nothing to export: {what} is empty
    = pass one at least: ck.export(op, [{{'M': 256, 'N': 512, 'K': 64}}], ['gfx942'], 'folder')
K073 CkUnsupportedError {what} cannot be left free in an exported call: {why} needs the numbers
    themselves
    = list the extents, one problem for each: [{{'M': rows, 'N': 512}} for rows in (1, 64)]
K074 CkValueError the free extents of {name} are {got}, which has none from 1 to 2147483647
    = write for instance {name!r}: range(1, 8193), or {name!r}: ... for any
K075 CkUnsupportedError the plan for free extents is not the one for {dims}
    = list the extents, one problem for each, and report this op: it should not happen
G009 CkUnsupportedError @{name} is no attention of a batch that drops weights, so there are no
    random bytes
    = give ck.dropout_bytes an op with ck.attention(q, k, v, dropout=..., seed=...), not packed
"""
)
