# SPDX-License-Identifier: MIT
"""Gradients that share values with the forward call: the same numbers, whatever is saved."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.arrays import drawn_for_gradient
from tests.support.attention_ops import distant
from tests.support.by_reference import replace_kernels
from tests.support.checks import check, launches
from tests.support.written_ops import written_op

DEVICE = "emu:gfx942"
HEADS = "ck.f16[B, 2, S, 64]"
SOURCES = {
    "product": (
        "def f(x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f16[N]) -> ck.f16[M, N]:\n"
        "    return ck.gelu(x @ w.T + b)\n"
    ),
    "chain": (
        "def f(x: ck.f16[M, K], w: ck.f16[N, K], u: ck.f16[K, N]) -> ck.f16[M, K]:\n"
        "    return ck.tanh(ck.relu(x @ w.T) @ u.T)\n"
    ),
    "norm": (
        "def f(x: ck.f32[M, N], g: ck.f32[N]) -> ck.f32[M, N]:\n    return ck.layer_norm(x, g, g)\n"
    ),
    "attention": (
        f"def f(q: {HEADS}, k: {HEADS}, v: {HEADS}) -> {HEADS}:\n    return ck.attention(q, k, v)\n"
    ),
}


def op_of(name: str) -> Op:
    return written_op(f"@ck.op\n{SOURCES[name]}", "M N K B S")


def drawn(op: Op, **extents: int) -> list[Any]:
    return drawn_for_gradient(op, {"M": 5, "N": 6, "K": 7, "B": 2, "S": 9} | extents)


@pytest.mark.parametrize("saved", ["everything", "nothing", "auto"])
@pytest.mark.parametrize("name", SOURCES)
def test_gradients_are_the_same_whatever_is_saved(name: str, saved: str) -> None:
    op = op_of(name)
    *args, dy = drawn(op)
    pair = ck.vjp_saving(op, *args, saved=saved, device=DEVICE)
    results = evaluate(pair.forward.program.specialise(), args)
    np.testing.assert_array_equal(results[0], evaluate(op.program.specialise(), args)[0])
    kept = [results[place] for place in pair.kept]
    got = evaluate(pair.backward.program.specialise(), [*args, *kept, dy])
    want = evaluate(ck.vjp(op).ir(*args, dy), [*args, dy])
    for mine, theirs in zip(got, want, strict=True):
        # What is saved in f16 has lost what f32 had.
        np.testing.assert_allclose(mine.astype("d"), theirs.astype("d"), rtol=0.02, atol=0.02)
    assert bool(pair.saved) == (saved == "everything") or saved == "auto"
    assert len(pair.reasons) >= 1


def ops_of(op: Op) -> list[str]:
    return [each.op for each in op.program.specialise().body]


def test_a_long_product_is_saved_and_a_short_one_computed_again() -> None:
    op = op_of("product")
    for depth, is_saved in ((8192, True), (8, False)):
        *args, _ = drawn(op, M=1024, N=1024, K=depth)
        pair = ck.vjp_saving(op, *args, wrt="b", device=DEVICE)
        assert bool(pair.saved) == is_saved, pair.reasons
        assert ("gemm" in ops_of(pair.backward)) != is_saved
        assert pair.bytes == (4 * 1024 * 1024 if is_saved else 0)
        assert ("saved;" in pair.reasons[0]) == is_saved


def test_the_result_of_an_attention_is_saved_without_bytes_of_its_own() -> None:
    op = op_of("attention")
    *args, _ = drawn(op, S=512)
    pair = ck.vjp_saving(op, *args, device=DEVICE)
    assert pair.kept == (0, 1), pair.reasons
    assert pair.bytes == 4 * 2 * 2 * 512, "the log-sum-exps; o is a result"
    assert "attention" not in ops_of(pair.backward)
    assert "attention_dq" in ops_of(pair.backward)


def test_values_are_saved_by_name() -> None:
    op = op_of("chain")
    *args, _ = drawn(op)
    names = ck.vjp_saving(op, *args, saved="everything", device=DEVICE).saved
    assert len(names) == 2
    pair = ck.vjp_saving(op, *args, saved=names[:1], device=DEVICE)
    assert pair.saved == names[:1]
    assert ops_of(pair.backward).count("gemm") == ops_of(ck.vjp(op)).count("gemm") - 1
    with pytest.raises(CkError, match="G035") as caught:
        ck.vjp_saving(op, *args, saved="%nothing", device=DEVICE)
    assert ", ".join(sorted(names)) in str(caught.value)


def test_run_and_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)
    op = op_of("chain")
    *args, dy = drawn(op)
    pair = ck.vjp_saving(op, *args, saved="everything", device=DEVICE)
    y, kept = pair.run(*args)
    np.testing.assert_array_equal(y, op(*args))
    for mine, theirs in zip(pair.pull(args, kept, dy), ck.vjp(op)(*args, dy), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs.astype("d"), rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("compiler")
def test_saved_values_of_an_attention_on_the_emulated_gpu() -> None:
    sizes = {"B": 2, "H": 4, "G": 2, "S": 40, "T": 130, "D": 64}
    function = distant.program.specialise({"F": ck.f16})
    rng = np.random.default_rng(1)
    types = [each.type for each in (*function.params, *function.results)]
    *args, dy = [rng.uniform(-1, 1, t.extents(sizes)).astype(t.dtype.numpy) for t in types]
    wrt = ("q", "k", "v")
    pair = ck.vjp_saving(distant, *args, wrt=wrt, saved="everything", device=DEVICE)
    y, kept = pair.run(*args, device=DEVICE)
    assert kept[0] is y
    check(pair.backward, [*args, *kept, dy])
    for mine, theirs in zip(
        pair.pull(args, kept, dy, device=DEVICE), ck.vjp(distant, wrt=wrt)(*args, dy), strict=True
    ):
        np.testing.assert_allclose(mine.astype("d"), theirs.astype("d"), atol=2e-3)
    assert "attention" not in [each.key.family for each in launches(pair.backward)]
