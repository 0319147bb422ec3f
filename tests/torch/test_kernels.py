# SPDX-License-Identifier: MIT
"""Custom ops of torch that launch kernels: eager, compiled, and caches written in place."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import cklang as ck
from cklang.torch import custom_op_of
from cklang.torch.batching import batched_op
from tests.support.algorithms import DEEP, narrow
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("torch", "fresh", "stencils")

M, N, K = ck.dims("M N K")
GPU = "emu:gfx942"


@ck.op
def bent(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


PRODUCT = bent.using(narrow(0, warp_tile=DEEP))


@pytest.fixture(autouse=True)
def _on_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_DEVICE", GPU)


def integers(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-2, 3, shape, generator=generator).half()


def layer(x: Any, w: Any) -> Any:
    return PRODUCT(x + 1, w) * 2


BACKENDS = [
    "eager",
    "aot_eager",
    pytest.param("inductor", marks=pytest.mark.full),  # compiles C++ for half a minute
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_graph_launches_the_kernels_of_a_call(backend: str) -> None:
    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=True)
    for rows in (33, 7):
        x, w = integers(rows, 20), integers(40, 20, seed=1)
        expected = torch.relu((x + 1).float() @ w.float().T).half() * 2
        assert torch.equal(compiled(x, w), expected)
        launches = PRODUCT.last.launches if PRODUCT.last is not None else ()
        assert len(launches) == 1


def test_opcheck_with_kernels() -> None:
    args = integers(9, 20), integers(40, 20, seed=1)
    results = torch.library.opcheck(custom_op_of(PRODUCT), args)
    assert set(results.values()) == {"SUCCESS"}


def test_a_batch_is_one_launch() -> None:
    xs, w = integers(3, 9, 20), integers(40, 20, seed=1)
    result = torch.vmap(PRODUCT, in_dims=(0, None), out_dims=1)(xs, w)
    assert torch.equal(result, torch.relu(xs.float() @ w.float().T).half().transpose(0, 1))
    batched = batched_op(PRODUCT, [xs, w], (0, None), None)
    assert batched is not None
    assert batched.op.last is not None
    assert len(batched.op.last.launches) == 1


def _cache(batch: int, rows: int) -> dict[str, Any]:
    return {
        "k_cache": torch.zeros(batch, 2, 16, 64).half(),
        "v_cache": torch.zeros(batch, 2, 16, 64).half(),
        "k": integers(batch, 2, rows, 64, seed=1),
        "v": integers(batch, 2, rows, 64, seed=2),
        "seqlens_k": torch.arange(batch).int(),
    }


def _decode(cache: dict[str, Any], **more: Any) -> Any:
    turned = ck.append_kv(**cache, **more)
    return cache["k_cache"].sum() if turned is None else turned + 1


def _plain(cache: dict[str, Any]) -> dict[str, Any]:
    return {}


def _turned(cache: dict[str, Any]) -> dict[str, Any]:
    angles = torch.linspace(0, 1, 16 * 32).reshape(16, 32)
    return {
        "q": integers(2, 4, 3, 64, seed=3),
        "cos": angles.cos().half(),
        "sin": angles.sin().half(),
    }


@pytest.mark.parametrize("options", [_plain, _turned])
def test_a_cache_that_a_graph_writes(options: Callable[[Any], Any]) -> None:
    eager, compiled = _cache(2, 3), _cache(2, 3)
    expected = _decode(eager, **options(eager))
    graph = torch.compile(_decode, backend="aot_eager", fullgraph=True)
    assert torch.equal(graph(compiled, **options(compiled)), expected)
    for name in ("k_cache", "v_cache"):
        assert torch.equal(compiled[name], eager[name])
        assert compiled[name].any()


@pytest.mark.parametrize("options", [_plain, _turned])
def test_opcheck_of_a_cache(options: Callable[[Any], Any]) -> None:
    cache = _cache(2, 3)
    more = options(cache)
    ck.append_kv(**cache, **more)
    no_scales = [None] * 4
    values = [*cache.values(), None, more.get("cos"), more.get("sin"), *no_scales, "half", True]
    packet = torch.ops.cklang.append_kv
    overload = packet.rotated if more else packet.default
    # Under grad mode its writes are refused; nothing here requires a gradient.
    results = torch.library.opcheck(overload, (*values, more["q"]) if more else tuple(values))
    assert set(results.values()) == {"SUCCESS"}


def test_a_cache_that_takes_gradients_is_refused() -> None:
    cache = _cache(2, 3)
    cache["k"].requires_grad_()
    with expect_error("A005"):
        ck.append_kv(**cache)
    with pytest.raises(Exception, match="append_kv writes its arguments, and k requires"):
        torch.compile(_decode, backend="aot_eager", fullgraph=True)(cache)
