# SPDX-License-Identifier: MIT
"""Calls recorded as HIP graphs: a replay reads what the arrays hold and launches all at once."""

import gc
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.device.device import open_device
from cklang.testing import report
from tests.support.errors import expect_error

M, N, K = ck.dims("M N K")

Array = np.ndarray[Any, Any]


@ck.op
def norm(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.rms_norm(x)


@ck.op
def block(x: ck.f16[M, K]) -> ck.f16[M, K]:
    """Three kernels with two temporaries between them."""
    return norm.apart(ck.gelu(norm.apart(x)))


@ck.op
def scaled(x: ck.f16[M, K], factor: ck.f32) -> tuple[ck.f16[M, K], ck.f32[M]]:
    return x * factor, ck.sum(x, axis=1)


def rows(seed: int, m: int = 5, k: int = 72) -> Array:
    return np.random.default_rng(seed).standard_normal((m, k)).astype(np.float16)


def test_arrays_of_the_host_are_refused() -> None:
    with expect_error("A073", "block.captured", "x = ck.to_device(x)"):
        block.captured(rows(0))


@pytest.mark.usefixtures("emulator", "compiler")
def test_a_replay_computes_with_what_the_arguments_hold() -> None:
    x = ck.to_device(rows(0))
    step = block.captured(x)
    assert [each.key.family for each in step.launches] == ["rowwise"] * 3
    assert step.workspace_bytes == 2 * 768
    first = step()
    assert first is step.result
    report(block, (rows(0),), ck.to_host(first)).check()
    ck.to_device(rows(1), out=x)
    assert step() is first
    report(block, (rows(1),), ck.to_host(first)).check()
    np.testing.assert_array_equal(ck.to_host(first), block(rows(1)))


@pytest.mark.usefixtures("emulator", "compiler")
def test_nothing_runs_before_the_first_replay_and_a_call_between_changes_nothing() -> None:
    x, y = ck.to_device(rows(0)), ck.to_device(np.zeros((5, 72), np.float16))
    step = block.captured(x, out=y)
    assert not ck.to_host(y).any()
    other = block(ck.to_device(rows(2)))
    assert step() is y
    report(block, (rows(0),), ck.to_host(y)).check()
    report(block, (rows(2),), ck.to_host(other)).check()


@pytest.mark.usefixtures("emulator", "compiler")
def test_numbers_stay_and_several_results_are_a_tuple() -> None:
    step = scaled.captured(ck.to_device(rows(3)), 2.0)
    scaled(ck.to_device(rows(3)), 3.0)
    y, total = step()
    np.testing.assert_array_equal(ck.to_host(y), rows(3) * np.float16(2))
    np.testing.assert_allclose(ck.to_host(total), rows(3).astype(np.float32).sum(1), rtol=1e-4)


@pytest.mark.usefixtures("emulator", "compiler")
def test_a_call_without_elements_has_no_graph() -> None:
    step = block.captured(ck.to_device(np.empty((0, 72), np.float16)))
    assert step.launches == ()
    assert step().shape == (0, 72)


@pytest.mark.usefixtures("emulator", "compiler")
def test_a_graph_gives_its_memory_back() -> None:
    x = ck.to_device(rows(0, 64, 4096))
    device = open_device(x.device)
    block(x)
    ck.synchronize()
    gc.collect()
    before = device.free_bytes
    step = block.captured(x)
    step()
    assert device.free_bytes <= before - step.workspace_bytes
    del step
    gc.collect()
    assert device.free_bytes == before


@pytest.mark.usefixtures("emulator", "compiler")
def test_the_result_may_not_share_memory_with_an_argument_that_is_read_later() -> None:
    x = ck.to_device(rows(0))
    block.captured(x)
    for _ in range(2):
        with expect_error("A043"):
            block.captured(x, out=x)


@ck.op
def outer(x: ck.f32[M], y: ck.f32[N]) -> ck.f32[M, N]:
    return x[:, None] * y[None, :]


@ck.op
def total(x: ck.f32[M, N]) -> ck.f32[M]:
    return ck.sum(x, axis=1)


@ck.op
def too_large(x: ck.f32[M], y: ck.f32[N]) -> ck.f32[M]:
    return total.apart(outer.apart(x, y))


@pytest.mark.usefixtures("emulator", "compiler")
@pytest.mark.parametrize("how", ["on the host", "on the device", "captured"])
def test_temporaries_that_do_not_fit_are_named_with_their_sizes(how: str) -> None:
    x = np.ones(300_000, np.float32)
    near = x if how == "on the host" else ck.to_device(x)
    call = too_large.captured if how == "captured" else too_large
    with expect_error("D009") as caught:
        call(near, near)
    text = str(caught.value)
    assert "the temporaries of the call need 360.00 GB of emu:gfx942, and 20" in text
    assert "%4: 360.00 GB, from launch 1 to launch 2" in text
    assert "call the op on parts of its batch" in text
    few = np.arange(1, 4, dtype=np.float32)
    np.testing.assert_array_equal(too_large(few, few), few * 6)


@pytest.mark.usefixtures("emulator", "compiler")
def test_new_contents_must_be_like_the_array() -> None:
    x = ck.to_device(rows(0))
    for wrong in (rows(0).astype(np.float32), rows(0).T, rows(0)[:2]):
        with expect_error("A074"):
            ck.to_device(wrong, out=x)
