# SPDX-License-Identifier: MIT
"""Exported calls as plain data: what the JSON file holds, and the C++ and Python launchers read."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cklang.exporting.calls import ExportedCall, ExportedTensor
from cklang.exporting.free import FreeCall
from cklang.exporting.variants import number_range
from cklang.runtime.launch import PlannedLaunch

VERSION = 2
"""Version of the JSON file's layout; the Python launcher refuses another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """A kernel in the folder."""

    file: str
    symbol: str
    gpu: str
    shim: str | None = None
    """The library that says how to launch it; None if no call with free extents does."""
    describe: str | None = None
    """The function in it."""


def manifest_of(
    name: str,
    calls: Sequence[ExportedCall],
    free: Sequence[tuple[FreeCall, Sequence[Path]]],
    files: Mapping[Path, KernelFile],
) -> dict[str, Any]:
    """Return exported calls as plain data.

    Args:
        name: The prefix of the files.
        calls: Of any GPUs.
        free: Those with free extents, each with the code objects of its kernels.
        files: Each code object in the folder, by its place in the kernel cache.
    """
    places = {path: place for place, path in enumerate(files)}
    own = [_free(call, [places[kernel] for kernel in kernels]) for call, kernels in free]
    tensors, results = (
        (len(calls[0].tensors), calls[0].results)
        if calls
        else (len(own[0]["tensors"]), own[0]["results"])
    )
    return {
        "version": VERSION,
        "name": name,
        "dtype": calls[0].tensors[0].dtype if calls else own[0]["tensors"][0]["dtype"],
        "arguments": tensors - results,
        "results": results,
        "kernels": [asdict(file) for file in files.values()],
        "calls": [
            _call(call, [places[kernel.code_object] for kernel in call.kernels]) for call in calls
        ],
        "free": own,
    }


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the JSON text of a manifest."""
    if manifest["free"]:
        return json.dumps(manifest, separators=(",", ":")) + "\n"
    return json.dumps(manifest, indent=1) + "\n"


def _free(call: FreeCall, kernels: Sequence[int]) -> dict[str, Any]:
    """Return a call with free extents, whose launches name kernels by their place in the folder."""
    variants = [
        {
            **variant,
            "launches": [
                {**launch, "kernel": kernels[launch["kernel"]]} for launch in variant["launches"]
            ],
        }
        for variant in call.data["variants"]
    ]
    return {**call.data, "variants": variants}


def _call(call: ExportedCall, kernels: Sequence[int]) -> dict[str, Any]:
    launches = zip(call.launches, kernels, strict=True)
    return {
        "gpu": call.gpu,
        "tensors": [_tensor(tensor) for tensor in call.tensors],
        "workspace_bytes": call.workspace.bytes,
        "temporaries": list(call.workspace.offsets),
        "launches": [_launch(launch, kernel) for launch, kernel in launches],
    }


def _tensor(tensor: ExportedTensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "strides": list(tensor.strides),
        "argument": tensor.argument,
    }


def _launch(launch: PlannedLaunch, kernel: int) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "bytes": len(launch.kernarg),
        "words": [list(pair) for pair in _words(launch)],
        "patches": [list(patch) for patch in launch.patches],
        "moves": [list(move) for move in launch.moves],
        "constants": [[word, *number_range(content)] for word, content in launch.constants],
        "clears": [list(clear) for clear in launch.clears],
    }


def _words(launch: PlannedLaunch) -> Iterator[tuple[int, int]]:
    """Yield the 64-bit words of an argument that are not 0 and take no address, by index."""
    taken = {word for word, _ in (*launch.patches, *launch.constants)}
    size = struct.calcsize("<Q")
    padded = launch.kernarg.ljust(-(-len(launch.kernarg) // size) * size, b"\0")
    for index, (word,) in enumerate(struct.iter_unpack("<Q", padded)):
        if word and index not in taken:
            yield index, word
