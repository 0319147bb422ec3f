# SPDX-License-Identifier: MIT
"""Clamp on integer operations: what can overflow saturates, everything else is untouched."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.assembly import VCC, Module, assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator")

Rule = Callable[[list[int]], int]

I16, U16, I32, U32 = (
    (-(1 << 15), (1 << 15) - 1),
    (0, 65535),
    (-(1 << 31), (1 << 31) - 1),
    (0, 2**32 - 1),
)
I64, U64 = (-(1 << 63), (1 << 63) - 1), (0, 2**64 - 1)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def fields(value: int, bits: int, sign: bool) -> list[int]:
    parts = [value >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(part, bits) for part in parts] if sign else parts


def dot(bits: int, sign: bool) -> Rule:
    def rule(x: list[int]) -> int:
        pairs = zip(fields(x[0], bits, sign), fields(x[2], bits, sign), strict=False)
        return sum(a * b for a, b in pairs) + (signed(x[4], 32) if sign else x[4])

    return rule


def differences(a: int, b: int, bits: int, masked: bool = False) -> int:
    pairs = zip(fields(a, bits, False), fields(b, bits, False), strict=False)
    return sum(abs(p - q) for p, q in pairs if q != 0 or not masked)


def s24(value: int) -> int:
    return signed(value, 24)


def u24(value: int) -> int:
    return value & 0xFFFFFF


# A lane's dwords: a in x[0], x[1] (v[2:3]), b in x[2], x[3], c in x[4], x[5]. The exact result, and
# the range that it is cut to.
CASES: dict[str, tuple[str, Rule, tuple[int, int]]] = {
    "add_u32": ("v_add_u32 v10, v2, v4 clamp", lambda x: x[0] + x[2], U32),
    "sub_u32": ("v_sub_u32 v10, v2, v4 clamp", lambda x: x[0] - x[2], U32),
    "subrev_u32": ("v_subrev_u32 v10, v2, v4 clamp", lambda x: x[2] - x[0], U32),
    "add_i32": ("v_add_i32 v10, v2, v4 clamp", lambda x: signed(x[0], 32) + signed(x[2], 32), I32),
    "sub_i32": ("v_sub_i32 v10, v2, v4 clamp", lambda x: signed(x[0], 32) - signed(x[2], 32), I32),
    "add_u16": ("v_add_u16_e64 v10, v2, v4 clamp", lambda x: x[0] % 65536 + x[2] % 65536, U16),
    "sub_u16": ("v_sub_u16_e64 v10, v2, v4 clamp", lambda x: x[0] % 65536 - x[2] % 65536, U16),
    "add_i16": ("v_add_i16 v10, v2, v4 clamp", lambda x: signed(x[0], 16) + signed(x[2], 16), I16),
    "mad_u16": ("v_mad_u16 v10, v2, v4, v6 clamp",
                lambda x: x[0] % 65536 * (x[2] % 65536) + x[4] % 65536, U16),
    "mad_i16": ("v_mad_i16 v10, v2, v4, v6 clamp",
                lambda x: signed(x[0], 16) * signed(x[2], 16) + signed(x[4], 16), I16),
    "mad_i32_i16": ("v_mad_i32_i16 v10, v2, v4, v6 clamp",
                    lambda x: signed(x[0], 16) * signed(x[2], 16) + signed(x[4], 32), I32),
    "mad_u32_u24": ("v_mad_u32_u24 v10, v2, v4, v6 clamp", lambda x: u24(x[0]) * u24(x[2]) + x[4],
                    U32),
    "mad_i32_i24": ("v_mad_i32_i24 v10, v2, v4, v6 clamp",
                    lambda x: s24(x[0]) * s24(x[2]) + signed(x[4], 32), I32),
    "mul_u24": ("v_mul_u32_u24_e64 v10, v2, v4 clamp", lambda x: u24(x[0]) * u24(x[2]), U32),
    "mul_i24": ("v_mul_i32_i24_e64 v10, v2, v4 clamp", lambda x: s24(x[0]) * s24(x[2]), I32),
    "mad_u64": ("v_mad_u64_u32 v[10:11], vcc, v2, v4, v[6:7] clamp",
                lambda x: x[0] * x[2] + (x[4] | x[5] << 32), U64),
    "mad_i64": ("v_mad_i64_i32 v[10:11], vcc, v2, v4, v[6:7] clamp",
                lambda x: signed(x[0], 32) * signed(x[2], 32) + signed(x[4] | x[5] << 32, 64), I64),
    "sad_u8": ("v_sad_u8 v10, v2, v4, v6 clamp", lambda x: differences(x[0], x[2], 8) + x[4], U32),
    "sad_hi_u8": ("v_sad_hi_u8 v10, v2, v4, v6 clamp",
                  lambda x: (differences(x[0], x[2], 8) << 16) + x[4], U32),
    "sad_u16": ("v_sad_u16 v10, v2, v4, v6 clamp", lambda x: differences(x[0], x[2], 16) + x[4],
                U32),
    "sad_u32": ("v_sad_u32 v10, v2, v4, v6 clamp", lambda x: abs(x[0] - x[2]) + x[4], U32),
    "msad_u8": ("v_msad_u8 v10, v2, v4, v6 clamp",
                lambda x: differences(x[0], x[2], 8, True) + x[4], U32),
    "dot2_i32": ("v_dot2_i32_i16 v10, v2, v4, v6 clamp", dot(16, True), I32),
    "dot2_u32": ("v_dot2_u32_u16 v10, v2, v4, v6 clamp", dot(16, False), U32),
    "dot4_i32": ("v_dot4_i32_i8 v10, v2, v4, v6 clamp", dot(8, True), I32),
    "dot4_u32": ("v_dot4_u32_u8 v10, v2, v4, v6 clamp", dot(8, False), U32),
    "dot8_i32": ("v_dot8_i32_i4 v10, v2, v4, v6 clamp", dot(4, True), I32),
    "dot8_u32": ("v_dot8_u32_u4 v10, v2, v4, v6 clamp", dot(4, False), U32),
}  # fmt: skip
CARRIES: dict[str, tuple[str, Callable[[int, int, int], int]]] = {
    "add_co": ("v_add_co_u32_e64 v10, vcc, v2, v4 clamp", lambda a, b, c: a + b),
    "sub_co": ("v_sub_co_u32_e64 v10, vcc, v2, v4 clamp", lambda a, b, c: a - b),
    "subrev_co": ("v_subrev_co_u32_e64 v10, vcc, v2, v4 clamp", lambda a, b, c: b - a),
    "addc_co": ("v_addc_co_u32_e64 v10, vcc, v2, v4, vcc clamp", lambda a, b, c: a + b + c),
    "subb_co": ("v_subb_co_u32_e64 v10, vcc, v2, v4, vcc clamp", lambda a, b, c: a - b - c),
}
PACKED: dict[str, tuple[str, Callable[[int, int, int], int], bool]] = {
    "pk_add_i16": ("v_pk_add_i16 v10, v2, v4 clamp", lambda a, b, c: a + b, True),
    "pk_sub_u16": ("v_pk_sub_u16 v10, v2, v4 clamp", lambda a, b, c: a - b, False),
    "pk_mad_i16": ("v_pk_mad_i16 v10, v2, v4, v6 clamp", lambda a, b, c: a * b + c, True),
    "pk_mad_u16": ("v_pk_mad_u16 v10, v2, v4, v6 clamp", lambda a, b, c: a * b + c, False),
    "pk_mul_lo_u16": ("v_pk_mul_lo_u16 v10, v2, v4 clamp", lambda a, b, c: a * b, False),
}
#: Operations whose results are always in range, in forms that take the bit.
HARMLESS = {
    "and": ("v_and_b32_sdwa v10, v2, v4 clamp dst_sel:DWORD", lambda x: x[0] & x[2]),
    "min": ("v_min_i32_sdwa v10, v2, v4 clamp dst_sel:DWORD", lambda x: min(x[0], x[2])),
}


@pytest.fixture(scope="module")
def module() -> Module:
    texts = {name: case[0] for group in (CASES, CARRIES, PACKED) for name, case in group.items()}
    bodies = {name: lanes_body(f"  {text}\n") for name, text in texts.items()}
    return assembled(bodies)


def operands(name: str) -> np.ndarray:
    """Extreme and random values; small ones too, so that not everything saturates."""
    rng = np.random.default_rng(len(name))
    values = rng.integers(0, 1 << 32, (64, 6), dtype=np.uint32)
    values[8:24] = rng.choice(
        np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32),
        (16, 6),
    )
    values[24:40] &= np.uint32(0x000F000F)
    values[40:56, 4] = rng.choice(np.array([0x7FFFFFFF, 0x80000001, 0xFFFFFFFF], np.uint32), 16)
    return values


@pytest.mark.parametrize("name", CASES)
def test_results_are_cut_off(module: Module, name: str) -> None:
    _, rule, (low, high) = CASES[name]
    data = operands(name)
    got = run_lanes(module, name, data)
    cut = 0
    for lane in range(64):
        exact = rule([int(x) for x in data[lane]])
        want = min(max(exact, low), high)
        cut += want != exact
        bits = 64 if high > 2**32 else 32
        value = int(got[lane, 0]) | int(got[lane, 1]) << 32
        mask = 0xFFFF if high <= 65535 else (1 << bits) - 1
        assert value & mask == want & mask, (name, lane, data[lane])
    assert 0 < cut < 64


@pytest.mark.parametrize("name", CARRIES)
def test_carries(module: Module, name: str) -> None:
    _, rule = CARRIES[name]
    data = operands(name)
    got = run_lanes(module, name, data)
    carries = 0
    for lane in range(64):
        exact = rule(int(data[lane, 0]), int(data[lane, 2]), VCC >> lane & 1)
        carries |= (not 0 <= exact < 2**32) << lane
        assert got[lane, 0] == min(max(exact, 0), 2**32 - 1)
    assert int(got[0, 4]) | int(got[0, 5]) << 32 == carries


@pytest.mark.parametrize("name", PACKED)
def test_packed(module: Module, name: str) -> None:
    _, rule, sign = PACKED[name]
    low, high = I16 if sign else U16
    data = operands(name)
    got = run_lanes(module, name, data)
    for lane in range(64):
        halves = zip(*(fields(int(data[lane, n]), 16, sign) for n in (0, 2, 4)), strict=False)
        want = [min(max(rule(*half), low), high) & 0xFFFF for half in halves]
        assert int(got[lane, 0]) == want[0] | want[1] << 16


def test_clamp_changes_nothing_that_cannot_overflow() -> None:
    bodies = {name: lanes_body(f"  {text}\n") for name, (text, _) in HARMLESS.items()}
    module = assembled(bodies)
    data = operands("always_satisfied") & np.uint32(0x7FFFFFFF)
    for name, (_, rule) in HARMLESS.items():
        got = run_lanes(module, name, data)
        want = [rule([int(x) for x in lane]) for lane in data]
        np.testing.assert_array_equal(got[:, 0], want)
