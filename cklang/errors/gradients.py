# SPDX-License-Identifier: MIT
"""Errors of automatic differentiation."""

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
"""
)
