# SPDX-License-Identifier: MIT
"""Arrays in the memory of a GPU for scripts without torch: made, copied, and waited for."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cklang.device import arrays
from cklang.device.arrays import HOST, Array, Library, index_of, packed_strides
from cklang.device.device import Device, devices, open_device
from cklang.device.dlpack import CPU, ROCM, DLDevice, capsule
from cklang.errors import CkError, error
from cklang.toolchain.progress import Wait
from cklang.types import DTYPES, DType, dtype_like


class DeviceArray:
    """An array in the memory of a GPU.

    Ops take it as an argument and as ``out``, and return one for arguments in a GPU's memory that
    are no torch tensors. Libraries that read ``__cuda_array_interface__`` take it without a copy.
    Memory of its own is given back in the order of the default stream when nothing refers to it.

    Example:
        >>> x = ck.empty((4, 8), ck.f16, device="emu:gfx942")  # doctest: +SKIP
        >>> x, x.device  # doctest: +SKIP
        (<cklang array f16 (4, 8) on emu:gfx942>, 'emu:gfx942')
    """

    __slots__ = ("__weakref__", "_device", "dtype", "owner", "pointer", "shape", "strides")

    def __init__(
        self,
        pointer: int,
        shape: Sequence[int],
        dtype: Any,
        *,
        strides: Sequence[int] | None = None,
        device: str | None = None,
        owner: object = None,
    ) -> None:
        """Describe memory that somebody else has.

        Args:
            pointer: Its address on the GPU.
            shape: Extents.
            dtype: Of cklang or NumPy.
            strides: In elements; row-major if left out.
            device: Whose memory it is: ``hip:0``, ``emu:gfx942``; the default device if left out.
            owner: Kept alive with the array.

        Raises:
            CkTypeError: A002, A053, no array has the dtype; CkValueError: D001, no such device.
        """
        self.pointer = int(pointer)
        """The address of the first element."""
        self.shape = tuple(map(int, shape))
        self.dtype = _dtype(dtype)
        self.strides = packed_strides(self.shape) if strides is None else tuple(map(int, strides))
        """In elements."""
        self.owner = owner
        self._device = open_device(device)

    @property
    def device(self) -> str:
        """The name of the device, as ``device=`` takes it."""
        return self._device.name

    def data_ptr(self) -> int:
        """Return the address of the first element, as torch's tensors do."""
        return self.pointer

    def __repr__(self) -> str:
        return f"<cklang array {self.dtype} {self.shape} on {self.device}>"

    def __ck_array__(self, name: str) -> Array:
        """Return the array as kernels see it."""
        return Array(
            pointer=self.pointer,
            dtype=self.dtype,
            shape=self.shape,
            strides=self.strides,
            writeable=True,
            place=f"hip:{self._device.index}",
            library=Library.NUMPY,
            owner=self,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as other libraries read it.

        Raises:
            AttributeError: NumPy has no name for the dtype.
        """
        typestr = self.dtype.numpy.str
        if np.dtype(typestr) != self.dtype.numpy:
            raise AttributeError(f"{self.dtype} has no NumPy type string")
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": tuple(stride * self.dtype.bytes for stride in self.strides),
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device as DLPack names it: an emulated one has host memory."""
        device = self._device
        return DLDevice(CPU, 0) if device.emulated else DLDevice(ROCM, device.index)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return the array as a DLPack capsule, in place: ``torch.from_dlpack(array)``.

        What writes the array is waited for, unless ``stream`` is -1.

        Raises:
            BufferError: A copy or another device is asked for, or DLPack has no such dtype.
        """
        del max_version  # what is returned every version reads
        own = self.__dlpack_device__()
        if copy or (dl_device is not None and tuple(dl_device) != own):
            raise BufferError("a cklang array is given in place, on its own device")
        if stream != -1:
            self._device.wait()
        place = DLDevice(*own)
        return capsule(self.pointer, self.dtype, self.shape, self.strides, place, self)


def _dtype(dtype: Any) -> DType:
    """Return cklang's dtype for one of cklang or NumPy."""
    if isinstance(dtype, DType):
        known: DType | None = dtype
    else:
        known = dtype_like(np.dtype(dtype))
    if known is None:
        raise error("A002", name="the new array", dtype=dtype, known=", ".join(DTYPES))
    if known.packed:
        raise error("A053", name="the new array", dtype=known)
    return known


def new_array(
    shape: tuple[int, ...], dtype: DType, device: Device, order: tuple[int, ...] = ()
) -> DeviceArray:
    """Return a new array whose axes lie in ``order``, outermost first; as in ``shape`` if empty."""
    size = dtype.bytes
    for extent in shape:
        size *= extent
    device.activate()
    pointer = device.allocate_in_order(size, None)
    array = DeviceArray(
        pointer, shape, dtype, strides=packed_strides(shape, order), device=device.name
    )
    weakref.finalize(array, _give_back, device, pointer).atexit = False
    return array


def _give_back(device: Device, pointer: int) -> None:
    try:
        device.free_in_order(pointer, None)
    except CkError:
        return  # a device that has failed has lost its memory too


def maker(
    shape: tuple[int, ...],
    dtype: DType,
    library: Library,
    place: str = HOST,
    order: tuple[int, ...] = (),
) -> Callable[[], Any]:
    """Return a function that makes a new array of the caller's library at each call.

    Arguments on a GPU that are no torch tensors have results that are a :class:`DeviceArray`.
    """
    if library is Library.NUMPY and place != HOST:
        return partial(new_array, shape, dtype, devices()[index_of(place)], order)
    return arrays.maker(shape, dtype, library, place, order)


def empty(shape: Sequence[int], dtype: Any, *, device: str | None = None) -> DeviceArray:
    """Return a new row-major array in the memory of a device, with any contents.

    Args:
        shape: Extents.
        dtype: Of cklang or NumPy.
        device: ``hip:0``, ``emu:gfx942``; the default device if left out.

    Example:
        >>> ck.empty((4, 8), ck.f16, device="emu:gfx942").strides  # doctest: +SKIP
        (8, 1)

    Raises:
        CkTypeError: A002, A053, no array has the dtype; CkValueError: D001, no such device.
    """
    return new_array(tuple(map(int, shape)), _dtype(dtype), open_device(device))


def to_device(
    array: Any, *, out: DeviceArray | None = None, device: str | None = None
) -> DeviceArray:
    """Return a copy of an array of the host, row-major, in the memory of a device.

    Args:
        array: In host memory.
        out: Where the copy goes, after what the default stream has by now; new memory if left out.
        device: Of new memory: ``hip:0``, ``emu:gfx942``; the default device if left out.

    Example:
        >>> x = ck.to_device(np.ones((4, 8), np.float16), device="emu:gfx942")  # doctest: +SKIP
        >>> x.dtype, x.shape  # doctest: +SKIP
        (ck.f16, (4, 8))

    Raises:
        CkTypeError, CkValueError: A001 to A006, it is no array that can be read on the host; D001;
            A074, ``out`` is not like the array.
    """
    contents = arrays.to_numpy("array", array)
    copy = empty(contents.shape, contents.dtype, device=device) if out is None else out
    _expect_like(copy, contents)
    if contents.size:
        open_device(copy.device).copy_in(copy.pointer, contents.ctypes.data, contents.nbytes)
    return copy


def _expect_like(copy: DeviceArray, contents: np.ndarray[Any, Any]) -> None:
    is_row_major = copy.strides == packed_strides(copy.shape)
    if copy.shape != contents.shape or copy.dtype != _dtype(contents.dtype) or not is_row_major:
        raise error(
            "A074",
            got=copy.dtype,
            shape=copy.shape,
            want=_dtype(contents.dtype),
            want_shape=contents.shape,
        )


def to_host(array: Any) -> np.ndarray[Any, Any]:
    """Return a copy of an array as a NumPy array, once the default stream has finished.

    Args:
        array: In the memory of a GPU, of any library, or of the host.

    Example:
        >>> numbers = np.arange(3, dtype=np.float32)
        >>> ck.to_host(ck.to_device(numbers, device="emu:gfx942"))  # doctest: +SKIP
        array([0., 1., 2.], dtype=float32)

    Raises:
        CkTypeError, CkValueError: A001 to A006, it is no array that can be read.
    """
    source = arrays.read("array", array)
    if source.place == HOST:
        return arrays.to_numpy("array", array)
    low, high = source.extent
    contents = np.empty(high - low, np.uint8)
    if contents.size:
        device = devices()[index_of(source.place)]
        device.activate()
        with _wait_for(device):
            device.copy_out(contents.ctypes.data, source.pointer + low, contents.nbytes)
    place = contents.ctypes.data - low
    return arrays.view(place, source.dtype, source.shape, source.strides).copy()


def synchronize(device: str | None = None) -> None:
    """Wait until a device has done everything that it was asked for.

    Example:
        >>> ck.synchronize("emu:gfx942")  # doctest: +SKIP

    Raises:
        CkValueError: D001, no such device; CkDeviceError: E rows, a kernel has failed.
    """
    opened = open_device(device)
    opened.activate()
    with _wait_for(opened):
        opened.synchronize()


def place_name(place: str) -> str:
    """Return the name by which users know the memory that an array is in.

    Example:
        >>> from cklang.device.device_array import place_name
        >>> place_name("host")
        'host'
        >>> place_name("hip:0")  # doctest: +SKIP
        'emu:gfx942'
    """
    return place if place == HOST else devices()[index_of(place)].name


def _wait_for(device: Device) -> Wait:
    return Wait(f"kernels on the {device}", count=device.workgroups)
