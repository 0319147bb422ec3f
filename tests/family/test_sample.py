# SPDX-License-Identifier: MIT
"""``ck.sample``: tokens of rows of logits against NumPy, and their distribution."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.autodiff.rules import WITHOUT_FLOATS
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.fusion.explain import explain
from cklang.ir.sampling import at_least, fixed_point, passing
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op

Array = np.ndarray[Any, Any]
B, C, V, K = ck.dims("B C V K")
INF = np.inf


@ck.op
def plain(x: ck.f32[B, V], seed: ck.i32) -> ck.i32[B]:
    return ck.sample(x, seed)


@ck.op
def served(
    x: ck.f16[B, V],
    seeds: ck.i64[B],
    offset: ck.i32,
    temperature: ck.f32[B],
    top_k: ck.i32[B],
    top_p: ck.f32[B],
    min_p: ck.f32[B],
) -> ck.i32[B]:
    return ck.sample(
        x, seeds, offset, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )


@ck.op
def filtered(x: ck.bf16[B, V], seed: ck.i32, offset: ck.i32) -> ck.i32[B]:
    return ck.sample(x, seed, offset, temperature=0.7, top_k=20, top_p=0.9, min_p=0.01)


@ck.op
def last_layer(x: ck.f16[B, K], w: ck.f16[V, K], seed: ck.i32) -> ck.i32[B]:
    return ck.sample(x @ w.T, seed, temperature=0.8, top_k=50, top_p=0.95)


def requests(rows: int, length: int, seed: int = 0) -> list[Any]:
    """Return logits, and numbers of requests as servers have them, some of them off or extreme."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((rows, length)) * 3).astype(np.float16)
    numbers = (
        rng.integers(-(2**62), 2**62, rows),
        7,
        rng.choice([0.0, 1e-6, 0.5, 1.0, 3.0, INF, np.nan, -1.0], rows).astype(np.float32),
        rng.choice([-1, 0, 1, 5, length, 2**31 - 1], rows).astype(np.int32),
        rng.choice([-0.5, 0.0, 0.3, 0.95, 1.0, 2.0, np.nan], rows).astype(np.float32),
        rng.choice([-1.0, 0.0, 0.05, 1.0, 2.0, np.nan], rows).astype(np.float32),
    )
    return [x, *numbers]


# --- the meaning


def nucleus(x: Array, top_k: int, top_p: float, min_p: float, temperature: float) -> set[int]:
    """Return the tokens that pass, as engines describe it: sort, cut, renormalise, cut."""
    p = np.exp((x - x.max()) / temperature)
    order = [int(j) for j in np.argsort(-x, kind="stable") if p[j] >= min_p]
    if 0 < top_k < len(x):
        order = [j for j in order if x[j] >= np.sort(x)[-top_k]]
    total = sum(p[j] for j in order)
    return {
        j for j in order if not top_p < 1 or p[x > x[j]].sum() < top_p * total or x[j] == max(x)
    }


@given(
    st.integers(0, 999),
    st.sampled_from([0, 1, 3, 9, 40]),
    st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.011, 0.3]),
    st.sampled_from([0.3, 1.0, 4.0]),
)
def test_what_passes(seed: int, top_k: int, top_p: float, min_p: float, t: float) -> None:
    x = np.random.default_rng(seed).integers(-8, 8, 23) * 0.37  # some of them equal
    span = -t * np.log(min_p) if min_p else INF
    mask = passing(x, fixed_point(np.exp((x - x.max()) / t)), top_k, top_p, span)
    assert set(np.flatnonzero(mask)) == nucleus(x, top_k, top_p, min_p, t)


def test_ties_at_a_threshold_pass_together() -> None:
    x = np.array([1.0, 3.0, 2.0, 2.0, 2.0, 0.0])
    assert passing(x, fixed_point(np.exp(x - 3)), 2, 1.0, INF).tolist() == [0, 1, 1, 1, 1, 0]
    assert passing(x, fixed_point(np.exp(x - 3)), 0, 0.5, INF).tolist() == [0, 1, 1, 1, 1, 0]
    assert at_least(0.0, 5) == 1.0


