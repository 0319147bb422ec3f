# SPDX-License-Identifier: MIT
"""How matrix products are rounded: "exact" and "cdna3" against rational arithmetic, bit by bit."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from cklang import emulator, knobs
from cklang.errors import CkValueError
from tests.support.assembly import CDNA, Frame, Module, assembled
from tests.support.numerics_model import Model, cdna3, exact

pytestmark = pytest.mark.usefixtures("emulator")

LANE = np.arange(64)
F32, F64 = np.float32, np.float64
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A dense product of one block or more: its text, operand types, and published model."""

    name: str
    shape: tuple[int, int, int]
    """Rows, depth, blocks."""
    types: tuple[type, type]
    model: Model | None = None
    """None: fused multiply-adds in order of K."""

    @property
    def per_lane(self) -> int:
        size, depth, blocks = self.shape
        return size * depth * blocks // 64

    @property
    def rows(self) -> int:
        size, _, blocks = self.shape
        return size * size * blocks // 64


HALF, BRAIN = Model(group=8, lowest=(-14, -14)), Model(group=8)
E4, E5 = -7, -15
PRODUCTS = [
    Product(name="f32_16x16x16_f16", shape=(16, 16, 1), types=(np.float16,) * 2, model=HALF),
    Product(name="f32_32x32x8_f16", shape=(32, 8, 1), types=(np.float16,) * 2, model=HALF),
    Product(name="f32_4x4x4_16b_f16", shape=(4, 4, 16), types=(np.float16,) * 2,
            model=Model(group=4, lowest=(-14, -14))),
    Product(name="f32_16x16x16_bf16", shape=(16, 16, 1), types=(ml_dtypes.bfloat16,) * 2,
            model=BRAIN),
    Product(name="f32_16x16x32_fp8_fp8", shape=(16, 32, 1), types=(FNUZ["fp8"],) * 2,
            model=Model(group=16, split=True, lowest=(E4, E4))),
    Product(name="f32_32x32x16_bf8_fp8", shape=(32, 16, 1), types=(FNUZ["bf8"], FNUZ["fp8"]),
            model=Model(group=16, split=True, lowest=(E5, E4))),
    Product(name="f32_16x16x8_xf32", shape=(16, 8, 1), types=(F32, F32), model=Model(group=4)),
    Product(name="f32_16x16x4_f32", shape=(16, 4, 1), types=(F32, F32)),
]  # fmt: skip
# Each lane brings two dwords of A, two of B, and 16 of C from dword 4 on.
FRAME = Frame(reads=tuple(range(16, 36, 4)), writes=tuple(range(20, 36, 4)))
_F64 = "v_mfma_f64_16x16x4_f64 v[20:27], v[16:17], v[18:19], v[20:27]"


def text(product: Product) -> str:
    size = product.per_lane * np.dtype(product.types[0]).itemsize // 4
    a, b = ("v16", "v18") if size == 1 else ("v[16:17]", "v[18:19]")
    d = f"v[20:{19 + product.rows}]"
    return f"v_mfma_{product.name} {d}, {a}, {b}, {d}"


BODIES = {product.name: FRAME.body(text(product)) for product in PRODUCTS}


@pytest.fixture(scope="module")
def module() -> Module:
    return assembled(BODIES | {"f64": FRAME.body(_F64)})


