# SPDX-License-Identifier: MIT
"""What attention can do besides, on each GPU that has it: one small call of everything.

Other tests go through most of it on gfx942. A stencil takes long to compile, so all but one of the
calls are left to the tier *full*.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.ir.philox import random_bytes
from cklang.reference.attention_grad import SharedBias
from cklang.runtime.op import Op
from cklang.types import DType, bf16, f16
from tests.attention.test_kinds import HEAD_SIZES
from tests.support.arrays import uniform
from tests.support.attention_ops import (
    arrays,
    biased,
    cached,
    cached_args,
    capped,
    distant,
    dropped,
    finished,
    finished_args,
    packed,
    packed_args,
    packed_rows,
    packed_rows_args,
    prefill,
    prefill_args,
    shifted,
    skipping,
    sloped,
    varied,
    windowed,
    within,
)
from tests.support.checks import check
from tests.support.coverage import Covered

pytestmark = pytest.mark.usefixtures("stencils")

Arguments = Callable[[DType], list[Any]]

SIZES = {"B": 1, "G": 1, "H": 2, "S": 70, "T": 150, "D": 64, "E": 64}
LENGTHS = [(70, 90), (5, 0), (33, 130)]
ARCHS = ("gfx942", "gfx90a", "gfx950", "gfx1201", "gfx1100")


def tensors(dtype: DType) -> list[Any]:
    """Return q, k and v."""
    return arrays(np.random.default_rng(0), SIZES, dtype=dtype)


def with_bias(dtype: DType) -> list[Any]:
    return [*tensors(dtype), uniform(1, 2, 70, 150, dtype=dtype)]


def with_slopes(dtype: DType) -> list[Any]:
    return [*tensors(dtype), np.array([0.01, 0.3], np.float32)]


def with_functions(dtype: DType) -> list[Any]:
    """Return the arguments of ``varied``."""
    places = [np.arange(rows, dtype=np.int32).reshape(1, rows) % 3 for rows in (70, 150)]
    return [*with_slopes(dtype), uniform(1, 2, 70, 150, dtype=dtype), *places, 0.25]


def with_seed(dtype: DType) -> list[Any]:
    return [*tensors(dtype), np.int32(-7)]


def with_least(dtype: DType) -> list[Any]:
    return [*packed_args(LENGTHS, 1, dtype), np.int32(5)]


@dataclass(frozen=True)
class Feature:
    """An op that does something, and arguments for it."""

    name: str
    op: Op
    args: Arguments
    turn: int
    """GPUs take f16 and bf16 by turns; what shares a stencil has the same turn."""
    consts: dict[str, int] = field(default_factory=dict)
    archs: tuple[str, ...] = ARCHS[1:]
    """The GPUs to run it on."""
    heads: tuple[int, int] | None = None
    """Sizes of the heads of q and v other than those of ``args``."""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


SINK = {"left": 20, "right": 3, "sink": 3}
FEATURES = [
    Feature("dropout", dropped, with_seed, 0),
    Feature("window", windowed, tensors, 1, archs=ARCHS),
    Feature("window with sink", windowed, tensors, 1, SINK, ARCHS),
    Feature("soft cap", capped, tensors, 0, archs=ARCHS, heads=(192, 192)),
    Feature("ALiBi", sloped, with_slopes, 0, archs=ARCHS),
    Feature("bias", shifted, with_bias, 0, archs=ARCHS),
    Feature("functions of score and mask, lse", varied, with_functions, 1, archs=ARCHS,
            heads=(128, 128)),
    Feature("function of o", finished.using(splits=1), partial(finished_args, 70), 0,
            heads=(256, 256)),
    Feature("function of o, split-KV", finished.using(splits=2), partial(finished_args, 3), 0,
            heads=(80, 96)),
    Feature("packed sequences, lse", packed, partial(packed_args, LENGTHS, 1), 1, archs=ARCHS),
    Feature("packed sequences, short ones skipped", skipping, with_least, 1, archs=ARCHS),
    Feature("split-KV, keys in pages", cached.using(splits=3),
            partial(cached_args, [100, 0, 144], 1, 1), 0, heads=(192, 128)),
    Feature("packed queries, keys in pages", prefill.using(splits=1),
            partial(prefill_args, [(70, 140), (1, 9), (5, 0)], 16, 3), 1, archs=ARCHS,
            heads=(32, 32)),
]  # fmt: skip


def dtype_of(arch: str, turn: int) -> DType:
    """Return the type whose turn it is on a GPU."""
    return (f16, bf16)[(ARCHS.index(arch) + turn) % 2]


def test_packed_sequences(covered: Covered) -> None:
    check(packed, packed_args(LENGTHS, 1, bf16), "gfx1201")
    covered("attention: packed sequences, lse", "bf16", "gfx1201")


def of_heads(args: list[Any], sizes: tuple[int, int]) -> list[Any]:
    """Return arguments with heads of other sizes, in the same order of axes.

    What is as long as the heads of v, a bias or residual of o, is as long as them again.
    """
    v = args[2]
    sized = dict.fromkeys((0, 1), sizes[0]) | {
        place: sizes[1]
        for place, each in enumerate(args)
        if place > 1 and getattr(each, "dtype", None) == v.dtype and each.shape[-1] == v.shape[-1]
    }
    rng = np.random.default_rng(0)

    def drawn(array: Any, last: int) -> Any:
        order = np.argsort([-stride for stride in array.strides], kind="stable")
        shape = np.array([*array.shape[:-1], last])[order]
        return rng.uniform(-1, 1, shape).astype(array.dtype).transpose(np.argsort(order))

    return [
        drawn(each, sized[place]) if place in sized else each for place, each in enumerate(args)
    ]


def check_feature(feature: Feature, dtype: DType, arch: str, covered: Covered) -> None:
    """Check a call, and record it with its head sizes."""
    args = feature.args(dtype)
    if feature.heads is not None:
        args = of_heads(args, feature.heads)
    check(feature.op, args, arch, **feature.consts)
    covered(f"attention: {feature.name}", dtype.name, arch)
    sizes = args[0].shape[-1], args[2].shape[-1]
    if sizes in HEAD_SIZES:
        covered(f"attention, head sizes {sizes[0]} and {sizes[1]}", dtype.name, arch)


@pytest.mark.full
@pytest.mark.parametrize(
    ("feature", "arch"), [(each, arch) for each in FEATURES for arch in each.archs], ids=str
)
def test_features(feature: Feature, arch: str, covered: Covered) -> None:
    check_feature(feature, dtype_of(arch, feature.turn), arch, covered)


@pytest.mark.full
@pytest.mark.parametrize(
    ("feature", "arch"), [(each, arch) for each in FEATURES for arch in ARCHS], ids=str
)
def test_features_of_the_other_type(feature: Feature, arch: str, covered: Covered) -> None:
    check_feature(feature, dtype_of(arch, feature.turn + 1), arch, covered)


@pytest.mark.full
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("arch", ARCHS[1:])
def test_bytes_of_a_dropout(arch: str, turn: int, covered: Covered) -> None:
    dtype = dtype_of(arch, turn)
    drawn = ck.dropout_bytes(dropped, *with_seed(dtype), device=f"emu:{arch}")
    np.testing.assert_array_equal(drawn, random_bytes((1, 2, 70, 150), -7 & 0xFFFFFFFF, 3))
    covered("attention: dropout, random values stored", dtype.name, arch)


@dataclass(frozen=True)
class Gradient:
    """An op whose gradients are asked for, and arguments for it."""

    name: str
    op: Op
    args: Callable[[DType], tuple[list[Any], Any]]
    """Those of the op, and the gradient of its result."""
    turn: int
    more: dict[str, bool]
    bias: SharedBias | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def beside(arguments: Arguments, dtype: DType, head: int = 64) -> tuple[list[Any], Any]:
    return of_heads(arguments(dtype), (head, head)), uniform(1, 2, 70, head, dtype=dtype)


IN_ORDER = {"bias": True, "deterministic": True}
GRADIENTS = [
    Gradient("functions, dropout", distant, partial(beside, with_slopes), 0, {}),
    Gradient(
        "bias gradient, deterministic",
        biased,
        partial(beside, with_bias, head=32),
        1,
        IN_ORDER,
        SharedBias(param=3, axes=(0, 1, 2)),
    ),
    Gradient("packed sequences", packed_rows, partial(packed_rows_args, LENGTHS, 1), 0, {}),
]


@pytest.mark.full
@pytest.mark.parametrize("arch", ARCHS[1:])
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("gradient", GRADIENTS, ids=str)
def test_gradients(gradient: Gradient, turn: int, arch: str, covered: Covered) -> None:
    dtype = dtype_of(arch, gradient.turn + turn)
    args, grad = gradient.args(dtype)
    gradients = ck.attention_grad(
        gradient.op, *args, grad=grad, device=f"emu:{arch}", **gradient.more
    )
    within(gradient.op, args, grad, gradients, gradient.bias)
    covered(f"attention backward: {gradient.name}", dtype.name, arch)
    if arch != "gfx950":  # which has several pipelines
        head = args[0].shape[-1]
        covered(f"attention backward, head sizes {head} and {head}", dtype.name, arch)
