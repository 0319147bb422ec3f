# SPDX-License-Identifier: MIT
"""What planning takes of memory: nothing of the size of a result, and nothing for ever."""

import gc
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.build.builder import Builder
from cklang.device import arrays, device_array
from cklang.device.arrays import Library
from cklang.device.constants import cell
from cklang.device.device import Device, open_device
from cklang.types import f16, f32
from tests.support.arrays import uniform
from tests.support.attention_ops import dropped, plain, shifted
from tests.support.gemm_ops import linear
from tests.support.optional import needed

GPU = "emu:gfx942"

M, N, K, B, H, G, S, T, D = ck.dims("M N K B H G S T D")


@ck.op
def seeded(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], seed: ck.const[int]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, dropout=0.25, seed=seed, offset=31337)


class Planned(Exception):  # noqa: N818 (it ends a test's call, and nothing is wrong)
    """The point at which kernels would be built."""


@pytest.fixture
def extents(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all results that are allocated until kernels are built."""
    sizes: list[int] = []
    maker = device_array.maker

    def recording(shape: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
        sizes.append(math.prod(shape))
        return maker(shape, *args, **kwargs)

    def build_all(*_: Any) -> Any:
        raise Planned

    monkeypatch.setattr(device_array, "maker", recording)
    monkeypatch.setattr(Builder, "build_all", build_all)
    return sizes


# Extents of this file alone: a problem that another test planned would not be planned again.
QUERIES, KEYS = 43, 79


def tensors(*more: Any) -> list[Any]:
    return [uniform(2, 4, QUERIES, 64), *(uniform(2, 2, KEYS, 64) for _ in "kv"), *more]


BIAS = uniform(2, 4, QUERIES, KEYS)
CALLS: dict[str, Callable[[], Any]] = {
    "a product": lambda: linear(uniform(65, 66), uniform(67, 66), device=GPU),
    "a group": lambda: linear.grouped([(uniform(65, 66), uniform(67, 66))] * 2, device=GPU),
    "an attention": lambda: plain.using()(*tensors(), device=GPU),
    "its gradients": lambda: ck.attention_grad(
        shifted, *tensors(BIAS), grad=uniform(2, 4, QUERIES, 64), bias=True, device=GPU
    ),
    "the bytes of a dropout": lambda: ck.dropout_bytes(dropped, *tensors(5), device=GPU),
}


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("name", CALLS)
def test_planning_makes_no_results(name: str, extents: list[int]) -> None:
    with pytest.raises(Planned):
        CALLS[name]()
    assert not any(extents)


@given(
    st.lists(st.integers(1, 5), max_size=5),
    st.sampled_from([f16, f32]),
    st.sampled_from(list(Library)),
)
def test_planned_results_lie_as_those_that_are_made(
    shape: list[int], dtype: Any, library: Library
) -> None:
    if library is Library.TORCH:
        needed("torch")
    planned = arrays.planned(tuple(shape), dtype, library)
    real = arrays.read("real", device_array.maker(tuple(shape), dtype, library)())
    for each in ("shape", "strides", "dtype", "place", "library", "writeable", "extent"):
        assert getattr(planned, each) == getattr(real, each)
    assert arrays.alignment_of(planned.pointer) == arrays.alignment_of(real.pointer)


def test_a_result_on_a_gpu_is_planned_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "allocate_in_order", None)
    planned = arrays.planned((3, 4), f16, Library.NUMPY, "hip:0")
    assert (planned.place, planned.strides) == ("hip:0", (4, 1))


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The addresses of memory of devices that was allocated and not freed."""
    gc.collect()
    addresses: list[int] = []
    allocate, free = Device.allocate, Device.free

    def allocating(device: Device, size: int) -> int:
        addresses.append(allocate(device, size))
        return addresses[-1]

    def freeing(device: Device, pointer: int) -> None:
        if pointer in addresses:
            addresses.remove(pointer)
        free(device, pointer)

    monkeypatch.setattr(Device, "allocate", allocating)
    monkeypatch.setattr(Device, "free", freeing)
    yield addresses
    gc.collect()


@pytest.mark.usefixtures("emulator")
def test_constants_are_given_back_with_their_plans(allocated: list[int]) -> None:
    device = open_device(GPU)
    kept = [cell(device, 654_321), cell(device, 654_321)]
    assert kept[0] is kept[1]
    assert len(allocated) == 1
    for number in range(700_000, 700_300):
        binding = seeded._bind([*tensors(), number])
        plan: Any = seeded._planned(binding)
        cells = [cell(device, each) for _, each in plan.kernels[0].constants]
        assert len(cells) == 2
        assert len(allocated) <= 3
        del cells
    kept.clear()
    gc.collect()
    assert not allocated


@pytest.mark.usefixtures("stencils")
def test_calls_with_many_constants_take_no_more_memory(
    allocated: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memo bounds the plans that live, and plans the constants."""
    monkeypatch.setattr("cklang.runtime.op._MEMO_LIMIT", 2)
    op = seeded.using(splits=1)
    results = [
        op(*tensors(), number, device=GPU) for number in (9021, 9022, 9023, 9024, 9025, 9021)
    ]
    gc.collect()
    assert len(allocated) == 3, "the offset, and the seeds of two plans"
    np.testing.assert_array_equal(results[0], results[5])
    assert len({each.tobytes() for each in results}) == 5
    del op
    gc.collect()
    assert not allocated
