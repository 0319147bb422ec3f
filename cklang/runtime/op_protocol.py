# SPDX-License-Identifier: MIT
"""What functions beside ops, and tuning, need of an op: its program, and calls bound to arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from cklang.frontend.program import Program
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding, ResultLayout
from cklang.runtime.call_plan import CallPlan
from cklang.runtime.ir_program import IrProgram
from cklang.selection.select import Request

__all__ = ["AnyOp"]


class AnyOp(Protocol):
    """An op, as :class:`cklang.Op` is one."""

    program: Program | IrProgram
    request: Request
    """What was asked of its kernels."""
    serial: str
    """A string that no other op has."""

    def called(self, values: Sequence[Any], out: Any, device: str | None) -> Any:
        """Run it; see :meth:`cklang.Op.called`."""

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Binding:
        """Return a call's arrays by parameter, with the extents of its dims."""

    def planned(self, binding: Binding) -> Plan:
        """Return the kernels of a bound call."""

    def derived(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        what: Hashable,
        plan: Callable[[Binding, str | None], tuple[CallPlan, tuple[ResultLayout, ...]]],
        more: Mapping[str, Any] | None = None,
        device: str | None,
    ) -> list[Any]:
        """Make what follows from a call; see :meth:`cklang.Op.derived`."""
