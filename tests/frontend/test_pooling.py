# SPDX-License-Identifier: MIT
"""``ck.max_pool`` and ``ck.avg_pool``, beside torch: windows, strides, padding, layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error

N, H, W, C = ck.dims("N H W C")


@ck.op
def stem(x: ck.f16[N, H, W, C]) -> ck.f16[N, (H - 1) // 2 + 1, (W - 1) // 2 + 1, C]:
    """The pooling behind a ResNet's first convolution."""
    return ck.max_pool(x, 3, stride=2, padding=1)


@ck.op
def means(x: ck.f32[N, C, H, W]) -> ck.f32[N, C, H // 2 + 1, W // 2 + 1]:
    return ck.avg_pool(x, 2, padding=1, layout="nchw", count_include_pad=False)


@ck.op
def apart(x: ck.f32[N, C, H]) -> ck.f32[N, C, H - 4]:
    return ck.max_pool(x, 3, stride=1, padding=1, dilation=3, layout="ncw")


@ck.op
def of_lines(x: ck.f32[N, H, C]) -> ck.f32[N, H - 4, C]:
    return ck.avg_pool(x, 5, stride=1)


def reference(x: Any, kind: str, window: Any, stride: Any, padding: Any, **more: Any) -> Any:
    """Return what torch gives of an image with channels last."""
    import torch

    pool: Any = {"max": torch.nn.functional.max_pool2d, "mean": torch.nn.functional.avg_pool2d}
    image = torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, 1)))
    return np.moveaxis(pool[kind](image, window, stride, padding, **more).numpy(), 1, -1)


@pytest.mark.usefixtures("torch")
@given(
    size=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    step=st.tuples(st.integers(1, 3), st.integers(1, 3)) | st.none(),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    extents=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    apart=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    counts=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_arrays_pool_as_torch_pools(
    size: Any, step: Any, pads: Any, extents: Any, apart: Any, counts: bool
) -> None:
    assume(all(2 * pad <= own for pad, own in zip(pads, size, strict=True)))
    room = zip(extents, pads, size, strict=True)
    assume(all(extent + 2 * pad >= own for extent, pad, own in room))
    x = np.random.default_rng(0).standard_normal((2, *extents, 3)).astype(np.float32)
    x[0, 0, 0, 0] = np.nan
    options = {"stride": step, "padding": pads}
    reach = [(own - 1) * between + 1 for own, between in zip(size, apart, strict=True)]
    if all(e + 2 * pad >= own for e, pad, own in zip(extents, pads, reach, strict=True)):
        got = ck.max_pool(x, size, dilation=apart, **options)
        want = reference(x, "max", size, dilation=apart, **options)
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        ck.max_pool(x, size, **options), reference(x, "max", size, **options)
    )
    x[0, 0, 0, 0] = 7
    first = np.moveaxis(x, -1, 1)
    got = ck.avg_pool(first, size, layout="nchw", count_include_pad=counts, **options)
    want = reference(x, "mean", size, count_include_pad=counts, **options)
    np.testing.assert_allclose(np.moveaxis(got, 1, -1), want, rtol=1e-5, atol=1e-5)


OPS: tuple[tuple[Op, Callable[..., Any]], ...] = (
    (stem, lambda x: ck.max_pool(x, 3, stride=2, padding=1)),
    (means, lambda x: ck.avg_pool(x, 2, padding=1, layout="nchw", count_include_pad=False)),
    (of_lines, lambda x: ck.avg_pool(x, 5, stride=1)),
    (apart, lambda x: ck.max_pool(x, 3, stride=1, padding=1, dilation=3, layout="ncw")),
)


@pytest.mark.parametrize(("op", "of_arrays"), OPS, ids=("stem", "means", "of_lines", "apart"))
def test_programs_compute_what_arrays_do(op: Op, of_arrays: Callable[..., Any]) -> None:
    function = op.program.specialise()
    (param,) = function.params
    x = np.random.default_rng(1).standard_normal((2, 9, 6, 8)[: param.type.rank])
    (got,) = evaluate(function, [x.astype(param.type.dtype.numpy)])
    np.testing.assert_allclose(got, of_arrays(x), rtol=1e-2, atol=1e-2)
    assert [each.family for each in plan_of(function).kernels] == ["windows"]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "padding": ({"window": 3, "padding": 2}, "more than half of a window of 3"),
    "window": ({"window": (3, 3, 3)}, "an integer from 1, or one for each of 2"),
    "stride": ({"window": 3, "stride": 0}, "stride is"),
    "layout": ({"window": 3, "layout": "chwn"}, "layout"),
    "length": ({"window": 9}, "longer than axis 1 of 5"),
    "reach": ({"window": 3, "dilation": 3}, "a window of 7 is longer than axis 1 of 5"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    arguments, words = MISTAKES[name]
    with expect_error("F067", match=words):
        ck.max_pool(np.zeros((1, 5, 5, 2)), **arguments)


def test_gradients_are_those_of_torch(torch: Any) -> None:
    random = np.random.default_rng(2)
    x, dy = random.standard_normal((1, 2, 5, 6)), random.standard_normal((1, 2, 3, 4))
    (got,) = evaluate(
        ck.vjp(means).program.specialise(), [each.astype(np.float32) for each in (x, dy)]
    )
    image = torch.from_numpy(x).requires_grad_()
    pooled = torch.nn.functional.avg_pool2d(image, 2, padding=1, count_include_pad=False)
    (want,) = torch.autograd.grad(pooled, image, torch.from_numpy(dy))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


def within_their_bound(gpu: str) -> None:
    random = np.random.default_rng(3)
    for shape in ((2, 9, 6, 24), (1, 1, 1, 8), (3, 14, 5, 7)):
        check(stem, (random.standard_normal(shape).astype(np.float16),), gpu)
    check(means, (random.standard_normal((2, 3, 9, 8)).astype(np.float32),), gpu)
    assert all(each.resources.spills == 0 for each in launches(stem))


@pytest.mark.usefixtures("compiler")
def test_kernels_within_their_bound(covered: Covered) -> None:
    within_their_bound("gfx942")
    covered("pooling of overlapping windows", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_kernels_on_other_gpus(gpu: str, covered: Covered) -> None:
    within_their_bound(gpu)
    covered("pooling of overlapping windows", "f16", gpu)


@ck.op
def of_space(x: ck.f16[N, H, H, W, C]) -> ck.f16[N, H // 2, H // 2, W // 2, C]:
    return ck.max_pool(x, 2)


def test_three_axes_in_space(torch: Any) -> None:
    x = np.random.default_rng(4).standard_normal((2, 5, 5, 4, 8)).astype(np.float16)
    (got,) = evaluate(of_space.program.specialise(), [x])
    image = torch.from_numpy(np.moveaxis(x, -1, 1).astype(np.float32))
    want = torch.nn.functional.max_pool3d(image, 2).numpy()
    np.testing.assert_array_equal(np.moveaxis(got, -1, 1), want)
    assert len(plan_of(of_space.program.specialise()).kernels) == 1


@ck.op
def of_many(x: ck.f32[N, H, W, C]) -> ck.f32[N, H // 9, W // 9, C]:
    return ck.avg_pool(x, 9)


def test_large_windows_are_kernels_of_rows() -> None:
    """Each is along one axis, without a reduction."""
    kernels = plan_of(of_many.program.specialise()).kernels
    assert [kernel.family for kernel in kernels] == ["rowwise", "rowwise"]
