# SPDX-License-Identifier: MIT
"""What an op says of a call before anything is built or run."""

from pathlib import Path

import pytest

import cklang as ck
from cklang.runtime.op import Op
from tests.support.algorithms import narrow, wide
from tests.support.arrays import half
from tests.support.errors import expect_error

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    """Multiply and add."""
    return ck.relu(x @ w.T + bias)


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[K, N], *, by: ck.const[float] = 2.0) -> ck.f16[M, N]:
    return (x @ w) * by


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CKLANG_DEVICE", "emu:gfx942")


ARGS = half(48, 40), half(24, 40), half(24)


def test_it_looks_like_the_function() -> None:
    assert linear.__name__ == "linear"  # type: ignore[attr-defined]
    assert linear.__doc__ == "Multiply and add."
    assert repr(linear) == "<cklang op linear>"
    assert linear.last is None


def test_the_ir_of_a_call() -> None:
    text = str(linear.ir(*ARGS))
    assert text.startswith("func @linear(%x: f16[M, K], %w: f16[N, K], %bias: f16[N])")
    assert linear.ir(*ARGS) is linear.ir(*ARGS)
    assert "constant() {value = 3.0}" in str(scaled.ir(half(2, 3), half(3, 4), by=3))


def test_the_graph_of_a_call() -> None:
    graph = linear.graph(*ARGS)
    assert graph.name == "linear"
    assert any("gemm" in payload.label for _, payload in graph.nodes(data="node"))


def test_explain_says_why_this_algorithm_and_not_another() -> None:
    text = linear.explain(half(48, 41), half(24, 41), half(24))
    assert "candidate 1 of" not in text
    assert "vector-a: the number of columns of A is 41, must be a multiple of" in text
    assert "built      no" in text
    assert "device: emulated gfx942 (AMD Instinct MI300X)" in text


def test_explain_prints_what_the_prediction_is_made_of() -> None:
    lines = linear.explain(*ARGS).splitlines()
    (total,) = [line.split()[1:] for line in lines if line.startswith("  total")]
    chosen, other = map(float, total)
    assert chosen < other, "kernels that the model cannot tell apart are counted, not shown"
    (because,) = [line for line in lines if line.startswith("  because")]
    assert f"{chosen:.2f} µs predicted" in because
    of_a_tile = ("lds", "vector", "load", "issue", "prologue")
    of_a_launch = ("launch", "matrix", "latency", "epilogue", "memory", "l2", "split_k", "tail")
    names = (*of_a_launch, *of_a_tile)
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert sum(float(cells[name][0]) for name in names) == pytest.approx(chosen, abs=0.1)
    labels = [line.split()[1] for line in lines if line.startswith(("  chosen", "  runner-up"))]
    assert len(set(labels)) == 2
    assert "constants carried over" not in because


def test_explain_follows_the_device() -> None:
    text = linear.explain(*ARGS, device="emu:gfx90a")
    (chosen,) = [line for line in text.splitlines() if line.startswith("  chosen")]
    assert "_gfx90a_" in chosen
    assert text.count("gfx942") == 1, "whose constants the prediction has"
    assert "constants carried over from gfx942 with 304 compute units" in text


def test_explain_of_an_empty_result() -> None:
    assert "nothing is launched" in linear.explain(half(0, 40), half(24, 40), half(24))


def test_inspect_shows_the_source() -> None:
    text = linear.inspect(*ARGS)
    assert "ck_tile" in text
    assert "ck_epilogue" in text


def test_a_named_algorithm_is_used_or_refused() -> None:
    chosen = linear.using(narrow(1))
    assert chosen is not linear
    assert "because    you named it" in chosen.explain(*ARGS)
    with expect_error("K101", "41, must be a multiple of 8"):
        linear.using(wide(1)).explain(half(48, 41), half(24, 41), half(24))
    with expect_error("K022"):
        linear.using("fast")


def test_strides_are_named_with_their_argument() -> None:
    with expect_error("A030", "x has no contiguous axis"):
        linear.explain(half(48, 80)[:, ::2], half(24, 40), half(24))
    with expect_error("A032", "out is not contiguous along its rows"):
        linear.explain(*ARGS, out=half(24, 48).T)


@pytest.mark.parametrize("device", ["gfx942", "emu:", "emu:gfx1", "cuda:0"])
def test_unknown_devices(device: str) -> None:
    with expect_error("D001") as caught:
        linear.explain(*ARGS, device=device)
    known = {"gfx942": '"emu:gfx942"', "cuda:0": '"hip:0"'}
    assert known.get(device, "emu:") in str(caught.value)


def test_options_are_no_parameter_names() -> None:
    with expect_error("A013"):

        @ck.op
        def bad(x: ck.f16[M, K], out: ck.f16[K, N]) -> ck.f16[M, N]:
            return x @ out


def test_an_op_from_text() -> None:
    op = ck.parse(str(linear.ir(*ARGS)))
    assert isinstance(op, Op)
    assert str(op.ir(*ARGS)) == str(linear.ir(*ARGS))
    with expect_error("A025"):
        op.explain(half(48, 40), half(24, 39), half(24))


def test_one_plan_for_equal_specialisations() -> None:
    one = scaled.fusion(half(2, 3), half(3, 4))
    assert scaled.fusion(half(8, 9), half(9, 1)) is one
    assert scaled.fusion(half(2, 3), half(3, 4), by=3.0) is not one