def test_the_distribution_is_the_softmax_of_what_passes() -> None:
    x = np.log(np.array([0.4, 0.05, 0.3, 0.05, 0.2]))
    seeds = np.arange(3000)
    for options, allowed in (
        ({}, [0, 1, 2, 3, 4]),
        ({"top_k": 3}, [0, 2, 4]),
        ({"top_p": 0.6}, [0, 2]),
        ({"min_p": 0.45}, [0, 2, 4]),
        ({"top_k": 3, "top_p": 0.7}, [0, 2]),  # 0.4 and 0.3 of 0.9: more than 0.7
        ({"temperature": 0.5, "top_k": 3}, [0, 2, 4]),
        ({"temperature": INF}, [0, 1, 2, 3, 4]),
    ):
        tokens = ck.sample(np.tile(x, (seeds.size, 1)), seeds, **options)
        counts = np.bincount(tokens, minlength=5)
        weights = np.where(np.isin(np.arange(5), allowed), 1.0, 0.0)
        weights *= np.exp(x / options.get("temperature", 1.0))
        expect = seeds.size * weights / weights.sum()
        assert not counts[weights == 0].any()
        chi = ((counts - expect)[allowed] ** 2 / expect[allowed]).sum()
        assert chi < 20  # four degrees of freedom: one in 2000


def test_rows_of_one_seed_and_offsets_are_independent() -> None:
    x = np.zeros((4096, 16))
    rows = ck.sample(x, 3)
    steps = ck.sample(x, np.full(4096, 3), np.arange(4096))
    for tokens in (rows, steps, rows * 4 // 16 * 4 + steps * 4 // 16):
        counts = np.bincount(tokens, minlength=16)
        assert ((counts - 256) ** 2 / 256).sum() < 40  # fifteen degrees of freedom
    # A row with a seed of its own does not depend on its place.
    assert ck.sample(x[:1], np.array([3]), 5) == ck.sample(x[:6], np.full(6, 3), 5)[5]


def test_special_logits() -> None:
    x = np.array([[-INF, -INF, -INF], [np.nan] * 3, [0, INF, np.nan], [-INF, -INF, -5]])
    for temperature in (0.0, 1.0, INF):
        assert ck.sample(x, 1, temperature=temperature).tolist() == [0, 0, 1, 2]
    infinite = ck.sample(np.tile([INF, 3.0, INF], (64, 1)), 1)
    assert set(infinite) == {0, 2}
    assert ck.sample(np.array([2.0, 3.0, 3.0]), 1, temperature=0.0) == 1


def test_an_unsure_token_has_no_bound() -> None:
    @ck.op
    def chosen(x: ck.f32[B, V], y: ck.f32[B, V], seed: ck.i32) -> ck.i32[B]:
        return ck.sample(x + y, seed, top_k=1)

    x = np.array([[1.0, 2.0, 2.0000002, 0.0], [1.0, 2.0, 3.0, 0.0]], np.float32)
    _, (error,) = evaluate_with_bound(chosen.program.specialise(), [x, x / 3, 1])
    assert np.isinf(error).tolist() == [True, False]


@pytest.mark.parametrize("op", [filtered, served], ids=lambda op: op.program.name)
def test_most_tokens_are_sure(op: Op) -> None:
    args = (
        requests(60, 1009) if op is served else [requests(60, 1009)[0].astype(ck.bf16.numpy), 3, 1]
    )
    _, (error,) = evaluate_with_bound(op.program.specialise(), args)
    assert np.isinf(error).sum() <= 1


def test_one_kernel_draws() -> None:
    text = explain(plan_of(filtered.program.specialise()))
    assert "a token of each row of %x" in text
    kernels = plan_of(last_layer.program.specialise()).kernels
    assert [kernel.family for kernel in kernels] == ["gemm", "sample"]
    assert "sample" in WITHOUT_FLOATS


def test_no_gradient_reaches_the_logits() -> None:
    with expect_error("G024"):
        ck.vjp(plain).program.specialise()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("ck.sample(seed, seed)", "it takes logits of one to 5 axes, not "),
        ("ck.sample(x, seed, temperature=x)", "T, 8"),
        ("ck.sample(x, seed, top_p='a')", "top_p is "),
        ("ck.sample(x, seed, top_k=1.5)", "1.5"),
        ("ck.sample(x, 2**40)", "1099511627776"),
        ("ck.sample(x, y)", "seed is a tensor"),
    ],
)
def test_mistakes(call: str, problem: str) -> None:
    op = expression_op("x: ck.f32[T, 8], seed: ck.i32, y: ck.f32[T]", "ck.i32[T]", call)
    with pytest.raises(CkError) as mistake:
        op.program.specialise()
    assert problem in str(mistake.value)
    assert "^" in str(mistake.value)


