# SPDX-License-Identifier: MIT
"""Element types that CK Tile lacks code for: each was a legal kernel that clang refused."""

from dataclasses import replace

import pytest

from cklang.arch import arch
from cklang.families.gemm.key import Algorithm, DKind, DOperand, Layout, Pipeline, Signature
from cklang.selection.diagnose import advise
from cklang.selection.rules import violations
from cklang.types import DType, bf16, f16, f32, fp4, fp8, i4, i8, i32

ALGORITHM = Algorithm(
    tile=(192, 128, 32), warps=(2, 1, 1), warp_tile=(32, 32, 16), vector_a=1, vector_b=8, vector_e=4
)


B_192 = replace(ALGORITHM, tile=(128, 192, 32), vector_a=8, vector_b=1)


def signature(a: DType, dtype_b: DType, layouts: str = "cr", **more: object) -> Signature:
    acc = i32 if a == i8 else f32
    base = Signature(
        dtype_a=a,
        dtype_b=dtype_b,
        dtype_acc=acc,
        dtype_e=acc,
        layout_a=Layout(layouts[0]),
        layout_b=Layout(layouts[1]),
    )
    return replace(base, **more)  # type: ignore[arg-type]


def rules(signature: Signature, gpu: str, algorithm: Algorithm = ALGORITHM) -> set[str]:
    return {each.rule for each in violations(algorithm, signature, arch(gpu))}


@pytest.mark.parametrize(
    ("a", "gpu", "convertible"),
    [
        (i8, "gfx1201", False),
        (f32, "gfx942", False),
        (fp4, "gfx950", False),
        (f16, "gfx942", True),
        (bf16, "gfx90a", True),
        (fp8, "gfx950", True),
    ],
)
def test_4_bit_integers_are_made_few_types(a: DType, gpu: str, convertible: bool) -> None:
    assert ("packed-made" not in rules(signature(a, i4, "rc"), gpu)) is convertible


def test_no_convolution_has_packed_elements() -> None:
    assert "packed-conv" in rules(signature(fp4, fp4, "rc", spatial=1), "gfx950")
    assert "packed-conv" not in rules(signature(fp8, fp8, "rc", spatial=1), "gfx950")
    assert "packed-conv" not in rules(signature(fp4, fp4, "rc"), "gfx950")


def test_no_function_computes_packed_elements() -> None:
    read = (DOperand(dtype=f16, kind=DKind.ROW),)
    assert "computed-type" in rules(signature(f16, i4, "rc", b=read), "gfx942")
    assert "computed-type" not in rules(signature(f16, f16, "rc", b=read), "gfx942")


@pytest.mark.parametrize(
    ("dtype", "gpu", "tile", "is_refused"),
    [
        (i8, "gfx950", (192, 128, 32), True),
        (i8, "gfx950", (128, 192, 32), True),
        (i8, "gfx950", (384, 64, 32), True),
        (i8, "gfx950", (128, 128, 32), False),
        (i8, "gfx942", (192, 128, 32), False),
        (f16, "gfx950", (192, 128, 32), True),
        (fp8, "gfx950", (128, 192, 32), True),
        (fp8, "gfx950", (384, 64, 32), False),
        (f16, "gfx942", (192, 128, 32), False),
        (f32, "gfx950", (192, 128, 32), False),
    ],
)
def test_no_tile_is_stored_in_threes_where_lds_transposes(
    dtype: DType, gpu: str, tile: tuple[int, int, int], is_refused: bool
) -> None:
    """Clang stores four elements for three, over the first of another wave: a race in LDS.

    CK Tile has no stores of 6 int8.
    """
    algorithm = replace(ALGORITHM, tile=tile, vector_b=1)
    assert ("lds-store" in rules(signature(dtype, dtype), gpu, algorithm)) is is_refused
    if is_refused:
        (advice,) = (
            each
            for each in advise(algorithm, signature(dtype, dtype), gpu)
            if each.rule == "lds-store"
        )
        assert "legal: tile = " in str(advice)


def test_tiles_that_lds_need_not_transpose_are_stored_in_any_width() -> None:
    assert "lds-store" not in rules(signature(f16, f16, "rc"), "gfx950")
    assert "lds-store" in rules(signature(f16, f16, "rr"), "gfx950", B_192)
    assert "lds-store" in rules(signature(f16, f16, "rr", spatial=2), "gfx950", B_192)


@pytest.mark.parametrize(
    ("dtype", "gpu", "layouts", "tile_k", "is_refused"),
    [
        (f16, "gfx942", "rc", 192, True),
        (f16, "gfx942", "cr", 96, True),
        (f16, "gfx950", "rr", 192, True),
        (f16, "gfx950", "cr", 192, False),
        (f32, "gfx950", "cr", 96, True),
        (f16, "gfx942", "rc", 128, False),
    ],
)
def test_tiles_that_are_swizzled_have_a_power_of_two_along_k(
    dtype: DType, gpu: str, layouts: str, tile_k: int, is_refused: bool
) -> None:
    """Rows of f16 shared places in LDS on gfx942 and gfx950: 64x64x192, vectors of one."""
    deep = replace(ALGORITHM, tile=(64, 64, tile_k), vector_b=1)
    s = signature(dtype, dtype, layouts)
    assert ("lds-swizzle" in rules(s, gpu, deep)) is is_refused
    into_lds = replace(deep, pipeline=Pipeline.COMP_ASYNC)
    assert "lds-swizzle" not in rules(s, gpu, into_lds)


@pytest.mark.parametrize(
    ("dtype", "gpu", "tile", "warp_tile", "is_refused"),
    [
        (f32, "gfx90a", (128, 16, 64), (16, 16, 4), True),
        (f32, "gfx90a", (256, 16, 64), (16, 16, 4), False),
        (f16, "gfx942", (128, 128, 64), (16, 16, 16), False),
        (f16, "gfx942", (64, 128, 64), (16, 16, 16), True),
    ],
)
def test_a_prepared_b_needs_whole_reads_of_a(
    dtype: DType,
    gpu: str,
    tile: tuple[int, int, int],
    warp_tile: tuple[int, int, int],
    is_refused: bool,
) -> None:
    pipeline = Pipeline.PRESHUFFLE_V2
    algorithm = replace(
        ALGORITHM, tile=tile, warp_tile=warp_tile, warps=(4, 1, 1), pipeline=pipeline
    )
    broken_rules = rules(signature(dtype, dtype, "rp"), gpu, algorithm)
    assert ("prepared-reads" in broken_rules) is is_refused
