# SPDX-License-Identifier: MIT
"""Whether torch is to see a call of an op as one node: the only thing that ops know of tracing.

A call that torch traces goes to :mod:`cklang.torch.dispatch`; every other one, through the
dispatcher or not, launches kernels. torch is not imported here.
"""

import sys
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

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


_modules = sys.modules
_modes: Callable[[], int] | None = None
_transform: Callable[[], object]
_compiling: Any
_forward: Any
"""What torch's own functions are asked, once torch has been imported."""


def is_traced() -> bool:
    """Whether torch traces or transforms the calls that are made now.

    That is so under dynamo, in a dispatch mode such as ``FakeTensorMode``, inside a transform such
    as ``vmap``, and where derivatives are taken in forward mode. dynamo does not read this
    function but runs it, at compile time.
    """
    # Every call asks this: it enters no other Python function.
    if _modes is None and ("torch" not in _modules or not _find_torch()):
        return False
    return (
        _modes() > 0  # type: ignore[misc]
        or _transform() is not None
        or _forward._current_level >= 0
        or getattr(_compiling, "tracing_context", None) is not None
    )


# What torch.compiler.assume_constant_result sets, without importing torch.
vars(is_traced)["_dynamo_marked_constant"] = True


def _find_torch() -> bool:
    """Learn what to ask; return False while torch is being imported, when it traces nothing."""
    global _modes, _transform, _compiling, _forward
    torch = _modules["torch"]
    is_partial = "torch._guards" not in _modules or not hasattr(torch, "compile")
    if is_partial or "torch.autograd.forward_ad" not in _modules:
        return False
    _transform = torch._C._functorch.peek_interpreter_stack
    _compiling = torch._guards._TLS
    _forward = torch.autograd.forward_ad
    _modes = torch._C._len_torch_dispatch_stack
    return True
