# SPDX-License-Identifier: MIT
"""Arrays of any library as pointers, shapes and strides; results in the caller's library.

NumPy and torch are read directly; anything else through ``__array_interface__``,
``__cuda_array_interface__`` or DLPack. Nothing is copied. torch is never imported here: if the
user's arrays are torch tensors, the user has imported it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.errors import error
from cklang.types import DTYPES, DType

if TYPE_CHECKING:
    from cklang.device.preshuffle import Arrangement

HOST = "host"
"""The place of an array in host memory; a GPU's is its HIP index, ``hip:0``."""


class Library(Enum):
    """Whose array type a result is given in."""

    NUMPY = "NumPy"
    TORCH = "torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """Borrowed memory with a shape: valid as long as ``owner`` lives."""

    pointer: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    writeable: bool
    place: str
    library: Library
    owner: object
    prepared: Arrangement | None = None
    """The order of a prepared weight, which strides do not tell."""
    k_axis: int = 0
    """For a prepared weight: the axis that a product sums over."""

    @property
    def extent(self) -> tuple[int, int]:
        """The first and one past the last byte that is read or written, from the pointer on."""
        if self.prepared is not None:
            rows, row = self.prepared.extents(self.shape[1 - self.k_axis], self.shape[self.k_axis])
            return 0, rows * row * self.dtype.bytes
        low, high = extent_of(self.shape, self.strides, self.dtype.bytes)
        return (low, -(-high * self.dtype.bits // 8)) if self.dtype.packed else (low, high)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


def extent_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return the first and one past the last byte that is touched, relative to the pointer."""
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * s * itemsize for n, s in zip(shape, strides, strict=True)]
    low = sum(r for r in reach if r < 0)
    high = sum(r for r in reach if r > 0)
    return low, high + itemsize


def alignment_of(pointer: int) -> int:
    """Return the largest power of two up to 4 that divides an address.

    More does not matter: the widest buffer access still needs no more than a whole dword.
    """
    return 4 if pointer % 4 == 0 else pointer & -pointer


def _numpy_dtypes() -> dict[np.dtype[Any], DType]:
    """Return the dtypes by NumPy's; no array has one of ml_dtypes before that is imported."""
    return _numpy_dtypes_with(extended="ml_dtypes" in sys.modules)


@cache
def _numpy_dtypes_with(*, extended: bool) -> dict[np.dtype[Any], DType]:
    return {dtype.numpy: dtype for dtype in DTYPES.values() if extended or not dtype.is_extended}


def torch_module() -> Any:
    """Return torch if this process has imported it, else None."""
    return sys.modules.get("torch")


@cache
def _torch_dtypes() -> dict[Any, DType]:
    torch = torch_module()
    names = {
        "f16": "float16",
        "bf16": "bfloat16",
        "f32": "float32",
        "f64": "float64",
        "fp8": "float8_e4m3fn",
        "bf8": "float8_e5m2",
        "fp8_fnuz": "float8_e4m3fnuz",
        "bf8_fnuz": "float8_e5m2fnuz",
        "i8": "int8",
        "i32": "int32",
        "i64": "int64",
        "bool": "bool",
        "e8m0": "float8_e8m0fnu",
    }
    known = {name: getattr(torch, word, None) for name, word in names.items()}
    return {known[name]: dtype for name, dtype in DTYPES.items() if known.get(name)}


@cache
def torch_dtype(dtype: DType) -> Any:
    """Return torch's dtype of a dtype."""
    return {mine: theirs for theirs, mine in _torch_dtypes().items()}[dtype]


def dtype_of_torch(name: str, dtype: Any) -> DType:
    """Return the dtype of a tensor, the argument called ``name``."""
    known = _torch_dtypes().get(dtype)
    if known is not None:
        return known
    if dtype.is_complex:
        raise error("A083", name=name, dtype=dtype)
    if "qu" in str(dtype) or "qint" in str(dtype):
        raise error("A085", name=name, dtype=dtype)
    raise error("A002", name=name, dtype=dtype, known=_known())


def place_of(tensor: Any) -> str:
    """Return the place of a tensor on the CPU or a GPU."""
    return HOST if tensor.device.type == "cpu" else f"hip:{tensor.device.index or 0}"


def note_written(written: Sequence[Any]) -> None:
    """Count a version of each torch tensor that a kernel has written, as torch's own ops do.

    Autograd then refuses to use such a tensor where it had saved it as it was before.
    """
    torch = torch_module()
    if torch is None:
        return
    for tensor in written:
        if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
            torch._C._increment_version((tensor,))


