# SPDX-License-Identifier: MIT
"""Products that other tests make on one GPU, on the others: in tier *full*."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families.gemm.key import Algorithm, EpilogueKind, Pipeline, Reduction, Scheduler
from cklang.runtime.op import Op
from cklang.types import DTYPES
from tests.family import test_block_scale as scaled
from tests.family import test_nchw as nchw
from tests.family import test_packed as packed
from tests.family import test_pairs as pairs
from tests.family import test_prologue as prologue
from tests.family import test_quantised as quantised
from tests.family import test_results as results
from tests.family import test_shared_tree as tree
from tests.support.algorithms import EIGHT_BITS, NARROW, WIDE, narrow, on_gpu, pipelined, wide
from tests.support.arrays import drawn, mnk, normal
from tests.support.checks import check, check_group
from tests.support.coverage import Covered
from tests.support.written_ops import written_op

CDNA, RDNA = ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201")
OTHERS = ("gfx90a", "gfx950", *RDNA)
"""Beside gfx942, on which most of these tests are."""
Run = Callable[[str], None]


@dataclass(frozen=True)
class Variant:
    """A row of the coverage table, and what checks it on a GPU."""

    name: str
    types: str
    run: Run
    gpus: tuple[str, ...] = OTHERS
    also: tuple[str, ...] = ()
    """Other rows that the same kernel stands for."""

    def __str__(self) -> str:
        kept = [c for c in f"{self.name}-{self.types}" if c not in ":,"]
        return "".join(kept).replace(" ", "-")


def named(op: Op, algorithm: Algorithm, calls: Callable[[], list[Any]]) -> Run:
    """Return a function that checks some calls of an op with an algorithm."""

    def run(gpu: str) -> None:
        with_algorithm = op.using(on_gpu(gpu, algorithm))
        for args in calls():
            check(with_algorithm, args, gpu)

    return run


def group(gpu: str) -> None:
    # One wave has a tile: more of it would not fit the registers of RDNA.
    two_groups = pipelined(NARROW, Pipeline.COMPV5, tile=(32, 32, 32), warps=(1, 1, 2))
    calls = [prologue.weights(*shape) for shape in ((70, 50, 40), (5, 130, 31), (64, 64, 96))]
    check_group(prologue.dequantised.using(on_gpu(gpu, two_groups)), calls, gpu)


def in_packs(op: Op, calls: Callable[[], list[list[Any]]]) -> Run:
    def run(gpu: str) -> None:
        for args in calls():
            packed.check(op, gpu, args)

    return run


def by_tree(algorithm: Algorithm) -> Run:
    return lambda gpu: tree.over_all_shapes(on_gpu(gpu, algorithm), gpu)


def channels_first(op: Op, algorithm: Algorithm) -> Run:
    return named(op, algorithm, lambda: [nchw.numbers(*SHAPES_OF[op])])


SHAPES_OF = nchw.SHAPES | {
    nchw.line: ((2, 2, 8, 19), (2, 16, 8, 3)),
    nchw.volume: ((1, 8, 3, 4, 5), (16, 8, 2, 2, 2)),
}
LOOSE = replace(
    NARROW, pipeline=Pipeline.MEM, scheduler=Scheduler.INTERWAVE, epilogue=EpilogueKind.DEFAULT
)
STREAMS = {"stream_k": True, "reduction": Reduction.WORKSPACE}
SHORT = ((70, 50, 40), (5, 130, 31), (64, 64, 0))
TURNED = narrow(1, **STREAMS, vector_a=2, vector_b=2)


def scores_args(g: int, m: int, n: int, k: int) -> tuple[Any, ...]:
    return normal(g, m, k), normal(g, n, k), normal(g, m, 1)


def contracted(g: int, m: int, n: int, k: int) -> tuple[Any, ...]:
    return normal(m, g, k), normal(g, dtype=ck.f32), normal(n, g, k)


def integers_of_8_bits(gpu: str) -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((80, 208), (48, 208)))
    check(quantised.tensor_wise_int8, (x, w, 0.01, 0.02, 0.4), gpu)


def of_tensors(gpu: str) -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(ck.fp8.numpy) for s in ((80, 208), (48, 208)))
    bias = rng.standard_normal(48).astype(ck.bf16.numpy)
    check(quantised.tensor_wise, (x, w, 0.03, -1.5, bias), gpu)


def of_rows(gpu: str) -> None:
    rng = np.random.default_rng(0)
    (x, scale_x), (w, scale_w) = (quantised.quantised(rng, "fp8", n, 208) for n in (80, 48))
    check(quantised.row_column, (x, w, scale_x, scale_w), gpu)


def across(dtype: str, **sharing: Any) -> Run:
    """Return the check of block scales with column-major A and row-major B."""
    vector, step = 128 // DTYPES[dtype].bits, 32 if dtype == "f16" else 64
    chosen = scaled.algorithm(tile_k=step, vector=vector, vector_e=8, **sharing)

    def run(gpu: str) -> None:
        own = f"{dtype}_fnuz" if dtype == "fp8" and gpu == "gfx942" else dtype
        op = scaled.activations.using(on_gpu(gpu, chosen))
        args = scaled.arguments(scaled.activations, own, mnk(*scaled.EVEN[1]))
        check(op, [np.asfortranarray(each) for each in args], gpu)

    return run


def scaled_blocks(op: Op, dtype: str, exponents: bool = False, **more: Any) -> Run:
    """Return the check of a product of 8-bit floats with scales of blocks."""

    def run(gpu: str) -> None:
        own = f"{dtype}_fnuz" if gpu == "gfx942" else dtype
        narrowed = exponents or gpu in RDNA
        widths: dict[str, Any] = {"tile_k": 32, "vector": 4} if narrowed else {}
        reads: dict[str, Any] = {"vector_d": (4,)} if op in (scaled.both, scaled.weights) else {}
        chosen = scaled.algorithm(**widths, vector_e=4, **reads, **more)
        scaled.over(op, gpu, own, scaled.EVEN[1:2], on_gpu(gpu, chosen))

    return run


def grouped_blocks(gpu: str) -> None:
    chosen = scaled.algorithm(tile_k=32, vector=4, vector_e=4)
    calls = [tuple(scaled.arguments(scaled.activations, "fp8", mnk(*each))) for each in scaled.EVEN]
    check_group(scaled.activations.using(on_gpu(gpu, chosen)), calls, gpu)


def batched_blocks(gpu: str) -> None:
    chosen = on_gpu(gpu, scaled.algorithm(tile_k=32, vector=4, vector_e=4))
    scaled.over(scaled.batch, gpu, "fp8", scaled.EVEN[:1], chosen, G=3)


def in_f16(gpu: str) -> None:
    chosen = on_gpu(gpu, scaled.algorithm(tile_k=32, vector=8, vector_e=4))
    scaled.over(scaled.integers_in_f16, gpu, "i8", scaled.EVEN, chosen)


STORING = {
    dtype: written_op(
        f"@ck.op\n"
        f"def to_{dtype}(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.{dtype}[M, N]:\n"
        f"    return ck.clamp(x @ w.T, -100.0, 100.0).to(ck.{dtype})\n",
        "M N K",
        f"to_{dtype}",
    )
    for dtype in ("f32", "bf8", "bf8_fnuz", "fp8", "fp8_fnuz", "i32", "i8")
}


def stored(result: str, **sharing: Any) -> Run:
    """Return the check of a product of f16 whose sums are shared, stored as another type."""
    narrowed = replace(NARROW, vector_a=4, vector_b=4, vector_e=4, **sharing)

    def run(gpu: str) -> None:
        own = f"{result}_fnuz" if result in ("fp8", "bf8") and gpu == "gfx942" else result
        op = STORING[own].using(on_gpu(gpu, narrowed))
        for shape in ((72, 52, 40), (136, 200, 1000)):
            args = drawn(op, mnk(*shape))
            first = check(op, args, gpu)
            np.testing.assert_array_equal(op(*args, device=f"emu:{gpu}"), first)

    return run


SPLIT_TREE: dict[str, Any] = {"split_k": 5, "reduction": Reduction.TREE}
SPLIT = pipelined(narrow(1, split_k=3, reduction=Reduction.WORKSPACE), Pipeline.COMPV4)
PAIR_OF_I8 = replace(EIGHT_BITS, vector_a=1, vector_b=1, vector_e=1, vector_d=(1,))
VARIANTS = [
    Variant("prologue of A and B: split-K, layouts rrr, compv4", "bf16",
            named(prologue.both, SPLIT, lambda: [prologue.both_sides(70, 50, 200)])),
    Variant(
        "prologue of A and B: stream-K, layouts ccr, compv6",
        "bf16",
        named(
            prologue.both,
            pipelined(TURNED, Pipeline.COMPV6),
            lambda: [prologue.both_sides(200, 130, 100, turned=True)],
        ),
    ),
    Variant(
        "prologue: batched, mem",
        "f16 f16 f32",
        named(
            prologue.scores, pipelined(NARROW, Pipeline.MEM), lambda: [scores_args(3, 70, 50, 40)]
        ),
    ),
    Variant(
        "prologue: contraction, basic_v1",
        "f16",
        named(
            prologue.contraction,
            pipelined(NARROW, Pipeline.BASIC_V1),
            lambda: [contracted(3, 70, 50, 40)],
        ),
    ),
    Variant("prologue: grouped", "f16 i8 f16", group,
            also=("prologue: compv5", "prologue: int8 dequantised")),
    Variant(
        "prologue: several operands",
        "f16",
        named(
            prologue.normalised,
            replace(WIDE, **tree.TREE, persistent=True),
            lambda: [prologue.features(70, 56, 40), prologue.features(136, 200, 1000)],
        ),
        also=("stream-K tree after whole tiles",),
    ),
    Variant("stream-K tree", "f16", by_tree(wide(2, **tree.TREE)), ("gfx942",)),
    Variant("stream-K after whole tiles", "f16", by_tree(wide(2, **STREAMS, persistent=True)),
            ("gfx942",)),
    *(
        Variant("universal", f"f16 f16 {result}", stored(result, **sharing), gpus, (row,))
        for result, row, sharing, gpus in (
            ("f32", "split-K tree", SPLIT_TREE, ("gfx1100",)),
            ("fp8", "split-K tree", SPLIT_TREE, ("gfx950",)),
            ("bf8", "split-K tree", SPLIT_TREE, ("gfx942", "gfx1201")),
            ("i32", "stream-K tree", tree.TREE, ("gfx90a", *RDNA)),
            ("i8", "split-K tree", SPLIT_TREE, ("gfx90a",)),
        )
    ),
    Variant("packed B", "bf16 i4 f16",
            in_packs(packed.linear, lambda: [packed.operands("bf16", 136, 136, 208)]),
            ("gfx942", "gfx950", "gfx1201")),
    Variant("block scales of B", "f16 i4 f16",
            in_packs(packed.groups, lambda: [drawn(packed.groups, mnk(136, 136, 208))])),
    Variant("packed B, batched", "f16 i4 f16",
            in_packs(packed.experts, lambda: [drawn(packed.experts, mnk(136, 72, 208) | {"G": 2})]),
            also=("packed B",)),
    Variant("pair: two products of one A", "f16",
            named(pairs.geglu, narrow(3), lambda: [drawn(pairs.geglu, mnk(70, 50, 40))]),
            ("gfx90a", "gfx950", "gfx1100")),
    Variant("pair: two products of one A", "i8",
            named(pairs.integers, PAIR_OF_I8, lambda: [drawn(pairs.integers, mnk(70, 50, 40))]),
            ("gfx950", *RDNA)),
    Variant("several results", "f16",
            named(results.many, narrow(5), lambda: [drawn(results.many, mnk(70, 50, 40))]),
            ("gfx90a", "gfx950", "gfx1100")),
    Variant("quantised, tensor-wise scales", "i8", integers_of_8_bits, ("gfx950", *RDNA)),
    Variant("quantised, tensor-wise scales", "fp8 fp8 bf16", of_tensors, ("gfx1201",)),
    Variant("quantised, row and column scales", "fp8 fp8 bf16", of_rows, ("gfx1201",)),
    Variant("block scales of A, layouts crr", "f16 f16 bf16",
            across("f16", **STREAMS, persistent=True), also=("stream-K after whole tiles",)),
    *(
        Variant(
            "block scales of A, layouts crr",
            f"{dtype} {dtype} bf16",
            across("fp8"),
            (gpu,),
            ("block scales of A",),
        )
        for dtype, gpu in (("fp8", "gfx1201"), ("fp8_fnuz", "gfx942"))
    ),
    Variant("block scales of B", "bf8 bf8 f32", scaled_blocks(scaled.weights, "bf8"), ("gfx950",)),
    Variant("block scales of A and B, e8m0", "bf8 bf8 f32",
            scaled_blocks(scaled.exponents, "bf8", exponents=True), ("gfx950", "gfx1201")),
    Variant("block scales, split-K and stream-K", "fp8 fp8 bf16",
            scaled_blocks(scaled.both, "fp8", split_k=4, reduction=Reduction.WORKSPACE),
            ("gfx950", "gfx1201"), ("block scales of A and B",)),
    Variant("block scales of B", "bf8_fnuz bf8_fnuz f32", scaled_blocks(scaled.weights, "bf8"),
            ("gfx942",)),
    Variant("block scales, grouped", "fp8 fp8 bf16", grouped_blocks, ("gfx950", "gfx1201")),
    Variant("block scales, batched", "fp8 fp8 bf16", batched_blocks, ("gfx950", "gfx1201")),
    Variant("block scales of A and B, int8 made f16", "f16 f16 f32", in_f16),
    *(
        Variant(f"{name}, nchw", "f16", channels_first(op, algorithm))
        for name, op, algorithm in (
            ("conv 2D", nchw.forward, narrow(2)),
            ("conv_grad_input 2D", nchw.input_gradient, narrow(1)),
            ("conv_grad_weight 2D", nchw.weight_gradient, narrow(1)),
            # Kernels of tests/runtime/test_conv_everywhere.py.
            ("conv 1D", nchw.line, pipelined(NARROW, Pipeline.BASIC_V1)),
            ("conv 3D", nchw.volume, LOOSE),
        )
    ),
]  # fmt: skip


def variants() -> Iterator[tuple[Variant, str]]:
    for variant in VARIANTS:
        yield from ((variant, gpu) for gpu in variant.gpus)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("variant", "gpu"), list(variants()), ids=str)
def test_a_variant_on_the_other_gpus(variant: Variant, gpu: str, covered: Covered) -> None:
    variant.run(gpu)
    for row in (variant.name, *variant.also):
        covered(row, variant.types, gpu)
