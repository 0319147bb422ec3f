# SPDX-License-Identifier: MIT
"""What functions beside ops, and tuning, need of an op: its program, and calls bound to arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cklang.fusion.plan import Plan
    from cklang.runtime.any_program import AnyProgram
    from cklang.runtime.bind import Binding, ResultLayout
    from cklang.runtime.call_plan import CallPlan
    from cklang.selection.request import Request


class AnyPlannedOp(Protocol):
    """An op as far as nothing runs, as :class:`cklang.runtime.planned_op.PlannedOp` is one."""

    program: AnyProgram
    request: Request
    """What was asked of its kernels."""

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Binding:
        """Return a call's arrays by parameter, with the extents of its dims."""

    def _planned(self, binding: Binding) -> Plan:
        """Return the kernels of a bound call."""


class AnyOp(AnyPlannedOp, Protocol):
    """An op, as :class:`cklang.Op` is one."""

    serial: str
    """A string that no other op has."""

    def _called(self, values: Sequence[Any], out: Any, device: str | None) -> Any:
        """Run it; see :meth:`cklang.runtime.op.Op._called`."""

    def _derived(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        what: Hashable,
        plan: Callable[[Binding, str | None], tuple[CallPlan, tuple[ResultLayout, ...]]],
        more: Mapping[str, Any] | None = None,
        device: str | None,
    ) -> list[Any]:
        """Make what follows from a call; see :meth:`cklang.runtime.op.Op._derived`."""
