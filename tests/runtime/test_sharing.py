# SPDX-License-Identifier: MIT
"""Values that several kernels read: stored once, or computed by each, by the predicted times."""

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkInternalError, error
from cklang.families import alternatives_of
from cklang.families.function_work import INSTRUCTIONS, instructions, vector_time
from cklang.families.memory_cost import memory_time
from cklang.fusion.alternatives import with_stored
from cklang.ir.ops import OPS
from cklang.ir.parser import parse, parse_function
from cklang.reference.evaluate import evaluate
from cklang.runtime import sharing
from cklang.runtime.op import Op
from tests.support.algorithms import NARROW
from tests.support.arrays import Array, half
from tests.support.errors import expect_error

M, N, K = ck.dims("M N K")
GPU = "emu:gfx942"


@ck.op
def gated(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f16[M, N]]:
    return ck.gelu(x).to(ck.f16) @ w.T, ck.gelu(x).to(ck.f16) @ v.T


@ck.op
def normed(x: ck.f16[M, K], g: ck.f16[K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.rms_norm(x, g).to(ck.f16) @ w.T


@ck.op
def narrow(x: ck.i8[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """A norm of small integers: half the bytes of what it makes of them."""
    return ck.rms_norm(x.to(ck.f32)).to(ck.f16) @ w.T


def families(op: Op, *args: Array) -> list[str]:
    return [kernel.family for kernel in op.fusion(*args).kernels]


def test_a_function_is_computed_again_where_little_is_and_stored_where_much_is() -> None:
    few = (half(16, 4096), half(64, 4096), half(64, 4096))
    many = (half(4096, 4096), half(4096, 4096), half(4096, 4096))
    assert families(gated, *few) == ["gemm", "gemm"]
    assert families(gated, *many) == ["rowwise", "gemm", "gemm"]
    # The same value, written twice, is stored once.
    rows, *products = gated.fusion(*many).kernels
    assert len(rows.results) == 1
    assert len({product.inputs[0] for product in products}) == 1


def test_a_norm_is_stored_where_many_tiles_read_it_and_not_where_one_does() -> None:
    x, w = np.empty((1 << 14, 8192), np.int8), half(64, 8192)
    wide = narrow.fusion(x, half(4096, 8192))
    thin = narrow.fusion(x, w)
    assert [str(kernel.results[0].type) for kernel in wide.kernels][:1] == ["f16[M, K]"]
    assert [str(kernel.results[0].type) for kernel in thin.kernels][:1] == ["f32[M]"]
    assert thin.kernels[1].functions.keys() == {"epilogue", "prologue_a"}


def test_explain_says_both_times() -> None:
    text = gated.explain(half(4096, 4096), half(4096, 4096), half(4096, 4096), device=GPU)
    (line,) = [each for each in text.splitlines() if "µs predicted if a kernel stores it" in each]
    assert line.endswith("it is stored")
    assert "the cost model predicts less for that" in text
    again = gated.explain(half(16, 64), half(64, 64), half(64, 64), device=GPU)
    (line,) = [each for each in again.splitlines() if "µs predicted if a kernel stores it" in each]
    assert line.endswith("it is not")


@pytest.mark.parametrize("where", ["plan_of", "choices_of"])
def test_a_mistake_of_an_alternative_is_no_slower_plan(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = (half(4096, 4096), half(256, 4096), half(256, 4096))

    def broken(*_: object) -> None:
        raise error("Z002", what="a value is computed twice")

    monkeypatch.setattr(sharing, where, broken)
    with pytest.raises(CkInternalError, match="computed twice"):
        gated.fusion(*args)


@pytest.mark.parametrize("device", ["emu:gfx90a", "emu:gfx950"])
def test_a_fusion_is_that_of_the_device_that_is_named(device: str) -> None:
    args = (half(4096, 4096), half(4096, 4096), half(4096, 4096))
    chosen = gated.summary(*args, device=device).microseconds
    notes = " ".join(gated.fusion(*args, device=device).notes)
    assert f"{chosen:.1f} µs predicted" in notes
    assert gated.graph(*args, device=device) is gated.fusion(*args, device=device).graph


def test_the_choice_is_predicted_to_be_quicker() -> None:
    args = (half(4096, 4096), half(4096, 4096), half(4096, 4096))
    chosen = gated.summary(*args, device=GPU).microseconds
    note = next(each for each in gated.fusion(*args).notes if "predicted" in each)
    numbers = [float(word) for word in note.split() if word.replace(".", "").isdigit()]
    assert chosen == pytest.approx(numbers[0], abs=0.06)
    assert numbers[0] < 0.95 * numbers[1]


def test_algorithms_that_somebody_names_are_for_the_plan_of_the_rules() -> None:
    large = (half(4096, 4096), half(4096, 4096), half(4096, 4096))
    assert families(gated.using(NARROW), *large) == ["gemm", "gemm"]


def test_the_alternatives_mean_the_same() -> None:
    random = np.random.default_rng(0)
    x, g, w = (random.standard_normal(shape).astype(np.float16) for shape in ((5, 16), 16, (3, 16)))
    for op, args in ((gated, (x, w, w)), (normed, (x, g, w))):
        function = op.program.specialise()
        (option,) = alternatives_of(function, op.fusion(*args))
        other = with_stored(function, option.names)
        results = (evaluate(each, list(args)) for each in (other, function))
        for got, want in zip(*results, strict=True):
            np.testing.assert_array_equal(got, want)
        assert parse(str(other)).functions == (other,)


def test_programs_without_a_choice_have_no_alternatives() -> None:
    @ck.op
    def widened(x: ck.f16[M, K], w: ck.i8[N, K]) -> ck.f16[M, N]:
        return x @ w.to(ck.f16).T

    @ck.op
    def returned(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, K], ck.f16[M, N]]:
        h = ck.rms_norm(x).to(ck.f16)
        return h, h @ w.T

    for op, dtype in ((widened, np.int8), (returned, np.float16)):
        args = (half(4096, 4096), np.empty((4096, 4096), dtype))
        assert not alternatives_of(op.program.specialise(), op.fusion(*args))


def test_work_of_functions() -> None:
    text = "func @f(%x: f32[]) -> f32[] { %0: f32[] = gelu(%x) %1: f32[] = neg(%0) return %1 }"
    assert instructions(parse_function(text)) == INSTRUCTIONS["gelu"] + 1
    assert set(INSTRUCTIONS) <= set(OPS)
    spec = arch("gfx942")
    assert vector_time(2_000_000, spec) == pytest.approx(2 * vector_time(1_000_000, spec))
    assert memory_time(1 << 30, spec) > memory_time(1 << 20, spec) > memory_time(0, spec) > 0


def test_a_call_that_no_kernel_serves_keeps_the_plan_of_the_rules() -> None:
    x, w = half(64, 4096), np.broadcast_to(np.float16(1), (64, 4096))
    plan = gated.fusion(x, w, w)
    assert [kernel.family for kernel in plan.kernels] == ["gemm", "gemm"]
    with expect_error("A030"):
        gated.summary(x, w, w, device=GPU)
