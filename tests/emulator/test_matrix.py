# SPDX-License-Identifier: MIT
"""Matrix instructions against NumPy, with operand layouts that Triton's package gives."""

import json
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Frame, Module, assembled
from tests.support.shared_data import required

pytestmark = pytest.mark.usefixtures("emulator")

FRAME = Frame(reads=(2, 6, 16, 20, 24, 28), writes=(16, 20, 24, 28))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instruction: its name, element types and the key of its layout."""

    arch: str
    op: str
    m: int
    k: int
    dtype: type
    layout: str

    @property
    def per_lane(self) -> int:
        return self.m * self.k // 64

    @property
    def text(self) -> str:
        count = self.per_lane * np.dtype(self.dtype).itemsize // 4
        d = f"v[16:{15 + self.m * self.m // 64}]"
        a, b = (f"v[{r}:{r + count - 1}]" if count > 1 else f"v{r}" for r in (2, 6))
        return f"{self.op} {d}, {a}, {b}, {d}"


F16, BF16, F32, I8 = np.float16, ml_dtypes.bfloat16, np.float32, np.int8
FNUZ, BNUZ = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz
OCP = ml_dtypes.float8_e4m3fn

CASES = [
    Case(arch=arch, op=op, m=m, k=k, dtype=dtype, layout=f"{arch} {layout}")
    for arch, op, m, k, dtype, layout in (
        ("gfx942", "v_mfma_f32_32x32x8_f16", 32, 8, F16, "32x32x8 16bit"),
        ("gfx942", "v_mfma_f32_16x16x16_f16", 16, 16, F16, "16x16x16 16bit"),
        ("gfx942", "v_mfma_f32_32x32x8_bf16", 32, 8, BF16, "32x32x8 16bit"),
        ("gfx942", "v_mfma_f32_16x16x16_bf16", 16, 16, BF16, "16x16x16 16bit"),
        ("gfx942", "v_mfma_f32_32x32x2_f32", 32, 2, F32, "32x32x2 f32"),
        ("gfx942", "v_mfma_f32_16x16x4_f32", 16, 4, F32, "16x16x4 f32"),
        ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", 16, 32, FNUZ, "16x16x32 8bit"),
        ("gfx942", "v_mfma_f32_32x32x16_bf8_bf8", 32, 16, BNUZ, "32x32x16 8bit"),
        ("gfx942", "v_mfma_i32_16x16x32_i8", 16, 32, I8, "16x16x32 8bit"),
        ("gfx942", "v_mfma_i32_32x32x16_i8", 32, 16, I8, "32x32x16 8bit"),
        ("gfx950", "v_mfma_f32_32x32x16_f16", 32, 16, F16, "32x32x16 16bit"),
        ("gfx950", "v_mfma_f32_16x16x32_bf16", 16, 32, BF16, "16x16x32 16bit"),
        ("gfx950", "v_mfma_i32_16x16x64_i8", 16, 64, I8, "16x16x64 i8"),
    )
] + [
    # fp8 is another format on gfx950; the lanes are the same.
    Case(
        arch="gfx950",
        op="v_mfma_f32_16x16x32_fp8_fp8",
        m=16,
        k=32,
        dtype=OCP,
        layout="gfx942 16x16x32 8bit",
    )
]


def places(bases: list[list[list[int]]]) -> np.ndarray:
    """(row, column) of each [register, lane]: the xor of the bases of their bits."""
    registers, lanes = (np.array(part, int).reshape(-1, 2) for part in bases)
    result = np.zeros((1 << len(registers), 1 << len(lanes), 2), int)
    for bit, base in enumerate(registers):
        result[np.arange(len(result)) >> bit & 1 == 1] ^= base
    for bit, base in enumerate(lanes):
        result[:, np.arange(result.shape[1]) >> bit & 1 == 1] ^= base
    return result


def layout_of(case: Case) -> dict[str, np.ndarray]:
    """The places of the operands of an instruction, by their names."""
    layouts = json.loads(required("matrix_lane_bases.json").read_text())
    return {key.split("_")[0]: places(bases) for key, bases in layouts[case.layout].items()}


def to_lanes(matrix: np.ndarray, where: np.ndarray) -> np.ndarray:
    """[lane, register] of a matrix."""
    return np.ascontiguousarray(matrix[where[..., 0], where[..., 1]].T)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    by_arch = {}
    for arch in ("gfx942", "gfx950"):
        bodies = {case.op: FRAME.body(case.text) for case in CASES if case.arch == arch}
        by_arch[arch] = assembled(bodies, arch)
    return by_arch


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{c.arch}-{c.op}" for c in CASES])
def test_mfma(modules: dict[str, Module], number: int) -> None:
    case = CASES[number]
    rng = np.random.default_rng(number)
    by_name = layout_of(case)
    # Small integers: every order of summation gives the same sum.
    a: np.ndarray = rng.integers(-4, 5, (case.m, case.k)).astype(case.dtype)
    b: np.ndarray = rng.integers(-4, 5, (case.k, case.m)).astype(case.dtype)
    integer = case.dtype == I8
    c = rng.integers(-9, 10, (case.m, case.m)).astype(np.int32 if integer else F32)
    data = np.zeros((64, 24), np.uint32)
    for start, matrix, name in ((0, a, "A"), (4, b, "B"), (8, c, "D")):
        lanes = to_lanes(matrix, by_name[name]).view(np.uint32)
        data[:, start : start + lanes.shape[1]] = lanes
    output = FRAME.run(modules[case.arch], case.op, data)
    where = by_name["D"]
    got = output[:, : len(where)].T.copy().view(np.int32 if integer else F32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(got, exact[where[..., 0], where[..., 1]])


def test_mfma_keeps_denormals_and_non_finite_values(modules: dict[str, Module]) -> None:
    case = CASES[0]
    layout = layout_of(case)
    a, b = np.zeros((32, 8), F16), np.zeros((8, 32), F16)
    a[0, 0], b[0, 0] = F16(6e-8), F16(1)  # a denormal f16
    a[1, 0], a[2, 0], a[3, 0] = F16(np.inf), F16(np.nan), F16(1)
    b[:, 1] = 1
    data = np.zeros((64, 24), np.uint32)
    for start, matrix, name in ((0, a, "A"), (4, b, "B")):
        lanes = to_lanes(matrix, layout[name]).view(np.uint32)
        data[:, start : start + lanes.shape[1]] = lanes
    output = FRAME.run(modules["gfx942"], case.op, data)
    d = np.zeros((32, 32), F32)
    where = layout["D"]
    d[where[..., 0], where[..., 1]] = output.T.copy().view(F32)
    with np.errstate(invalid="ignore"):
        expected = a.astype(F32) @ b.astype(F32)
    np.testing.assert_array_equal(d, expected)
    assert d[0, 0] == F32(F16(6e-8)) > 0
    assert np.isinf(d[1, 1])
    assert np.isnan(d[2, 1])
