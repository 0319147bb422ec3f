# SPDX-License-Identifier: MIT
"""Reductions and the functions written with them: against torch, and NumPy outside of programs."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError, CkTypeError, CkValueError
from cklang.frontend import composites
from cklang.frontend.intrinsics import COMPOSITES, INTRINSICS
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.distance import largest_ratio
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.testing import assert_close
from cklang.testing.strategies import Values, arrays
from cklang.types import bf16, f16, f32
from tests.support.errors import expect_error

B, M, N, K = ck.dims("B M N K")
X: Any = ck.dtype_var("X", ck.f16, ck.bf16, ck.f32)


@ck.op
def softmax(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return ck.softmax(x)


@ck.op
def softmax_of_two(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return ck.softmax(x, axis=(0, 2))


@ck.op
def log_softmax(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return ck.log_softmax(x, axis=1)


@ck.op
def logsumexp(x: X[B, M, N]) -> ck.f32[B]:
    return ck.logsumexp(x, axis=(1, -1))


@ck.op
def rms_norm(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return ck.rms_norm(x, eps=1e-3)


@ck.op
def layer_norm(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return ck.layer_norm(x, eps=1e-3)


@ck.op
def variance(x: X[B, M, N]) -> ck.f32[B, 1, N]:
    return ck.var(x, 1, keepdims=True)


@ck.op
def sample_variance(x: X[B, M, N]) -> ck.f32[M]:
    return ck.var(x, axis=(0, 2), correction=1)


@ck.op
def norm(x: X[B, M, N]) -> ck.f32[B, M]:
    return ck.norm(x)


@ck.op
def centered(x: X[B, M, N]) -> ck.f32[B, M, N]:
    return x - ck.max(x, axis=1, keepdims=True) + ck.mean(x)


TORCH: list[tuple[Op, Callable[[Any, Any], Any]]] = [
    (softmax, lambda torch, x: x.softmax(-1)),
    (log_softmax, lambda torch, x: x.log_softmax(1)),
    (logsumexp, lambda torch, x: x.logsumexp((1, 2))),
    (
        rms_norm,
        lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=float(np.float32(1e-3))),
    ),
    (
        layer_norm,
        lambda torch, x: torch.nn.functional.layer_norm(
            x, x.shape[-1:], eps=float(np.float32(1e-3))
        ),
    ),
    (variance, lambda torch, x: x.var(1, correction=0, keepdim=True)),
    (sample_variance, lambda torch, x: x.var((0, 2), correction=1)),
    (norm, lambda torch, x: torch.linalg.vector_norm(x, dim=-1)),
    (centered, lambda torch, x: x - x.amax(1, keepdim=True) + x.mean()),
]
OPS = [*(op for op, _ in TORCH), softmax_of_two]


def name_of(item: object) -> str:
    return item.program.name if isinstance(item, Op) else ""


# --- the meaning


@pytest.mark.parametrize(("op", "torchs"), TORCH, ids=name_of)
@pytest.mark.parametrize("dtype", [f16, bf16, f32], ids=str)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_functions_are_torchs(torch, op, torchs, dtype, scale):
    x = (scale * np.random.default_rng(1).standard_normal((2, 3, 17))).astype(dtype.numpy)
    (got,), (bound,) = evaluate_with_bound(op.ir(x), [x])
    want = torchs(torch, torch.from_numpy(x.astype(np.float64))).numpy()
    assert largest_ratio(got, want, bound) <= 1
    # Operations round to f32, so the bound is a few of its units.
    assert np.max(bound) <= 2.0**-16 * np.max(np.abs(want))


def test_rows_of_infinities_are_torchs(torch):
    x = np.array([[[-np.inf, -np.inf], [1.0, -np.inf]], [[np.inf, 2.0], [np.nan, 1.0]]], np.float32)
    rows = torch.from_numpy(x)
    for axis in (0, 1, -1, (0, 1)):
        np.testing.assert_allclose(ck.logsumexp(x, axis=axis), rows.logsumexp(axis), rtol=1e-6)
    np.testing.assert_allclose(ck.softmax(x), rows.softmax(-1), rtol=1e-6)
    np.testing.assert_allclose(ck.log_softmax(x), rows.log_softmax(-1), rtol=1e-6)
    for op, torchs in ((logsumexp, rows.logsumexp((1, 2))), (softmax, rows.softmax(-1))):
        np.testing.assert_allclose(evaluate(op.ir(x), [x])[0], torchs, rtol=1e-6)


@ck.op
def weighted(x: ck.f16[M, N], w: ck.f16[N], b: ck.f16[N], rows: ck.f32[M]) -> ck.f32[M, N]:
    return (
        ck.layer_norm(x, w, b)
        + ck.rms_norm(x, weight=w)
        + ck.layer_norm(x, bias=b)
        + ck.rms_norm(x, rows[:, None], axis=0)
    )


def test_weights_broadcast(torch):
    rng = np.random.default_rng(2)
    args = [rng.standard_normal(shape).astype(np.float16) for shape in ((4, 6), 6, 6)]
    rows = rng.standard_normal(4).astype(np.float32)
    (got,) = evaluate(weighted.ir(*args, rows), [*args, rows])
    x, w, b = (torch.from_numpy(each.astype(np.float64)) for each in args)
    layer, rms = torch.nn.functional.layer_norm, torch.nn.functional.rms_norm
    columns = rms(x.T, (4,), torch.from_numpy(rows).double(), eps=1e-6).T
    want = layer(x, (6,), w, b) + rms(x, (6,), w, eps=1e-6) + layer(x, (6,)) + b + columns
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@ck.op
def groups_of_images(
    x: ck.f16[B, M, N, K], w: ck.f32[K], b: ck.f32[K], *, groups: ck.const[int]
) -> ck.f32[B, M, N, K]:
    return ck.group_norm(x, groups, w, b)


@ck.op
def groups_of_rows(
    x: ck.f16[B, N, K], w: ck.f32[K], b: ck.f32[K], *, groups: ck.const[int]
) -> ck.f32[B, N, K]:
    return ck.group_norm(x, groups, w, b)


@pytest.mark.parametrize("groups", [1, 2, 6, 12])
@pytest.mark.parametrize(
    ("op", "shape"), [(groups_of_images, (2, 3, 5, 12)), (groups_of_rows, (3, 4, 12))], ids=name_of
)
def test_group_norm_is_torchs(torch, op, shape, groups):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape).astype(np.float16)
    w, b = rng.standard_normal((2, 12)).astype(np.float32)
    (got,) = evaluate(op.ir(x, w, b, groups=groups), [x, w, b])
    channels_first = torch.from_numpy(np.moveaxis(x, -1, 1).astype(np.float64))
    gain, bias = (torch.from_numpy(each.astype(np.float64)) for each in (w, b))
    want = torch.nn.functional.group_norm(channels_first, groups, gain, bias)
    np.testing.assert_allclose(got, np.moveaxis(want.numpy(), 1, -1), rtol=1e-6, atol=1e-6)


# --- bounds: NumPy's f32 is one of the kernels


@pytest.mark.parametrize("op", OPS, ids=name_of)
@given(data=st.data(), length=st.integers(1, 20))
def test_numpys_f32_is_within_the_bound(op, data, length):
    values = data.draw(st.sampled_from([Values.ORDINARY, Values.SMALL, Values.CANCELLING]))
    x = data.draw(arrays(f32, (2, 3, length), [values]))
    (value,), (bound,) = evaluate_with_bound(op.ir(x), [x])
    got = op.program.function(x)
    assert got.dtype == np.float32
    assert_close(got, value, bound, unchecked=1)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_bounds_are_of_use(op):
    """They are a few hundred units in the last place of numbers of the result's size."""
    x = np.random.default_rng(3).standard_normal((2, 3, 64)).astype(np.float32)
    (value,), (bound,) = evaluate_with_bound(op.ir(x), [x])
    assert bound.max() <= 512 * 2.0**-24 * np.abs(value).max()


