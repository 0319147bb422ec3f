# SPDX-License-Identifier: MIT
"""Exported calls as plain data: what the JSON file holds, and the C++ and Python launchers read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cklang.exporting.calls import ExportedCall, ExportedTensor
from cklang.runtime.launch import PlannedLaunch

__all__ = ["VERSION", "manifest_of", "manifest_text"]

VERSION = 1
"""Of the layout of the JSON file; the Python launcher refuses another one."""


def manifest_of(
    name: str, calls: Sequence[ExportedCall], files: Mapping[Path, str]
) -> dict[str, Any]:
    """Return exported calls as plain data.

    Args:
        name: The prefix of the files.
        calls: Of any GPUs.
        files: The name of each code object in the folder, by its place in the kernel cache.
    """
    kernels = {
        files[artifact.code_object]: {
            "file": files[artifact.code_object],
            "symbol": artifact.symbol,
            "gpu": call.gpu,
        }
        for call in calls
        for artifact in call.kernels
    }
    places = {file: place for place, file in enumerate(kernels)}
    return {
        "version": VERSION,
        "name": name,
        "arguments": len(calls[0].tensors) - calls[0].results,
        "results": calls[0].results,
        "kernels": list(kernels.values()),
        "calls": [
            _call(call, [places[files[kernel.code_object]] for kernel in call.kernels])
            for call in calls
        ],
    }


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the JSON text of a manifest."""
    return json.dumps(manifest, indent=1) + "\n"


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
        "constants": [[word, *_numbers(content)] for word, content in launch.constants],
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


def _numbers(content: int | range) -> tuple[int, int]:
    """Return the first number and how many 32-bit ones follow from it; 0 for one of 64 bits."""
    if isinstance(content, range):
        return content.start, max(content.stop, 1) - content.start
    return content, 0
