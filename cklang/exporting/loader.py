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
import itertools
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_VERSION = 2
_MOST_BYTES_OF_ARGUMENT = 4096
_STRIDES = "the strides of"
_ALIGNMENT = 256  # of what lies in the workspace
_HOST_TO_DEVICE = 1
_NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "i8", "int32": "i32",
    "int64": "i64", "bool": "bool", "float8_e4m3fn": "fp8", "float8_e5m2": "bf8",
    "float8_e4m3fnuz": "fp8_fnuz", "float8_e5m2fnuz": "bf8_fnuz", "float8_e8m0fnu": "e8m0",
}  # fmt: skip
"""The dtypes of NumPy, ml_dtypes and torch as the JSON names them."""


class HipError(RuntimeError):
    """A call of HIP failed; ``status`` is its number."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"{call} failed with HIP error {status}")
        self.status = status


class _LaunchShape(ctypes.Structure):
    """What a host shim says of a launch."""

    _fields_ = (
        ("refusal", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("lds_bytes", ctypes.c_uint32),
        ("argument_bytes", ctypes.c_uint32),
        ("workspace_bytes", ctypes.c_uint64),
        ("zeroed_bytes", ctypes.c_uint64),
        ("argument", ctypes.c_ubyte * _MOST_BYTES_OF_ARGUMENT),
    )


class Calls:
    """Loaded kernels, and the calls that were exported for their device."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], library: ctypes.CDLL) -> None:
        self._folder = folder
        self._manifest = manifest
        self._hip = library
        self._functions: dict[int, ctypes.c_void_p] = {}
        self._shims: dict[int, Any] = {}
        self._numbers: dict[tuple[int, int], ctypes.c_void_p] = {}
        self._found: dict[Any, Mapping[str, Any]] = {}
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
        key = tuple((t["dtype"], *t["shape"], *t["strides"]) for t in tensors)
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = self._sought(tensors)
        return known

    def _sought(self, tensors: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        calls = [call for call in self._manifest["calls"] if call["gpu"] == self.gpu]
        for call in calls:
            same = zip(tensors, call["tensors"], strict=False)
            if len(tensors) == len(call["tensors"]) and all(_alike(*pair) for pair in same):
                return dict(call)
        reasons = []
        for free in self._manifest["free"]:
            if free["gpu"] == self.gpu:
                call_or_reason = self._prepared(free, tensors)
                if not isinstance(call_or_reason, str):
                    return call_or_reason
                reasons.append(call_or_reason)
        if calls:
            reasons.insert(0, f"only with {'; '.join(_words(call['tensors']) for call in calls)}")
        raise ValueError(
            f"no call of {self._manifest['name']} with {_words(tensors)} was exported for "
            f"{self.gpu}, {'; '.join(reasons)}"
        )

    def _prepared(
        self, free: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any] | str:
        """Return a call with free extents in numbers, or why there is none."""
        regular = [dict(tensor, strides=_regular(tensor)) for tensor in tensors]
        extents = extents_of(free, regular)
        if isinstance(extents, str):
            return extents
        reason = ""
        for index in candidates(free, extents):
            variant = free["variants"][index]
            registers = registers_of(free, variant, extents, regular)
            refusal = refusal_of(free, variant, registers, regular)
            if refusal is None:
                call = self._described_call(variant, registers, len(tensors))
                if not isinstance(call, str):
                    return call
                refusal = call
            if not reason or reason.startswith(_STRIDES):  # another variant may take them
                reason = refusal
        named = ", ".join(
            f"{dim['name']}={extent}" for dim, extent in zip(free["dims"], extents, strict=True)
        )
        return f"no exported kernel takes {named}: {reason}"

    def _described_call(
        self, variant: Mapping[str, Any], registers: Sequence[int], tensors: int
    ) -> Mapping[str, Any] | str:
        """Return the launches of a variant in numbers, as the host shims of its kernels say."""
        temporaries = [
            (registers[size], first, last) for size, first, last in variant["temporaries"]
        ]
        launches: list[dict[str, Any]] = []
        for place, template in enumerate(variant["launches"]):
            request = request_of(template, registers)
            shape = _LaunchShape()
            self._shims[template["kernel"]](ctypes.byref(request), ctypes.byref(shape))
            if shape.refusal is not None:
                return str(shape.refusal.decode())
            own = tensors + len(temporaries)
            if shape.workspace_bytes:
                temporaries.append((shape.workspace_bytes, place, place))
            launch = _launch_of(template, shape, registers, own)
            if launch is None:
                return "the argument of a kernel does not hold an address as it is"
            launches.append(launch)
        bytes_, offsets = _placed(temporaries)
        return {"workspace_bytes": bytes_, "temporaries": offsets, "launches": launches}

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
            words[word] = self._number(first, count).value or 0
        for word, more in launch["moves"]:
            words[word] += more
        queue = ctypes.c_void_p(stream)
        for address, size in launch["clears"]:
            memory, count = ctypes.c_void_p(addresses[address]), ctypes.c_size_t(size)
            self._check("hipMemsetAsync", self._hip.hipMemsetAsync(memory, 0, count, queue))
        length = ctypes.c_size_t(argument)
        # HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(words), 2, ctypes.addressof(length), 3)
        shape = [ctypes.c_uint(size) for size in (*launch["grid"], *launch["block"], 0)]
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
            if kernel["shim"]:
                shim = ctypes.CDLL(str(self._folder / kernel["shim"]))[kernel["describe"]]
                shim.restype = None
                self._shims[index] = shim
        return 0

    def _number(self, first: int, count: int) -> ctypes.c_void_p:
        """Return the address of numbers: so many from a first one on, or one of 64 bits."""
        known = self._numbers.get((first, count))
        if known is not None:
            return known
        content: Any = ctypes.c_int64(first)
        if count:
            content = (ctypes.c_int32 * count)(*range(first, first + count))
        memory, size = ctypes.c_void_p(), ctypes.c_size_t(ctypes.sizeof(content))
        self._check("hipMalloc", self._hip.hipMalloc(ctypes.byref(memory), size))
        source = ctypes.byref(content)
        self._check("hipMemcpy", self._hip.hipMemcpy(memory, source, size, _HOST_TO_DEVICE))
        self._numbers[first, count] = memory
        return memory

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


def extents_of(
    free: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]]
) -> tuple[int, ...] | str:
    """Return the free extents of a call, or why it is none."""
    if len(tensors) != len(free["tensors"]):
        return f"it takes {len(free['tensors'])} arguments and results"
    for tensor, want in zip(tensors, free["tensors"], strict=True):
        if tensor["dtype"] != want["dtype"] or len(tensor["shape"]) != want["rank"]:
            return f"{want['name']} is {want['dtype']} with {want['rank']} axes"
        if any(not 0 <= stride <= free["furthest"] for stride in tensor["strides"]):
            return f"{want['name']} has strides that no exported kernel takes"
    extents = []
    for dim in free["dims"]:
        extent = int(tensors[dim["tensor"]]["shape"][dim["axis"]])
        legal = range(dim["first"], dim["last"] + 1, dim["step"])
        if extent not in legal:
            return f"{dim['name']}={extent} is not in {legal}"
        extents.append(extent)
    return tuple(extents)


