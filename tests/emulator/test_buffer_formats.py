# SPDX-License-Identifier: MIT
"""Buffer loads and stores that convert: every data format, every number format, D16, selection."""

from dataclasses import dataclass

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

F32, F64, U32 = np.float32, np.float64, np.uint32
#: Bits of the components, the lowest first, by number of the data format.
LAYOUTS = {
    1: (8,), 2: (16,), 3: (8, 8), 4: (32,), 5: (16, 16), 6: (11, 11, 10), 7: (10, 11, 11),
    8: (2, 10, 10, 10), 9: (10, 10, 10, 2), 10: (8, 8, 8, 8), 11: (32, 32), 12: (16, 16, 16, 16),
    13: (32, 32, 32), 14: (32, 32, 32, 32),
}  # fmt: skip
NUMBERS = ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", None, "float")
FORMATS = [
    (data, number)
    for data, bits in LAYOUTS.items()
    for number, name in enumerate(NUMBERS)
    if name is not None
    and (bits[0] >= 16 or data in (6, 7) if name == "float" else bits[0] < 32 or "int" in name)
]


@dataclass(frozen=True, slots=True)
class Access:
    """One kernel: 64 records of 16 bytes are read or written through a descriptor."""

    text: str
    store: bool


# The descriptor's base is the source (loads) or the output (stores); word 3 comes from the source's
# end, so that one kernel serves every format. Registers v[4:7] are what is loaded or stored.
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  s_load_dword s11, s[4:5], 0x400
  s_mov_b32 s10, 0x400
  s_mov_b32 s8, {base}
  s_and_b32 s9, {base_high}, 0xffff
{prepare}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  {text}
  s_waitcnt vmcnt(0)
{finish}
"""
_LOAD = ("", "  global_store_dwordx4 v1, v[4:7], s[6:7]")
_STORE = ("  global_load_dwordx4 v[4:7], v1, s[4:5]", "")


def body(access: Access) -> str:
    prepare, finish = _STORE if access.store else _LOAD
    if not access.store:
        prepare = "\n".join(f"  v_mov_b32 v{n}, -1" for n in range(4, 8))
    pair = ("s6", "s7") if access.store else ("s4", "s5")
    return _BODY.format(
        base=pair[0], base_high=pair[1], prepare=prepare, text=access.text, finish=finish
    )


def typed(data: int, number: int, kind: str, count: int) -> str:
    letters, last = "xyzw"[:count], 3 + count
    span = "v4" if count == 1 else f"v[4:{last}]"
    return (
        f"tbuffer_{kind}_format_{letters} {span}, v1, s[8:11], 0 format:{data | number << 4} offen"
    )


KERNELS = {
    **{f"load_{d}_{n}": Access(typed(d, n, "load", 4), False) for d, n in FORMATS},
    **{f"store_{d}_{n}": Access(typed(d, n, "store", 4), True) for d, n in FORMATS},
    "resource": Access("buffer_load_format_xyzw v[4:7], v1, s[8:11], 0 offen", False),
    "resource_store": Access("buffer_store_format_xyzw v[4:7], v1, s[8:11], 0 offen", True),
    "one": Access("buffer_load_format_x v4, v1, s[8:11], 0 offen", False),
    "halves": Access("buffer_load_format_d16_xyz v[4:5], v1, s[8:11], 0 offen", False),
    "high_half": Access("buffer_load_format_d16_hi_x v4, v1, s[8:11], 0 offen", False),
    "store_halves": Access("buffer_store_format_d16_xyzw v[4:5], v1, s[8:11], 0 offen", True),
    "beyond": Access(
        "s_mov_b32 s10, 0x20a\n  buffer_load_format_xyzw v[4:7], v1, s[8:11], 0 offen", False
    ),
    "too_few": Access("buffer_store_format_x v4, v1, s[8:11], 0 offen", True),
}


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {name: body(access) for name, access in KERNELS.items()}
    return assembled(bodies)


def word3(data: int, number: int, select: tuple[int, ...] = (4, 5, 6, 7)) -> int:
    return sum(s << 3 * n for n, s in enumerate(select)) | number << 12 | data << 15


def run(module: Module, name: str, records: np.ndarray, word: int) -> np.ndarray:
    """`records`: [64, 4] dwords; the output in the same shape."""
    source = np.zeros(257, U32)
    source[:256] = records.reshape(-1)
    source[256] = word
    output = np.zeros((64, 4), U32)
    assert module.launch(name, source, output) == "hipSuccess", emulator.last_error()
    return output


def fields(records: np.ndarray, bits: tuple[int, ...]) -> list[np.ndarray]:
    """The components' codes of each record, as Python integers."""
    values = [int.from_bytes(row.tobytes(), "little") for row in records]
    components, at = [], 0
    for width in bits:
        components.append(np.array([v >> at & ((1 << width) - 1) for v in values], np.int64))
        at += width
    return components


