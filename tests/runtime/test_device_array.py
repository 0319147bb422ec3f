# SPDX-License-Identifier: MIT
"""Arrays in a GPU's memory without torch: made, copied, passed to ops, and returned."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.device.device import Device, open_device
from cklang.errors import CkError
from tests.support.arrays import half
from tests.support.checks import compare
from tests.support.errors import expect_error
from tests.support.streams import OnDevice

GPU = "emu:gfx942"
M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


@ck.op
def both(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f32[N, M]]:
    return ck.relu(x @ w.T), (w @ x.T).to(ck.f32)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.int8, np.bool_])
def test_an_array_goes_to_the_device_and_back(dtype: Any) -> None:
    for array in (np.arange(24).reshape(4, 6), np.arange(0).reshape(0, 3), np.array(7)):
        copy = ck.to_device(array.astype(dtype), device=GPU)
        assert (copy.shape, copy.device) == (array.shape, GPU)
        back = ck.to_host(copy)
        assert back.dtype == dtype
        np.testing.assert_array_equal(back, array.astype(dtype))


@pytest.mark.usefixtures("emulator")
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), data=st.data())
def test_a_view_of_any_strides_comes_back(shape: list[int], data: st.DataObject) -> None:
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    steps = tuple(data.draw(st.sampled_from([1, 2])) for _ in shape)
    want = whole.transpose(order)[tuple(slice(None, None, step) for step in steps)]
    copy = ck.to_device(whole, device=GPU)
    view = ck.DeviceArray(
        copy.pointer,
        want.shape,
        ck.f32,
        strides=[stride // 4 for stride in want.strides],
        device=GPU,
        owner=copy,
    )
    np.testing.assert_array_equal(ck.to_host(view), want)


@pytest.mark.usefixtures("emulator")
def test_what_is_on_the_host_is_copied() -> None:
    array = np.arange(6.0, dtype=np.float32)
    copy = ck.to_host(array)
    copy[0] = 9
    assert array[0] == 0
    assert ck.to_host(OnDevice(array[::2])).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.usefixtures("emulator")
def test_dtypes_that_no_array_has_are_refused() -> None:
    for dtype, code in ((np.complex64, "A002"), (ck.i4, "A053"), (ck.fp4, "A053")):
        with expect_error(code):
            ck.empty((2, 2), dtype, device=GPU)
    with expect_error("D001"):
        ck.empty((2, 2), ck.f16, device="emu:gfx1")


@pytest.mark.usefixtures("emulator")
def test_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    free = Device.free_in_order

    def recording(self: Device, pointer: int, stream: int | None) -> None:
        freed.append(pointer)
        free(self, pointer, stream)

    monkeypatch.setattr(Device, "free_in_order", recording)
    array = ck.empty((128,), ck.f32, device=GPU)
    pointer = array.pointer
    view = ck.DeviceArray(pointer, (64,), ck.f32, device=GPU, owner=array)
    del array
    gc.collect()
    assert pointer not in freed, "the view keeps its owner"
    del view
    gc.collect()
    assert freed.count(pointer) == 1


@pytest.mark.usefixtures("emulator")
def test_other_libraries_read_it_in_place() -> None:
    array = ck.to_device(half(3, 4), device=GPU)
    face = array.__cuda_array_interface__
    assert (face["shape"], face["typestr"], face["data"][0]) == ((3, 4), "<f2", array.pointer)
    assert face["strides"] == (8, 2)
    assert not hasattr(ck.empty((2,), ck.bf16, device=GPU), "__cuda_array_interface__")


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "i32", "i8"])
def test_dlpack_gives_it_in_place_and_keeps_it(torch: Any, name: str) -> None:
    dtype = getattr(ck, name)
    host = np.arange(12).reshape(3, 4).astype(dtype.numpy)
    array = ck.to_device(host, device=GPU)
    tensor = torch.from_dlpack(array)
    assert tensor.data_ptr() == array.pointer
    assert tensor.tolist() == host.astype("d").tolist()
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None, "the tensor keeps the memory"
    del tensor
    gc.collect()
    assert alive() is None


@pytest.mark.usefixtures("emulator")
def test_a_dlpack_capsule_that_nobody_takes_is_collected() -> None:
    array = ck.to_device(half(3, 4), device=GPU)
    view = ck.DeviceArray(array.pointer, (4, 3), ck.f16, strides=(1, 4), device=GPU, owner=array)
    np.testing.assert_array_equal(np.from_dlpack(view), half(3, 4).T)
    alive = weakref.ref(view)
    capsule = view.__dlpack__()
    del view, capsule
    gc.collect()
    assert alive() is None
    with pytest.raises(BufferError):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        ck.empty((2,), ck.fp8, device=GPU).__dlpack__()


def hip_pythons(array: np.ndarray[Any, Any]) -> Any:
    """An array as hip-python's hipMalloc gives it, with the contents of one of NumPy."""
    from hip import hip

    device = open_device(GPU)
    device.activate()
    status, memory = hip.hipMalloc(array.nbytes)
    assert status == hip.hipError_t.hipSuccess
    device.copy_in(int(memory), array.ctypes.data, array.nbytes)
    return memory.configure(typestr=array.dtype.name, shape=array.shape)


@pytest.mark.usefixtures("compiler")
def test_an_op_takes_them_and_returns_one() -> None:
    x, w = half(70, 40), half(50, 40)
    near = [ck.to_device(each, device=GPU) for each in (x, w)]
    for _ in range(2):
        y = product(*near, device=GPU)
        assert isinstance(y, ck.DeviceArray)
        compare(product, (x, w), ck.to_host(y))
    z = product(y, ck.to_device(half(30, 50), device=GPU), device=GPU)
    compare(product, (ck.to_host(y), half(30, 50)), ck.to_host(z))
    out = ck.empty((70, 50), ck.f16, device=GPU)
    assert product(*near, out=out, device=GPU) is out
    ck.synchronize(GPU)
    np.testing.assert_array_equal(ck.to_host(out), ck.to_host(y))
    results = both(*near, device=GPU)
    compare(both, (x, w), tuple(map(ck.to_host, results)))
    grouped = product.grouped([near, near[::-1]], device=GPU)
    for args, result in zip(((x, w), (w, x)), grouped, strict=True):
        compare(product, args, ck.to_host(result))


@pytest.mark.usefixtures("compiler")
def test_arrays_of_hip_python_and_raw_pointers_are_arguments() -> None:
    x, w = half(70, 40), half(50, 40)
    theirs = [hip_pythons(each) for each in (x, w)]
    y = product(*theirs, device=GPU)
    assert isinstance(y, ck.DeviceArray)
    compare(product, (x, w), ck.to_host(y))
    pointers = [
        ck.DeviceArray(int(each), array.shape, array.dtype, device=GPU, owner=each)
        for each, array in zip(theirs, (x, w), strict=True)
    ]
    np.testing.assert_array_equal(ck.to_host(product(*pointers, device=GPU)), ck.to_host(y))


@pytest.mark.usefixtures("emulator")
def test_arrays_of_two_places_are_refused() -> None:
    there = ck.to_device(half(4, 8), device=GPU)
    with pytest.raises(CkError, match=f"A026.*: x on {GPU}, w on host"):
        product.ir(there, half(4, 8))
    with pytest.raises(CkError, match=f"A044 out is on {GPU}, but the arguments are on host"):
        product(half(4, 8), half(4, 8), out=ck.empty((4, 4), ck.f16, device=GPU))
    with pytest.raises(CkError, match=f"D006.* on {GPU}, but the call is to run on emu:gfx90a"):
        product(there, there, device="emu:gfx90a")
