# SPDX-License-Identifier: MIT
"""Matrix products of several blocks, of f64 and of xf32, and the modifiers that move operands."""

import numpy as np
import pytest

from tests.support.assembly import Frame, Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

F32, F64 = np.float32, np.float64
LANE = np.arange(64)

# A in v[2:3], B in v[4:5]; the result in v[16:47].
FRAME = Frame(reads=(2,), writes=tuple(range(16, 48, 4)))
#: Modifiers, and what they do to A [block, i] and to the lanes that B is read from.
BLOCKS = {
    "v_mfma_f32_32x32x1_2b_f32": (32, 2, 32),
    "v_mfma_f32_16x16x1_4b_f32": (16, 4, 16),
    "v_mfma_f32_4x4x1_16b_f32": (4, 16, 4),
}
MOVES = {
    "": (lambda block: block, LANE),
    "cbsz:1 abid:1": (lambda block: block // 2 * 2 + 1, LANE),
    "blgp:1": (lambda block: block, LANE % 32),
    "blgp:2": (lambda block: block, 32 + LANE % 32),
    "blgp:3": (lambda block: block, (LANE + 16) % 64),
    "blgp:6": (lambda block: block, 32 + LANE % 16),
}
TEXTS = {
    **{
        f"{op} {more}": f"{op} v[16:{15 + rows}], v2, v4, 0 {more}"
        for op, (_, _, rows) in BLOCKS.items()
        for more in MOVES
    },
    "f64": "v_mfma_f64_16x16x4_f64 v[16:23], v[2:3], v[4:5], 0",
    "f64_neg": "v_mfma_f64_16x16x4_f64 v[16:23], v[2:3], v[4:5], 0 neg:[1,0,0]",
    "f64_4b": "v_mfma_f64_4x4x4_4b_f64 v[16:17], v[2:3], v[4:5], 0",
    "xf32": "v_mfma_f32_16x16x8_xf32 v[16:19], v[2:3], v[4:5], 0",
}


@pytest.fixture(scope="module")
def module() -> Module:
    return assembled({name: FRAME.body(text) for name, text in TEXTS.items()})


def run(module: Module, name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[lane, dword] of both operands to [lane, dword]."""
    data = np.zeros((64, 4), np.uint32)
    for start, operand in ((0, a), (2, b)):
        words = np.ascontiguousarray(operand.reshape(64, -1)).view(np.uint32)
        data[:, start : start + words.shape[1]] = words
    return FRAME.run(module, name, data)


@pytest.mark.parametrize("more", MOVES)
@pytest.mark.parametrize("op", BLOCKS)
def test_blocks(module: Module, op: str, more: str) -> None:
    size, blocks, rows = BLOCKS[op]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, 64).astype(F32) for _ in range(2))
    from_block, from_lane = MOVES[more]
    left = np.stack([a.reshape(blocks, size)[from_block(n)] for n in range(blocks)])
    right = b[from_lane].reshape(blocks, size)
    d = left[:, :, None] * right[:, None, :]
    r = np.arange(rows)[:, None]
    if size == 32:
        where = r // 16, 8 * (r % 16 // 4) + 4 * (LANE // 32) + r % 4, LANE % 32
    elif size == 16:
        where = r // 4, 4 * (LANE // 16) + r % 4, LANE % 16
    else:
        where = LANE // 4, r, LANE % 4
    got = run(module, f"{op} {more}", a, b)[:, :rows].T.copy().view(F32)
    np.testing.assert_array_equal(got, d[where])


@pytest.mark.parametrize(("name", "sign"), [("f64", 1), ("f64_neg", -1)])
def test_f64(module: Module, name: str, sign: int) -> None:
    a, b = np.random.default_rng(1).integers(-99, 100, (2, 16, 4)).astype(F64) + 0.125
    d = sign * a @ b.T
    where = LANE % 16, LANE // 16
    got = run(module, name, a[where], b[where])[:, :8].copy().view(F64)
    row = 4 * np.arange(4)[None, :] + LANE[:, None] // 16
    np.testing.assert_array_equal(got, d[row, LANE[:, None] % 16])


def test_f64_in_four_blocks(module: Module) -> None:
    a, b = np.random.default_rng(2).integers(-99, 100, (2, 4, 4, 4)).astype(F64)  # block, i, k
    d = a @ b.transpose(0, 2, 1)
    where = LANE // 4 % 4, LANE % 4, LANE // 16
    got = run(module, "f64_4b", a[where], b[where])[:, :2].copy().view(F64)[:, 0]
    np.testing.assert_array_equal(got, d[LANE // 4 % 4, LANE // 16, LANE % 4])


def test_xf32_uses_ten_bits_of_mantissa(module: Module) -> None:
    a, b = np.random.default_rng(3).normal(size=(2, 16, 8)).astype(F32)
    cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(F32).astype(F64) for x in (a, b)]
    lanes = [x[LANE % 16].reshape(64, 4, 2)[LANE, LANE // 16] for x in (a, b)]
    got = run(module, "xf32", lanes[0], lanes[1])[:, :4].copy().view(F32)
    row = 4 * (LANE[:, None] // 16) + np.arange(4)[None, :]
    want = (cut[0] @ cut[1].T)[row, LANE[:, None] % 16]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
    assert abs(want - (a.astype(F64) @ b.T)[row, LANE[:, None] % 16]).max() > 1e-4
