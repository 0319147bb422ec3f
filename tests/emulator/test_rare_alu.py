# SPDX-License-Identifier: MIT
"""Vector operations that compilers rarely use, against plain Python, and branches by fork."""

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Module, assemble, assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator")

F16, F32, F64, U32 = np.float16, np.float32, np.float64, np.uint32
Lane = list[int]


def quads(value: int) -> list[int]:
    return [value >> at & 255 for at in (0, 8, 16, 24)]


def difference(a: int, b: int, masked: bool) -> int:
    return sum(abs(p - q) for p, q in zip(quads(a), quads(b), strict=True) if q or not masked)


def windows(x: Lane, masked: bool) -> list[int]:
    """Sums over four windows of x[0] | x[1] << 32, each a byte further, against x[2]."""
    data = x[0] | x[1] << 32
    return [difference(data >> 8 * n & 0xFFFFFFFF, x[2], masked) for n in range(4)]


def sums16(x: Lane, masked: bool) -> list[int]:
    base = x[4] | x[5] << 32
    sums = [(s + (base >> 16 * n)) & 0xFFFF for n, s in enumerate(windows(x, masked))]
    return [sums[0] | sums[1] << 16, sums[2] | sums[3] << 16]


def halves(value: int) -> np.ndarray:
    return np.array([value], U32).view(F16)


def fmac(x: Lane) -> list[int]:
    a, b, c = (halves(x[n]).astype(F64) for n in (0, 2, 8))
    with np.errstate(all="ignore"):
        return [int((a * b + c).astype(F16).view(U32)[0])]


def legacy(x: Lane) -> list[int]:
    a, b, c = np.array([x[0], x[2], x[4]], U32).view(F32)
    with np.errstate(all="ignore"):
        product = F32(0) if a == 0 or b == 0 else a * b
        return [int((product + c).view(U32))]


def byte_put(x: Lane) -> list[int]:
    """x[8] with one byte replaced by a float, rounded and saturated."""
    (value,), low = np.array([x[0]], U32).view(F32), x[2] % 4 * 8
    byte = int(np.clip(np.rint(np.nan_to_num(value, nan=0.0)), 0, 255))
    return [x[8] & ~(255 << low) | byte << low]


CASES: dict[str, tuple[str, Callable[[Lane], list[int]]]] = {
    "qsad": ("v_qsad_pk_u16_u8 v[10:11], v[2:3], v4, v[6:7]", lambda x: sums16(x, False)),
    "mqsad16": ("v_mqsad_pk_u16_u8 v[10:11], v[2:3], v4, v[6:7]", lambda x: sums16(x, True)),
    "mqsad32": (
        "v_mqsad_u32_u8 v[10:13], v[2:3], v4, v[6:9]",
        lambda x: [(s + x[4 + n]) % 2**32 for n, s in enumerate(windows(x, True))],
    ),
    "msad": (
        "v_msad_u8 v10, v2, v4, v6",
        lambda x: [(difference(x[0], x[2], True) + x[4]) % 2**32],
    ),
    "pk_fmac": ("v_pk_fmac_f16 v10, v2, v4", fmac),
    "pkaccum": ("v_cvt_pkaccum_u8_f32 v10, v2, v4", byte_put),
    "mad_legacy": ("v_mad_legacy_f32 v10, v2, v4, v6", legacy),
}
_TRIG = "v_trig_preop_f64 v[10:11], v[2:3], v4"
_SWIZZLES = {pattern: f"ds_swizzle_b32 v10, v2 offset:{pattern:#x}" for pattern in (0xE000, 0xE010)}


@pytest.fixture(scope="module")
def module() -> Module:
    texts = {name: text for name, (text, _) in CASES.items() if name != "mad_legacy"}
    bodies = {name: lanes_body(f"  {text}\n") for name, text in texts.items()}
    bodies["trig"] = lanes_body(f"  {_TRIG}\n")
    for pattern, text in _SWIZZLES.items():
        bodies[f"swizzle{pattern}"] = lanes_body(f"  {text}\n  s_waitcnt lgkmcnt(0)\n")
    return assembled(bodies, lds=1024)


@pytest.fixture(scope="module")
def older() -> Module:
    bodies = {"mad_legacy": lanes_body(f"  {CASES['mad_legacy'][0]}\n")}
    return assembled(bodies, "gfx90a")


def operands(seed: int) -> np.ndarray:
    data = np.random.default_rng(seed).integers(0, 1 << 32, (64, 9), dtype=U32)
    data[:8, 2] &= U32(0xFF00FF00)  # reference bytes of 0, which are left out
    special = np.array([0, 0x80000000, 0x7F800000, 0x3F800000, 0xFF800000], U32)
    data[24:, 0] = np.linspace(-2, 258, 40, dtype=F32).round(1).view(U32)  # as bytes, and beyond
    data[8:24, :5] = np.random.default_rng(seed + 1).choice(special, (16, 5))
    return data