def operand(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random bits for "wild" (all exponents, subnormals, infinities, NaN), else normal numbers.

    Only the first two rows of a wild matrix hold infinities and NaN, which hide everything else.
    """
    if kind == "wild":
        bits = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
        wild: np.ndarray = bits.view(dtype)[..., 0]
        rest = wild[:, 2:]
        with np.errstate(invalid="ignore"):
            rest[~np.isfinite(rest.astype(F32))] = 1
        return wild
    scale = np.exp2(rng.integers(-8, 9, shape)) if kind == "spread" else 1.0
    with np.errstate(over="ignore"):
        return (rng.normal(size=shape) * scale).astype(F32).astype(dtype)


def addend(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    scale = np.exp2(rng.integers(-60, 40, shape)) if kind != "plain" else 1.0
    return (rng.normal(size=shape) * scale).astype(F32)


def places(product: Product) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Block, row and column of D for [lane, register]."""
    size, _, _ = product.shape
    lane, r = LANE[:, None], np.arange(product.rows)[None, :]
    zero = np.zeros_like(lane * r)
    if size == 32:
        return zero, 8 * (r // 4) + 4 * (lane // 32) + r % 4, lane % 32 + zero
    if size == 16:
        return zero, 4 * (lane // 16) + r, lane % 16 + zero
    return lane // 4 + zero, r + zero, lane % 4 + zero


def run(
    module: Module, product: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """a, b: [block, row, k]; c: [block, row, column]; D in the same order."""
    size, _, blocks = product.shape
    data = np.zeros((64, 20), np.uint32)
    row, block, group = LANE % size, LANE // size % blocks, LANE // (size * blocks)
    for start, matrix in ((0, a), (2, b)):
        lanes = matrix[block, row].reshape(64, -1, product.per_lane)[LANE, group]
        words = np.ascontiguousarray(lanes).view(np.uint32)
        data[:, start : start + words.shape[1]] = words
    where = places(product)
    data[:, 4 : 4 + product.rows] = c[where].view(np.uint32)
    output = FRAME.run(module, product.name, data)
    d = np.empty((blocks, size, size), F32)
    d[where] = output[:, : product.rows].copy().view(F32)
    return d


def problem(product: Product, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size, depth, blocks = product.shape
    rng = np.random.default_rng(len(product.name) + len(kind))
    a, b = (operand(rng, kind, (blocks, size, depth), dtype) for dtype in product.types)
    return a, b, addend(rng, kind, (blocks, size, size))


def as_read(product: Product, matrix: np.ndarray) -> np.ndarray:
    """Operands as the unit sees them: xf32 keeps ten bits of the mantissa."""
    if "xf32" in product.name:
        matrix = (matrix.view(np.uint32) & np.uint32(0xFFFFE000)).view(F32)
    with np.errstate(invalid="ignore"):
        return matrix.astype(F64)


def chain(a: np.ndarray, b: np.ndarray, c: float) -> float:
    for x, y in zip(a, b, strict=True):
        c = exact(np.array([x]), np.array([y]), c)
    return c


def check(product: Product, got: np.ndarray, matrices: tuple[np.ndarray, ...], rule: object) -> int:
    """Compare some elements bit by bit (NaN with NaN); how many differ from the exact sum."""
    a, b = (as_read(product, matrix) for matrix in matrices[:2])
    c, differs = matrices[2], 0
    size, _, blocks = product.shape
    rng = np.random.default_rng(1)
    for _ in range(150):
        block, i, j = rng.integers(blocks), rng.integers(size), rng.integers(size)
        arguments = a[block, i], b[block, j], float(c[block, i, j])
        want = F32(rule(*arguments))  # type: ignore[operator]
        np.testing.assert_array_equal(got[block, i, j], want, err_msg=f"{product.name} {i} {j}")
        differs += not np.array_equal(want, F32(exact(*arguments)), equal_nan=True)
    return differs


@pytest.mark.parametrize("kind", ["plain", "spread", "wild"])
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_exact(module: Module, product: Product, kind: str) -> None:
    emulator.numerics("exact")
    matrices = problem(product, kind)
    assert check(product, run(module, product, *matrices), matrices, exact) == 0


@pytest.mark.parametrize("kind", ["plain", "spread", "wild"])
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_cdna3(module: Module, product: Product, kind: str) -> None:
    emulator.numerics("cdna3")
    matrices = problem(product, kind)
    model = product.model
    rule = chain if model is None else lambda a, b, c: cdna3(model, a, b, c)
    differs = check(product, run(module, product, *matrices), matrices, rule)
    if kind == "plain" and product.shape[1] > 4:
        assert differs > 5  # the model is not the exact sum, and the test sees that


def test_fma_adds_in_order(module: Module) -> None:
    emulator.numerics("fma")
    product = PRODUCTS[0]
    matrices = problem(product, "plain")
    assert check(product, run(module, product, *matrices), matrices, chain) > 5


def test_the_model_has_a_negative_bias(module: Module) -> None:
    """Sums are cut off toward minus infinity: over many products that shows."""
    product = PRODUCTS[0]
    matrices = problem(product, "plain")
    results = {}
    for name in ("exact", "cdna3"):
        emulator.numerics(name)
        results[name] = run(module, product, *matrices).astype(F64)
    difference = results["cdna3"] - results["exact"]
    assert (difference < 0).sum() > (difference > 0).sum()
    assert difference.sum() < 0


@pytest.mark.parametrize("wanted", ["exact", "cdna3"])
def test_f64(module: Module, wanted: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 16, 4)) * np.exp2(rng.integers(-300, 300, (2, 16, 4)))
    c = rng.normal(size=(16, 16)) * np.exp2(rng.integers(-500, 500, (16, 16)))
    where = LANE % 16, LANE // 16
    row = 4 * np.arange(4)[None, :] + LANE[:, None] // 16
    column = LANE[:, None] % 16
    data = np.zeros((64, 20), np.uint32)
    data[:, 0:2], data[:, 2:4] = (x[where].view(np.uint32).reshape(64, 2) for x in (a, b))
    data[:, 4:12] = c[row, column].view(np.uint32)
    emulator.numerics(wanted)
    output = FRAME.run(module, "f64", data)
    got = np.empty((16, 16))
    got[row, np.broadcast_to(column, row.shape)] = output[:, :8].copy().view(F64)
    for i, j in np.argwhere(np.ones((16, 16)))[::3]:
        want = c[i, j]
        if wanted == "exact":
            want = exact(a[i], b[j], want, 52, -1022)
        else:
            for k in range(4):
                want = exact(a[i, k : k + 1], b[j, k : k + 1], want, 52, -1022)
        assert got[i, j] == want


_REFUSED = {
    "gfx942": "v_smfmac_f32_16x16x32_f16 v[20:23], v[16:17], v[16:19], v0",
    "gfx950": "v_mfma_f32_16x16x32_f16 v[20:23], v[16:19], v[16:19], v[20:23]",
    "gfx90a": "v_mfma_f32_16x16x16f16 v[20:23], v[16:17], v[18:19], v[20:23]",
}


@pytest.mark.parametrize("arch", CDNA)
def test_what_is_not_published_is_refused(arch: str) -> None:
    """A product without a published model ends the launch with its name; integers run anyway."""
    integer = "v_mfma_i32_16x16x16i8" if arch == "gfx90a" else "v_mfma_i32_16x16x32_i8"
    registers = "v16, v18" if arch == "gfx90a" else "v[16:17], v[18:19]"
    bodies = {"refused": _REFUSED[arch], "integer": f"{integer} v[20:23], {registers}, v[20:23]"}
    module = assembled(bodies, arch)
    emulator.numerics("cdna3")
    nothing = np.zeros(4, np.uint32)
    assert module.launch("integer", nothing) == "hipSuccess"
    message = module.fault("refused", nothing)
    assert 'numerics "cdna3"' in message
    assert _REFUSED[arch].split()[0] in message


def test_names() -> None:
    with pytest.raises(CkValueError, match="must be one of fma, exact, cdna3"):
        emulator.numerics("double")
    with knobs.scope(CKLANG_NUMERICS="exact"):
        assert knobs.NUMERICS.get() == "exact"
