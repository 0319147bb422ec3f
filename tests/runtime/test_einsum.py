# SPDX-License-Identifier: MIT
"""``ck.einsum`` with any labels on an emulated GPU: against the reference within its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.runtime.op import Op
from tests.support.algorithms import DEEP, narrow
from tests.support.checks import check
from tests.support.written_ops import written_op

pytestmark = pytest.mark.usefixtures("stencils")

LABELS = "abcdefghijkl"
GROUPS = ("batch", "m", "n", "k")
LARGEST = {"batch": 3, "m": 9, "n": 9, "k": 7}


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """Draw subscripts with up to three labels of each group, and the extent of each label."""
    names, sizes = iter(LABELS), {}
    groups: dict[str, str] = {}
    for group in GROUPS:
        least = 0 if group in ("batch", "m", "n") else 1
        groups[group] = "".join(next(names) for _ in range(draw(st.integers(least, 3))))
        sizes |= {each: draw(st.integers(1, LARGEST[group])) for each in groups[group]}
    batch, m, n, k = (groups[each] for each in GROUPS)
    a, b = (
        "".join(draw(st.permutations(labels)))
        for labels in (batch + m + k, batch + n + k)
    )
    result = "".join(draw(st.permutations(batch + m + n)))
    if m and n and result[-1] in batch:
        # Kernels write rows.
        result = result.replace(n[-1], "") + n[-1]
    return f"{a},{b}->{result}", sizes


def op_of(subscripts: str) -> Op:
    """Return the op of a contraction, with an algorithm for any strides."""
    sides, result = subscripts.split("->")
    a, b = (", ".join(part.upper()) for part in sides.split(","))
    shape = ", ".join(result.upper()) or "()"
    text = (
        f"@ck.op\ndef f(a: ck.f16[{a}], b: ck.f16[{b}]) -> ck.f16[{shape}]:\n"
        f"    return ck.einsum({subscripts!r}, a, b)\n"
    )
    return written_op(text, " ".join(LABELS.upper())).using(narrow(warp_tile=DEEP))


def array(shape: list[int], order: list[int], seed: int) -> Any:
    """Return small numbers whose axes lie in memory in the given order."""
    rng = np.random.default_rng(seed)
    stored = rng.integers(-8, 9, [shape[axis] for axis in order]) / 8
    return stored.astype(np.float16).transpose(np.argsort(order))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), contraction=contractions())
def test_any_labels_in_any_layout(data: st.DataObject, contraction: tuple[str, dict]) -> None:
    subscripts, sizes = contraction
    op = op_of(subscripts)
    args = []
    for part in subscripts.split("->")[0].split(","):
        shape = [sizes[each] for each in part]
        order = data.draw(st.permutations(range(len(shape))))
        args.append(array(shape, list(order), len(args)))
    got = check(op, args)
    want = np.einsum(subscripts, *(each.astype(np.float64) for each in args))
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2**-10, atol=1e-3)