# --- outside a program


@pytest.mark.parametrize("op", OPS, ids=name_of)
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_narrow_arrays_are_widened(op, dtype):
    x = np.random.default_rng(4).standard_normal((2, 3, 9)).astype(dtype.numpy)
    got = op.program.function(x)
    (value,), (bound,) = evaluate_with_bound(op.ir(x), [x])
    assert_close(got, value, bound)


def test_dtypes_of_results():
    flags, counts = (
        np.array([[True, False], [True, True]]),
        np.arange(6, dtype=np.int8).reshape(2, 3),
    )
    assert ck.sum(flags) == 3
    np.testing.assert_array_equal(ck.max(flags, axis=0), [True, True])
    assert ck.max(flags, axis=0).dtype == np.bool_
    np.testing.assert_array_equal(ck.mean(flags, axis=1), [0.5, 1.0])
    np.testing.assert_array_equal(ck.mean(counts, axis=-1), [1.0, 4.0])
    np.testing.assert_array_equal(ck.prod(counts, axis=0), [0, 4, 10])
    assert ck.argmin(counts, axis=1, keepdims=True).tolist() == [[0], [0]]
    assert ck.any(np.zeros((2, 0)), axis=1).tolist() == [False, False]
    assert ck.all(np.zeros((2, 0)), axis=1).tolist() == [True, True]
    assert ck.any(np.array([0.0, np.nan]))
    assert not ck.all(np.array([0.0, np.nan]))
    assert ck.amax(counts) == 5


def test_numbers_take_the_dtype_of_the_array_beside_them():
    x = np.array([1.5, -2.0], np.float32)
    assert ck.maximum(x, 0.0).dtype == np.float32
    assert ck.where(x > 0, x, 0).dtype == np.float32
    assert ck.clamp(x, -1, 1).dtype == np.float32
    assert ck.maximum(x.astype(np.float64), 0.0).dtype == np.float64
    assert ck.maximum(np.array([1, 2]), 2).dtype == np.int64


