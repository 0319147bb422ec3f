# SPDX-License-Identifier: MIT
"""The matrix instructions of gfx950 for 8-, 6- and 4-bit floats, in every pair of formats."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Frame, Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

FORMATS = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float6_e2m3fn,
    ml_dtypes.float6_e3m2fn,
    ml_dtypes.float4_e2m1fn,
)
BITS = (8, 8, 6, 6, 4)

# A in v[2:9], B in v[10:17], C in v[20:35], scales in v36 and v37.
FRAME = Frame(reads=(2, 6, 10, 14, 20, 24, 28, 32, 36), writes=(20, 24, 28, 32))
SHAPES = ((16, 128), (32, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    m: int
    k: int
    a: int
    b: int
    scaled: bool

    @property
    def name(self) -> str:
        return f"k{self.m}_{self.a}{self.b}{'s' if self.scaled else ''}"

    @property
    def text(self) -> str:
        kind = "scale_" if self.scaled else ""
        d = f"v[20:{19 + self.m * self.m // 64}]"
        a, b = f"v[2:{1 + BITS[self.a]}]", f"v[10:{9 + BITS[self.b]}]"
        # Byte 2 of A's scales, byte 1 of B's.
        scales = ", v36, v37 op_sel:[0,1,0] op_sel_hi:[1,0,0]" if self.scaled else ""
        op = f"v_mfma_{kind}f32_{self.m}x{self.m}x{self.k}_f8f6f4"
        return f"{op} {d}, {a}, {b}, {d}{scales} cbsz:{self.a} blgp:{self.b}"


CASES = [
    Case(m=m, k=k, a=a, b=b, scaled=scaled)
    for m, k in SHAPES
    for a in range(5)
    for b in range(5)
    for scaled in (False, True)
]


@pytest.fixture(scope="module")
def module() -> Module:
    return assembled({case.name: FRAME.body(case.text) for case in CASES}, "gfx950")


def places(m: int, k: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and K-index of [lane, element]."""
    lane, j = np.arange(64)[:, None], np.arange(32)[None, :]
    group = lane // m
    split = j // 16 * (k // 2) + 16 * group + j % 16
    return lane % m + 0 * j, split if bits == 8 else 32 * group + j


def finite_codes(rng: np.random.Generator, kind: int, shape: tuple[int, int]) -> np.ndarray:
    codes = rng.integers(0, 1 << BITS[kind], shape).astype(np.uint8)
    values = codes.view(FORMATS[kind]).astype(np.float64)
    return np.where(np.isfinite(values), codes, 1).astype(np.uint8)


def pack(codes: np.ndarray, m: int, k: int, bits: int) -> np.ndarray:
    """[lane, dword] of a matrix of codes [row, k]."""
    elements = codes[places(m, k, bits)]
    flat = (elements[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(64, -1)
    return np.packbits(flat, axis=1, bitorder="little").view(np.uint32)


#: Scales from 2 to the -spread to 2 to the spread.
RUNS = [(case, spread) for case in CASES for spread in ((20, 120) if case.scaled else (0,))]


@pytest.mark.parametrize(("case", "spread"), RUNS, ids=[f"{c.name}-{n}" for c, n in RUNS])
def test_product(module: Module, case: Case, spread: int) -> None:
    rng = np.random.default_rng(case.a * 5 + case.b)
    codes_a, codes_b = (finite_codes(rng, kind, (case.m, case.k)) for kind in (case.a, case.b))
    c = rng.normal(size=(case.m, case.m)).astype(np.float32)
    scales = rng.integers(127 - spread, 128 + spread, (2, case.m, case.k // 32))
    scales[1] = 254 - scales[0][::-1]  # products stay in range
    a, b = codes_a.view(FORMATS[case.a]), codes_b.view(FORMATS[case.b])
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if case.scaled:
        wide_a *= np.repeat(2.0 ** (scales[0] - 127), 32, axis=1)
        wide_b *= np.repeat(2.0 ** (scales[1] - 127), 32, axis=1)
    data = np.zeros((64, 36), np.uint32)
    data[:, : BITS[case.a]] = pack(codes_a, case.m, case.k, BITS[case.a])
    data[:, 8 : 8 + BITS[case.b]] = pack(codes_b, case.m, case.k, BITS[case.b])
    lane = np.arange(64)
    data[:, 32] = scales[0][lane % case.m, lane // case.m] << 16 | 0x55000055
    data[:, 33] = scales[1][lane % case.m, lane // case.m] << 8 | 0x55550055
    registers = case.m * case.m // 64
    r = np.arange(registers)[:, None]
    row = 8 * (r // 4) + 4 * (lane // 32) + r % 4 if case.m == 32 else 4 * (lane // 16) + r
    where = row, (lane % case.m)[None, :] + 0 * r
    data[:, 16 : 16 + registers] = c.view(np.uint32)[where].T
    output = FRAME.run(module, case.name, data)
    got = output[:, :registers].T.copy().view(np.float32)
    want, size = (wide_a @ wide_b.T + c)[where], (abs(wide_a) @ abs(wide_b.T) + abs(c))[where]
    fits = size < 3e38
    assert fits.any()
    assert np.all(abs(got - want)[fits] <= 128 * 2.0**-24 * size[fits])


def test_a_scale_of_255_is_nan(module: Module) -> None:
    case = Case(m=16, k=128, a=4, b=4, scaled=True)
    data = np.zeros((64, 36), np.uint32)
    data[:, 32:34] = 0x7F7F7F7F
    data[3, 32] = 0x7FFF7F7F  # row 3, the first 32 of K
    output = FRAME.run(module, case.name, data)
    nan = np.isnan(output[:, :4].view(np.float32))
    assert nan[:16, 3].all()
    assert nan.sum() == 16
