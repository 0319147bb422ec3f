# SPDX-License-Identifier: MIT
"""Plans on disk, in a place of the kernel cache that only one test has."""

import itertools
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from cklang import knobs
from cklang.build.builder import shared_builder
from cklang.runtime import plan_store
from cklang.runtime.op import Op
from cklang.runtime.plan_store import KeptPlan


class Plans:
    """What calls of a block kept, and what they found."""

    def __init__(self) -> None:
        self.kept = 0
        self.read: list[KeptPlan] = []


@contextmanager
def kept_plans() -> Iterator[Plans]:
    """Keep plans in a place of their own for a block."""
    plans = Plans()
    keep, find = plan_store.keep, plan_store.find

    def noted(address: Mapping[str, Any], *args: Any) -> None:
        keep(address, *args)
        plans.kept += 1

    def read(address: Mapping[str, Any], builder: Any) -> KeptPlan | None:
        plan = find(address, builder)
        plans.read += [] if plan is None else [plan]
        return plan

    with pytest.MonkeyPatch.context() as patch, knobs.scope(CKLANG_PLANS="1"):
        own = uuid.uuid4().hex[:8]
        kinds = {"_KIND": f"plan-{own}", "_RIGHT": f"right-{own}"}
        for name, kind in kinds.items():
            patch.setattr(plan_store, name, kind)
        for name in ("_asked", "_checked"):
            patch.setattr(plan_store, name, itertools.count())
        patch.setattr(plan_store, "keep", noted)
        patch.setattr(plan_store, "find", read)
        try:
            yield plans
        finally:
            for kind in kinds.values():
                shutil.rmtree(shared_builder().store.base / kind, ignore_errors=True)


def as_in_a_new_process(op: Op) -> Op:
    """Return an op of the same program that has planned nothing yet."""
    return Op(op.program, op.request)


def run_kept(op: Op, args: Sequence[Any], device: str) -> tuple[Any, Plans]:
    """Plan a call and keep it; return the results of a call that finds its launches."""
    with kept_plans() as plans:
        as_in_a_new_process(op)(*args, device=device)
        assert not plans.read
        return as_in_a_new_process(op)(*args, device=device), plans
