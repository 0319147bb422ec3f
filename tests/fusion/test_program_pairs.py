# SPDX-License-Identifier: MIT
"""Any two neighbours with any step between them: plans compute what their programs say."""

import pytest

from cklang.families import plan_of
from tests.support.program_pairs import CONSUMERS, MIDDLES, PRODUCERS, Pair, expected, judged, pairs

FORWARD, GRADIENTS = 73, 199
"""One program in so many is judged in each run; primes, so that everything takes part."""


def expect(pair: Pair, *, gradient: bool) -> None:
    code = judged(pair, gradient=gradient)
    assert code == expected(pair, gradient=gradient), pair


def test_programs_of_two_neighbours() -> None:
    drawn = list(pairs(FORWARD))
    assert {pair.middle for pair in drawn} == set(MIDDLES)
    for pair in drawn:
        expect(pair, gradient=False)


def test_gradients_of_two_neighbours() -> None:
    for pair in pairs(GRADIENTS):
        expect(pair, gradient=True)


LOST = (
    *((producer, "gemm, left") for producer in ("cumsum", "cumprod", "scatter", "scatter_add")),
    ("segment_sum", "gemm, left"),
    ("cumsum", "gemm, right"),
    ("cumsum", "attention, q"),
    ("scatter_add", "conv, image"),
)
"""Kernels without an epilogue before a product: the steps between them were lost."""


@pytest.mark.parametrize("consumer", ["gemm, left", "gemm, right", "gemm, both"])
def test_gradients_of_a_slice_of_joined_parts(consumer: str) -> None:
    expect(Pair("concat", "function", consumer), gradient=True)


@pytest.mark.parametrize("middle", ["nothing", "cast"])
@pytest.mark.parametrize("producer", ["scatter_add", "segment_sum"])
def test_rows_are_taken_of_gradients_that_repeat(producer: str, middle: str) -> None:
    expect(Pair(producer, middle, "reduction"), gradient=True)


LOST_GRADIENTS = (
    ("gemm", "take, table"),
    ("gemm", "scatter_add, rows"),
    ("gemm", "cumsum"),
    ("gemm", "avg_pool"),
    *(("gemm", f"attention, {operand}") for operand in "qkv"),
)
"""Consumers whose gradients are such kernels, after a product."""


@pytest.mark.parametrize("middle", ["scale", "function"])
@pytest.mark.parametrize(
    ("producer", "consumer", "gradient"),
    [*((*pair, False) for pair in LOST), *((*pair, True) for pair in LOST_GRADIENTS)],
)
def test_steps_behind_a_kernel_without_an_epilogue(
    producer: str, middle: str, consumer: str, gradient: bool
) -> None:
    expect(Pair(producer, middle, consumer), gradient=gradient)


def test_indices_of_an_order_whose_values_nobody_wants() -> None:
    """The gradient asks an extent of the sorted values and nothing else."""
    expect(Pair("sort", "transposes", "avg_pool"), gradient=True)


def test_a_wrong_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table says of a program it says of its plan."""
    pair = Pair("cumsum", "scale", "gemm, left")
    other = Pair("cumsum", "nothing", "gemm, left")
    wrong = plan_of(other.op.program.specialise())
    monkeypatch.setattr("tests.support.program_pairs.plan_of", lambda _function: wrong)
    with pytest.raises(AssertionError, match="is off by"):
        judged(pair)


def test_each_seed_has_other_programs() -> None:
    count = len(PRODUCERS) * len(MIDDLES) * len(CONSUMERS)
    drawn = [pair for seed in range(7) for pair in pairs(7, seed)]
    assert len(drawn) == len(set(drawn)) == count
    once = {(pair.producer, pair.consumer) for pair in pairs(len(MIDDLES))}
    assert len(once) == len(list(pairs(len(MIDDLES)))) == len(PRODUCERS) * len(CONSUMERS)


@pytest.mark.full
@pytest.mark.parametrize("producer", PRODUCERS)
def test_all_programs_of_two_neighbours(producer: str) -> None:
    for pair in pairs():
        if pair.producer == producer:
            expect(pair, gradient=False)
            expect(pair, gradient=True)