def candidates(free: Mapping[str, Any], extents: Sequence[int]) -> Sequence[int]:
    """Return the variants to try for extents, the one first that cklang chose in their cell."""
    wholes = [extent % free["whole"] == 0 for extent in extents]
    apart = free["each"]
    table = sum(whole << place for place, whole in enumerate(wholes)) if apart else int(all(wholes))
    cell = 0
    for extent, edges in zip(extents, free["tables"][table]["edges"], strict=True):
        cell = cell * (len(edges) + 1) + bisect_left(edges, extent)
    return list(free["orders"][free["tables"][table]["cells"][cell]])


def registers_of(
    free: Mapping[str, Any],
    variant: Mapping[str, Any],
    extents: Sequence[int],
    tensors: Sequence[Mapping[str, Any]],
) -> list[int]:
    """Return the registers of a variant."""
    values = [
        extent if dim["step"] == 1 else (extent - dim["first"]) // dim["step"]
        for dim, extent in zip(free["dims"], extents, strict=True)
    ]
    values += [tensors[tensor]["strides"][axis] for tensor, axis in variant["strides"]]
    for operation, first, second in variant["operations"]:
        values.append(_OPERATIONS[operation](values, first, second))
    return values


_OPERATIONS: tuple[Callable[[Sequence[int], int, int], int], ...] = (
    lambda values, first, second: first,
    lambda values, first, second: values[first] + values[second],
    lambda values, first, second: values[first] * values[second],
    lambda values, first, second: values[first] // values[second] if values[second] else 0,
    lambda values, first, second: values[first] % values[second] if values[second] else 0,
)
_HOLDS: tuple[Callable[[int], bool], ...] = (
    lambda value: value == 0,
    lambda value: value != 0,
    lambda value: value >= 0,
)


