# SPDX-License-Identifier: MIT
"""Groups counted by a dim, transposed convolutions, and channels_last results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.algorithms import narrow
from tests.support.arrays import eighths, half
from tests.support.checks import check, launches
from tests.support.errors import expect_error

N, H, W, C, K, P, Y, X, Ho, Wo = ck.dims("N H W C K P Y X Ho Wo")


@ck.op
def depthwise(x: ck.f16[N, H, W, C], w: ck.f16[C, 3, 3, 1]) -> ck.f16[N, H, W, C]:
    return ck.relu(ck.conv(x, w, padding=1, groups=C))


@ck.op
def multiplied(x: ck.f16[N, C, H, W], w: ck.f16[K, 1, 3, 3]) -> ck.f16[N, K, H, W]:
    return ck.conv(x, w, padding=1, groups=x.shape[1], layout="nchw")


@ck.op
def upsampled(x: ck.f32[N, H, W, K], w: ck.f32[K, Y, X, C]) -> ck.f32[N, Ho, Wo, C]:
    return ck.conv_transpose(x, w, stride=2, padding=1, output_padding=1)


@ck.op
def skipped(
    x: ck.f16[N, H, W, K], w: ck.f16[K, 3, 3, C], skip: ck.f16[N, Ho, Wo, C]
) -> ck.f16[N, Ho, Wo, C]:
    return ck.relu(ck.conv_transpose(x, w, stride=2, padding=1, size=(Ho, Wo)) + skip)


def groups_of(op: Op, *args: np.ndarray) -> list[object]:
    return [dict(each.attrs)["groups"] for each in op.ir(*args).body if each.op == "conv"]


def test_groups_are_counted_by_a_dim_of_each_call() -> None:
    for channels in (4, 1, 6, 4):
        x, w = half(1, 5, 5, channels), half(channels, 3, 3, 1)
        assert groups_of(depthwise, x, w) == [channels]
    first, again = (depthwise.ir(half(n, 5, 5, 4), half(4, 3, 3, 1)) for n in (1, 2))
    assert first is again, "one program for each number of groups"
    assert groups_of(multiplied, half(1, 3, 5, 5), half(9, 1, 3, 3)) == [3]
    with expect_error("I033", match="3 groups"):
        multiplied.ir(half(1, 3, 5, 5), half(8, 1, 3, 3))


def test_groups_by_a_dim_that_no_argument_has_are_refused() -> None:
    @ck.op
    def later(x: ck.f16[N, H, W, C], w: ck.f16[C, 3, 3, 1]) -> ck.f16[N, Ho, Wo, C]:
        return ck.conv(x, w, groups=Ho)

    with expect_error("F067", match="groups is "):
        later.ir(half(1, 5, 5, 4), half(4, 3, 3, 1))


@pytest.mark.usefixtures("compiler")
def test_a_depthwise_convolution_runs_with_groups_from_a_dim() -> None:
    op = depthwise.using(narrow(0))
    for channels in (6, 3):
        check(op, (half(2, 5, 6, channels), half(channels, 3, 3, 1)))


# --- transposed


def torchs(x: np.ndarray, w: np.ndarray, **options: Any) -> np.ndarray:
    """torch's result for channels last."""
    import torch

    image, weight = (torch.from_numpy(np.moveaxis(each, -1, 1).copy()) for each in (x, w))
    result = torch.nn.functional.conv_transpose2d(image, weight, **options)
    return np.moveaxis(result.numpy(), 1, -1)


@pytest.mark.usefixtures("torch")
@given(
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    window=st.integers(1, 4),
    data=st.data(),
)
def test_transposed_convolutions_are_torchs(
    stride: int, padding: int, dilation: int, groups: int, window: int, data: st.DataObject
) -> None:
    longer = data.draw(st.integers(0, stride - 1))
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = eighths(2, 5, 4, 4).astype(np.float32), eighths(4, window, window, 3).astype(np.float32)
    extents = [(n - 1) * stride + dilation * (window - 1) + 1 - 2 * padding for n in (5, 4)]
    if min(extents) + longer < 1:
        return
    try:
        want = torchs(x, w, **options, output_padding=longer)
    except RuntimeError:
        return  # torch wants the output padding below the stride or the dilation
    got = ck.conv_transpose(x, w, **options, output_padding=longer)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("torch")
