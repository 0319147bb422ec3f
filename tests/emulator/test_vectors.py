# SPDX-License-Identifier: MIT
"""Matrix products on AVX2 and on AVX-512 are the same, bit by bit; they share one source."""

from collections.abc import Iterator

import numpy as np
import pytest

from cklang import emulator
from cklang.errors import CkValueError
from tests.support.assembly import assembled

pytestmark = pytest.mark.usefixtures("emulator")

#: Instructions by number: shapes of 32, 16 and 4, one and several blocks, every element type.
PRODUCTS = {
    "v_mfma_f32_32x32x8_f16": ("v[2:3]", "v[4:5]", 16),
    "v_mfma_f32_16x16x16_f16": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_f32_32x32x8_bf16": ("v[2:3]", "v[4:5]", 16),
    "v_mfma_f32_32x32x1_2b_f32": ("v2", "v4", 32),
    "v_mfma_f32_16x16x1_4b_f32": ("v2", "v4", 16),
    "v_mfma_f32_4x4x4_16b_f16": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_f32_16x16x8_xf32": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_i32_32x32x16_i8": ("v[2:3]", "v[4:5]", 16),
    "v_mfma_i32_16x16x32_i8": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_f32_32x32x16_fp8_bf8": ("v[2:3]", "v[4:5]", 16),
}


def body(name: str) -> str:
    """A kernel that multiplies the bits of [64, 4] dwords with C = A's first dword, twice."""
    a, b, count = PRODUCTS[name]
    fill = "".join(f"  v_mov_b32 v{16 + n}, v{2 + n % 4}\n" for n in range(count))
    product = f"  {name} v[16:{15 + count}], {a}, {b}, v[16:{15 + count}]\n"
    store = "".join(
        f"  global_store_dword v1, v{16 + n}, s[6:7] offset:{4 * n}\n" for n in range(count)
    )
    return f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v1, s[4:5]
  s_waitcnt vmcnt(0)
{fill}{product}{product}  s_nop 15
  v_lshlrev_b32 v1, 7, v0
{store}"""


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    if _has_512():
        emulator.vector_width(512)


def _has_512() -> bool:
    try:
        emulator.vector_width(512)
    except CkValueError:
        return False
    return True


def _data(case: int) -> np.ndarray:
    """Any bits, or small numbers of f16."""
    rng = np.random.default_rng(case)
    if case == 0:
        return rng.integers(0, 1 << 32, (64, 4), np.uint32)
    return np.asarray(rng.normal(size=(64, 8)).astype(np.float16).view(np.uint32))


@pytest.mark.parametrize("case", [0, 1])
def test_both_widths_give_the_same_bits(case: int) -> None:
    if not _has_512():
        pytest.skip("the CPU has no AVX-512")
    names = {f"k{n}": name for n, name in enumerate(PRODUCTS)}
    module = assembled({kernel: body(name) for kernel, name in names.items()})
    source = _data(case)
    for kernel, name in names.items():
        results = []
        for bits in (256, 512):
            emulator.vector_width(bits)
            output = np.zeros((64, 32), np.uint32)
            assert module.launch(kernel, source, output) == "hipSuccess", emulator.fault(0)
            results.append(output)
        assert results[0].any()
        np.testing.assert_array_equal(results[0], results[1], err_msg=name)


def test_another_width_is_refused() -> None:
    with pytest.raises(CkValueError, match="256, or 512"):
        emulator.vector_width(128)
