# SPDX-License-Identifier: MIT
"""Errors of the mini-IR."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# I: mini-IR
I001 CkValueError {what} cannot be called {got!r}
    = legal: {want}
I002 CkValueError attributes of {op} must be sorted, each once; they are: {names}
    = write the attributes in alphabetical order, each once
I003 CkSyntaxError {problem}
    = {fix}
I004 CkSyntaxError {what} {got!r} is unknown
    = known: {known}
    = nearest: {nearest}
I005 CkSyntaxError %{name} is used before it is defined
    = defined here: {known}
I010 CkValueError [ssa] %{name} is defined twice
    = every value has its own name
I011 CkValueError [ssa] %{name} is used but not defined before
    = defined: {known}
I012 CkTypeError [ssa] %{name} is used as {got} but defined as {want}
    = write the type of the definition, or cast the value first
I013 CkValueError [op] op {got!r} is unknown
    = nearest: {nearest}
    = ops: {known}
I014 CkValueError [operands] {op} takes {want} operands, not {got}
    = {op}: {doc}
I015 CkValueError [attrs] {op} has no attribute {name!r}
    = its attributes: {known}
I016 CkValueError [attrs] {op} lacks its attribute {name!r}
    = {name} is {want}
I017 CkTypeError [attrs] {name} of {op} must be {want}, not {got}
    = write {name} = {want}; cklang/ir/ops.py and pointwise_ops.py have each op's attributes
I018 CkTypeError [dtype] {op} of {got} is not legal
    = legal: {want}
I019 CkValueError [shape] {op} of {got} is not legal
    = legal: {want}
I020 CkTypeError [type] %{name} is declared {got}, but {op} gives {want}
    = write {want}, or another operation
I021 CkValueError [unused] %{name} is never used
    = remove it, or return it
I022 CkValueError [module] function @{name} is defined twice
    = rename one
I023 CkValueError {count} rules of the mini-IR are broken in @{name}
    = mend them from the first on; they are below
I030 CkValueError the reference of @{name} needs {want} arrays, not {got}
    = pass one array for each parameter, in order
I031 CkTypeError %{name} is {want}, but its array is {got}
    = pass an array of this dtype and shape
I032 CkValueError axis {axis} of %{name} is {extent} = {want}, but its array has {got} there
    = {extent} = {want} since %{first}
I033 CkValueError {op} has no result along {axis}: {given} do not fit
    = rule: {rule}, which must be 1 or more
I034 CkValueError the extent {dim} of {op} along {axis} is not decided: {given} fit {choices}
    = rule: {rule}
    = fix: name the result's extents with size=, or with dims of a parameter
I035 CkValueError {op} gives {choices} along {axis}, but {dim} is {got} there ({given})
    = rule: {rule}
I036 CkValueError the slice {low}:{high} of axis {axis} leaves it: {name} is {extent}
    = legal: 0 <= start <= stop <= {extent}; no bound is cut off
I037 CkValueError a slice has {got} elements where {extent} is {want}
    = extents such as K//2 and K - K//2 are the same only where K is even
I038 CkValueError a tensor of shape {got}, {count} elements, cannot have the shape {want} of {type}
    = give a shape with as many elements; -1 is the extent that is left
I039 CkValueError the parts of a concatenation have {got} elements along axis {axis}, where {extent}
    is {want}
    = name the extent of the result as the sum of those of the parts
I040 CkValueError [attention] roles are {got}, for {count} operands
    = legal: q, k, v, then seed and offset if there is dropout, starts_q and starts_k if sequences
      are packed, lengths_k and pages if keys are in pages, then read for each tensor that the
      regions read, eight at most
I041 CkTypeError [attention] the region {name} is {got}
    = legal: {want}
I042 CkValueError [attention] scale is {got!r}
    = legal: a float, or "auto"
I043 CkValueError [attention] dropout is {got}
    = legal: from 0 to below 1
I044 CkValueError [attention] dropout is {dropout}, but the operands are {roles}
    = legal: operands seed and offset exactly where dropout is not 0
I045 CkValueError {heads} query heads cannot share {key_heads} key heads
    = legal: as many query heads as key heads, or a multiple of them;
    = q, k and v are [batch, heads, rows, head]: of [batch, rows, heads, head] write x.transpose(0,
      2, 1, 3), which copies nothing
I048 CkValueError the {name} along axis {axes} of a tensor of shape {shape}: there are no elements
    = legal: axes with elements, as in NumPy; ck.sum, ck.prod, ck.any and ck.all take none
I049 CkValueError along axis {axis}, the scale of {side} has {got} elements, and {want} blocks of
    {size} cover {extent}
    = make an element for each block; the last may be short: (K + 127)//128 for K
I047 CkValueError [scatter] {name} is not updated in place
    = legal: a parameter that nothing else reads, whose update is a result
I046 CkValueError [scatter] {name} is {got}
    = legal: 0 or 1; in_place=1 takes a tensor that is updated
"""
)
