# SPDX-License-Identifier: MIT
"""Kernels of rows: a key becomes C++ in which the user's functions are open."""

from cklang.families.closed_source import flag
from cklang.families.rowwise.functions import rowwise_fill, symbol
from cklang.families.rowwise.key import Reduction, RowwiseKey
from cklang.fusion.functions import Functions
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource

_JOINS = {Reduction.SUM: "Sum", Reduction.MAX: "Max", Reduction.MIN: "Min", Reduction.PROD: "Prod"}
"""The classes of ``include/cklang/rowwise.hpp``, after ``Row`` or ``RowInt``."""


def lower_rowwise(key: RowwiseKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel of rows."""
    s, a = key.signature, key.algorithm
    kernel = "ck_" + "_".join(key.signature.label(a))
    text = template("rowwise.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        words=s.words,
        threads=a.threads,
        vector=a.vector,
        chunks=a.chunks,
        kept=s.kept,
        common=s.common,
        axes=s.row_axes,
        element_count=len(s.elements),
        goes_on=flag(bool(s.common and a.chunks)),
        is_map=flag(s.is_map),
        elements=", ".join(dtype.ck for dtype in s.elements),
        rows=", ".join(dtype.ck for dtype in s.rows),
        stages=[", ".join(stage) for stage in _stages(key)],
    )
    return KernelSource(
        stencil=text,
        fill=rowwise_fill(functions, a.vector, s.row_axes),
        hole=", ".join(symbol(hole) for hole in holes_of(key)),
        kernel=kernel,
        host_headers=False,
    )


def holes_of(key: RowwiseKey) -> list[str]:
    """Return the functions that a kernel calls."""
    s = key.signature
    parts = [f"part{stage}" for stage in range(len(s.reductions))]
    named = {"common": s.common, "load": s.kept, "store": s.elements, "finish": s.rows}
    return [*parts, *(hole for hole, is_there in named.items() if is_there)]


def _stages(key: RowwiseKey) -> list[list[str]]:
    s = key.signature
    stages: list[list[str]] = []
    place = 0
    for stage in s.reductions:
        joins = []
        for reduction in stage:
            kind = "RowInt" if place in s.integers else "Row"
            joins.append(f"cklang::{kind}{_JOINS[reduction]}")
            place += 1
        stages.append(joins)
    return stages
