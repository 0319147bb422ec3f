# SPDX-License-Identifier: MIT
"""All stages of attention follow the caller's stream, and no call waits for a launch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.device.device import open_device
from tests.support.arrays import Array
from tests.support.attention_keys import packed
from tests.support.optional import needed
from tests.support.streams import OnDevice, held_up

pytestmark = pytest.mark.usefixtures("compiler")

B, H, G, S, T, D, N, M, P, R, C = ck.dims("B H G S T D N M P R C")

Arguments = list[Any]


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], scale: ck.f32
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"), scale=scale)


@ck.op
def serve(
    q: ck.f16[B, H, S, D],
    k: ck.f16[N, G, R, D],
    v: ck.f16[N, G, R, D],
    lengths: ck.i32[B],
    table: ck.i32[B, C],
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, seqlens_k=lengths, block_table=table)


@ck.op
def biased(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, D],
    bias: ck.f16[H, S, T],
    seed: ck.i32,
) -> ck.f16[B, H, S, D]:
    return ck.attention(
        q, k, v, score=lambda s, h, i, j: s + bias[h, i, j], dropout=0.25, seed=seed, offset=3
    )


def random_array(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(np.float16)


def triple(rng: np.random.Generator) -> Arguments:
    return [
        random_array(rng, 2, 4, 40, 64),
        random_array(rng, 2, 2, 150, 64),
        random_array(rng, 2, 2, 150, 64),
    ]


def starts(*lengths: int) -> Array:
    return np.cumsum([0, *lengths], dtype=np.int32)


def of_packed(rng: np.random.Generator) -> Arguments:
    rows = [
        random_array(rng, 40, 4, 64),
        random_array(rng, 150, 2, 64),
        random_array(rng, 150, 2, 64),
    ]
    return [*rows, starts(3, 0, 37), starts(70, 10, 70)]


def of_serving(rng: np.random.Generator) -> Arguments:
    caches = [random_array(rng, 12, 2, 16, 64) for _ in range(2)]
    table = rng.permutation(12).reshape(2, 6).astype(np.int32)
    return [random_array(rng, 2, 4, 3, 64), *caches, np.array([75, 20], np.int32), table]


def gradients(op: Any, *args: Any, **what: Any) -> list[Any]:
    *inputs, grad = args
    results = ck.attention_grad(op, *inputs, grad=grad, deterministic=True, **what)
    return [each for each in results if each is not None]


def appended(*args: Any) -> list[Any]:
    """Two steps of decoding: rows behind a cache, and attention to it."""
    k_cache, v_cache, lengths, table, cos, sin, *steps = args
    results = []
    for place in (0, 1):
        q, k, v, longer = steps[4 * place : 4 * place + 4]
        caches = {"seqlens_k": lengths, "block_table": table, "cos": cos, "sin": sin}
        turned = ck.append_kv(k_cache, v_cache, k, v, q=q, **caches)
        results += [turned, serve(turned, k_cache, v_cache, longer, table)]
        lengths = longer
    return results


def of_appending(rng: np.random.Generator) -> Arguments:
    q, *caches, lengths, table = of_serving(rng)
    angles = np.outer(np.arange(96), 0.5 ** np.arange(16))
    turns = [np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)]
    steps = []
    for place in (1, 2):
        rows = [random_array(rng, 2, 2, 3, 64) for _ in range(2)]
        steps += [random_array(rng, *q.shape), *rows, lengths + np.int32(3 * place)]
    return [*caches, lengths, table, *turns, *steps]


def dropped(*args: Any) -> Any:
    needed("torch")
    return ck.dropout_bytes(biased, *args)


Case = tuple[Callable[..., Any], Callable[[np.random.Generator], Arguments]]

CASES: dict[str, Case] = {
    "forward, a number": (attend.using(splits=1), lambda rng: [*triple(rng), 0.25]),
    "splits and their combination": (
        attend.using(splits=3),
        lambda rng: [*triple(rng), np.float32(0.25)],
    ),
    "packed": (packed, of_packed),
    "pages": (serve, of_serving),
    "rows behind a cache": (appended, of_appending),
    "gradients of packed": (
        lambda *args: gradients(packed, *args),
        lambda rng: [*of_packed(rng), random_array(rng, 40, 4, 64)],
    ),
    "gradients of a shared bias, a number": (
        lambda *args: gradients(biased, *args, bias=True),
        lambda rng: [
            *triple(rng),
            random_array(rng, 4, 40, 150),
            7,
            random_array(rng, 2, 4, 40, 64),
        ],
    ),
    "bytes of a dropout": (
        dropped,
        lambda rng: [*triple(rng), random_array(rng, 4, 40, 150), int(rng.integers(99))],
    ),
}


def on_device(args: Arguments) -> Arguments:
    return [OnDevice(each) if isinstance(each, np.ndarray) else each for each in args]


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


@pytest.mark.parametrize("name", CASES)
def test_nothing_waits(name: str, callers_stream: int | None) -> None:
    """The results are those of calls with host arrays, which wait for each launch."""
    run, arguments = CASES[name]
    device = open_device("emu:gfx942")
    rounds = [arguments(np.random.default_rng(seed)) for seed in range(3)]
    # Memory lives until the stream has come to its last use.
    before = arguments(np.random.default_rng(9))
    first = listed(run(*on_device(before)))
    device.synchronize(callers_stream)
    assert first
    on_host = [arguments(np.random.default_rng(seed)) for seed in range(3)]
    with held_up(device, callers_stream) as still_held:
        results = [listed(run(*on_device(args))) for args in rounds]
        assert still_held(), "the calls returned while the stream stood still"
    for args, computed in zip(on_host, results, strict=True):
        with ck.using(arch="gfx942"):
            wanted = listed(run(*args))
        assert len(wanted) == len(computed)
        for got, want in zip(computed, wanted, strict=True):
            np.testing.assert_array_equal(got.array, want)
            assert np.count_nonzero(want)


def test_repeated_calls_are_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients, and rows behind a cache, go from their arguments to the launches."""
    _, arguments = CASES["gradients of packed"]
    steps = of_appending(np.random.default_rng(0))
    with ck.using(arch="gfx942"):
        first = gradients(packed, *arguments(np.random.default_rng(0)))
        appended(*(each.copy() for each in steps))
        monkeypatch.setattr("cklang.ops.attention_backward.plan_gradients", None)
        monkeypatch.setattr("cklang.ops.append_kv._plan", None)
        again = gradients(packed, *arguments(np.random.default_rng(0)))
        assert packed.last is not None
        assert packed.last.memoised
        assert len(packed.last.launches) == 6
        assert packed.last.instructions
        appended(*steps)
        for once, twice in zip(first, again, strict=True):
            np.testing.assert_array_equal(once, twice)
        with pytest.raises(TypeError, match="'NoneType' object is not callable"):
            # Another order of summation is another plan.
            ck.attention_grad(packed, *arguments(np.random.default_rng(0))[:-1], grad=first[0])
