# SPDX-License-Identifier: MIT
"""The steps that scale quotients: every exponent, with subnormals, infinities and NaN."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.assembly import Module, assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator", "both_ways")

U32, U64 = np.uint32, np.uint64


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format, and the numbers that the manuals' pseudocode has for it."""

    kind: type
    bits: type
    mantissa: int
    exponents: int
    power: int
    """By whose power of two operands are scaled."""
    far: int
    tiny: int

    def exponent(self, x: np.ndarray) -> np.ndarray:
        fields = x.view(self.bits) >> self.bits(self.mantissa)
        return (fields & self.bits(self.exponents - 1)).astype(int)

    def subnormal(self, x: np.ndarray) -> np.ndarray:
        return (x != 0) & (self.exponent(x) == 0)


_FORMATS = {
    "f32": Format(kind=np.float32, bits=U32, mantissa=23, exponents=256, power=64, far=96, tiny=23),
    "f64": Format(
        kind=np.float64, bits=U64, mantissa=52, exponents=2048, power=128, far=768, tiny=53
    ),
}
_REGISTERS = {"f32": ("v10", "v2", "v4", "v6"), "f64": ("v[10:11]", "v[2:3]", "v[4:5]", "v[6:7]")}


def _bodies() -> dict[str, str]:
    bodies = {}
    for name, (result, a, b, c) in _REGISTERS.items():
        bodies[f"scale_{name}"] = f"  v_div_scale_{name} {result}, vcc, {a}, {b}, {c}"
        bodies[f"fmas_{name}"] = f"  s_mov_b64 vcc, -1\n  v_div_fmas_{name} {result}, {a}, {b}, {c}"
    return {name: lanes_body(text) for name, text in bodies.items()}


@pytest.fixture(scope="module")
def kernels() -> Module:
    return assembled(_bodies())


def values(form: Format, seed: int) -> np.ndarray:
    """Both signs of each exponent, with some mantissas, in a random order."""
    tops = np.arange(2 * form.exponents, dtype=U64) << U64(form.mantissa)
    ones = U64((1 << form.mantissa) - 1)
    tails = (U64(0), U64(1), ones, U64(1 << (form.mantissa - 1)), U64(0x5A5A5A5A5A5A5A5A) & ones)
    bits = np.concatenate([tops | tail for tail in tails])
    return np.random.default_rng(seed).permutation(bits).astype(form.bits).view(form.kind)


def run(kernels: Module, kernel: str, *operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The results of 64 lanes after the other, and which are flagged."""
    results, flags = [], []
    for first in range(0, len(operands[0]), 64):
        data = np.zeros((64, 6), U32)
        for n, operand in enumerate(operands):
            words = np.ascontiguousarray(operand[first : first + 64]).view(U32).reshape(64, -1)
            data[:, 2 * n : 2 * n + words.shape[1]] = words
        output = run_lanes(kernels, kernel, data)
        words = np.ascontiguousarray(output[:, : operands[0].dtype.itemsize // 4])
        results.append(words.view(operands[0].dtype)[:, 0])
        mask = int(output[0, 4]) | int(output[0, 5]) << 32
        flags.append([mask >> lane & 1 for lane in range(64)])
    return np.concatenate(results), np.concatenate(flags).astype(bool)


def assert_same_bits(got: np.ndarray, expected: np.ndarray, form: Format) -> None:
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), ~numbers)
    np.testing.assert_array_equal(got.view(form.bits)[numbers], expected.view(form.bits)[numbers])


@pytest.mark.parametrize("name", _FORMATS)
def test_quotients_are_scaled_back(kernels: Module, name: str) -> None:
    """0 * 0 + c is scaled up if c is large, down if it is small, and rounded once."""
    form = _FORMATS[name]
    c = values(form, 0)
    got, _ = run(kernels, f"fmas_{name}", np.zeros_like(c), np.zeros_like(c), c)
    large = form.exponent(c) > form.exponents // 2 - 1
    with np.errstate(all="ignore"):
        expected = np.ldexp(c + form.kind(0), np.where(large, form.power, -form.power))
    assert_same_bits(got, expected, form)


@pytest.mark.parametrize("name", _FORMATS)
@pytest.mark.parametrize("seed", range(2))
def test_operands_are_scaled(kernels: Module, name: str, seed: int) -> None:
    """The manuals' pseudocode of v_div_scale, line by line: the first condition that holds."""
    form = _FORMATS[name]
    d, n = values(form, 2 * seed), values(form, 2 * seed + 1)
    of_numerator = np.random.default_rng(seed).integers(0, 2, len(d)).astype(bool)
    value = np.where(of_numerator, n, d)
    got, flags = run(kernels, f"scale_{name}", value, d, n)
    with np.errstate(all="ignore"):
        up, down = np.ldexp(value, form.power), np.ldexp(value, -form.power)
        small_inverse = form.subnormal(form.kind(1) / d)
        small_quotient = form.subnormal(n / d) | (n / d == 0)
    is_d, is_n = (value.view(form.bits) == x.view(form.bits) for x in (d, n))
    lines = (
        ((n == 0) | (d == 0), np.full_like(d, np.nan), False),
        (form.exponent(n) - form.exponent(d) >= form.far, np.where(is_d, up, value), True),
        (form.subnormal(d), up, False),
        (small_inverse & small_quotient, np.where(is_d, down, value), True),
        (small_inverse, down, False),
        (small_quotient, np.where(is_n, up, value), True),
        (form.exponent(n) <= form.tiny, up, False),
    )
    conditions = [condition for condition, _, _ in lines]
    assert all(condition.any() for condition in conditions)
    assert_same_bits(got, np.select(conditions, [line[1] for line in lines], value), form)
    flagged = [np.full_like(of_numerator, line[2]) for line in lines]
    np.testing.assert_array_equal(flags, np.select(conditions, flagged, False))
