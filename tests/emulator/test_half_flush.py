# SPDX-License-Identifier: MIT
"""f16 arithmetic in the modes that flush denormals, of sources, of results, or of both."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.assembly import Module, assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator")

F16, F32, U32 = np.float16, np.float32, np.uint32
Rule = Callable[..., np.ndarray]


def greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater number; +0 is greater than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


#: Text, the rule over f16 arrays (low halves of v2, v4, v6 and the old v10).
CASES: dict[str, tuple[str, Rule]] = {
    "add": ("v_add_f16 v10, v2, v4", lambda a, b, c, d: a + b),
    "mul": ("v_mul_f16 v10, v2, v4", lambda a, b, c, d: a * b),
    "max": ("v_max_f16 v10, v2, v4", lambda a, b, c, d: greater(a, b)),
    "neg": ("v_add_f16_e64 v10, -v2, v4", lambda a, b, c, d: b - a),
    "fma": ("v_fma_f16 v10, v2, v4, v6", lambda a, b, c, d: (a.astype(float) * b + c).astype(F16)),
}
_SET = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), {}"
_SDWA = "v_add_f16_sdwa v10, v2, v4 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1"
OTHERS = {
    "pk": "v_pk_add_f16 v10, v2, v4",
    "sdwa": _SDWA,
    "widen": "v_cvt_f32_f16 v10, v2",
    "narrow": "v_cvt_f16_f32 v10, v2",
    "class": "v_cmp_class_f16 vcc, v2, v4",
    "mix": "v_fma_mix_f32 v10, v2, 1.0, 0 op_sel_hi:[1,0,0]",
    "single": "v_add_f32 v10, v2, v4",
    "mfma": "v_mfma_f32_4x4x4_16b_f16 v[10:13], v[2:3], v[4:5], 0",
}
MODES = range(4)


@pytest.fixture(scope="module")
def module() -> Module:
    texts = {name: text for name, (text, _) in CASES.items()} | OTHERS
    bodies = {}
    for name, text in texts.items():
        for mode in MODES:
            lines = (_SET.format(mode), text, "s_nop 15", _SET.format(3))
            bodies[f"{name}{mode}"] = lanes_body("".join(f"  {line}\n" for line in lines))
    return assembled(bodies)


def flush(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**-14, np.copysign(F16(0), x), x)


def operands() -> np.ndarray:
    """Small numbers and denormals, in both halves of six dwords and of the old v10."""
    rng = np.random.default_rng(5)
    halves = rng.integers(0, 0x0C00, (64, 24), dtype=np.uint16)
    halves |= (rng.integers(0, 2, (64, 24)) << 15).astype(np.uint16)
    return halves.view(U32)


def low(data: np.ndarray, column: int, half: int = 0) -> np.ndarray:
    return data[:, column].copy().view(np.uint16).reshape(64, 2)[:, half].view(F16)


def bits(x: np.ndarray) -> np.ndarray:
    return x.astype(F16).view(np.uint16)


def allowed(x: np.ndarray, mode: int, bit: int) -> np.ndarray:
    return x if mode >> bit & 1 else flush(x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_operations(module: Module, name: str, mode: int) -> None:
    data = operands()
    sources = [allowed(low(data, column), mode, 0) for column in (0, 2, 4, 8)]
    want = allowed(CASES[name][1](*sources), mode, 1)
    got = low(run_lanes(module, f"{name}{mode}", data), 0)
    np.testing.assert_array_equal(bits(got), bits(want))


@pytest.mark.parametrize("mode", MODES)
def test_both_halves(module: Module, mode: int) -> None:
    data = operands()
    got = run_lanes(module, f"pk{mode}", data)
    for half in (0, 1):
        a, b = (allowed(low(data, column, half), mode, 0) for column in (0, 2))
        np.testing.assert_array_equal(bits(low(got, 0, half)), bits(allowed(a + b, mode, 1)))


@pytest.mark.parametrize("mode", MODES)
def test_selected_halves(module: Module, mode: int) -> None:
    """The result's half is flushed; the other one keeps its bits, denormal or not."""
    data = operands()
    got = run_lanes(module, f"sdwa{mode}", data)
    a, b = allowed(low(data, 0, 1), mode, 0), allowed(low(data, 2), mode, 0)
    np.testing.assert_array_equal(bits(low(got, 0, 1)), bits(allowed(a + b, mode, 1)))
    np.testing.assert_array_equal(bits(low(got, 0)), bits(low(data, 8)))


@pytest.mark.parametrize("mode", MODES)
def test_conversions(module: Module, mode: int) -> None:
    data = operands()
    wide = run_lanes(module, f"widen{mode}", data)[:, 0].copy().view(F32)
    np.testing.assert_array_equal(wide, allowed(low(data, 0), mode, 0).astype(F32))
    mixed = run_lanes(module, f"mix{mode}", data)[:, 0].copy().view(F32)
    np.testing.assert_array_equal(mixed, wide)
    small = data.copy()
    small[:, 0] = (np.random.default_rng(1).normal(size=64) * 2e-5).astype(F32).view(U32)
    got = low(run_lanes(module, f"narrow{mode}", small), 0)
    want = allowed(small[:, 0].copy().view(F32).astype(F16), mode, 1)
    np.testing.assert_array_equal(bits(got), bits(want))


def test_what_the_mode_does_not_concern(module: Module) -> None:
    """Classes look at bits; f32 has its own field; matrix products keep denormals."""
    data = operands()
    for name in ("class", "single", "mfma"):
        kept, flushed = (run_lanes(module, f"{name}{mode}", data) for mode in (3, 0))
        np.testing.assert_array_equal(kept, flushed)
