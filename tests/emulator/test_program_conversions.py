# SPDX-License-Identifier: MIT
"""Conversions of hip_fp8.h, hip_fp16.h and hip_bf16.h on host and device, as ROCm documents them.

The numbers that codes stand for come from ml_dtypes; the nearest one, and the ones above and below,
from a search among all of them in double precision. All 16-bit floats are converted; of the wider
types every tie between codes, its neighbours, and random bits.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.hip_programs import built, run

pytestmark = pytest.mark.usefixtures("compiler")

_FORMATS = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
)
"""By __hip_fp8_interpretation_t."""
_HARDWARE = {"host": (), "gfx942": (2, 3), "gfx950": (0, 1)}
"""The formats that a GPU converts to in one instruction."""
_ALL = np.arange(65536, dtype=np.uint16)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
Convert = Callable[..., dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """A function (name, inputs, result type) → results by where they were made."""
    folder = tmp_path_factory.mktemp("conversions")
    program = built("conversions", "gfx942", "gfx950")

    def converted(name: str, values: np.ndarray, dtype: Any) -> dict[str, np.ndarray]:
        results = {}
        values.tofile(folder / "in")
        for number, arch in enumerate(("gfx942", "gfx950")):
            files = folder / "in", folder / "out"
            run(program, name, *files, HIP_VISIBLE_DEVICES=str(number)).check_returncode()
            both = np.fromfile(folder / "out", dtype).reshape(2, len(values), -1)
            results["host"], results[arch] = both
        return results

    return converted


def fp8_codes(values: np.ndarray, wide: np.ndarray, hardware: tuple[int, ...]) -> np.ndarray:
    """What ROCm's headers give: not saturated and saturated, for each format."""
    codes = np.empty((len(values), 8), np.uint8)
    for number, format_ in enumerate(_FORMATS):
        info = ml_dtypes.finfo(format_)
        largest = float(info.max)
        fnuz = number >= 2
        sign = np.where(np.signbit(wide), 0x80, 0).astype(np.uint8)
        top = np.array(largest, format_).view(np.uint8)
        beyond = np.uint8(0x80) if fnuz else sign | np.uint8((0x7F, 0x7C)[number])
        nan = np.uint8(0x80) if fnuz else sign | np.uint8(0x7F)
        nearest = nearest_code(np.clip(np.abs(wide), 0, largest), format_, int(top))
        nearest = np.where(fnuz & (nearest == 0), 0, sign | nearest).astype(np.uint8)
        # Hardware rounds before it compares: half a step above the largest number is still it.
        step = largest - float(np.array(top - 1, np.uint8).view(format_))
        limit = largest + step / 2 if number in hardware else largest
        # A tie above the largest rounds to even: away, where the largest code is odd.
        even = top % 2 == 0
        magnitude = np.abs(wide)
        inside = (magnitude <= limit) if even or number not in hardware else (magnitude < limit)
        infinite = np.isinf(wide)
        for saturated in (0, 1):
            outside = sign | top if saturated else beyond
            result = np.where(inside, nearest, outside)
            result = np.where(infinite, beyond, result)
            codes[:, 4 * saturated + number] = np.where(np.isnan(wide), nan, result)
    return codes


def nearest_code(magnitude: np.ndarray, format_: Any, top: int) -> np.ndarray:
    """The code of the nearest number, of two the even one. ml_dtypes rounds doubles twice."""
    numbers = np.arange(top + 1, dtype=np.uint8).view(format_).astype(np.float64)
    above = np.searchsorted(numbers, np.nan_to_num(magnitude)).clip(1, top)
    twice, total = 2 * magnitude, numbers[above] + numbers[above - 1]
    up = (twice > total) | ((twice == total) & (above % 2 == 0))
    return np.where(up, above, above - 1).astype(np.uint8)


def special_doubles() -> np.ndarray:
    """Every code, every tie between two, and the next doubles and floats on both sides."""
    values: list[np.ndarray] = []
    for format_ in _FORMATS:
        numbers = np.arange(256, dtype=np.uint8).view(format_).astype(np.float64)
        numbers = np.unique(numbers[np.isfinite(numbers)])
        ties = (numbers[1:] + numbers[:-1]) / 2
        edge = float(ml_dtypes.finfo(format_).max)
        outer = edge * np.array([1 + 1 / 64, 1 + 1 / 32, 1 + 1 / 16, 1 + 1 / 8, 2, 1e6])
        values += [numbers, ties, outer, -outer]
    exact = np.unique(np.concatenate(values))
    infinities = np.array([np.inf, -np.inf, np.nan, -np.nan, 1e300, -1e300, 5e-324])
    return np.concatenate(
        [
            exact,
            np.nextafter(exact, np.inf),
            np.nextafter(exact, -np.inf),
            np.nextafter(exact.astype(np.float32), np.float32(np.inf)).astype(np.float64),
            np.nextafter(exact.astype(np.float32), np.float32(-np.inf)).astype(np.float64),
            infinities,
        ]
    )


