# SPDX-License-Identifier: MIT
"""Attention by dtype, head size and GPU: one call of each kernel, within its reference's bound.

A kernel is the first one of the smallest tiling for its heads: of so few queries the cost model may
like that of other heads better. What every machine runs is a kernel of each dtype; other GPUs and
pairs of head sizes that CK Tile has tilings for are in the tier *full*, which also looks for races.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch as arch_of
from cklang.families.attention.key import AttentionAlgorithm
from cklang.families.attention.space import attention_algorithms
from cklang.testing import report
from cklang.types import DType
from tests.support.checks import check
from tests.support.coverage import Covered

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16, ck.f32)
Q: Any = ck.dtype_var("Q", ck.fp8, ck.fp8_fnuz)
Kind = tuple[str, tuple[int, int], str]
"""Element types, head sizes and GPU."""


@ck.op
def attend(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"))


@ck.op
def to_bf16(
    q: Q[B, H, S, D], k: Q[B, G, T, D], v: Q[B, G, T, E], scale: ck.const[float]
) -> ck.bf16[B, H, S, E]:
    return ck.attention(q, k, v, scale=scale, mask=ck.causal("bottom_right"))


@ck.op
def to_f32(
    q: Q[B, H, S, D], k: Q[B, G, T, D], v: Q[B, G, T, E], scale: ck.const[float]
) -> ck.f32[B, H, S, E]:
    return ck.attention(q, k, v, scale=scale, mask=ck.causal("bottom_right"))


def first_kernel(q: DType, o: DType, sizes: tuple[int, int], arch: str) -> AttentionAlgorithm:
    """Return the first algorithm of the smallest tiling that holds heads of these sizes."""
    problem = ck.dispatch.attention_problem(1, 1, 1, 1, sizes[0], head_v=sizes[1], dtype=q, o=o)
    return attention_algorithms(arch_of(arch), problem.signature, *sizes)[0]


def check_kind(name: str, sizes: tuple[int, int], arch: str, covered: Covered) -> None:
    """Check an attention of head sizes ``sizes`` on types called ``name``, and record it."""
    operand_name, _, result = name.partition(" ")
    dtype_q = getattr(ck, operand_name)
    rng = np.random.default_rng(sizes)
    shapes = ((1, 2, 70, sizes[0]), (1, 1, 150, sizes[0]), (1, 1, 150, sizes[1]))
    # Quantised tensors use all of their range; scores are multiplied by the factors of q and k.
    width = 8 if result else 1
    args = [rng.uniform(-width, width, shape).astype(dtype_q.numpy) for shape in shapes]
    op, consts = attend, {}
    if result:
        op, consts = {"bf16": to_bf16, "f32": to_f32}[result], {"scale": sizes[0] ** -0.5 / 16}
    op = op.using(first_kernel(dtype_q, getattr(ck, result or operand_name), sizes, arch))
    check(op, args, arch, **consts)
    covered(f"attention, head sizes {sizes[0]} and {sizes[1]}", name, arch)


MOSTLY = [
    ("bf16", (64, 64), "gfx90a"),
    ("f32", (64, 64), "gfx942"),
    ("fp8_fnuz bf16", (128, 128), "gfx942"),
    ("f16", (80, 96), "gfx950"),
    ("fp8 f32", (64, 64), "gfx950"),
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "sizes", "arch"), MOSTLY)
def test_kinds(name: str, sizes: tuple[int, int], arch: str, covered: Covered) -> None:
    check_kind(name, sizes, arch, covered)


HEAD_SIZES = [
    (64, 64),
    *((32, 32), (80, 96), (96, 128), (128, 128), (192, 128), (192, 192), (256, 256)),
]
"""Of q and v, each with a tile of its own on some GPU."""
_PAIRS = HEAD_SIZES[1:]
_NOT_OF_F32 = ((80, 96), (192, 128))
"""Sizes for which f32 has no tile of its own."""
_FP8 = [(64, 64), (128, 128), (256, 256)]
FURTHER = [
    *(("f16", pair, "gfx942") for pair in _PAIRS),
    *(("bf16", pair, "gfx90a") for pair in _PAIRS),
    *(("bf16", pair, "gfx950") for pair in [(64, 64), *_PAIRS[2:]]),
    *(("f32", pair, "gfx90a") for pair in [p for p in _PAIRS if p not in _NOT_OF_F32]),
    *(("fp8_fnuz bf16", pair, "gfx942") for pair in [(64, 64), (256, 256)]),
    *(("fp8_fnuz f32", pair, "gfx942") for pair in [(128, 128)]),
    *(("fp8 bf16", pair, "gfx950") for pair in _FP8),
    *(("f16", pair, "gfx1100") for pair in [(32, 32), (64, 64), (192, 128), (256, 256)]),
    *(("bf16", pair, "gfx1100") for pair in [(64, 64), (128, 128), (256, 256)]),
    *(("f16", pair, "gfx1201") for pair in [(32, 32), (64, 64), (192, 128), (256, 256)]),
    *(("bf16", pair, "gfx1201") for pair in [(128, 128)]),
    *(("fp8 bf16", pair, "gfx1201") for pair in [(64, 64)]),
    *(("fp8 f32", pair, "gfx1201") for pair in [(128, 128), (256, 256)]),
]


@pytest.mark.full
@pytest.mark.usefixtures("sanitized")
@pytest.mark.parametrize(("name", "sizes", "arch"), FURTHER)
def test_further_kinds(name: str, sizes: tuple[int, int], arch: str, covered: Covered) -> None:
    check_kind(name, sizes, arch, covered)


def others() -> Iterator[Kind]:
    """Yield every type and pair of head sizes on every GPU that has tiles of the type."""
    taken = {*MOSTLY, *FURTHER}
    for gpu in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"):
        eight = "fp8_fnuz" if gpu == "gfx942" else "fp8"
        own = {name for row in arch_of(gpu).attention_tiles for name in row.dtypes}
        kinds: list[tuple[str, list[tuple[int, int]]]] = [
            (name, HEAD_SIZES) for name in ("f16", "bf16") if name in own
        ]
        if "f32" in own:
            kinds += [("f32", [pair for pair in HEAD_SIZES if pair not in _NOT_OF_F32])]
        if "fp8" in own:
            kinds += [(f"{eight} {result}", _FP8) for result in ("bf16", "f32")]
        for name, pairs in kinds:
            yield from ((name, pair, gpu) for pair in pairs if (name, pair, gpu) not in taken)


@pytest.mark.full
@pytest.mark.usefixtures("sanitized")
@pytest.mark.parametrize(("name", "sizes", "arch"), list(others()))
def test_other_kinds(name: str, sizes: tuple[int, int], arch: str, covered: Covered) -> None:
    check_kind(name, sizes, arch, covered)


@pytest.mark.usefixtures("stencils")
def test_weights_of_8_bits_use_the_whole_range() -> None:
    """Weights are rounded where 8 bits have most steps: many small ones do not vanish."""
    rows = 150
    q = np.zeros((1, 1, 1, 128), ck.fp8_fnuz.numpy)
    q[..., 0] = 4
    k, v = (np.zeros((1, 1, rows, 128), ck.fp8_fnuz.numpy) for _ in range(2))
    # One key of weight 1 and value 0, all others of weight exp(-8) and value 64.
    k[0, 0, 0, 0] = 2
    v[0, 0, 1:] = 64
    comparison = report(
        to_bf16, [q, k, v], to_bf16(q, k, v, scale=1.0, device="emu:gfx942"), scale=1.0
    )
    comparison.check()
    # Without the small weights o is 0, which the bound tells from what it is.
    small = (rows - 1) * np.exp(-8.0)
    assert (comparison.bound < 0.3 * 64 * small / (1 + small)).all()
