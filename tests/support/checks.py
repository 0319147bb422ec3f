# SPDX-License-Identifier: MIT
"""Ops on emulated GPUs, held against their reference: each element within its own bound.

:func:`check` runs an op and compares all of its results, :func:`check_group` a group of calls;
:func:`compare` takes results that a test has computed itself. What a test expects of the kernels
of the last call it asks of :func:`launches`.

A test that draws infinities and huge numbers, beside which a sum may be anything, says
``unchecked=1``: elements with an infinite bound beside a finite reference are at most this share.
"""

from collections.abc import Sequence
from typing import Any

from cklang.runtime.op import Op
from cklang.runtime.record import LaunchRecord
from cklang.testing import Report, reports
from cklang.testing.compare import UNCHECKED
from tests.support.read_back import read_back_products
from tests.support.typed import last


def compare(
    op: Op, args: Sequence[Any], result: Any, *, unchecked: float = UNCHECKED, **consts: Any
) -> tuple[Report, ...]:
    """Compare what an op returned with its reference; return what was compared.

    Raises:
        CkMismatchError: An element of a result is beyond its bound, or too many have none.
    """
    compared = reports(op, args, result, **consts)
    for each in compared:
        each.check(unchecked=unchecked)
    return compared


def check(
    op: Op,
    args: Sequence[Any],
    gpu: str = "gfx942",
    *,
    out: Any = None,
    unchecked: float = UNCHECKED,
    **consts: Any,
) -> Any:
    """Run an op on an emulated GPU, compare every result with its reference, and return it."""
    result = op(*args, device=f"emu:{gpu}", out=out, **consts)
    compare(op, args, result, unchecked=unchecked, **consts)
    return result


def check_group(
    op: Op, calls: Sequence[tuple[Any, ...]], gpu: str = "gfx942", *, unchecked: float = UNCHECKED
) -> list[Any]:
    """Run calls as one group on an emulated GPU, and compare and return the result of each."""
    results = op.grouped(calls, device=f"emu:{gpu}")
    for args, result in zip(calls, results, strict=True):
        compare(op, args, result, unchecked=unchecked)
    return results


def launches(op: Op) -> tuple[LaunchRecord, ...]:
    """Return the launches of the last call of an op."""
    return last(op).launches


def check_read_back(op: Op) -> None:
    """Check that the matrix kernels of the last call disassemble and assemble to the same bytes."""
    for launch in launches(op):
        read_back_products(launch.artifact.code_object, launch.key.arch)