@pytest.mark.parametrize("name", CASES)
def test_operation(module: Module, older: Module, name: str) -> None:
    data = operands(3)
    used = older if name == "mad_legacy" else module
    got = run_lanes(used, name, data)
    for lane in range(64):
        want = np.array(CASES[name][1]([int(x) for x in data[lane]]), U32)
        kind = {"pk_fmac": F16, "mad_legacy": F32}.get(name, U32)
        np.testing.assert_array_equal(got[lane, : len(want)].view(kind), want.view(kind))


def two_over_pi(bits: int) -> int:
    """floor(2 / pi * 2^bits), with pi from Euler's arctangents."""
    scale = 1 << (bits + 64)

    def arctangent(inverse: int) -> int:
        term = total = scale * inverse // (inverse * inverse + 1)
        n = 1
        while term:  # Euler: x / (1 + x^2) * sum of products of 2n / (2n + 1) * x^2 / (1 + x^2)
            term = term * 2 * n // ((2 * n + 1) * (inverse * inverse + 1))
            total += term
            n += 1
        return total

    pi = 4 * (arctangent(2) + arctangent(3))
    return (2 * scale << bits) // pi


def test_trig_preop(module: Module) -> None:
    """53 bits of 2/pi behind as many bits as the angle's size and the segment's number say."""
    digits = two_over_pi(1201)
    assert math.isclose(digits / 2**1201, 2 / math.pi, rel_tol=1e-15)
    rng = np.random.default_rng(9)
    angles = np.exp2(rng.uniform(-1000, 1000, 64))
    data = np.zeros((64, 4), U32)
    data[:, :2] = angles.view(U32).reshape(64, 2)
    data[:, 2] = rng.integers(0, 64, 64)
    got = run_lanes(module, "trig", data)[:, :2].copy().view(F64)[:, 0]
    for angle, number, value in zip(angles, data[:, 2], got, strict=True):
        exponent = int(math.frexp(angle)[1]) + 1022
        shift = int(number % 32) * 53 + max(exponent - 1077, 0)
        segment = (digits << shift) % 2**1201 >> (1201 - 53)
        scale = -53 - shift + (128 if exponent >= 1968 else 0)
        assert value == float(segment * Fraction(2) ** scale)


@pytest.mark.parametrize("pattern", _SWIZZLES)
def test_fft_swizzle(module: Module, pattern: int) -> None:
    """The manual's two tables: bits reversed, in all 32 lanes or in each 16 of them."""
    data = operands(5)
    got = run_lanes(module, f"swizzle{pattern}", data)[:, 0]
    for lane in range(64):
        if pattern == 0xE000:
            source = lane & 32 | int(f"{lane % 32:05b}"[::-1], 2)
        else:  # lane 2 of 16 reads lane 4 of them
            source = lane & 48 | int(f"{lane % 16:04b}"[::-1], 2)
        assert got[lane] == data[source, 0], lane


def test_a_fork_runs_both_sides() -> None:
    """Lanes split by a mask take two ways, the smaller part first; the last one passes the join."""
    text = """
  s_mov_b64 s[20:21], 0xffffff
  s_mov_b32 s24, 0
  s_mov_b32 s25, 1
  s_mov_b32 s26, 0
  s_cbranch_i_fork s[20:21], taken
  v_mov_b32 v10, 5
  v_mov_b32 v11, s25
  s_add_u32 s25, s25, 1
  s_branch met
taken:
  v_mov_b32 v10, 7
  v_mov_b32 v11, s25
  s_add_u32 s25, s25, 1
met:
  s_cbranch_join s26
  v_mov_b32 v12, s25
"""
    image = assemble({"k": lanes_body(text)})
    got = run_lanes(Module(image), "k", np.zeros((64, 1), U32))
    lane = np.arange(64)
    np.testing.assert_array_equal(got[:, 0], np.where(lane < 24, 7, 5))
    np.testing.assert_array_equal(got[:, 1], np.where(lane < 24, 1, 2))
    np.testing.assert_array_equal(got[:, 2], np.where(lane < 24, 0, 3))


def test_stochastic_rounding_of_f32() -> None:
    """Rounds up as often as the distance to the next lower code says, and never moves a code."""
    dtypes = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
    bodies = {kind: lanes_body(f"  v_cvt_sr_{kind}_f32 v10, v2, v4\n") for kind in dtypes}
    module = assembled(bodies)
    for kind, dtype in dtypes.items():
        codes = np.arange(1, 100, dtype=np.uint8).view(dtype).astype(F32)
        low, high = codes[30], codes[31]
        for part in (0.0, 0.25, 0.5, 0.875):
            value = F32(low + part * (high - low))
            data = np.zeros((64, 4), U32)
            data[:, 0] = value.view(U32)
            data[:, 2] = np.arange(64, dtype=U32) << U32(26)  # all random numbers, in steps
            got = run_lanes(module, kind, data)[:, 0].astype(np.uint8).view(dtype).astype(F32)
            assert set(got) <= {low, high}
            assert (got == high).sum() == 64 * part
