# SPDX-License-Identifier: MIT
"""Whether torch is to see a call of an op as one node: the only thing that ops know of tracing.

A call that torch traces goes to :mod:`cklang.torch.dispatch`; every other one, through the
dispatcher or not, launches kernels. torch is not imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["FUNCTIONS", "OPS", "TracedArgumentError", "is_traced", "new_serial"]

OPS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Every op by its serial, a string: dynamo guards strings, so a serial tells ops apart for it."""

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What computes functions beside ops that write their arguments, by name, whoever traces."""

_serials = count()


def new_serial(op: object) -> str:
    """Return a string that no other op has, and remember the op under it."""
    serial = f"op{next(_serials)}"
    OPS[serial] = op
    return serial


class TracedArgumentError(Exception):
    """An argument is for torch's dispatcher: it needs a gradient, or its memory is not its own."""


def is_traced() -> bool:
    """Whether torch traces or transforms the calls that are made now.

    That is so under dynamo, in a dispatch mode such as ``FakeTensorMode``, and inside a transform
    such as ``vmap``. dynamo does not read this function but runs it, at compile time.
    """
    return _probe()


# What torch.compiler.assume_constant_result sets, without importing torch.
vars(is_traced)["_dynamo_marked_constant"] = True


def _unknown() -> bool:
    """Answer as long as torch has not been imported; after that, hand over to what asks it."""
    global _probe
    torch = sys.modules.get("torch")
    # While torch is being imported it traces nothing.
    if torch is None or "torch._guards" not in sys.modules or not hasattr(torch, "compile"):
        return False
    _probe = _asking(torch)
    return _probe()


_probe: Callable[[], bool] = _unknown


def _asking(torch: Any) -> Callable[[], bool]:
    modes = torch._C._len_torch_dispatch_stack
    transform = torch._C._functorch.peek_interpreter_stack
    compiling = torch._guards.TracingContext.try_get

    def probe() -> bool:
        return bool(modes()) or transform() is not None or compiling() is not None

    return probe