def small_float(code: np.ndarray, bits: int) -> np.ndarray:
    """f16, or a float without sign: five bits of exponent and the rest mantissa."""
    if bits == 32:
        with np.errstate(invalid="ignore"):
            return code.astype(U32).view(F32).astype(F64)
    if bits == 16:
        with np.errstate(invalid="ignore"):
            return code.astype(np.uint16).view(np.float16).astype(F64)
    mantissa = bits - 5
    exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    value = np.where(
        exponent == 0,
        np.ldexp(fraction.astype(F64), -14 - mantissa),
        np.ldexp(1 + fraction / 2.0**mantissa, exponent.astype(int) - 15),
    )
    return np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), value)


def widened(code: np.ndarray, bits: int, number: str) -> np.ndarray:
    """Bits of a register from a component."""
    signed = np.where(code >> (bits - 1) & 1, code - (1 << bits), code)
    if number in ("uint", "sint"):
        return (code if number == "uint" else signed).astype(np.int64).astype(U32)
    real = {
        "unorm": lambda: code / (2.0**bits - 1),
        "snorm": lambda: np.maximum(signed / (2.0 ** (bits - 1) - 1), -1),
        "uscaled": lambda: code.astype(F64),
        "sscaled": lambda: signed.astype(F64),
        "float": lambda: small_float(code, bits),
    }[number]()
    with np.errstate(invalid="ignore"):
        return real.astype(F32).view(U32)


def same(got: np.ndarray, want: np.ndarray, number: str) -> None:
    if number in ("uint", "sint"):
        np.testing.assert_array_equal(got, want)
        return
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got.view(F32), want.view(F32))


@pytest.mark.parametrize(("data", "number"), FORMATS)
def test_loads(module: Module, data: int, number: int) -> None:
    records = np.random.default_rng(data).integers(0, 1 << 32, (64, 4), dtype=U32)
    records[:4] = np.array([0, 0xFFFFFFFF, 0x80808080, 0x7FFF7FFF], U32)[:, None]
    name, bits = str(NUMBERS[number]), LAYOUTS[data]
    got = run(module, f"load_{data}_{number}", records, 0)
    one = U32(1) if "int" in name else F32(1).view(U32)
    parts = [
        widened(code, width, name) for code, width in zip(fields(records, bits), bits, strict=True)
    ]
    for n in range(4):
        default = np.full(64, one if n == 3 else 0, U32)
        same(got[:, n], parts[n] if n < len(parts) else default, name)