@pytest.mark.parametrize("axis", [2, (0, -2), (), True, 1.5])
def test_wrong_axes_outside_a_program(axis):
    with expect_error("F067", match="axis", kind=CkValueError):
        ck.softmax(np.ones((2, 2), np.float32), axis=axis)


# --- the language


@ck.op
def methods(x: ck.f32[M, N]) -> tuple[ck.f32[M], ck.f32[M], ck.f32[N], ck.i32[M], ck.f32]:
    some = ck.where(x.any(-1) & x.all(axis=1), 1.0, 2.0)
    return x.sum(-1) + x.max(1) * some, x.var(-1, correction=1), x.min(0), x.argmax(-1), x.prod()


@ck.op
def calls(x: ck.f32[M, N]) -> tuple[ck.f32[M], ck.f32[M], ck.f32[N], ck.i32[M], ck.f32]:
    some = ck.where(ck.any(x, axis=-1) & ck.all(x, 1), 1.0, 2.0)
    first = ck.sum(x, axis=1) + ck.amax(x, axis=-1) * some
    return (
        first,
        ck.var(x, axis=1, correction=1),
        ck.min(x, axis=-2),
        ck.argmax(x, axis=1),
        ck.prod(x),
    )


def test_methods_are_the_functions():
    x = np.ones((2, 3), np.float32)
    assert str(methods.ir(x)) == str(calls.ir(x)).replace("@calls", "@methods")


@ck.fn
def scaled(x: Any, factor: Any = None) -> Any:
    return x if factor is None else x * factor


@ck.op
def optional(x: ck.f32[M], y: ck.f32[M]) -> ck.f32[M]:
    return scaled(x) + scaled(x, y) + scaled(y, factor=None)


def test_a_helper_tells_whether_it_has_a_tensor():
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    (got,) = evaluate(optional.program.specialise(), [x, y])
    np.testing.assert_array_equal(got, x + x * y + y)


def test_a_program_with_them_is_pickled():
    copy = pickle.loads(pickle.dumps(layer_norm))
    x = np.ones((1, 2, 3), np.float32)
    assert copy.ir(x) == layer_norm.ir(x)
    assert pickle.loads(pickle.dumps(ck.softmax)) is ck.softmax


def test_operations_are_at_the_users_place():
    function = softmax.ir(np.ones((1, 2, 3), np.float32))
    spans = [operation.span for operation in function.body if operation.span is not None]
    assert len(spans) == len(function.body)
    assert {span.source.name.rpartition("/")[2] for span in spans} == {"test_reductions.py"}
    lines = {str(span.source.line(span.line)).strip() for span in spans}
    assert lines == {"return ck.softmax(x)"}


def test_every_function_names_itself():
    assert not set(composites.__all__) & set(INTRINSICS)
    for name in composites.__all__:
        function = getattr(ck, name)
        assert function.name == name
        assert repr(function).startswith(f"ck.{name}(")

    @ck.op
    def wrong(x: ck.f32[M]) -> ck.f32[M]:
        return x + ck.softmax

    with pytest.raises(CkTypeError, match=r"the function ck\.softmax cannot be used"):
        wrong.program.specialise()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("std", {"axis": -1}),
        ("std", {"axis": (0, 2), "keepdims": True}),
        ("nansum", {"axis": 1}),
        ("nansum", {"axis": None}),
        ("diff", {}),
        ("diff", {"axis": 0}),
    ],
)
def test_functions_that_numpy_has_are_numpys(name, options):
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    x[0, 1] = np.nan if name == "nansum" else 2.0
    want = getattr(np, name)(x, **options)
    np.testing.assert_allclose(getattr(ck, name)(x, **options), want, rtol=1e-13, atol=1e-13)


def test_a_name_without_ck_is_proposed(run_text):
    with pytest.raises(CkError, match=r"write ck\.layer_norm"):
        run_text("@ck.op\ndef f(x: ck.f32[M]) -> ck.f32[M]:\n    return layer_norm(x)\n", "bare")
    text = "import numpy as np\n\n@ck.op\ndef f(x: ck.f32[M]) -> ck.f32[M]:\n    return np.var(x)\n"
    with pytest.raises(CkError, match=r"ck\.var"):
        run_text(text, "of_numpy")


def test_the_names_of_the_table():
    assert sorted(COMPOSITES) == sorted(composites.__all__)


@ck.op
def greatest(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.max(x, 1)


@ck.op
def mean(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.mean(x, 1)


@ck.op
def total(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.sum(x, 1)


@pytest.mark.parametrize("op", [greatest, mean])
def test_the_greatest_and_the_mean_of_no_elements(op: ck.Op) -> None:
    with expect_error("I048", kind=CkValueError) as caught:
        op.explain(np.zeros((3, 0), np.float16), device="emu:gfx942")
    assert "along axis 1 of a tensor of shape (3, 0)" in caught.value.message
    assert "I048" not in str(op.check(ck.f16[0, 4]))


def test_the_sum_of_no_elements_is_one() -> None:
    assert "I048" not in str(total.check(ck.f16[3, 0]))