def is_plain_class(tensor: Any) -> bool:
    """Whether a tensor is memory: no fake one, and none of a transform such as ``vmap``."""
    torch = torch_module()
    own = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return own and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_scalar(value: object) -> bool:
    """Whether ``value`` is a plain number, not an array."""
    return isinstance(value, (bool, int, float, np.generic))


def plain(value: Any) -> Any:
    """Return a NumPy number as the Python number of its value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def scalar(name: str, value: Any, dtype: DType) -> Array:
    """Return a rank-0 array that holds a plain number."""
    cell = np.empty((), dtype.numpy)
    try:
        with np.errstate(over="ignore"):
            cell[...] = value
    except (OverflowError, TypeError, ValueError) as problem:
        raise error("A007", name=name, value=value, dtype=dtype, problem=problem) from problem
    return _from_numpy(name, cell)


def read(name: str, value: object) -> Array:
    """Return the array behind ``value``, the argument called ``name``."""
    if isinstance(value, np.ndarray):
        return _from_numpy(name, value)
    if hasattr(value, "__ck_array__"):
        array: Array = value.__ck_array__(name)
        return array
    torch = torch_module()
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        return _from_device_interface(name, value)
    if hasattr(value, "__array_interface__"):
        return _from_numpy(name, np.asarray(value), owner=value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(name, value)
    if isinstance(value, str):
        raise error("A152", name=name, got=value)
    raise error("A001", name=name, got=type(value).__name__)


def _from_numpy(name: str, array: np.ndarray[Any, Any], owner: object = None) -> Array:
    masked = sys.modules.get("numpy.ma")  # which takes longer to import than all else here
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise error("A006", name=name, what="a masked array")
    dtype = _numpy_dtypes().get(array.dtype)
    if dtype is None:
        if array.dtype.newbyteorder("=") in _numpy_dtypes():
            raise error("A003", name=name, dtype=array.dtype.str)
        raise error("A002", name=name, dtype=array.dtype, known=_known())
    if dtype.packed:
        raise error("A053", name=name, dtype=array.dtype)
    size = dtype.bytes
    _expect_whole_elements(name, array.ctypes.data, array.strides, size)
    return Array(
        pointer=array.ctypes.data,
        dtype=dtype,
        shape=array.shape,
        strides=tuple(stride // size for stride in array.strides),
        writeable=array.flags.writeable,
        place=HOST,
        library=Library.NUMPY,
        owner=owner if owner is not None else array,
    )


def _from_torch(name: str, tensor: Any) -> Array:
    _expect_memory(name, tensor)
    dtype = dtype_of_torch(name, tensor.dtype)
    if tensor.requires_grad and torch_module().is_grad_enabled():
        raise error("A005", name=name)
    if tensor.is_neg():
        what, notes = "a tensor whose sign torch flips when it is read", [f"{name}.resolve_neg()"]
        raise error("A006", name=name, what=what, notes=notes)
    return Array(
        pointer=tensor.data_ptr(),
        dtype=dtype,
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        writeable=True,
        place=place_of(tensor),
        library=Library.TORCH,
        owner=tensor,
    )


def expect_device(name: str, tensor: Any) -> None:
    """Check that kernels run where a tensor of torch is, or would be."""
    if tensor.device.type not in ("cpu", "cuda", "meta"):
        raise error("A086", name=name, device=tensor.device)


def _expect_memory(name: str, tensor: Any) -> None:
    """Check that a tensor is dense memory of the CPU or of a GPU."""
    if tensor.is_nested or tensor.layout is not torch_module().strided:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        fix = "torch.nested.to_padded_tensor({}, 0)" if tensor.is_nested else "{}.to_dense()"
        raise error("A084", name=name, kind=kind, fix=fix.format(name))
    if not is_plain_class(tensor):
        raise error("A089", name=name, kind=type(tensor).__name__)
    if tensor.device.type == "meta":
        raise error("A082", name=name)
    expect_device(name, tensor)


def _from_device_interface(name: str, value: Any) -> Array:
    """Read CuPy-style arrays, whose memory is a GPU's."""
    face = value.__cuda_array_interface__
    typestr = np.dtype(face["typestr"])
    dtype = _numpy_dtypes().get(typestr)
    if dtype is None:
        raise error("A002", name=name, dtype=typestr, known=_known())
    shape = tuple(int(n) for n in face["shape"])
    pointer, readonly = face["data"]
    strides = face.get("strides")
    if strides is None:
        strides = tuple(int(np.prod(shape[i + 1 :])) * dtype.bytes for i in range(len(shape)))
    _expect_whole_elements(name, int(pointer), strides, dtype.bytes)
    return Array(
        pointer=int(pointer),
        dtype=dtype,
        shape=shape,
        strides=tuple(int(stride) // dtype.bytes for stride in strides),
        writeable=not readonly,
        place=f"hip:{getattr(getattr(value, 'device', None), 'id', 0)}",
        library=Library.NUMPY,
        owner=value,
    )


def _from_dlpack(name: str, value: Any) -> Array:
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as problem:
        raise error("A006", name=name, what=f"a {type(value).__name__} ({problem})") from problem
    return _from_numpy(name, array, owner=(value, array))


def _expect_whole_elements(name: str, pointer: int, strides: Any, size: int) -> None:
    if pointer % size or any(stride % size for stride in strides):
        raise error("A004", name=name, size=size, pointer=hex(pointer), strides=tuple(strides))


def to_numpy(name: str, value: object) -> np.ndarray[Any, Any]:
    """Return the elements of a host array or tensor as a NumPy array of their own."""
    if hasattr(value, "unpack"):
        return np.asarray(value.unpack())
    array = read(name, value)
    if array.place != HOST:
        raise error("A006", name=name, what="an array in the memory of a GPU")
    return view(array.pointer, array.dtype, array.shape, array.strides).copy()


def view(
    pointer: int, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return host memory as a NumPy array, which must not outlive it; ``strides`` in elements."""
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    low, high = extent_of(shape, strides, dtype.bytes)
    memory = (ctypes.c_char * (high - low)).from_address(pointer + low)
    steps = [stride * dtype.bytes for stride in strides]
    return np.ndarray(shape, dtype.numpy, memoryview(memory), -low, steps)


def _known() -> str:
    return ", ".join(DTYPES)


def current_stream(library: Library, place: str) -> int | None:
    """Return the stream on which the caller's library runs at ``place``; None, the default one.

    Calls with arrays in host memory and libraries that name no stream use the default one.
    """
    if place == HOST or library is not Library.TORCH:
        return None
    return int(torch_module().cuda.current_stream(index_of(place)).cuda_stream)


def index_of(place: str) -> int:
    """Return the number of the GPU that ``place`` names."""
    return int(place.partition(":")[2])


def maker(
    shape: tuple[int, ...],
    dtype: DType,
    library: Library,
    place: str = HOST,
    order: tuple[int, ...] = (),
) -> Callable[[], Any]:
    """Return a function that makes a new array of NumPy, on the host, or torch at each call.

    ``order`` has its axes, outermost in memory first, if they do not lie as in ``shape``.
    """
    if library is Library.NUMPY:
        if order:
            inner = partial(np.empty, tuple(shape[axis] for axis in order), dtype.numpy)
            back = tuple(np.argsort(order).tolist())
            return lambda: inner().transpose(back)
        return partial(np.empty, shape, dtype.numpy)
    torch = torch_module()
    device = torch.device("cpu" if place == HOST else place.replace("hip", "cuda"))
    # Told the strides, torch takes two thirds of the time.
    strides = packed_strides(shape, order)
    return partial(torch.empty_strided, shape, strides, dtype=torch_dtype(dtype), device=device)


def packed_strides(shape: Sequence[int], order: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the strides of new memory in which axis ``order[-1]`` is contiguous, and so on.

    The axes lie as in ``shape`` if ``order`` is empty.

    Example:
        >>> packed_strides((2, 3, 4), (0, 2, 1))
        (12, 1, 3)
    """
    strides, step = [0] * len(shape), 1
    for axis in reversed(order or range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def planned(
    shape: tuple[int, ...],
    dtype: DType,
    library: Library,
    place: str = HOST,
    order: tuple[int, ...] = (),
) -> Array:
    """Return how a new array will lie, without memory for its elements."""
    where = HOST if library is Library.NUMPY else place
    like = read("a result", maker((0,), dtype, library, where)())
    strides = packed_strides(shape, order)
    # New memory is aligned for every kernel, and so is this address of none.
    return replace(like, pointer=0, shape=shape, strides=strides, place=place)
