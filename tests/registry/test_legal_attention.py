# SPDX-License-Identifier: MIT
"""Legal algorithms of attention, without the padding that calls take by default, are right."""

from typing import Any

import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families.attention.key import AttentionAlgorithm, AttentionSignature
from cklang.selection.space import attention_pattern, enumerate_legal
from cklang.types import DType, f16, f32
from tests.support.arrays import drawn
from tests.support.checks import check

pytestmark = pytest.mark.usefixtures("compiler")

B, H, S, T, D = ck.dims("B H S T D")
V: Any = ck.dtype_var("V", f16, f32)


@ck.op
def plain(q: V[B, H, S, D], k: V[B, H, T, D], v: V[B, H, T, D]) -> V[B, H, S, D]:
    return ck.attention(q, k, v)


def legal(dtype: DType, **choices: Any) -> AttentionAlgorithm:
    """Return the first legal algorithm of head size 64 with these choices."""
    what = AttentionSignature(dtype=dtype, dtype_o=dtype, dtype_bias=dtype)
    tiles = [(128, 64, 32, 64, 32, 64), (64, 64, 32, 64, 32, 64)]
    some = attention_pattern(tile=tiles, **choices)
    return next(a for a in enumerate_legal(what, "gfx942", some))


NO = {"pad_q": False, "pad_k": False, "pad_d": False, "pad_dv": False}
# The profiles' own: quick kernels of whole tiles, and of whole heads.
DRAWN = [
    (f16, {"pipeline": "qr_async", "pad_k": False, "block_per_cu": 2}),
    pytest.param(f16, {"pipeline": "qs", **NO}, marks=pytest.mark.full),
    pytest.param(f32, {"pipeline": "qr", "pad_d": False, "pad_dv": False}, marks=pytest.mark.full),
]


@pytest.mark.parametrize(("dtype", "choices"), DRAWN)
def test_kernels_that_pad_less_are_right(dtype: DType, choices: dict[str, Any]) -> None:
    algorithm = legal(dtype, **choices)
    op = plain.using(algorithm, splits=1)
    q, k, v = drawn(op, {"B": 1, "H": 2, "S": 128, "T": 192, "D": 64}, V=dtype)
    check(op, [q, k, v])
    # What such a kernel does not pad, rules keep out.
    if not algorithm.pad_k:
        with pytest.raises(CkError, match="attention-length-pad"):
            op(q, k[:, :, :190], v[:, :, :190], device="emu:gfx942")
    if not algorithm.pad_d:
        with pytest.raises(CkError, match="attention-head-pad"):
            op(q[..., :56], k[..., :56], v[..., :56], device="emu:gfx942")