# --- on GPUs


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_kernels_draw_the_same_tokens(gpu: str, covered: Covered) -> None:
    args = requests(48, 211)
    tokens = check(served, args, gpu)
    np.testing.assert_array_equal(tokens, check(served, args, gpu))
    (launch,) = launches(served)
    assert launch.resources.spills == 0
    covered("tokens of logits", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_rows_of_any_length() -> None:
    for length in (1, 2, 63, 64, 65, 257, 1009, 4096, 8192):
        tokens = check(served, requests(7, length, length))
        assert tokens.min() >= 0
        assert tokens.max() < length
    assert served(*requests(0, 9), device="emu:gfx942").shape == (0,)
    with expect_error("I048"):
        plain(np.zeros((2, 0), np.float32), 1, device="emu:gfx942")


@pytest.mark.usefixtures("compiler")
def test_a_vocabulary_of_a_large_model() -> None:
    args = requests(6, 128256)
    args[2:] = [
        7,
        np.array([1, 1, 0.01, 2, 1, 0], np.float32),
        np.array([0, 50, 0, 1100, 90000, 0], np.int32),  # few, those in LDS, more than these
        np.array([1, 0.9, 0.5, 0.999, 0.9, 1], np.float32),
        np.zeros(6, np.float32),
    ]
    check(served, args)


@pytest.mark.usefixtures("compiler")
def test_equal_logits_of_one_bin_are_more_than_lds_holds() -> None:
    x = np.zeros((3, 5003), np.float16)
    x[:, ::3] = 1.0
    args: list[Any] = [x, np.arange(3), 1, np.ones(3, np.float32)]
    args += [np.array([7, 2000, 0], np.int32), np.array([1, 0.5, 0.9], np.float32)]
    tokens = check(served, [*args, np.zeros(3, np.float32)])
    assert tokens[0] % 3 == 0


@pytest.mark.usefixtures("compiler")
def test_logits_may_lie_in_any_way() -> None:
    x = np.random.default_rng(3).standard_normal((9, 300)).astype(np.float32)
    wide = np.zeros((9, 600), np.float32)
    wide[:, ::2] = x
    for stored in (x, wide[:, ::2], np.asfortranarray(x), x[::-1], x[:, 1:]):
        check(plain, [stored, 11])
    np.testing.assert_array_equal(*(plain(y, 11, device="emu:gfx942") for y in (x, wide[:, ::2])))

    @ck.op
    def drafts(x: ck.f32[B, C, V], seed: ck.i32, t: ck.f32[B]) -> ck.i32[B, C]:
        return ck.sample(x, seed, temperature=t[:, None])

    cube = x.reshape(3, 3, 300)
    warm = np.array([0.5, 1, 2], np.float32)
    for stored in (cube, np.asfortranarray(cube), cube.transpose(1, 0, 2)):
        check(drafts, [stored, 11, warm])


@pytest.mark.usefixtures("compiler")
def test_special_logits_in_kernels() -> None:
    x = np.full((6, 70), -INF, np.float32)
    x[1], x[2, 5], x[3, 9], x[4, ::9], x[5] = np.nan, INF, -3e38, INF, 3e38
    x[2, 6], x[5, 3] = np.nan, -3e38
    assert check(plain, [x, 4])[:4].tolist() == [0, 0, 5, 9]


@pytest.mark.usefixtures("compiler")
def test_a_last_layer_and_its_tokens() -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((4, 64), (1000, 64)))
    tokens = last_layer(x, w, 5, device="emu:gfx942")
    assert tokens.min() >= 0
    assert len(launches(last_layer)) <= 3
    check(filtered, [(x @ w.T).astype(ck.bf16.numpy), 3, 1])
