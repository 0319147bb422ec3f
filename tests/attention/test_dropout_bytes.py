# SPDX-License-Identifier: MIT
"""The random bytes of a dropout, stored by the kernel, are those of the formula."""

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.ir.philox import random_bytes
from tests.support.coverage import Covered

pytestmark = pytest.mark.usefixtures("stencils")

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
ARCH = "gfx942"


@ck.op
def dropped(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E], seed: ck.i32
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v, dropout=0.25, seed=seed, offset=3)


@ck.op
def kept(q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v)


@pytest.mark.parametrize(
    ("queries", "keys", "seed"), [(70, 150, 5), (128, 64, -3), (1, 1, 2**31 - 1), (3, 0, 1)]
)
def test_the_bytes_that_dropout_draws(queries: int, keys: int, seed: int, covered: Covered) -> None:
    shapes = ((2, 4, queries, 64), (2, 2, keys, 64), (2, 2, keys, 64))
    args = [np.ones(shape, np.float16) for shape in shapes]
    drawn = ck.dropout_bytes(dropped, *args, np.int32(seed), device=f"emu:{ARCH}")
    assert drawn.dtype == np.uint8
    want = random_bytes((2, 4, queries, keys), seed & 0xFFFFFFFF, 3)
    np.testing.assert_array_equal(drawn, want)
    if queries == 70:
        covered("attention: dropout, random values stored", "f16", ARCH)
        with pytest.raises(CkError, match="CK-G009"):
            ck.dropout_bytes(kept, *args, device=f"emu:{ARCH}")
