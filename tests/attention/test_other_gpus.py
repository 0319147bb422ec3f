# SPDX-License-Identifier: MIT
"""Calls of attention that other tests make on one GPU, on the others: in tier *full*."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.runtime.op import Op
from cklang.types import DType, bf16, f16, f32, fp8
from tests.attention.test_head_sizes import cut, narrow
from tests.attention.test_kinds import attend
from tests.attention.test_long_heads import decode, half, latent_args, varied_args
from tests.attention.test_output import quantised
from tests.attention.test_transposed_operands import by_column, transposed
from tests.support.arrays import uniform
from tests.support.attention_ops import (
    arrays,
    cached,
    cached_args,
    packed,
    packed_args,
    packed_rows,
    packed_rows_args,
    plain,
    varied,
    windowed,
    within,
)
from tests.support.checks import check
from tests.support.coverage import Covered

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
Arguments = Callable[[DType], list[Any]]


@dataclass(frozen=True)
class Call:
    """An op and arguments for it, with the GPUs on which no other test has it."""

    name: str
    dtype: DType
    op: Op
    args: Arguments
    gpus: tuple[str, ...] = ("gfx90a", "gfx950", "gfx1100", "gfx1201")
    consts: dict[str, Any] = field(default_factory=dict)
    types: str = ""
    also: str = ""
    """Another row that the same kernel stands for."""

    def __str__(self) -> str:
        return f"{self.name}-{self.dtype}".replace(" ", "-").replace(",", "").replace(":", "")


def odd(dtype: DType) -> list[Any]:
    """Return heads of 61 and 45 elements."""
    sizes = {"B": 1, "G": 2, "H": 4, "S": 70, "T": 133, "D": 61, "E": 45}
    return arrays(np.random.default_rng(0), sizes, dtype=dtype)


def three(*sizes: tuple[int, int]) -> Arguments:
    """Return a function that draws q with 2 heads, and k and v, of these last two extents."""
    return lambda dtype: [uniform(1, 2, *size, dtype=dtype) for size in sizes]


def long_packed(dtype: DType) -> list[Any]:
    starts = np.cumsum([(0, 0), (70, 90), (5, 0), (33, 130)], axis=0, dtype=np.int32)
    heads = [uniform(108, 4, 576, dtype=dtype), uniform(220, 2, 576, dtype=dtype)]
    lists = [np.ascontiguousarray(starts[:, side]) for side in (0, 1)]
    return [*heads, uniform(220, 2, 512, dtype=dtype), *lists, uniform(4, 4, dtype=f32)]


@ck.op
def windowed_by_column(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v.mT, mask=ck.sliding_window(40, 3, sink=2))


LENGTHS = [(70, 90), (5, 0), (33, 130)]
ODD = "attention: head sizes that are no multiple of 8"
LONG = "attention, head sizes above 256"
MLA = "attention, head sizes 576 and 512"
CALLS = [
    Call(ODD, bf16, plain, odd, ("gfx942", "gfx1100")),
    Call(ODD, f32, attend, odd, ("gfx950",)),
    Call(ODD, fp8, narrow, three((70, 61), (133, 61), (133, 61)), ("gfx950",), types="fp8 bf16"),
    Call(f"{ODD}, pages", f16, cached.using(splits=1),
         lambda _: cut(cached_args([100, 0, 144], 3, 1), 61, 61, 45)),
    Call(f"{ODD}, split-KV, pages", f16, cached.using(splits=3),
         lambda _: cut(cached_args([100, 0, 144], 3, 1), 61, 61, 45)),
    Call(f"{ODD}, packed sequences", f16, packed,
         lambda _: cut(packed_args(LENGTHS, 1), 61, 61, 45), also=ODD),
    Call(f"{LONG}: functions, lse", bf16, varied, partial(varied_args, hdim_q=576, hdim_v=512),
         ("gfx90a", "gfx1100", "gfx1201")),
    Call(f"{LONG}: window", f16, windowed, three((70, 320), (150, 320), (150, 264)), ("gfx942",),
         {"left": 40, "right": 3, "sink": 2}),
    Call(f"{LONG}: packed sequences, lse", bf16, packed, long_packed,
         ("gfx942", "gfx950", "gfx1100", "gfx1201")),
    Call(f"{LONG}: V with its keys contiguous", f16, windowed_by_column,
         three((70, 320), (136, 320), (520, 136)), also=f"{LONG}: window"),
    Call(f"{MLA}: pages", f16, decode.using(splits=1), lambda _: latent_args(16)),
    Call(f"{MLA}: split-KV, pages", f16, decode.using(splits=3), lambda _: latent_args(16, 10)),
    Call("attention: V with its keys contiguous", f16, by_column,
         three((70, 64), (133, 64), (64, 133))),
    Call("attention backward, head sizes above 256: ck.vjp", f16, ck.vjp(half),
         three((16, 320), (24, 320), (24, 264), (16, 264)),
         also="attention backward, head sizes above 256"),
]  # fmt: skip


def calls() -> Iterator[tuple[Call, str]]:
    for call in CALLS:
        yield from ((call, gpu) for gpu in call.gpus)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("call", "gpu"), list(calls()), ids=str)
def test_a_call_on_the_other_gpus(call: Call, gpu: str, covered: Covered) -> None:
    check(call.op, call.args(call.dtype), gpu, **call.consts)
    for row in filter(None, (call.name, call.also)):
        covered(row, call.types or call.dtype.name, gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "dtype"), [("gfx950", bf16), ("gfx1100", bf16), ("gfx90a", f16), ("gfx1100", f16)]
)
def test_a_transposed_v_that_is_not_copied(gpu: str, dtype: DType, covered: Covered) -> None:
    q, k, v = (uniform(2, heads, *size, dtype=dtype) for heads, size in TURNED)
    check(plain, [q, k, v.swapaxes(2, 3)], gpu)
    assert plain.last is not None
    assert plain.last.launches[0].key.signature.transposed_v
    covered("attention: V with its keys contiguous, not copied", dtype.name, gpu)


TURNED = ((4, (70, 64)), (2, (136, 64)), (2, (64, 136)))


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_gradients_of_transposed_operands(gpu: str, covered: Covered) -> None:
    args = [uniform(1, 4, 64, 70), uniform(1, 2, 64, 133), uniform(1, 2, 64, 133, seed=1)]
    grad = uniform(1, 4, 70, 64)
    within(
        transposed, args, grad, ck.attention_grad(transposed, *args, grad=grad, device=f"emu:{gpu}")
    )
    covered("attention backward: transposed operands", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_gradients_of_odd_heads(gpu: str, covered: Covered) -> None:
    args, grad = odd(f16), uniform(1, 4, 70, 45)
    within(plain, args, grad, ck.attention_grad(plain, *args, grad=grad, device=f"emu:{gpu}"))
    covered("attention backward: head sizes that are no multiple of 8", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_gradients_of_packed_sequences_in_one_order(gpu: str, covered: Covered) -> None:
    args, grad = packed_rows_args(LENGTHS, 1)
    grads = ck.attention_grad(
        packed_rows, *args, grad=grad, deterministic=True, device=f"emu:{gpu}"
    )
    within(packed_rows, args, grad, grads)
    covered("attention backward: packed sequences, deterministic", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx950", "gfx1201"])
def test_factors_of_8_bits_behind(gpu: str, covered: Covered) -> None:
    shapes = ((4, 70), (2, 150), (2, 150))
    args = [(8 * uniform(1, *shape, 128, dtype=f32)).astype(fp8.numpy) for shape in shapes]
    check(quantised, [*args, np.float32(0.07), uniform(128, dtype=bf16)], gpu)
    covered("attention: function of o", "fp8 bf16", gpu)
