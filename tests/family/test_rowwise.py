# SPDX-License-Identifier: MIT
"""``ck.sum`` and ``ck.max`` of rows: the language, rules, bounds, and kernels on all GPUs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang import emulator
from cklang.arch import all_archs, arch
from cklang.errors import CkError, CkValueError
from cklang.families import key_from_json
from cklang.families.rowwise.family import ROWWISE
from cklang.families.rowwise.key import Reduction, RowwiseKey, RowwiseSignature
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor
from cklang.families.rowwise.rules import RULES
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.selection.space import enumerate_legal
from cklang.tune.database import Status
from cklang.tune.measure import measure
from cklang.tune.on_device import measurement
from cklang.tune.task import tasks_of
from cklang.types import DTYPES, DType, bf16, f16, f32
from tests.support.algorithms import narrow
from tests.support.arrays import Array, half, normal
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.typed import instance, only

B, H, M, N, K, D = ck.dims("B H M N K D")
X: Any = ck.dtype_var("X", ck.f16, ck.bf16, ck.f32)

ONE = ck.dispatch.RowwiseAlgorithm(threads=16, vector=1)
"""Any strides."""


WIDE = ck.dispatch.RowwiseAlgorithm(threads=256, vector=8)
"""A workgroup for a row, whose waves meet in LDS, and vectors of 8."""

KEPT = ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=1)
"""A wave for a row of up to 512 elements, which registers hold."""


@ck.op
def sums(x: X[M, K]) -> X[M]:
    return ck.sum(x, axis=-1)


@ck.op
def maxima(x: X[M, K]) -> X[M]:
    return ck.max(x, axis=1)


@ck.op
def sums4(x: X[B, H, M, K]) -> X[B, H, M]:
    return ck.sum(x, axis=-1)


@ck.op
def maxima4(x: X[B, H, M, K]) -> X[B, H, M]:
    return ck.max(x, axis=3)


@ck.op
def scaled(
    x: ck.f16[B, M, K], bias: ck.f16[M], factor: ck.f32, other: ck.bf16[M, B]
) -> ck.f16[M, B]:
    rows = ck.sum(x, axis=-1) * factor
    return (ck.exp(rows) + bias).T - other


@ck.op
def normalised(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T / (1.0 + ck.sum(x, axis=-1, keepdims=True))


@ck.op
def after_product(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[M]) -> ck.f32[M]:
    return ck.sum(ck.relu(x @ w.T).to(ck.f16), axis=-1) + bias


@ck.op
def beside_attention(
    q: ck.f16[B, H, M, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, D]
) -> tuple[ck.f16[B, H, M, D], ck.f32[B, H, M]]:
    o = ck.attention(q, k, v).to(ck.f16)
    return o, ck.max(o, axis=-1)


# --- the language


def test_functions_outside_an_op_are_numpys() -> None:
    x = normal(3, 5)
    np.testing.assert_array_equal(ck.sum(x, axis=-1), x.astype(np.float32).sum(axis=-1))
    np.testing.assert_array_equal(ck.max(x, axis=1, keepdims=True), x.max(axis=1, keepdims=True))
    assert ck.max(np.zeros((2, 0)), axis=-1).tolist() == [-np.inf, -np.inf]
    with pytest.raises(CkValueError, match="axis is 2, but there are 2 axes"):
        ck.sum(x, axis=2)


@ck.op
def no_axis(x: ck.f16[M, K]) -> ck.f32[K]:
    return ck.sum(x, axis=2)


@ck.op
def scalar(x: ck.f32, y: ck.f32[M]) -> ck.f32[M]:
    return y * ck.sum(x, axis=-1)


@ck.op
def kept(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.sum(x, axis=-1, keepdims=2)


@pytest.mark.parametrize(
    ("op", "code", "words"),
    [
        (no_axis, "F067", "axis is 2, but there are 2 axes"),
        (scalar, "F066", "one to 5 axes"),
        (kept, "F067", "keepdims is the constant 2"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_mistakes_are_errors_with_a_place(op: Op, code: str, words: str) -> None:
    x = np.float32(1) if op is scalar else half(2, 2)
    with expect_error(code, match=words) as caught:
        op.ir(*(x, np.zeros(3, np.float32))[: len(op.program.signature.parameters)])
    assert caught.value.at is not None


def test_pythons_sum_names_the_function() -> None:
    with expect_error("F016", match=r"ck\.sum"):

        @ck.op
        def wrong(x: ck.f16[M, K]) -> ck.f32[M]:
            return sum(x)


# --- fusion


def test_explain_says_what_a_kernel_computes_and_why_it() -> None:
    x, bias = half(5, 7, 5), half(7)
    text = scaled.explain(x, bias, 0.5, np.zeros((7, 5), bf16.numpy), device="emu:gfx942")
    assert "@scaled: 1 kernel" in text
    assert "for rows of K in [B, M, K]" in text
    assert "f32[B, M] = reduce_sum(%x) {axes = [2]}" in text
    assert "[5x7] rows of 5: sum; writes f16 a row" in text
    assert "row-length: the length of a row is 5, must be at least 8" in text
    assert "µs = launch" in text


@ck.op
def shifted(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.exp(x - ck.max(x, axis=-1, keepdims=True)).to(ck.f16) @ w.T


def test_what_follows_a_reduction_is_stored_for_a_product() -> None:
    text = shifted.explain(half(5, 8), half(6, 8), device="emu:gfx942")
    assert "@shifted: 2 kernels" in text
    assert "reduce_max" in text.partition("kernel shifted_1")[0]
    assert "f16[M, K] = cast" in text.partition("kernel shifted_1")[0]


def test_a_group_of_reductions_is_refused() -> None:
    with expect_error("G005", match="family rowwise"):
        sums.grouped([(half(2, 3),), (half(4, 3),)], device="emu:gfx942")


def test_rows_and_products_are_kernels_of_one_plan() -> None:
    text = normalised.explain(half(5, 8), half(6, 8), device="emu:gfx942")
    assert "kernel normalised_0: f32[M]" in text
    assert "comes from rowwise" in text


# --- keys, rules, choices


SOFTMAX = ((Reduction.MAX,), (Reduction.SUM,))


def key(gpu: str = "gfx942", **changes: Any) -> RowwiseKey:
    signature = RowwiseSignature(reductions=SOFTMAX, kept=1, elements=(f16,), **changes)
    return RowwiseKey(signature, KEPT, gpu)


def test_a_key_survives_its_json_form() -> None:
    assert key_from_json(key().to_json()) == key()
    assert key_from_json(key(functions="0" * 64).to_json()) != key()
    assert key().label.startswith("rowwise_max_sum_k1_f16_64x8x1_gfx942")


def rejected(
    algorithm: ck.dispatch.RowwiseAlgorithm, gpu: str = "gfx942", **changes: Any
) -> list[str]:
    signature = replace(key().signature, **changes)
    return [each.rule for each in RULES.rejections(algorithm, signature, arch(gpu))]


def test_rules_of_algorithms() -> None:
    rows = ck.dispatch.RowwiseAlgorithm
    assert rejected(KEPT) == []
    assert rejected(rows(threads=48, vector=8)) == ["row-threads"]
    assert rejected(rows(threads=2048, vector=8)) == ["row-threads"]
    assert rejected(rows(threads=64, vector=3)) == ["row-vector"]
    assert rejected(rows(threads=64, vector=8, chunks=16)) == ["row-registers"]
    assert rejected(rows(threads=64, vector=8, chunks=1), kept=0) == ["row-registers"]
    assert rejected(rows(threads=64, vector=8, chunks=8), common=1) == ["row-registers"]
    assert rejected(rows(threads=64, vector=8, chunks=4), common=1) == []
    assert rejected(rows(threads=1024, vector=8, chunks=4), common=2) == ["row-registers"]
    assert rejected(KEPT, kept=0, common=1) == []
    assert rejected(KEPT, elements=(DTYPES["fp8"],)) == ["row-outputs"]
    assert rejected(KEPT, "gfx950", elements=(DTYPES["fp8"],)) == []
    assert rejected(KEPT, reductions=((Reduction.SUM,),) * 5) == ["row-stages"]


@ck.op
def softmax(x: X[M, K]) -> X[M, K]:
    return ck.softmax(x, axis=-1)


@pytest.mark.parametrize(
    ("length", "algorithm", "words"),
    [
        (512, (64, 8, 1), ""),
        (520, (64, 8, 1), "the length of a row is 520, must be at most 512"),
        (520, (64, 8, 2), ""),
        (1 << 20, (64, 8, 0), ""),
        (13, (64, 8, 1), ""),
        (5, (64, 8, 1), "the length of a row is 5, must be at least 8, the elements of a vector"),
        (5, (64, 4, 1), ""),
        (0, (64, 8, 1), ""),
    ],
)
def test_rules_of_problems(length: int, algorithm: tuple[int, int, int], words: str) -> None:
    problem = only(RowwiseProblem, softmax.problems(half(3, min(length or 1, 4096))))
    problem = replace(problem, elements=(length,))
    threads, vector, chunks = algorithm
    rows = ck.dispatch.RowwiseAlgorithm(threads=threads, vector=vector, chunks=chunks)
    violations = RULES.rejections(rows, problem.signature, arch("gfx942"), problem)
    assert words in "".join(map(str, violations))


@pytest.mark.parametrize(
    ("x", "access", "rows"),
    [
        (np.zeros((4, 12), np.float16), "c", (4,)),
        (np.zeros((4, 13), np.float16), "c", (4,)),
        (np.zeros((1, 13), np.float16), "c", (1,)),
        (np.zeros((12, 4), np.float16).T, "s", (4,)),
        (np.zeros((4, 24), np.float16)[:, ::2], "s", (4,)),
        (np.zeros((4, 24), np.float16)[:, 1:13], "c", (4,)),
        (np.zeros((4, 24), np.float16)[:, ::-1], "s", (4,)),
        (np.zeros((4, 1), np.float16), "b", (4,)),
    ],
)
def test_how_a_row_is_read(x: Array, access: str, rows: tuple[int, ...]) -> None:
    problem = only(RowwiseProblem, sums.problems(x))
    assert (problem.reads[0].access, problem.rows) == (access, rows)


@ck.op
def weighted(x: ck.f16[B, M, K], w: ck.f16[K], v: ck.f16[B, K], b: ck.f16[M]) -> ck.f16[B, M, K]:
    return ck.rms_norm(x * v[:, None] + b[:, None], w)


def test_operands_that_all_rows_have_in_common() -> None:
    args = half(2, 3, 8), half(8), half(2, 8), half(3)
    problem = only(RowwiseProblem, weighted.problems(*args))
    assert (problem.signature.common, problem.signature.kept) == (1, 1)
    alone = only(RowwiseProblem, sums.problems(half(3, 8)))
    assert alone.signature.common == 0


@ck.op
def added(x: ck.f16[B, M, K], y: ck.f16[B, M, K], b: ck.f32[K]) -> ck.f16[B, M, K]:
    return x + y * b


def test_axes_that_follow_each_other_are_one() -> None:
    x, b = half(3, 4, 8), np.zeros(8, np.float32)
    problem = only(RowwiseProblem, added.problems(x, x, b))
    assert (problem.rows, problem.elements) == ((12,), (8,))
    turned = half(4, 3, 8).transpose(1, 0, 2)
    problem = only(RowwiseProblem, added.problems(x, turned, b))
    assert (problem.rows, problem.elements) == ((3, 4), (8,))
    assert problem.bytes == 3 * 4 * 8 * 2 * 3 + 8 * 4


@pytest.mark.parametrize("spec", all_archs(), ids=lambda spec: spec.name)
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_some_candidate_takes_every_problem(spec: Any, kept: int) -> None:
    signature = replace(key().signature, kept=kept)
    candidates = ROWWISE.candidates(signature, spec, "essential")
    assert candidates == tuple(enumerate_legal(signature, spec))
    assert any(each.vector == 1 and not each.chunks for each in candidates)
    with pytest.raises(CkValueError, match="preset"):
        ROWWISE.candidates(signature, spec, "no such preset")


@pytest.mark.parametrize(
    ("rows", "length", "chosen"),
    [
        (4, 1 << 16, ck.dispatch.RowwiseAlgorithm(threads=1024, vector=8, chunks=8)),
        (1 << 20, 64, ck.dispatch.RowwiseAlgorithm(threads=16, vector=4, chunks=1)),
        (1 << 12, 4096, ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=8)),
    ],
)
def test_long_rows_have_more_threads(
    rows: int, length: int, chosen: ck.dispatch.RowwiseAlgorithm
) -> None:
    tensor = RowwiseTensor(value="x", dtype=f16, rows=(length,), elements=(1,))
    problem = RowwiseProblem(
        signature=key().signature,
        rows=(rows,),
        elements=(length,),
        reads=(tensor,),
        outputs=(replace(tensor, value="y"),),
    )
    assert ck.dispatch.select(problem, arch="gfx942").key.algorithm == chosen


def test_a_wrong_algorithm_is_explained_and_mended() -> None:
    wrong = ck.dispatch.RowwiseAlgorithm(threads=48, vector=8)
    short = only(RowwiseProblem, sums.problems(half(4, 5)))
    advice = ck.dispatch.advise(wrong, short.signature, "gfx942", short)
    assert [each.rule for each in advice] == ["row-threads", "row-length"]
    mended = ck.dispatch.fix(wrong, short.signature, "gfx942", short).algorithm
    assert mended == ck.dispatch.RowwiseAlgorithm(threads=64, vector=4)


def test_a_registry_declares_the_kernels_of_a_program() -> None:
    registry = ck.dispatch.Registry("rows")
    assert normalised.declare(half(8, 8), half(8, 8), registry=registry, among="essential") > 9
    families = {kernel.key.family for kernel in registry}
    assert families == {"rowwise", "gemm"}
    copied = ck.dispatch.Registry.from_json(registry.to_json())
    assert copied.same_as(registry)


def test_an_algorithm_of_another_family_is_refused() -> None:
    with pytest.raises(CkValueError, match="RowwiseAlgorithm for what"):
        sums.using(narrow()).problems(half(3, 4))


# --- the reference


@given(
    st.lists(
        st.floats(-1e4, 1e4, width=16) | st.sampled_from([np.inf, -np.inf, np.nan, 6e4]),
        max_size=40,
    ),
    st.randoms(),
)
def test_sums_in_any_order_are_within_the_bound(row: list[float], random: Any) -> None:
    x = np.array([row], np.float32)
    (want,), (bound,) = evaluate_with_bound(sums.ir(x), [x])
    random.shuffle(row)
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for number in row:
            total = np.float32(total + np.float32(number))
    if np.isfinite(want[0]):
        assert abs(float(total) - float(want[0])) <= bound[0]
    else:
        np.testing.assert_equal(float(total), float(want[0]))


def test_the_bound_of_a_sum_grows_with_its_length_and_that_of_a_maximum_is_zero() -> None:
    x = np.ones((1, 1000), np.float32)
    (_,), (bound,) = evaluate_with_bound(sums.ir(x), [x])
    assert 1000 * 1000 * 2.0**-24 <= bound[0] <= 1.01 * 1000 * 1000 * 2.0**-24
    (_,), (bound,) = evaluate_with_bound(maxima.ir(x), [x])
    assert bound[0] == 0


# --- kernels


@st.composite
def tensors(draw: Any, dtype: DType) -> Array:
    """Four axes in any order in memory, with gaps, backwards, of no element, with odd numbers."""
    shape = [draw(st.integers(1, 3)) for _ in range(3)]
    shape.append(draw(st.integers(0, 40) | st.sampled_from([255, 256, 257, 600])))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    order = draw(st.permutations(range(4)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    whole = rng.standard_normal([shape[axis] * abs(steps[axis]) for axis in order])
    odd = draw(st.lists(st.sampled_from([np.inf, -np.inf, np.nan, -0.0, 1e-7]), max_size=3))
    for number in odd if whole.size else ():
        whole.flat[rng.integers(whole.size)] = number
    view = whole.astype(dtype.numpy).transpose(np.argsort(order))
    return np.asarray(view[tuple(slice(None, None, step) for step in steps)])


PAIRS: Sequence[tuple[Op, DType]] = [(sums4, f16), (maxima4, bf16), (sums4, f32)]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=["sum-f16", "max-bf16", "sum-f32"])
@settings(deadline=None)
@given(data=st.data())
def test_any_strides(op: Op, dtype: DType, data: Any) -> None:
    has_result = tensors(dtype).filter(lambda x: op is sums4 or x.shape[-1] > 0)
    check(op.using(ONE), [data.draw(has_result)], unchecked=1)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "dtype"),
    [(sums, f16), (maxima, bf16), (sums, f32)],
    ids=["sum-f16", "max-bf16", "sum-f32"],
)
@settings(deadline=None)
@given(data=st.data())
def test_vectors(op: Op, dtype: DType, data: Any) -> None:
    rows = data.draw(st.integers(1, 5))
    lengths = st.integers(8, 20) | st.integers(8, 5600)
    length = data.draw(st.just(0) | lengths if op is sums else lengths)
    padded = length + data.draw(st.integers(0, 5))
    storage = normal(rows, padded, dtype=dtype, seed=data.draw(st.integers(0, 9)))
    last = op.using(WIDE)
    result = check(last, [storage[:, :length]])
    # A row's result depends on neither its place nor its neighbours.
    alone = last(storage[-1:, :length], device="emu:gfx942")
    assert alone.tobytes() == result[-1:].tobytes()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("dtype", [f16, f32], ids=str)
def test_vectors_are_loads_of_16_bytes(dtype: DType) -> None:
    op = sums.using(WIDE)
    op(normal(2, 64, dtype=dtype), device="emu:gfx942")
    (launch,) = launches(op)
    code = launch.artifact.code_object.read_bytes()
    assert "global_load_dwordx4" in emulator.disassemble("gfx942", code)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("length", [0, 1, 9])
def test_empty_rows_and_no_rows(length: int) -> None:
    for op, dtype in ((sums4, f16), (maxima4, bf16)):
        if op is maxima4 and not length:
            with pytest.raises(CkError, match="the max along axis 3"):
                op(np.zeros((2, 1, 3, 0), dtype.numpy), device="emu:gfx942")
            continue
        result = check(op.using(ONE), [np.zeros((2, 1, 3, length), dtype.numpy)])
        if not length:
            assert not result.any()
        none = op.using(ONE)(np.zeros((2, 0, 3, length), dtype.numpy), device="emu:gfx942")
        assert none.shape == (2, 0, 3)


@ck.op
def in_front(x: ck.f16[M, K]) -> ck.f16[1, M]:
    return ck.sum(x[None], axis=-1)


@ck.op
def behind(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.sum(x[:, :, None], axis=-1)


@ck.op
def columns(x: ck.f16[M, K]) -> ck.f16[K]:
    return ck.sum(x.T, axis=-1)


@ck.op
def five_axes(x: ck.f16[B, H, D, M, K]) -> ck.f16[B, H, D, M]:
    return ck.sum(x, axis=4)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "shape"),
    [(in_front, (5, 7)), (behind, (5, 7)), (columns, (5, 7)), (five_axes, (2, 3, 2, 3, 9))],
    ids=lambda each: getattr(each, "name", ""),
)
def test_views_of_what_is_stored(op: Op, shape: tuple[int, ...]) -> None:
    check(op.using(ONE), [normal(*shape)])


THREADS = {"gfx90a": 256, "gfx942": 16, "gfx950": 64, "gfx1100": 64, "gfx1201": 256}
"""Of a row: less than a wave, one, and several, on both sizes of waves."""


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", THREADS)
def test_every_gpu_reduces_rows_and_what_follows(gpu: str, covered: Covered) -> None:
    x = normal(5, 7, 90)[:, :, :80]
    args = (x, normal(7), np.float32(0.02), normal(7, 10, dtype=bf16)[:, ::2])
    check(scaled.using(ck.dispatch.RowwiseAlgorithm(threads=THREADS[gpu], vector=8)), args, gpu)
    covered("row sums", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_a_result_is_written_where_its_strides_say() -> None:
    x = normal(2, 2, 3, 40)
    out = np.zeros((2, 4, 3), np.float16)
    check(sums4.using(ONE), [x], out=out[:, ::2])
    assert not out[:, 1::2].any()


@pytest.mark.usefixtures("compiler")
def test_a_product_divided_by_row_sums() -> None:
    op = normalised.using(narrow(1)).using(ck.dispatch.RowwiseAlgorithm(threads=16, vector=1))
    check(op, [np.abs(normal(37, 50)), normal(20, 50)])
    assert [each.key.family for each in launches(op)] == ["rowwise", "gemm"]


@pytest.mark.usefixtures("compiler")
def test_row_sums_of_a_product() -> None:
    op = after_product.using(ck.dispatch.RowwiseAlgorithm(threads=16, vector=1))
    check(op, [normal(40, 64), normal(64, 64), normal(40, dtype=f32)])
    assert [each.key.family for each in launches(op)] == ["gemm", "rowwise"]


@pytest.mark.usefixtures("compiler")
def test_maxima_of_an_attention() -> None:
    args = [normal(1, 2, rows, 64, seed=rows) for rows in (33, 40, 40)]
    args[2] = normal(1, 2, 40, 64, seed=3)
    check(beside_attention, args)
    assert [each.key.family for each in launches(beside_attention)] == ["attention", "rowwise"]


@pytest.mark.usefixtures("compiler")
def test_a_kernel_is_measured_through_calls() -> None:
    x = normal(1, 2, 3, 40)[..., ::-1]
    (task,) = tasks_of(sums4, [x])
    problem = instance(RowwiseProblem, task.problem)
    chosen = RowwiseKey(problem.signature, ONE, "gfx942")
    measured = measure(task.to_json(), chosen.to_json(), {})
    assert measured["status"] == Status.RIGHT.value
    assert measured["cost"] > 0
    costs = measurement([chosen], task.functions, problem, arch("gfx942"))
    assert costs.values[0] > 0
