# SPDX-License-Identifier: MIT
"""Errors of tests, knobs and internal errors."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
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
