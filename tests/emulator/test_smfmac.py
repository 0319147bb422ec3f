# SPDX-License-Identifier: MIT
"""Sparse matrix products: every v_smfmac of gfx942 and gfx950, and every choice of index set.

The layouts are written down here a second time, by element instead of by register: lane l holds
elements of row l % M, of K-groups in order of l // M. The rule for B in eight registers (two runs
of K) and the meaning of ABID follow LLVM's verifier (pull request 193541) and CK Tile's
descriptions of the same instructions, which agree with AMD's own emulator.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from cklang.emulator.engine.isa import schema
from tests.support.assembly import Frame, Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

LANE = np.arange(64)
FAMILY = {"gfx942": "cdna3", "gfx950": "cdna4"}
DTYPES = {
    "gfx942": {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
    "gfx950": {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2},
}
COMMON = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
#: Text of the modifiers, and the number of the index set among four.
SETS = {"": 0, "abid:1": 1, "abid:2": 2, "abid:3": 3, "cbsz:1 abid:3": 0, "cbsz:2": 0}

# Each lane brings 4 dwords of A, 8 of B, the indices at dword 12, and 16 dwords of D.
FRAME = Frame(reads=tuple(range(4, 36, 4)), writes=tuple(range(20, 36, 4)))


@dataclass(frozen=True, slots=True)
class Sparse:
    """One instruction: its data row, and the registers of its operands."""

    name: str
    shape: schema.Matrix
    a: int
    b: int
    d: int

    def text(self, more: str) -> str:
        a, b, d = 3 + self.a, 7 + self.b, 19 + self.d
        return f"{self.name} v[20:{d}], v[4:{a}], v[8:{b}], v16 {more}"


def sparse_rows(arch: str) -> list[Sparse]:
    table = schema.load(FAMILY[arch])
    rows = []
    for row in table.rows:
        if row.matrix is not None and row.matrix.sparse:
            dst, src = schema.operands(row, table.encoding("MAI"))
            spans = [operand.dwords for operand in (*src[:2], dst[0]) if operand is not None]
            rows.append(Sparse(row.name, row.matrix, *spans))
    return rows


OPERATIONS = [sparse.name for arch in FAMILY for sparse in sparse_rows(arch)]


@pytest.fixture(scope="module", params=FAMILY)
def module(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    bodies = {
        f"{sparse.name} {more}": FRAME.body(sparse.text(more))
        for sparse in sparse_rows(arch)
        for more in SETS
    }
    return assembled(bodies, arch)


def small(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Small integers, whose products and sums are exact in every type."""
    return rng.integers(-4, 5, shape).astype(dtype)


def index_pairs(rng: np.random.Generator, count: int) -> np.ndarray:
    """`count` fields of two increasing 2-bit indices a lane, for four sets: [lane, set, field]."""
    pairs = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])
    return rng.choice(pairs, (64, count))


def expected(
    sparse: Sparse, a: np.ndarray, b: np.ndarray, words: np.ndarray, chosen: int, d: np.ndarray
) -> np.ndarray:
    """D[i, j] from lanes' elements; `chosen` is the number of a set of indices."""
    m, k = sparse.shape.m, sparse.shape.k
    stored, dense = a.shape[1], b.shape[1]
    bits = 2 * stored
    fields = words.astype(np.uint64) >> np.uint64(bits * (chosen % (32 // bits)))
    right = np.zeros((k, m))
    for lane in range(64):
        group = lane // m
        for e in range(dense):
            if sparse.b == 8:  # two runs of K
                run = dense // 2
                at = k // 2 * (e // run) + run * group + e % run
            else:
                at = dense * group + e
            right[at, lane % m] = b[lane, e]
    result = d.astype(np.float64).copy()
    for lane in range(64):
        for j in range(stored):
            index = int(fields[lane]) >> (2 * j) & 3
            at = 4 * ((stored * (lane // m) + j) // 2) + index
            result[lane % m] += float(a[lane, j]) * right[at]
    return result


def d_places(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of D of each register and lane."""
    r = np.arange(size * size // 64)[:, None]
    if size == 32:
        return 8 * (r // 4) + 4 * (LANE // 32) + r % 4, np.broadcast_to(LANE % 32, (16, 64))
    return 4 * (LANE // 16) + r, np.broadcast_to(LANE % 16, (4, 64))


@pytest.mark.parametrize("more", SETS)
def test_all(module: Module, more: str) -> None:
    arch = ("gfx942", "gfx950", "gfx90a")[module.device]
    rng = np.random.default_rng(3)
    dtypes = COMMON | DTYPES[arch]
    rows = sparse_rows(arch)
    assert {row.name for row in rows} <= set(OPERATIONS)
    assert len(rows) == {"gfx942": 14, "gfx950": 28}[arch]
    for sparse in rows:
        a_type, b_type = dtypes[sparse.shape.a], dtypes[sparse.shape.b]
        a = small(rng, (64, 4 * sparse.a // np.dtype(a_type).itemsize), a_type)
        b = small(rng, (64, 4 * sparse.b // np.dtype(b_type).itemsize), b_type)
        nibbles = index_pairs(rng, 8).astype(np.uint32)
        words = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(1, dtype=np.uint32)
        d_type = np.int32 if sparse.shape.d == "i32" else np.float32
        rows_d, columns = d_places(sparse.shape.m)
        d = rng.integers(-99, 100, (sparse.shape.m, sparse.shape.m)).astype(d_type)
        data = np.zeros((64, 32), np.uint32)
        data[:, : sparse.a] = a.view(np.uint32)
        data[:, 4 : 4 + sparse.b] = b.view(np.uint32)
        data[:, 12] = words
        data[:, 16 : 16 + sparse.d] = d[rows_d, columns].T.copy().view(np.uint32)
        output = FRAME.run(module, f"{sparse.name} {more}", data)
        got = output[:, : sparse.d].T.copy().view(d_type)
        want = expected(sparse, a, b, words, SETS[more], d)[rows_d, columns]
        np.testing.assert_array_equal(got, want, err_msg=sparse.name)


def test_rows_that_are_not_picked_do_not_matter(module: Module) -> None:
    """Infinity in a row of B that no index names does not make NaN of a sum."""
    name, dtype = "v_smfmac_f32_16x16x32_f16 ", np.float16
    a, b = np.ones((64, 4), dtype), np.full((64, 8), np.inf, dtype)
    b[:, [0, 1, 4, 5]] = 1
    data = np.zeros((64, 32), np.uint32)
    data[:, :2], data[:, 4:8] = a.view(np.uint32), b.view(np.uint32)
    data[:, 12] = 0b01000100  # the first two of every four
    output = FRAME.run(module, name, data)
    assert (output[:, :4].copy().view(np.float32) == 16).all()