def test_every_float_to_fp8(convert: Convert) -> None:
    doubles = special_doubles()
    random = np.random.default_rng(5).integers(0, 1 << 32, 20000, np.uint32).view(np.float32)
    floats = np.concatenate([doubles.astype(np.float32), random])
    cases: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "half": (_ALL, _ALL.view(np.float16).astype(np.float64)),
        "bfloat16": (_ALL, _ALL.view(_BFLOAT16).astype(np.float64)),
        "float": (floats, floats.astype(np.float64)),
        "double": (doubles, doubles),
    }
    for name, (inputs, wide) in cases.items():
        for place, codes in convert(name, inputs, np.uint8).items():
            # Doubles have no instruction of their own.
            hardware = () if name == "double" else _HARDWARE[place]
            expected = fp8_codes(inputs, wide, hardware)
            np.testing.assert_array_equal(codes, expected, err_msg=f"{name} on {place}")


def rounded(values: list[int] | list[float], dtype: np.dtype) -> np.ndarray:
    """Codes of a 16-bit type: nearest, toward zero, up and down; ties by exact comparison."""
    table = _ALL.view(dtype).astype(np.float64)
    keep = ~np.isnan(table) & ~((table == 0) & np.signbit(table))
    order = np.argsort(table[keep], kind="stable")
    numbers, codes = table[keep][order], _ALL[keep][order]
    # Comparing Python's numbers with doubles is exact.
    results = []
    for value in values:
        if value != value:
            results.append([0x7E00] * 4)
            continue
        low, high = 0, len(numbers) - 1
        while low < high:  # the largest number that is not above the value
            middle = (low + high + 1) // 2
            low, high = (middle, high) if float(numbers[middle]) <= value else (low, middle - 1)
        down = low
        up = down if float(numbers[down]) == value else down + 1
        below, above = float(numbers[down]), float(numbers[up])
        near = down if up == down else _nearest(value, (down, below), (up, above), codes, numbers)
        zero = down if value > 0 else up
        results.append([int(codes[n]) for n in (near, zero, up, down)])
    return np.array(results, np.uint16)


def _nearest(
    value: float,
    lower: tuple[int, float],
    upper: tuple[int, float],
    codes: np.ndarray,
    numbers: np.ndarray,
) -> int:
    (down, below), (up, above) = lower, upper
    if np.isinf(above):
        above = below + (below - float(numbers[down - 1]))
    if np.isinf(below):
        below = above - (float(numbers[up + 1]) - above)
    twice, total = 2 * value, below + above
    if twice == total:
        return down if codes[down] % 2 == 0 else up
    return down if twice < total else up


def numbers_near(bits: int, signed: bool) -> list[int]:
    """Integers around powers of two, where halves and bfloat16 have ties, and random ones."""
    draw = np.random.default_rng(bits)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    values = {0, 1, low, high, 65504, 65519, 65520, 65521, 65535, 65536}
    for power in range(1, bits):
        for step in range(-3, 4):
            values |= {(1 << power) + step, (1 << power) + step * (1 << max(0, power - 9))}
            values |= {(3 << power) // 2 + (step << max(0, power - 12)) + 1}
    values |= {int(draw.integers(0, 1 << 62)) >> int(draw.integers(0, 62)) for _ in range(500)}
    values |= {-value for value in values}
    return sorted(value for value in values if low <= value <= high)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("int-half", np.int32, np.float16),
        ("ull-half", np.uint64, np.float16),
        ("ll-bfloat16", np.int64, _BFLOAT16),
        ("float-half", np.float32, np.float16),
        ("float-bfloat16", np.float32, _BFLOAT16),
    ],
)
def test_rounding_to_16_bits(convert: Convert, name: str, source: Any, target: Any) -> None:
    if source is np.float32:
        bits = np.random.default_rng(3).integers(0, 1 << 32, 3000, np.uint32)
        ordinary = np.random.default_rng(4).normal(0, 300, 2000).astype(np.float32)
        floats = np.concatenate([bits.view(np.float32), ordinary])
        inputs = floats[np.isfinite(floats)]
        values: list[int] | list[float] = [float(value) for value in inputs]
    else:
        info = np.iinfo(source)
        values = numbers_near(info.bits, info.min < 0)
        inputs = np.array(values, source)
    expected = rounded(values, np.dtype(target))
    for place, codes in convert(name, inputs, np.uint16).items():
        found = codes[:, :4].astype(np.int64)
        # The search has one zero.
        negative_zero = (found == 0x8000) & (expected == 0)
        np.testing.assert_array_equal(
            np.where(negative_zero, 0, found), expected, err_msg=f"{name} on {place}"
        )


@pytest.mark.parametrize(
    ("name", "source", "low", "high"),
    [
        ("half-int", np.float16, -(1 << 31), (1 << 31) - 1),
        ("half-ushort", np.float16, 0, 65535),
        ("bfloat16-ll", _BFLOAT16, -(1 << 63), (1 << 63) - 1),
        ("bfloat16-uint", _BFLOAT16, 0, (1 << 32) - 1),
    ],
)
def test_every_16_bit_float_to_integers(
    convert: Convert, name: str, source: Any, low: int, high: int
) -> None:
    values = _ALL.view(np.dtype(source)).astype(np.float64)
    rules = (np.rint, np.trunc, np.ceil, np.floor)
    expected = [
        [0 if np.isnan(v) else max(low, min(high, _whole(rule(v), low, high))) for rule in rules]
        for v in values
    ]
    for place, found in convert(name, _ALL, np.int64).items():
        np.testing.assert_array_equal(found, np.array(expected), err_msg=f"{name} on {place}")


def _whole(value: float, low: int, high: int) -> int:
    if np.isinf(value):
        return high if value > 0 else low
    return int(value)