def test_the_extents_of_a_transposed_convolution_follow_from_the_call() -> None:
    for height, width, window in ((5, 4, 3), (7, 2, 4), (5, 4, 3)):
        x = eighths(2, height, width, 4).astype(np.float32)
        w = eighths(4, window, window, 3).astype(np.float32)
        (got,) = evaluate(upsampled.ir(x, w), [x, w])
        want = torchs(x, w, stride=2, padding=1, output_padding=1)
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stride": 2, "output_padding": 2}, "less than the stride"),
        ({"output_padding": 1}, "less than the stride"),
        ({"stride": 2, "output_padding": 1, "size": (9, 9)}, "both say"),
        ({"stride": 2, "output_padding": -1}, "0 or more"),
        ({"stride": 2, "size": (7, 7)}, "do not fit"),
    ],
)
def test_a_transposed_convolution_that_fits_nothing_is_refused(
    options: dict[str, Any], words: str
) -> None:
    x, w = eighths(1, 4, 4, 2), eighths(2, 3, 3, 8)
    with expect_error("F067", "ck.conv_transpose", match=words):
        ck.conv_transpose(x, w, **options)


@pytest.mark.usefixtures("compiler")
def test_a_transposed_convolution_runs_with_a_skip_connection() -> None:
    op = skipped.using(narrow(1))
    for height in (5, 6):
        args = (half(2, 3, 4, 5), half(5, 3, 3, 3), half(2, height, 8, 3))
        check(op, args)


# --- channels_last


@ck.op
def first_channels(x: ck.f16[N, C, H, W], w: ck.f16[K, C, 3, 3]) -> ck.f16[N, K, H, W]:
    return ck.relu(ck.conv(x, w, padding=1, layout="nchw"))


@ck.op
def twice(
    x: ck.f16[N, C, H, W], w: ck.f16[K, C, 3, 3], v: ck.f16[P, K, 3, 3]
) -> tuple[ck.f16[N, K, H, W], ck.f16[N, P, H, W]]:
    y = ck.cast(ck.relu(ck.conv(x, w, padding=1, layout="nchw")), ck.f16)
    return y, ck.conv(y, v, padding=1, layout="nchw")


def image(*shape: int, last: bool) -> Any:
    import torch

    packed = torch.from_numpy(half(*shape))
    return packed.to(memory_format=torch.channels_last) if last else packed


def copied_results(op: Op, *args: object) -> int:
    with ck.using(arch="gfx942"):
        return op.explain(*args).count("so that channels are where the program has them")


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("last", [False, True])
def test_a_result_is_planned_as_its_image_lies(last: bool) -> None:
    x = image(2, 8, 5, 6, last=last)
    weights = [image(n, m, 3, 3, last=True) for n, m in ((5, 8), (7, 5))]
    assert copied_results(first_channels, x, weights[0]) == (0 if last else 1)
    assert copied_results(twice, x, *weights) == (0 if last else 2)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("last", [False, True])
def test_channels_last_in_is_channels_last_out(torch: Any, last: bool) -> None:
    x, w = image(2, 4, 5, 6, last=last), image(3, 4, 3, 3, last=last)
    op = first_channels.using(narrow(0))
    y = op(x, w, device="emu:gfx942")
    assert y.is_contiguous(memory_format=torch.channels_last) == last
    assert y.is_contiguous() != last
    want = torch.relu(torch.nn.functional.conv2d(x.float(), w.float(), padding=1))
    torch.testing.assert_close(y.float(), want, rtol=1e-2, atol=1e-2)
    assert len(launches(op)) == (1 if last else 4)
    again = op(x, w, device="emu:gfx942")
    assert again.stride() == y.stride()
    array = op(x.numpy(), w.numpy(), device="emu:gfx942")
    assert (array.strides[1] == 2) == last
    np.testing.assert_array_equal(array, y.numpy())
