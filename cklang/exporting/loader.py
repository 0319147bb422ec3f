# SPDX-License-Identifier: MIT
"""Calls of an op that cklang exported: this file, the JSON beside it and the code objects suffice.

``load()`` loads the code objects for the current device. The arrays of a call are NumPy arrays in
memory that the device reads, torch tensors, or anything with ``__cuda_array_interface__``; those of
the results are arguments too::

    calls = load()
    calls(x, w, out=y)
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Calls", "HipError", "load"]

_VERSION = 1
_HOST_TO_DEVICE = 1
_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "bf8",
    "float8_e4m3fnuz": "fp8_fnuz",
    "float8_e5m2fnuz": "bf8_fnuz",
    "float8_e8m0fnu": "e8m0",
}
"""The dtypes of NumPy, ml_dtypes and torch as the JSON names them."""


class HipError(RuntimeError):
    """A call of HIP failed; ``status`` is its number."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"{call} failed with HIP error {status}")
        self.status = status


class Calls:
    """Loaded kernels, and the calls that were exported for their device."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], library: ctypes.CDLL) -> None:
        self._folder = folder
        self._manifest = manifest
        self._hip = library
        self._functions: dict[int, ctypes.c_void_p] = {}
        self._numbers: dict[tuple[int, int], ctypes.c_void_p] = {}
        self.gpu = self._load()
        """Whose code objects the device takes."""

    def __call__(
        self, *arguments: Any, out: Any, workspace: Any = None, stream: int | None = None
    ) -> Any:
        """Launch the call whose arguments and results lie in memory like these; return ``out``.

        Nothing is waited for.

        Args:
            *arguments: In the order of the op's parameters.
            out: Takes the result; a tuple of several.
            workspace: Device memory of :meth:`workspace_bytes`, if the call needs some.
            stream: A ``hipStream_t``; None: the default stream.

        Raises:
            ValueError: No such call was exported for this device, or an address is not a multiple
                of 4; HipError: A launch failed.
        """
        outs = out if isinstance(out, tuple) else (out,)
        tensors = [_described(array) for array in (*arguments, *outs)]
        call = self._find(tensors)
        addresses = [tensor["address"] for tensor in tensors]
        if any(address % 4 for address in addresses):
            raise ValueError("the address of an array is not a multiple of 4 bytes")
        if call["workspace_bytes"]:
            if workspace is None:
                raise ValueError(f"the call needs a workspace of {call['workspace_bytes']} bytes")
            base = _described(workspace)["address"]
            addresses += [base + offset for offset in call["temporaries"]]
        for launch in call["launches"]:
            self._launch(launch, addresses, stream)
        return out

    def workspace_bytes(self, *arguments: Any, out: Any) -> int:
        """Return the bytes of device memory that a call needs besides its arrays."""
        outs = out if isinstance(out, tuple) else (out,)
        call = self._find([_described(array) for array in (*arguments, *outs)])
        return int(call["workspace_bytes"])

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        self._check("hipDeviceSynchronize", self._hip.hipDeviceSynchronize())

    def _find(self, tensors: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        calls = [call for call in self._manifest["calls"] if call["gpu"] == self.gpu]
        for call in calls:
            same = zip(tensors, call["tensors"], strict=False)
            if len(tensors) == len(call["tensors"]) and all(_alike(*pair) for pair in same):
                return dict(call)
        wanted = "; ".join(_words(tensors) for tensors in (call["tensors"] for call in calls))
        raise ValueError(
            f"no call of {self._manifest['name']} with {_words(tensors)} was exported for "
            f"{self.gpu}, only with {wanted}"
        )

    def _launch(
        self, launch: Mapping[str, Any], addresses: Sequence[int], stream: int | None
    ) -> None:
        argument = launch["bytes"]
        words = (ctypes.c_uint64 * -(-argument // 8))()
        for word, value in launch["words"]:
            words[word] = value
        for word, address in launch["patches"]:
            words[word] = addresses[address]
        for word, first, count in launch["constants"]:
            words[word] = self._numbers[first, count].value or 0
        for word, more in launch["moves"]:
            words[word] += more
        queue = ctypes.c_void_p(stream)
        for address, size in launch["clears"]:
            memory, count = ctypes.c_void_p(addresses[address]), ctypes.c_size_t(size)
            self._check("hipMemsetAsync", self._hip.hipMemsetAsync(memory, 0, count, queue))
        length = ctypes.c_size_t(argument)
        # HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(words), 2, ctypes.addressof(length), 3)
        shape = [ctypes.c_uint(each) for each in (*launch["grid"], *launch["block"], 0)]
        function = self._functions[launch["kernel"]]
        self._check(
            "hipModuleLaunchKernel",
            self._hip.hipModuleLaunchKernel(function, *shape, queue, None, extra),
        )

    def _load(self) -> str:
        """Load the kernels of the first GPU whose code objects the device takes."""
        status = 0
        for gpu in dict.fromkeys(kernel["gpu"] for kernel in self._manifest["kernels"]):
            status = self._load_kernels(gpu)
            if status == 0:
                self._load_numbers(gpu)
                return str(gpu)
        raise HipError("hipModuleLoadData", status)

    def _load_kernels(self, gpu: str) -> int:
        for index, kernel in enumerate(self._manifest["kernels"]):
            if kernel["gpu"] != gpu:
                continue
            image = (self._folder / kernel["file"]).read_bytes()
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            status = self._hip.hipModuleLoadData(ctypes.byref(module), image)
            if status:
                return int(status)
            symbol = kernel["symbol"].encode()
            status = self._hip.hipModuleGetFunction(ctypes.byref(function), module, symbol)
            self._check("hipModuleGetFunction", status)
            self._functions[index] = function
        return 0

    def _load_numbers(self, gpu: str) -> None:
        launches = [
            launch
            for call in self._manifest["calls"]
            if call["gpu"] == gpu
            for launch in call["launches"]
        ]
        for _, first, count in (each for launch in launches for each in launch["constants"]):
            if (first, count) in self._numbers:
                continue
            content: Any = ctypes.c_int64(first)
            if count:
                content = (ctypes.c_int32 * count)(*range(first, first + count))
            memory, size = ctypes.c_void_p(), ctypes.c_size_t(ctypes.sizeof(content))
            self._check("hipMalloc", self._hip.hipMalloc(ctypes.byref(memory), size))
            self._numbers[first, count] = memory
            source = ctypes.byref(content)
            self._check("hipMemcpy", self._hip.hipMemcpy(memory, source, size, _HOST_TO_DEVICE))

    @staticmethod
    def _check(call: str, status: int) -> None:
        if status:
            raise HipError(call, status)


def load(library: str = "libamdhip64.so") -> Calls:
    """Load the kernels beside this file on the current device.

    Args:
        library: HIP's, as the system finds it.

    Raises:
        OSError: There is no such library; HipError: No code object is for the device;
            ValueError: The JSON file is of another version.
    """
    here = Path(__file__)
    manifest = json.loads(here.with_suffix(".json").read_text())
    if manifest["version"] != _VERSION:
        raise ValueError(f"{here.with_suffix('.json')} has version {manifest['version']}")
    return Calls(here.parent, manifest, ctypes.CDLL(library))


def _described(array: Any) -> dict[str, Any]:
    """Return an array's address, dtype, shape, and strides in elements."""
    if hasattr(array, "data_ptr"):
        return {
            "address": array.data_ptr(),
            "dtype": _dtype(str(array.dtype).removeprefix("torch.")),
            "shape": list(array.shape),
            "strides": list(array.stride()),
        }
    read: Callable[[str], Any] = getattr(array, "__cuda_array_interface__", {}).get
    if read("data") is None:
        read = array.__array_interface__.get
    shape, size = list(read("shape")), array.dtype.itemsize
    strides = read("strides")
    return {
        "address": read("data")[0],
        "dtype": _dtype(str(array.dtype)),
        "shape": shape,
        "strides": _packed(shape) if strides is None else [each // size for each in strides],
    }


def _dtype(name: str) -> str:
    return _NAMES.get(name, name)


def _packed(shape: Sequence[int]) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return strides


def _alike(tensor: Mapping[str, Any], want: Mapping[str, Any]) -> bool:
    if tensor["dtype"] != want["dtype"] or tensor["shape"] != want["shape"]:
        return False
    axes = zip(want["shape"], tensor["strides"], want["strides"], strict=True)
    return all(extent < 2 or mine == other for extent, mine, other in axes)


def _words(tensors: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['dtype']}{each['shape']}" for each in tensors)
