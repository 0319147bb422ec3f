# SPDX-License-Identifier: MIT
"""Few long rows, each shared by several workgroups."""

import numpy as np
import pytest

import cklang as ck
from cklang.runtime.op import Op
from tests.support.checks import check, launches

M, N, K = ck.dims("M N K")
LONG = 1 << 17


@ck.op
def total(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.sum(x, axis=-1)


@ck.op
def everything(x: ck.f32[M, K], scale: ck.f32[1]) -> ck.f32[1]:
    return ck.mean(x * x) * scale


@ck.op
def statistics(x: ck.f16[M, K]) -> tuple[ck.f32[M], ck.i32[M], ck.f16[M]]:
    return ck.var(x, axis=-1), ck.argmax(x, axis=-1), ck.amax(x, axis=-1).to(ck.f16)


@ck.op
def softmax(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.softmax(x)


@ck.op
def of_three_axes(x: ck.f32[M, N, K], gain: ck.f32[K]) -> ck.f32[N]:
    return ck.sum(x * gain, axis=(0, 2))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float16)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "count"), [(total, 2), (statistics, None), (softmax, None)], ids=lambda op: str(op)
)
def test_results_and_launches(op: Op, count: int | None) -> None:
    x = drawn(3, LONG + 8)
    first = check(op, (x,))
    again = op(x)
    pairs = zip(first, again, strict=True) if isinstance(first, tuple) else [(first, again)]
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert max(launch.grid[0] * launch.grid[1] for launch in launches(op)) > 8
    if count is not None:
        assert len(launches(op)) == count
        assert "several workgroups share a row" in op.explain(x)


@pytest.mark.usefixtures("compiler")
def test_the_mean_of_a_whole_tensor() -> None:
    x = drawn(300, 1000).astype(np.float32)
    result = check(everything, (x, np.array([0.5], np.float32)))
    assert abs(result[0] - 0.5 * (x.astype(np.float64) ** 2).mean()) < 1e-5
    check(everything, (x.T, np.array([2.0], np.float32)))


@pytest.mark.usefixtures("compiler")
def test_rows_along_two_axes() -> None:
    check(of_three_axes, (drawn(64, 3, 2100).astype(np.float32), drawn(2100).astype(np.float32)))
    assert len(launches(of_three_axes)) == 2


@pytest.mark.usefixtures("compiler")
def test_rows_that_no_number_of_parts_divides_have_a_workgroup_each() -> None:
    check(total, (drawn(1, 131101),))  # a prime number
    assert len(launches(total)) == 1


@pytest.mark.usefixtures("compiler")
def test_short_rows_and_many_rows_are_not_shared() -> None:
    for shape in ((3, LONG // 2), (153, LONG)):
        assert "several workgroups" not in total.explain(drawn(*shape))
