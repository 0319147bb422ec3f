# SPDX-License-Identifier: MIT
"""Gradients of heads beyond what a tile holds: one kernel walks over heads of any size.

The sizes in a test share the kernel of their signature and width of accesses.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import all_archs
from cklang.errors import CkError
from cklang.families.attention.pipelines import MOST_HEAD
from cklang.families.attention.ranking import shape_of
from cklang.families.attention_backward.cost import attention_grad_estimate
from cklang.keys import AnyKey
from cklang.reference.attention_grad import SharedBias
from cklang.runtime.op import Op
from cklang.types import DType, bf16, f16, f32
from tests.attention.test_long_heads import GPUS, half, problem_of, varied_args
from tests.support.arrays import uniform
from tests.support.attention_ops import dropped, measured, packed, shifted, varied, within
from tests.support.checks import check, launches
from tests.support.coverage import Covered

SIZES = st.integers(1, 1200)
LONG = st.integers(MOST_HEAD + 1, 1200)


def gradient_of(hdim_q: int, hdim_v: int, dtype: DType = f16, **more: Any) -> Any:
    return ck.dispatch.attention_grad_problem(problem_of(hdim_q, hdim_v, dtype, **more))


def gradient_key(op: Op) -> AnyKey:
    (key,) = (each.key for each in launches(op) if each.key.family == "attention_backward")
    assert key.algorithm.pipeline.value == "long_head"
    return key


@pytest.mark.parametrize("gpu", [spec.name for spec in all_archs()])
@given(long=LONG, other=SIZES, is_v=st.booleans())
@example(long=576, other=512, is_v=False)
@example(long=512, other=512, is_v=False)
def test_every_longer_head_has_a_kernel(gpu: str, long: int, other: int, is_v: bool) -> None:
    sizes = (other, long) if is_v else (long, other)
    algorithm = ck.dispatch.select(gradient_of(*sizes, bf16), arch=gpu).key.algorithm
    assert algorithm.pipeline.value == "long_head"
    assert algorithm.vector == math.gcd(long, other, 8)


@pytest.mark.parametrize("gpu", GPUS)
def test_heads_that_a_tile_holds_keep_their_kernels(gpu: str) -> None:
    algorithm = ck.dispatch.select(gradient_of(256, 256), arch=gpu).key.algorithm
    assert algorithm.pipeline.value != "long_head"


@pytest.mark.parametrize("more", [{"dtype": f32}, {"dropout": 0.5}], ids=["f32", "dropout"])
def test_what_has_no_long_heads_is_refused_in_one_sentence(more: dict[str, Any]) -> None:
    with pytest.raises(CkError, match="CK-K101") as refused:
        ck.dispatch.select(gradient_of(320, 64, **more), arch="gfx942")
    notes = str(refused.value).splitlines()
    (reason,) = (note for note in notes if "attention-grad-head-most" in note)
    assert "the head size of q and k is 320, must be at most 256" in reason
    assert "ck.vjp(op)" in reason


@pytest.mark.parametrize(("gpu", "columns", "slices"), [("gfx942", 256, 3), ("gfx1201", 128, 5)])
def test_slices_of_a_head_compute_the_scores_again(gpu: str, columns: int, slices: int) -> None:
    problem = gradient_of(576, 512)
    key = ck.dispatch.select(problem, arch=gpu).key
    assert key.algorithm.tile[7:] == (columns, columns)
    estimate = attention_grad_estimate(key, shape_of(problem.forward))
    steps = 8 * 4 * 2 * slices  # of heads, tiles of 32 queries and of 64 keys
    assert estimate.workgroups == 8 * 2 * slices
    assert estimate.padded_flops == 2 * 32 * 64 * (576 + 512 + 3 * columns) * steps
    assert estimate.flops == 2 * 8 * 128 * 128 * (3 * 576 + 2 * 512)


def test_scores_stay_on_chip() -> None:
    args = [uniform(1, 2, n, size) for n, size in ((16, 320), (24, 320), (24, 264), (16, 264))]
    backward = ck.vjp(half)
    plan = backward.fusion(*args)
    families = [each.family for each in plan.kernels]
    assert families == ["attention", "rowwise", "attention_backward"]
    assert "long_head" in backward.explain(*args, device="emu:gfx942")


def test_dropout_is_refused_at_the_call() -> None:
    args = [uniform(1, 2, rows, 320) for rows in (3, 5, 5)]
    with pytest.raises(CkError, match="attention-head-most"):
        ck.vjp(dropped, wrt=("q", "k", "v")).explain(*args, 1, args[0], device="emu:gfx942")


# --- on the emulator


def heads(
    rows: int, keys: int, hdim_q: int, hdim_v: int, dtype: DType = f16
) -> tuple[list[Any], Any]:
    """Return q of four heads, k and v of two, and a gradient of o."""
    q, do = (uniform(1, 4, rows, size, dtype=dtype) for size in (hdim_q, hdim_v))
    k, v = (uniform(1, 2, keys, size, dtype=dtype) for size in (hdim_q, hdim_v))
    return [q, k, v], do


CASES = [(70, 133, 320, 264), (33, 64, 576, 512)]


@pytest.mark.usefixtures("compiler", "torch")
def test_gradients_of_longer_heads(covered: Covered) -> None:
    backward = ck.vjp(half)
    for rows, keys, hdim_q, hdim_v in CASES:
        args, do = heads(rows, keys, hdim_q, hdim_v)
        args[1:] = (np.repeat(each, 2, 1) for each in args[1:])
        within(half, args, do, ck.attention_grad(half, *args, grad=do, device="emu:gfx942"))
        check(backward, [*args, do])
        gradient_key(backward)
    follow_torch(args, do)
    covered("attention backward, head sizes above 256", "f16", "gfx942")
    covered("attention backward, head sizes above 256: ck.vjp", "f16", "gfx942")


def follow_torch(args: list[Any], do: Any) -> None:
    """Check what torch's autograd gets of an op against the same of torch's own attention."""
    import torch

    mine, theirs = ([torch.tensor(x, requires_grad=True) for x in args] for _ in range(2))
    half(*mine, device="emu:gfx942").backward(torch.tensor(do))
    q, k, v = (each.double() for each in theirs)
    rows, keys = q.shape[2], k.shape[2]
    hidden = torch.ones(rows, keys).tril(keys - rows) == 0
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -torch.inf)
    (torch.softmax(scores, -1) @ v).backward(torch.tensor(do).double())
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=2e-3, rtol=1e-2)


ALL = [(gpu, dtype) for gpu in GPUS for dtype in (f16, bf16)]
# Of f16 accesses of 16 bytes, of bf16 those of one element.
OF_TYPE = {f16: [(264, 600), (512, 384), (320, 40)], bf16: [(317, 500), (45, 511), (499, 257)]}


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype"), ALL, ids=str)
def test_each_type_on_each_gpu(gpu: str, dtype: DType, covered: Covered) -> None:
    """Functions of score and mask, and the derivative of the score."""
    backward = ck.vjp(varied, wrt=("q", "k", "v"))
    for hdim_q, hdim_v in OF_TYPE[dtype]:
        args = varied_args(dtype, hdim_q, hdim_v)
        results = [uniform(1, 4, 70, hdim_v, dtype=dtype), uniform(1, 4, 70, dtype=f32)]
        check(backward, [*args, *results], gpu)
        assert gradient_key(backward).signature.derivative
    covered("attention backward, head sizes above 256: functions, lse", dtype.name, gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_biases_in_one_order(gpu: str, covered: Covered) -> None:
    """Each tile of keys stores a part of dq; the first of the workgroups of a head, ds."""
    for hdim_q, hdim_v in ((320, 264), (512, 40)):
        args, do = heads(70, 133, hdim_q, hdim_v)
        args.append(uniform(1, 4, 70, 133))
        pair = [
            ck.attention_grad(
                shifted, *args, grad=do, deterministic=True, bias=True, device=f"emu:{gpu}"
            )
            for _ in range(2)
        ]
        within(shifted, args, do, pair[0], SharedBias(param=3, axes=(0, 1, 2)))
        assert all((one == other).all() for one, other in zip(*pair, strict=True))
    covered("attention backward, head sizes above 256: bias, deterministic", "f16", gpu)


B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def banded(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v, mask=ck.sliding_window(40, 3, sink=2))


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_windows(gpu: str, covered: Covered) -> None:
    args, do = heads(70, 150, 500, 300)
    check(ck.vjp(banded), [*args, do], gpu)
    covered("attention backward, head sizes above 256: window", "f16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_packed_sequences(gpu: str, covered: Covered) -> None:
    starts = np.cumsum([(0, 0), (70, 90), (5, 0), (0, 7), (33, 130)], axis=0, dtype=np.int32)
    lists = [np.ascontiguousarray(starts[:, side]) for side in (0, 1)]
    args = [
        uniform(108, 4, 576, dtype=bf16),
        uniform(227, 2, 576, dtype=bf16),
        uniform(227, 2, 512, dtype=bf16),
        *lists,
        uniform(5, 4, dtype=f32),
    ]
    results = [uniform(108, 4, 512, dtype=bf16), uniform(4, 108, dtype=f32)]
    check(ck.vjp(packed, wrt=("q", "k", "v")), [*args, *results], gpu)
    covered("attention backward, head sizes above 256: packed sequences, lse", "bf16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_lengths_of_keys(gpu: str, covered: Covered) -> None:
    args, do = heads(40, 150, 320, 320)
    three = [np.concatenate([each] * 3) for each in (*args, do)]
    lengths = np.array([150, 0, 67], np.int32)
    check(ck.vjp(measured), [*three[:3], lengths, three[3]], gpu)
    covered("attention backward, head sizes above 256: lengths of keys", "f16", gpu)
