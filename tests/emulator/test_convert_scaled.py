# SPDX-License-Identifier: MIT
"""Conversions under a block scale (gfx950) against ml_dtypes: every code, and sampled floats."""

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Frame, Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

MINI = {
    "fp8": (ml_dtypes.float8_e4m3fn, 8),
    "bf8": (ml_dtypes.float8_e5m2, 8),
    "fp6": (ml_dtypes.float6_e2m3fn, 6),
    "bf6": (ml_dtypes.float6_e3m2fn, 6),
    "fp4": (ml_dtypes.float4_e2m1fn, 4),
}
WIDE = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

# Sources from v[2:35], the scale in v40 (2 to the power of 3), results in v[42:73].
FRAME = Frame(reads=tuple(range(2, 34, 4)), writes=tuple(range(42, 74, 4)))
_BEFORE = "v_mov_b32 v40, 0x41000000\n  v_mov_b32 v42, 0\n  "
TEXT = {
    **{f"f32_{m}": f"v_cvt_scalef32_f32_{m} v42, v2, v40 op_sel:[1,0,0]" for m in ("fp8", "bf8")},
    **{
        f"pk_{w}_{m}": f"v_cvt_scalef32_pk_{w}_{m} "
        f"{'v[42:43]' if w == 'f32' else 'v42'}, v2, v40 op_sel:[1,0,0]"
        for w in WIDE
        for m in ("fp8", "bf8", "fp4")
    },
    **{
        f"pk_{m}_{w}": f"v_cvt_scalef32_pk_{m}_{w} v42, v2, {'v3, ' if w == 'f32' else ''}v40"
        for w in WIDE
        for m in ("fp8", "bf8", "fp4")
    },
    **{
        f"pk32_{w}_{m}": f"v_cvt_scalef32_pk32_{w}_{m} "
        f"v[42:{73 if w == 'f32' else 57}], v[2:7], v40"
        for w in WIDE
        for m in ("fp6", "bf6")
    },
    **{
        f"pk32_{m}_{w}": f"v_cvt_scalef32_pk32_{m}_{w} v[42:47], v[2:17], v40"
        for w in ("f16", "bf16")
        for m in ("fp6", "bf6")
    },
    **{
        f"2xpk16_{m}_f32": f"v_cvt_scalef32_2xpk16_{m}_f32 v[42:47], v[2:17], v[18:33], v40"
        for m in ("fp6", "bf6")
    },
}


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {name: FRAME.body(_BEFORE + text) for name, text in TEXT.items()}
    return assembled(bodies, "gfx950")


def unpack(rows: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first `count` fields of `bits` bits in each row of bytes."""
    spread = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little")
    fields = spread[:, : bits * count].reshape(len(rows), count, bits)
    return (fields @ (1 << np.arange(bits))).astype(np.uint8)


def wide_values(rows: np.ndarray, wide: str, count: int) -> np.ndarray:
    return np.ascontiguousarray(rows).view(WIDE[wide])[:, :count].astype(np.float64)


@pytest.mark.parametrize("name", [n for n in TEXT if n.split("_")[-1] in MINI])
def test_to_wide(module: Module, name: str) -> None:
    *_, wide, mini = name.split("_")
    dtype, bits = MINI[mini]
    packed = "pk32" in name
    count = 32 if packed else 2 if "pk" in name else 1
    data = np.random.default_rng(3).integers(0, 2**32, (64, 6), dtype=np.uint32)
    if not packed:  # op_sel picks the second byte, or the second word of 8-bit pairs
        data[:, 0] = np.arange(64, dtype=np.uint32) * 0x04040404 + 0x03020100
    output = FRAME.run(module, name, data)
    shift = 0 if packed else 16 if count == 2 and bits == 8 else 8
    source = data.copy()
    source[:, 0] >>= shift
    codes = unpack(source, bits, count)
    want = codes.view(dtype).astype(np.float64) * 8
    got = wide_values(output, wide, count)
    limit = float(ml_dtypes.finfo(WIDE[wide]).max)
    with np.errstate(invalid="ignore"):
        want = np.where(abs(want) > limit, np.sign(want) * np.inf, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", [n for n in TEXT if n.split("_")[-1] in WIDE])
def test_to_narrow(module: Module, name: str) -> None:
    _, mini, wide = name.split("_")
    dtype, bits = MINI[mini]
    count = 2 if name.startswith("pk_") else 32
    rng = np.random.default_rng(5)
    values = rng.normal(size=(64, count)) * 2.0 ** rng.integers(-8, 6, (64, count))
    values[0, :2], values[1, :2] = (-0.0, 1e-9), (1e4, -1e4)
    values = values.astype(WIDE[wide])
    order = values
    if "2xpk16" in name:  # elements of both sources by turns
        order = np.concatenate([values[:, ::2], values[:, 1::2]], axis=1)
    output = FRAME.run(module, name, np.ascontiguousarray(order).view(np.uint32))
    scaled = values.astype(np.float64) / 8
    largest = float(ml_dtypes.finfo(dtype).max)
    if bits < 8:
        scaled = np.clip(scaled, -largest, largest)
    want = scaled.astype(np.float32).astype(dtype)
    np.testing.assert_array_equal(unpack(output, bits, count), want.view(np.uint8))


def every(wide: str, mini: str) -> np.ndarray:
    """All values of a 16-bit type; of f32 all that bf16 has, and all ties with their neighbours."""
    if wide != "f32":
        return np.arange(1 << 16, dtype=np.uint16).view(WIDE[wide])
    dtype, bits = MINI[mini]
    numbers = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    numbers = np.unique(abs(numbers[np.isfinite(numbers)]))
    ties = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) / 2  # where infinity would begin
    edges = (8 * np.concatenate([numbers, ties, [beyond]])).astype(np.float32)
    near = [np.nextafter(edges, np.float32(to)) for to in (-np.inf, np.inf)]
    short = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32)
    return np.concatenate([short, edges, -edges, *near, *(-values for values in near)])


@pytest.mark.parametrize("name", [n for n in TEXT if n.split("_")[-1] in WIDE])
def test_every_value_to_narrow(module: Module, name: str) -> None:
    """Ties go to even; beyond the largest number 6 and 4 bits saturate, NaN too."""
    _, mini, wide = name.split("_")
    dtype, bits = MINI[mini]
    count = 2 if name.startswith("pk_") else 32
    values = every(wide, mini)
    values = np.concatenate([values, np.zeros(-len(values) % (64 * count), WIDE[wide])])
    rows = values.reshape(-1, 64, count)
    order = rows
    if "2xpk16" in name:
        order = np.concatenate([rows[..., ::2], rows[..., 1::2]], axis=2)
    outputs = [FRAME.run(module, name, row) for row in np.ascontiguousarray(order).view(np.uint32)]
    got = np.concatenate([unpack(output, bits, count) for output in outputs]).ravel()
    with np.errstate(invalid="ignore"):
        exact = values.astype(np.float64) / 8
    nan = np.isnan(exact)
    largest = float(ml_dtypes.finfo(dtype).max)
    if bits < 8:
        exact = np.clip(exact, -largest, largest)
    with np.errstate(invalid="ignore", over="ignore"):
        want = exact.astype(np.float32).astype(dtype)
    np.testing.assert_array_equal(got[~nan], want.view(np.uint8)[~nan])
    numbers = got[nan].view(dtype).astype(np.float32)
    assert (abs(numbers) == largest).all() if bits < 8 else np.isnan(numbers).all()
