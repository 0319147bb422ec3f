# SPDX-License-Identifier: MIT
"""Ops as pickles: by reference where their name can be imported, else by their program."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

from cklang.frontend.pickling import Reference, reference_to
from cklang.frontend.program import Program
from cklang.runtime.op import Op

if TYPE_CHECKING:
    from cklang.selection.request import Request


def reduced_op(op: Op) -> tuple[Any, ...]:
    """Return an op as a pickle has it; choices of :meth:`.op.Op.using` are kept."""
    program = op.program
    if isinstance(program, Program):
        function = program.definition.function
        # The name may stand for an op that was made of this one with `using`.
        reference = reference_to(function, lambda named: getattr(named, "program", None) is program)
        if reference is not None:
            return _referred, (reference, op.request)
    return type(op), (program, op.request)


def _referred(reference: Reference, request: Request) -> Op:
    op: Op = reference.resolve()
    return op if op.request == request else Op(op.program, request)


copyreg.pickle(Op, reduced_op)
