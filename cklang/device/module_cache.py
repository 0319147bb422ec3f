# SPDX-License-Identifier: MIT
"""Loaded kernels: each code object is loaded once a process and device, with its host shim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from cklang import forks
from cklang.device.artifact import Artifact
from cklang.device.device import Device, Function
from cklang.device.host_shim import HostShim

__all__ = ["LoadedKernel", "load_cached", "load_function"]

AnyShim = TypeVar("AnyShim", bound=HostShim[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedKernel(Generic[AnyShim]):
    """A kernel on a device, and its host shim."""

    function: Function
    shim: AnyShim


_functions: dict[tuple[int, Path], Function] = {}
_loaded: dict[tuple[int, Path], LoadedKernel[Any]] = {}
_lock = forks.reentrant_lock()


def load_function(device: Device, artifact: Artifact) -> Function:
    """Return a kernel loaded on ``device``.

    Raises:
        CkDeviceError: D003, the device refuses the code object.
    """
    where = (device.index, artifact.folder)
    with _lock:
        known = _functions.get(where)
        if known is None:
            code = artifact.code_object.read_bytes()
            known = _functions[where] = device.load(code, artifact.symbol)
        return known


def load_cached(
    device: Device, artifact: Artifact, shim: Callable[[Path], AnyShim]
) -> LoadedKernel[AnyShim]:
    """Return a kernel loaded on ``device``, and its host shim opened by ``shim``.

    Raises:
        CkBuildError: B013, the host shim is of another version.
        CkDeviceError: D003, the device refuses the code object.
    """
    where = (device.index, artifact.folder)
    with _lock:
        known = _loaded.get(where)
        if known is None:
            known = _loaded[where] = LoadedKernel(
                function=load_function(device, artifact),
                shim=shim(artifact.host_shim),
            )
        return cast("LoadedKernel[AnyShim]", known)