def narrowed(values: np.ndarray, bits: int, number: str) -> np.ndarray:
    """The codes a store makes of registers: saturated, NaN as 0; floats within half a unit."""
    top = 2**bits - 1
    if number == "uint":
        return np.minimum(values.astype(np.int64), top)
    if number == "sint":
        low = -(1 << (bits - 1))
        return np.clip(values.view(np.int32).astype(np.int64), low, -low - 1) & top
    real = np.nan_to_num(values.view(F32).astype(F64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    half = 2 ** (bits - 1) - 1
    return {
        "unorm": lambda: np.rint(np.clip(real, 0, 1) * top),
        "snorm": lambda: np.rint(np.clip(real, -1, 1) * half),
        "uscaled": lambda: np.trunc(np.clip(real, 0, top)),
        "sscaled": lambda: np.trunc(np.clip(real, -half - 1, half)),
    }[number]().astype(np.int64) & top


@pytest.mark.parametrize(("data", "number"), FORMATS)
def test_stores(module: Module, data: int, number: int) -> None:
    rng = np.random.default_rng(number)
    name, bits = str(NUMBERS[number]), LAYOUTS[data]
    if "int" in name:
        values = rng.integers(0, 1 << 32, (64, 4), dtype=U32)
        values[:32] &= U32(0x3FF)
    else:
        scale = np.exp2(rng.integers(-16, 16, (64, 4))) if "norm" not in name else 1
        values = (rng.normal(size=(64, 4)) * scale).astype(F32).view(U32)
        values[0] = np.array([np.nan, np.inf, -np.inf, 0], F32).view(U32)
    codes = fields(run(module, f"store_{data}_{number}", values, 0), bits)
    for n, (code, width) in enumerate(zip(codes, bits, strict=True)):
        if name != "float":
            np.testing.assert_array_equal(code, narrowed(values[:, n], width, name))
        elif width >= 16:
            with np.errstate(over="ignore"):
                want = values[:, n].view(F32).astype(np.float16 if width == 16 else F32)
            np.testing.assert_array_equal(small_float(code, width), want.astype(F64))
        else:
            nearest_small(values[:, n].view(F32).astype(F64), code, width)


def nearest_small(real: np.ndarray, code: np.ndarray, bits: int) -> None:
    """Each code is the nearest of the format's (even at ties), negative numbers are 0."""
    table = small_float(np.arange(31 << (bits - 5)), bits)
    for value, got in zip(real, code, strict=True):
        if np.isnan(value):
            assert np.isnan(small_float(np.array([got]), bits)[0])
        elif value <= 0:
            assert got == 0
        elif value >= table[-1] + (table[-1] - table[-2]) / 2:
            assert got == 31 << (bits - 5)
        else:
            distance = abs(table - value)
            nearest = np.flatnonzero(distance == distance.min())
            assert got == (nearest[nearest % 2 == 0][0] if len(nearest) > 1 else nearest[0])


def test_the_resource_chooses_format_and_order(module: Module) -> None:
    records = np.random.default_rng(0).integers(0, 1 << 32, (64, 4), dtype=U32)
    r, g, b, _ = (widened(c, 8, "unorm") for c in fields(records, LAYOUTS[10]))
    got = run(module, "resource", records, word3(10, 0, (6, 5, 4, 1)))
    np.testing.assert_array_equal(got[:, :3], np.stack([b, g, r], 1))
    assert (got[:, 3].view(F32) == 1).all()
    alone = run(module, "one", records, word3(10, 4, (7, 0, 0, 0)))
    np.testing.assert_array_equal(alone[:, 0], records[:, 0] >> 24)
    assert (alone[:, 1:] == 0xFFFFFFFF).all()
    back = run(module, "resource_store", got, word3(10, 0, (6, 5, 4, 7)))
    np.testing.assert_array_equal(back[:, 0] & 0xFFFFFF, records[:, 0] & 0xFFFFFF)


def test_halves(module: Module) -> None:
    records = np.random.default_rng(1).integers(0, 1 << 32, (64, 4), dtype=U32)
    want = [
        widened(c, 8, "snorm").view(F32).astype(np.float16)
        for c in fields(records, LAYOUTS[10])[:3]
    ]
    got = run(module, "halves", records, word3(10, 1)).view(np.uint16)
    np.testing.assert_array_equal(got[:, :3], np.stack(want, 1).view(np.uint16))
    assert (got[:, 3] == 0xFFFF).all()  # the half that no component takes stays
    high = run(module, "high_half", records, word3(2, 5)).view(np.uint16)
    np.testing.assert_array_equal(high[:, 1], records[:, 0].astype(np.uint16))
    assert (high[:, 0] == 0xFFFF).all()
    halves = np.random.default_rng(2).normal(size=(64, 8)).astype(np.float16)
    stored = run(module, "store_halves", halves.view(U32), word3(14, 7))
    np.testing.assert_array_equal(stored.view(F32), halves[:, :4].astype(F32))


@pytest.mark.parametrize(
    ("name", "word", "message"),
    [
        ("one", word3(4, 0), "no format with data format 4 and number format 0"),
        ("one", word3(15, 4), "no format with data format 15"),
        ("too_few", word3(3, 0), "store of 1 components to a format of 2"),
    ],
)
def test_what_does_not_exist_is_refused(module: Module, name: str, word: int, message: str) -> None:
    source = np.zeros(257, U32)
    source[256] = word
    assert message in module.fault(name, source, np.zeros((64, 4), U32))


def test_out_of_range_is_zero(module: Module) -> None:
    """Elements that end behind num_records read as zeros; the component that is missing stays 1."""
    records = np.full((64, 4), 0xFFFFFFFF, U32)
    got = run(module, "beyond", records, word3(13, 4))
    assert (got[:32, :3] == 0xFFFFFFFF).all()
    assert (got[32:, :3] == 0).all()
    assert (got[:, 3] == 1).all()
