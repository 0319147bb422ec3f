# SPDX-License-Identifier: MIT
"""``hiprand_kernel.h``, ``rocrand_kernel.h``: bits by the papers, distributions by formulas.

The references here are written from the papers and checked against the vectors that these publish;
kernels and host are compared with them.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest

from tests.support.hip_programs import built, run

_THREADS, _MANY = 64, 256
_DRAWN = np.dtype(
    [
        ("bits", np.uint32, 16),
        ("unit", np.float32, 4),
        ("wide_unit", np.float64, 4),
        ("normal", np.float32, 6),
        ("wide_normal", np.float64, 6),
        ("log_normal", np.float32, 4),
        ("after_sequence", np.uint32, 2),
        ("normals", np.float32, _MANY),
        ("poissons", np.uint32, _MANY),
    ],
    align=True,
)
_WORD = 0xFFFFFFFF


def philox_block(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """Ten rounds of Philox4x32."""
    a, b, c, d = counter
    k, l = key  # noqa: E741
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = right >> 32 ^ b ^ k, right & _WORD, left >> 32 ^ d ^ l, left & _WORD
        k, l = k + 0x9E3779B9 & _WORD, l + 0xBB67AE85 & _WORD  # noqa: E741
    return a, b, c, d


def philox(seed: int, subsequence: int, offset: int) -> Iterator[int]:
    first = (subsequence << 64) + offset // 4
    skip = offset % 4
    for counter in range(first, first + (1 << 20)):
        words = tuple(counter >> 32 * n & _WORD for n in range(4))
        yield from philox_block(words, (seed & _WORD, seed >> 32))[skip:]
        skip = 0


def _xorwow_step(x: list[int]) -> list[int]:
    first = x[0] ^ x[0] >> 2
    return [*x[1:], x[4] ^ x[4] << 4 & _WORD ^ first ^ first << 1 & _WORD]


def _matrix_power(count: int) -> list[int]:
    """The state after so many steps, from each of its 160 bits: matrices of bits, squared."""

    def product(rows: list[int], vector: int) -> int:
        total = 0
        while vector:
            low = vector & -vector
            total ^= rows[low.bit_length() - 1]
            vector ^= low
        return total

    def packed(x: list[int]) -> int:
        return sum(word << 32 * n for n, word in enumerate(x))

    def stepped(bit: int) -> int:
        x = [1 << bit >> 32 * n & _WORD for n in range(5)]
        return packed(_xorwow_step(x))

    power, result = [stepped(bit) for bit in range(160)], [1 << bit for bit in range(160)]
    while count:
        if count & 1:
            result = [product(power, column) for column in result]
        power = [product(power, column) for column in power]
        count >>= 1
    return result


def xorwow(seed: int, subsequence: int, offset: int) -> Iterator[int]:
    low = 1228688033 * (seed & _WORD ^ 0x2C7F967F) & _WORD
    high = 2073658381 * (seed >> 32 ^ 0xA03697CB) & _WORD
    x = [123456789, 362436069, 521288629, 88675123, 5783321]
    x = [x[0] + low & _WORD, x[1] ^ low, x[2] + high & _WORD, x[3] ^ high, x[4] + low & _WORD]
    counter = 6615241 + low + high + 362437 * offset
    state = sum(word << 32 * n for n, word in enumerate(x))
    after = 0
    for bit, column in enumerate(_matrix_power((subsequence << 67) + offset)):
        after ^= column * (state >> bit & 1)
    x = [after >> 32 * n & _WORD for n in range(5)]
    while True:
        x, counter = _xorwow_step(x), counter + 362437 & _WORD
        yield counter + x[4] & _WORD


_M1, _M2 = 4294967087, 4294944443


def mrg_from(s1: list[int], s2: list[int]) -> Iterator[int]:
    """MRG32k3a from its six seeds: numbers from 1 to m1."""
    while True:
        s1 = [*s1[1:], (1403580 * s1[1] - 810728 * s1[0]) % _M1]
        s2 = [*s2[1:], (527612 * s2[2] - 1370589 * s2[0]) % _M2]
        yield (s1[2] - s2[2] - 1) % _M1 + 1


def _jumped(matrix: list[list[int]], modulus: int, count: int, s: list[int]) -> list[int]:
    def product(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
        return [
            [sum(x * y[n] for x, y in zip(row, b, strict=True)) % modulus for n in range(len(b[0]))]
            for row in a
        ]

    columns = [[value] for value in s]
    while count:
        if count & 1:
            columns = product(matrix, columns)
        matrix = product(matrix, matrix)
        count >>= 1
    return [value for (value,) in columns]


def mrg32k3a(seed: int, subsequence: int, offset: int) -> Iterator[int]:
    seed = seed or 12345
    x, y = seed & _WORD ^ 0x55555555, seed >> 32 ^ 0xAAAAAAAA
    count = (subsequence << 76) + offset
    one = [[0, 1, 0], [0, 0, 1], [-810728, 1403580, 0]]
    two = [[0, 1, 0], [0, 0, 1], [-1370589, 0, 527612]]
    s1 = _jumped(one, _M1, count, [x * seed % _M1, y * seed % _M1, x * seed % _M1])
    s2 = _jumped(two, _M2, count, [y * seed % _M2, x * seed % _M2, y * seed % _M2])
    return mrg_from(s1, s2)


_REFERENCE = {"philox": philox, "xorwow": xorwow, "mrg32k3a": mrg32k3a}


def test_the_references_give_the_published_vectors() -> None:
    """Random123's ``kat_vectors`` and L'Ecuyer's first numbers for seeds of 12345."""
    assert philox_block((0,) * 4, (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = philox_block((_WORD,) * 4, (_WORD, _WORD))
    assert ones == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    digits = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    of_pi = philox_block(digits, (0xA4093822, 0x299F31D0))
    assert of_pi == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    numbers = [value / (_M1 + 1) for value in islice(mrg_from([12345] * 3, [12345] * 3), 3)]
    np.testing.assert_allclose(numbers, [0.127011122046577, 0.318527565396794, 0.309186015583270])
    jumped = list(islice(xorwow(7, 0, 700), 4))
    assert jumped == list(islice(xorwow(7, 0, 0), 700, 704))


Draw = Callable[..., tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Draw:
    """A function of what the program takes: records of each thread, of the device and the host."""
    folder = tmp_path_factory.mktemp("random")
    program = built("random_numbers", "gfx942")

    def drawn(*words: object, mean: float = 5) -> tuple[np.ndarray, np.ndarray]:
        run(program, *words, mean, folder / "out", CKLANG_GPUS="gfx942").check_returncode()
        device, host = np.fromfile(folder / "out", _DRAWN).reshape(2, _THREADS)
        return device, host

    return drawn


_CASES = (
    ("philox", 0, 0, 0, 0),
    ("philox", (1 << 64) - 1, (1 << 64) - 1, 12, 0),
    ("philox", 0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88, 3),
    ("philox", 5, 77, 7, 1),
    ("xorwow", 0xA03697CB2C7F967F, 0, 0, 0),  # Marsaglia's own seeds
    ("xorwow", 1234, 0, 1000, 2),
    ("xorwow", 99, 1 << 20, 1 << 40, 0),
    ("mrg32k3a", 12345, 0, 0, 0),
    ("mrg32k3a", 0, 3, 10, 1),
    ("mrg32k3a", 4321, 1 << 33, 1 << 50, 0),
)


def _scaled(name: str, raw: np.ndarray) -> np.ndarray:
    """All 32 bits of a generator's numbers."""
    return ((raw - 1) * 1.000000048661607).astype(np.int64) if name == "mrg32k3a" else raw


def _pairs(raw: np.ndarray, name: str) -> np.ndarray:
    """Normal numbers in single precision, from pairs of numbers."""
    if name == "mrg32k3a":
        u, angle = raw[0::2] / _M1, raw[1::2] / _M1 * 2 * np.pi
    else:
        u, angle = (raw[0::2] + 1) * 2.0**-32, (raw[1::2] + 1) * 2.0**-32 * 2 * np.pi
    size = np.sqrt(-2 * np.log(u))
    return np.stack([size * np.sin(angle), size * np.cos(angle)], 1).ravel()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("case", _CASES, ids=str)
def test_numbers_are_those_of_the_paper(draw: Draw, case: tuple[str, int, int, int, int]) -> None:
    name, seed, subsequence, offset, skips = case
    device, host = draw(*case)
    for thread in (0, 1, 63):
        begin = subsequence + thread & (1 << 64) - 1
        numbers = _REFERENCE[name](seed, begin, offset * (skips + 1) & (1 << 66) - 1)
        raw = np.array(list(islice(numbers, 40)), np.int64)
        for records in (device[thread], host[thread]):
            np.testing.assert_array_equal(records["bits"], _scaled(name, raw[:16]))
            later = raw[16:]
            one: np.ndarray = later[:4] / _M1 if name == "mrg32k3a" else (later[:4] + 1) * 2.0**-32
            np.testing.assert_allclose(records["unit"], one.astype(np.float32), rtol=1.2e-7)
            if name == "mrg32k3a":
                wide: np.ndarray = later[:4] / _M1
            else:
                wide = ((later[:8:2] | later[1:8:2] >> 11 << 32) + 1) * 2.0**-53
            np.testing.assert_allclose(records["wide_unit"], wide, rtol=1e-15)
            normal = _pairs(later[:6], name)
            np.testing.assert_allclose(records["normal"], normal, rtol=2e-6, atol=2e-6)
            np.testing.assert_allclose(
                records["log_normal"][:2], np.exp(0.5 + 0.25 * normal[:2]), rtol=2e-6
            )


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", _REFERENCE)
def test_sequences_are_far_apart(draw: Draw, name: str) -> None:
    """A sequence is skipped behind 16 numbers, then three subsequences behind one more."""
    device, host = draw(name, 11, 2, 0, 0)
    np.testing.assert_array_equal(device["after_sequence"], host["after_sequence"])
    first = 1 << 51 if name == "mrg32k3a" else 1  # 2^127 numbers, in subsequences of 2^76
    wanted = [
        next(_REFERENCE[name](11, 2 + first, 16)),
        next(_REFERENCE[name](11, 2 + first + 3, 17)),
    ]
    np.testing.assert_array_equal(
        device["after_sequence"][0], _scaled(name, np.array(wanted, np.int64))
    )


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("name", "mean"), [("philox", 5.0), ("xorwow", 200.0), ("mrg32k3a", 9000.0)]
)
def test_moments(draw: Draw, name: str, mean: float) -> None:
    """Of 16,384 numbers: within five standard errors. Device and host draw the same."""
    device, host = draw(name, 2024, 0, 0, 0, mean=mean)
    np.testing.assert_allclose(device["normals"], host["normals"], rtol=3e-6, atol=3e-6)
    assert (device["poissons"] == host["poissons"]).mean() > 0.999  # ties of rounding
    count = _THREADS * _MANY
    normal, poisson = device["normals"].astype(np.float64).ravel(), device["poissons"].ravel()
    assert abs(normal.mean()) < 5 / count**0.5
    assert abs(normal.var() - 1) < 5 * (2 / count) ** 0.5
    assert abs((normal**4).mean() - 3) < 5 * (96 / count) ** 0.5
    assert abs(poisson.mean() - mean) < 5 * (mean / count) ** 0.5
    assert abs(poisson.var() / mean - 1) < 5 * ((2 + 1 / mean) / count) ** 0.5
    wide = device["wide_normal"]
    np.testing.assert_allclose(wide, host["wide_normal"], rtol=1e-12, atol=1e-13)
    assert abs(wide.mean()) < 5 / wide.size**0.5
    assert abs(wide.var() - 1) < 5 * (2 / wide.size) ** 0.5
