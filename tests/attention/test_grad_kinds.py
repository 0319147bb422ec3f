# SPDX-License-Identifier: MIT
"""Gradients of attention by dtype, head size, GPU and pipeline, within their reference's bound.

What every machine runs is one each of gfx1100 and gfx1201, whose tilings are cklang's own;
``test_backward.py`` has those of gfx942.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch as arch_of
from cklang.families.attention_backward.key import AttentionGradAlgorithm, GradPipeline
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.families.attention_backward.stages import GradientKind
from cklang.ops.attention_backward import prepare_gradients
from cklang.types import DType
from tests.support.attention_ops import within
from tests.support.coverage import Covered

pytestmark = pytest.mark.usefixtures("compiler")

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16, ck.f32)
FIRST = GradPipeline.KR_KTR_VR_IGLP
LOADED, WHOLE = GradPipeline.TRLOAD_KR_KTR_VR, GradPipeline.TRLOAD_QR_QTR_DOR


@ck.op
def attend(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v)


def algorithm_of(
    pipeline: GradPipeline, sizes: tuple[int, int], dtype: DType
) -> AttentionGradAlgorithm:
    """Return the tiling of gfx950 that a pipeline has for head sizes."""
    forward = ck.dispatch.attention_problem(
        1, 1, 1, 1, sizes[0], head_v=sizes[1], dtype=dtype
    ).signature
    algorithms = attention_grad_algorithms(arch_of("gfx950"), forward, *sizes)
    return next(each for each in algorithms if each.pipeline is pipeline)


KINDS = [
    ("bf16", (64, 64), "gfx90a", None, 70),
    ("f32", (64, 64), "gfx942", None, 70),
    ("bf16", (128, 128), "gfx950", LOADED, 70),
    ("f16", (128, 128), "gfx950", WHOLE, 13),
    ("f16", (32, 32), "gfx942", None, 70),
    ("f16", (80, 96), "gfx942", None, 70),
    ("f16", (128, 128), "gfx942", None, 70),
    ("f16", (256, 256), "gfx942", None, 40),
    ("bf16", (128, 128), "gfx90a", None, 70),
    ("f16", (64, 64), "gfx950", None, 70),
]
WAVES_OF_32 = [
    ("f16", 64),
    ("f16", 128),
    ("bf16", 32),
    ("bf16", 256),
    ("bf16", 128),
    ("f16", 32),
    ("f16", 256),
]
"""Of gfx1100 and gfx1201: dtype and head size."""


def check(
    name: str,
    sizes: tuple[int, int],
    arch: str,
    pipeline: GradPipeline | None,
    rows: int,
    covered: Covered,
) -> None:
    """Check the gradients of one kernel, of ``rows`` queries and 150 keys, and record it."""
    dtype = getattr(ck, name).numpy
    rng = np.random.default_rng(sizes)
    shapes = ((1, 2, rows, sizes[0]), (1, 1, 150, sizes[0]), (1, 1, 150, sizes[1]))
    args = [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    grad = rng.uniform(-1, 1, (1, 2, rows, sizes[1])).astype(dtype)
    op = (
        attend
        if pipeline is None
        else attend.using(algorithm_of(pipeline, sizes, getattr(ck, name)))
    )
    prepared = prepare_gradients(op, args, {}, grad=grad, kind=GradientKind(), device=f"emu:{arch}")
    prepared.run()
    within(op, args, grad, prepared.results)
    used = prepared.selection.key.algorithm.pipeline
    assert pipeline in (None, used)
    said = f", {used.value}" if used in (LOADED, WHOLE) else ""
    covered(f"attention backward, head sizes {sizes[0]} and {sizes[1]}{said}", name, arch)


@pytest.mark.full
@pytest.mark.parametrize(("name", "sizes", "arch", "pipeline", "rows"), KINDS)
def test_kinds(
    name: str,
    sizes: tuple[int, int],
    arch: str,
    pipeline: GradPipeline | None,
    rows: int,
    covered: Covered,
) -> None:
    check(name, sizes, arch, pipeline, rows, covered)


def others() -> Iterator[tuple[str, tuple[int, int], str, GradPipeline | None, int]]:
    """Yield the other types and head sizes of CDNA in CK Tile's first pipeline."""
    taken = {kind[:3] for kind in KINDS if kind[3] is None and kind[2] != "gfx950"}
    for arch in ("gfx90a", "gfx942", "gfx950"):
        pipeline = FIRST if arch == "gfx950" else None
        pairs = ((32, 32), (64, 64), (80, 96), (128, 128), (256, 256))
        kinds = [(name, pair) for name in ("f16", "bf16") for pair in pairs]
        for name, pair in [*kinds, ("f32", (64, 64))]:
            if (name, pair, arch) not in taken:
                yield name, pair, arch, pipeline, 40


@pytest.mark.full
@pytest.mark.parametrize(("name", "sizes", "arch", "pipeline", "rows"), list(others()))
def test_other_kinds(
    name: str,
    sizes: tuple[int, int],
    arch: str,
    pipeline: GradPipeline | None,
    rows: int,
    covered: Covered,
) -> None:
    check(name, sizes, arch, pipeline, rows, covered)


RDNA = ("gfx1100", "gfx1201")


@pytest.mark.full
@pytest.mark.parametrize("arch", RDNA)
def test_two_sizes_of_rdna(arch: str, covered: Covered) -> None:
    check("f16", (80, 96), arch, None, 40, covered)


@pytest.mark.parametrize("arch", RDNA)
def test_rdna(arch: str, covered: Covered) -> None:
    check("bf16", (64, 64), arch, None, 40, covered)


@pytest.mark.full
@pytest.mark.parametrize("arch", RDNA)
@pytest.mark.parametrize(("name", "head"), WAVES_OF_32)
def test_further_of_rdna(name: str, head: int, arch: str, covered: Covered) -> None:
    check(name, (head, head), arch, None, 40, covered)