def refusal_of(
    free: Mapping[str, Any],
    variant: Mapping[str, Any],
    registers: Sequence[int],
    tensors: Sequence[Mapping[str, Any]],
) -> str | None:
    """Return why a variant is not the plan of a call; None if it is."""
    if any(abs(value) >> 63 for value in registers):
        return "its extents are too large"
    for tensor, own, known in zip(tensors, variant["tensors"], free["tensors"], strict=True):
        shape = [registers[register] for register in own["shape"]]
        if list(tensor["shape"]) != shape:
            return f"the shape of {known['name']} is {list(tensor['shape'])}, not {shape}"
        strides = [registers[register] for register in own["strides"]]
        axes = zip(shape, tensor["strides"], strides, strict=True)
        if any(extent > 1 and mine != other for extent, mine, other in axes):
            return f"{_STRIDES} {known['name']} are {list(tensor['strides'])}, not {strides}"
    for relation, register, reason in variant["conditions"]:
        if not _HOLDS[relation](registers[register]):
            return str(free["reasons"][reason])
    return None


def request_of(template: Mapping[str, Any], registers: Sequence[int]) -> Any:
    """Return what a kernel's host shim is asked, with sentinels for addresses."""
    words = (ctypes.c_uint64 * template["words"])()
    for place, word in template["filled"]:
        words[place] = word
    for place, register in template["puts"]:
        words[place] = registers[register] & (1 << 64) - 1
    for place, index in template["addresses"]:
        words[place] = sentinel(index)
    return words


def sentinel(index: int) -> int:
    """Return the number that stands for address ``index`` until it is known."""
    return 0x5EED_C0DE_0000_0000 + index * 0x0000_0001_0000_1000


def _launch_of(
    template: Mapping[str, Any], shape: _LaunchShape, registers: Sequence[int], own: int
) -> dict[str, Any] | None:
    """Return a launch in numbers; None if its argument lacks the address of a value."""
    size = shape.argument_bytes
    raw = bytes(shape.argument[:size]).ljust(-(-size // 8) * 8, b"\0")
    argument = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)]
    patches: list[list[int]] = []
    moves: list[list[int]] = []
    constants: list[list[int]] = []
    slots = [*template["slots"], own]
    for index, slot in enumerate(slots):
        words = [at for at, word in enumerate(argument) if word == sentinel(index)]
        is_workspace = index == len(slots) - 1
        if is_workspace and not shape.workspace_bytes:
            continue
        if not words:
            return None
        for word in words:
            if slot < 0:
                first, count = template["constants"][-1 - slot]
                constants.append([word, registers[first], count])
            else:
                patches.append([word, slot])
            if not is_workspace and registers[template["moves"][index]]:
                moves.append([word, registers[template["moves"][index]]])
    taken = {word for word, *_ in itertools.chain(patches, constants)}
    clears = [[own, shape.zeroed_bytes]] if shape.workspace_bytes else []
    clears += [[slot, registers[size]] for slot, size in template["clears"]]
    return {
        "kernel": template["kernel"],
        "grid": list(shape.grid),
        "block": list(shape.block),
        "bytes": size,
        "words": [[at, w] for at, w in enumerate(argument) if w and at not in taken],
        "patches": patches,
        "moves": moves,
        "constants": constants,
        "clears": [clear for clear in clears if clear[1]],
    }


def _placed(temporaries: Sequence[tuple[int, int, int]]) -> tuple[int, list[int]]:
    """Return the bytes of a workspace and where each temporary begins: the largest first."""
    sizes = [max(-(-bytes_ // _ALIGNMENT), 1) * _ALIGNMENT for bytes_, _, _ in temporaries]
    offsets = [0] * len(temporaries)
    placed: list[int] = []
    for index in sorted(range(len(sizes)), key=lambda place: -temporaries[place][0]):
        _, first, last = temporaries[index]
        start = 0
        for low, other in sorted((offsets[other], other) for other in placed):
            if temporaries[other][1] > last or first > temporaries[other][2]:
                continue
            if start + sizes[index] <= low:
                break
            start = max(start, low + sizes[other])
        offsets[index] = start
        placed.append(index)
    ends = (offset + size for offset, size in zip(offsets, sizes, strict=True))
    return max(ends, default=0), offsets


def _regular(tensor: Mapping[str, Any]) -> list[int]:
    """Return the strides of a tensor; an axis of one index takes that of packed memory."""
    packed = _packed(tensor["shape"])
    axes = zip(tensor["shape"], tensor["strides"], packed, strict=True)
    return [other if extent == 1 else int(mine) for extent, mine, other in axes]


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
        "strides": _packed(shape) if strides is None else [stride // size for stride in strides],
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
    return ", ".join(f"{tensor['dtype']}{tensor['shape']}" for tensor in tensors)
