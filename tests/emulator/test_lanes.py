# SPDX-License-Identifier: MIT
"""Which lanes and which parts of them an instruction reads and writes: DPP, SDWA, exec, halves."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

LANE = np.arange(64)
ROW, IN_ROW = LANE // 16 * 16, LANE % 16
OLD = 0xDEADBEEF
PARTIAL = 0x0F0FFFF0_7FFF00FE
#: Two dwords of each lane in v2 and v3; the result in v8, which begins as OLD.
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 3, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx2 v[2:3], v1, s[4:5]
  v_mov_b32 v8, 0xdeadbeef
  s_mov_b64 vcc, -1
  s_waitcnt vmcnt(0)
  s_mov_b32 exec_lo, 0x{low:x}
  s_mov_b32 exec_hi, 0x{high:x}
  {text}
  s_mov_b64 exec, -1
  {after}
  v_lshlrev_b32 v1, 2, v0
  global_store_dword v1, v8, s[6:7]
"""

#: The lane that each lane reads, or -1.
CONTROLS = {
    "quad_perm:[3,0,2,1]": LANE // 4 * 4 + np.array([3, 0, 2, 1])[LANE % 4],
    "row_shl:3": np.where(IN_ROW + 3 < 16, LANE + 3, -1),
    "row_shr:5": np.where(IN_ROW >= 5, LANE - 5, -1),
    "row_ror:4": ROW + (IN_ROW - 4) % 16,
    "wave_shl:1": np.where(LANE < 63, LANE + 1, -1),
    "wave_rol:1": (LANE + 1) % 64,
    "wave_shr:1": LANE - 1,
    "wave_ror:1": (LANE - 1) % 64,
    "row_mirror": ROW + 15 - IN_ROW,
    "row_half_mirror": LANE // 8 * 8 + 7 - LANE % 8,
    "row_bcast:15": ROW - 1,
    "row_bcast:31": np.where(LANE >= 32, 31, -1),
    "row_newbcast:6": ROW + 6,
}
MASKS = ((0xF, 0xF), (0xA, 0x5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dpp:
    control: str
    masks: tuple[int, int]
    zero: bool
    exec: int

    @property
    def text(self) -> str:
        masks = "row_mask:0x{:x} bank_mask:0x{:x}".format(*self.masks)
        return f"v_mov_b32_dpp v8, v2 {self.control} {masks}{' bound_ctrl:1' if self.zero else ''}"

    def want(self, values: np.ndarray) -> np.ndarray:
        enabled = self.exec >> LANE.astype(object) & 1
        source = CONTROLS[self.control]
        valid = (source >= 0) & (enabled[source] != 0)
        written = (self.masks[0] >> LANE // 16 & 1) & (self.masks[1] >> LANE // 4 % 4 & 1)
        written = written.astype(bool) & (enabled != 0) & (valid | self.zero)
        return np.where(written, np.where(valid, values[source], 0), OLD).astype(np.uint32)


DPP = [
    Dpp(control=control, masks=masks, zero=zero, exec=mask)
    for control in CONTROLS
    for masks in MASKS
    for zero in (False, True)
    for mask in (2**64 - 1, PARTIAL)
]

SELECT = {f"BYTE_{n}": (8 * n, 8) for n in range(4)} | {
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdwa:
    to: str
    unused: str
    a: str
    b: str
    sext: bool

    @property
    def text(self) -> str:
        first = "sext(v2)" if self.sext else "v2"
        return (
            f"v_add_u32_sdwa v8, {first}, v3 dst_sel:{self.to} dst_unused:UNUSED_{self.unused} "
            f"src0_sel:{self.a} src1_sel:{self.b}"
        )

    def want(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = _part(a, self.a, signed=self.sext) + _part(b, self.b, signed=False)
        low, bits = SELECT[self.to]
        mask = ((1 << bits) - 1) << low
        value = total << low & mask
        if self.unused == "PRESERVE":
            value |= OLD & ~mask
        elif self.unused == "SEXT":
            negative = value >> (low + bits - 1) & 1
            value |= negative * (0xFFFFFFFF ^ ((1 << (low + bits)) - 1))
        return (value & 0xFFFFFFFF).astype(np.uint32)


def _part(values: np.ndarray, select: str, *, signed: bool) -> np.ndarray:
    low, bits = SELECT[select]
    part = values.astype(np.int64) >> low & (1 << bits) - 1
    return np.where(signed & (part >> (bits - 1) == 1), part - (1 << bits), part)


SDWA = [
    Sdwa(to=to, unused=unused, a=a, b=b, sext=sext)
    for to, unused in (
        ("DWORD", "PAD"),
        ("BYTE_2", "PAD"),
        ("WORD_0", "SEXT"),
        ("BYTE_1", "SEXT"),
        ("BYTE_3", "PRESERVE"),
        ("WORD_1", "PRESERVE"),
    )
    for a, b in (("BYTE_3", "WORD_0"), ("WORD_1", "BYTE_1"), ("BYTE_0", "DWORD"))
    for sext in (False, True)
]
#: The mask that a comparison leaves in vcc, in lanes 0 and 1.
_MASK = "v_writelane_b32 v8, vcc_lo, 0\n  v_writelane_b32 v8, vcc_hi, 1"
COMPARES = {
    "v_cmp_lt_u32": lambda a, b: a < b,
    "v_cmp_ge_i16": lambda a, b: a.astype(np.int16) >= b.astype(np.int16),
    "v_cmp_lt_f16": lambda a, b: _half(a) < _half(b),
    "v_cmp_ngt_f16": lambda a, b: ~(_half(a) > _half(b)),
    "v_cmp_u_f16": lambda a, b: np.isnan(_half(a)) | np.isnan(_half(b)),
}


def _half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.uint16).view(np.float16)


def body(text: str, enabled: int = 2**64 - 1, after: str = "") -> str:
    return _BODY.format(text=text, low=enabled & 0xFFFFFFFF, high=enabled >> 32, after=after)


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {f"dpp{n}": body(case.text, case.exec) for n, case in enumerate(DPP)}
    bodies |= {f"sdwa{n}": body(case.text) for n, case in enumerate(SDWA)}
    bodies |= {op: body(f"{op} vcc, v2, v3", PARTIAL, _MASK) for op in COMPARES}
    bodies["pkrtz"] = body("v_cvt_pkrtz_f16_f32 v8, v2, v3")
    return assembled(bodies)


def run(module: Module, name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    output = np.zeros(64, np.uint32)
    assert module.launch(name, np.stack([a, b], axis=1), output) == "hipSuccess"
    return output


def random(seed: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.random.default_rng(seed).integers(0, 2**32, (2, 64), dtype=np.uint32)
    return a, b


@pytest.mark.parametrize("control", CONTROLS)
def test_dpp(module: Module, control: str) -> None:
    a, b = random(0)
    for n, case in enumerate(DPP):
        if case.control == control:
            got = run(module, f"dpp{n}", a, b)
            np.testing.assert_array_equal(got, case.want(a), err_msg=case.text)


def test_sdwa(module: Module) -> None:
    a, b = random(1)
    for n, case in enumerate(SDWA):
        got = run(module, f"sdwa{n}", a, b)
        np.testing.assert_array_equal(got, case.want(a, b), err_msg=case.text)


@pytest.mark.parametrize("op", COMPARES)
def test_comparisons_clear_the_bits_of_disabled_lanes(module: Module, op: str) -> None:
    """The other halves of 16-bit operands hold something, and must not matter."""
    a, b = random(2)
    b[::7] = a[::7] ^ 0x55550000
    a[3::9] |= 0x7E00  # not a number
    want = COMPARES[op](a, b) & (PARTIAL >> LANE.astype(object) & 1).astype(bool)
    got = run(module, op, a, b)[:2].view(np.uint64)[0]
    assert int(got) == sum(1 << int(lane) for lane in LANE[want])


def test_conversion_to_two_halves_rounds_toward_zero(module: Module) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=64) * 10.0 ** rng.integers(-6, 7, 64) for _ in range(2))
    a[:4] = 65519.0, -65521.0, np.inf, 1e9
    wide = [values.astype(np.float32) for values in (a, b)]
    want = []
    for values in wide:
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        away = np.abs(half.astype(np.float32)) > np.abs(values)
        want.append(np.where(away, np.nextafter(half, np.float16(0)), half).astype(np.float16))
    got = run(module, "pkrtz", *(values.view(np.uint32) for values in wide))
    np.testing.assert_array_equal(got.view(np.float16), np.stack(want, axis=1).ravel())


@pytest.mark.parametrize("mode", range(4))
def test_denormals_follow_the_mode(mode: int) -> None:
    """Bit 0 keeps denormal operands, bit 1 denormal results."""
    one = assembled({"mul": body("v_mul_f32 v8, v2, v3")}, denormals=mode)
    rng = np.random.default_rng(4)
    a, b = (2.0 ** rng.integers(-74, -60, (2, 64))).astype(np.float32)
    a[::2], b[::2] = 2.0 ** rng.integers(-140, -127, 32), 2.0 ** rng.integers(5, 20, 32)
    left = np.where((abs(a) < 2.0**-126) & (mode & 1 == 0), np.float32(0), a)
    exact = left.astype(np.float64) * b
    want = np.where((exact < 2.0**-126) & (mode & 2 == 0), 0, exact).astype(np.float32)
    got = run(one, "mul", a.view(np.uint32), b.view(np.uint32)).view(np.float32)
    np.testing.assert_array_equal(got, want)
    assert (want == 0).any() == (mode != 3)
