# SPDX-License-Identifier: MIT
"""Ops as pickles: by reference where their name can be imported, else by their program."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cklang.frontend.pickling import Reference, reference_to
from cklang.frontend.program import Program
from cklang.runtime.select import Request

if TYPE_CHECKING:
    from cklang.runtime.op import Op

__all__ = ["reduced_op"]


def reduced_op(op: Op) -> tuple[Any, ...]:
    """Return what ``__reduce__`` of an op does; choices of :meth:`Op.using` are kept."""
    reference = _reference(op)
    if reference is None:
        return type(op), (op.program, op.request)
    return _referred, (reference, op.request)


def _reference(op: Op) -> Reference | None:
    if not isinstance(op.program, Program):
        return None
    reference = reference_to(op.program.definition.function)
    if reference is None:
        return None
    # The name may stand for something else, as an op that was made with `using`.
    with suppress(ImportError, AttributeError):
        if getattr(reference.resolve(), "program", None) is op.program:
            return reference
    return None


def _referred(reference: Reference, request: Request) -> Op:
    from cklang.runtime.op import Op

    op: Op = reference.resolve()
    return op if op.request == request else Op(op.program, request)
