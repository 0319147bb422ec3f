# SPDX-License-Identifier: MIT
"""Loaded kernels: each code object is loaded once a process and device, each host shim once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cklang import forks, places
from cklang.device.host_shim import HostShim

if TYPE_CHECKING:
    from cklang.device.artifact import Artifact
    from cklang.device.device import Device, Function

AnyShim = TypeVar("AnyShim", bound=HostShim[Any])

_functions: dict[tuple[int, Path], Function] = {}
_shims: dict[Path, HostShim[Any]] = {}
_lock = forks.lock()


def load_function(device: Device, artifact: Artifact) -> Function:
    """Return a kernel loaded on ``device``."""
    where = (device.index, artifact.folder)
    with _lock:
        known = _functions.get(where)
        if known is None:
            code = artifact.code_object.read_bytes()
            known = _functions[where] = device.load(code, artifact.symbol)
            places.note(artifact.symbol, (str(artifact.source),))
        return known


def load_shim(artifact: Artifact, shim: Callable[[Path], AnyShim]) -> AnyShim:
    """Return the host shim of a kernel, opened by ``shim``."""
    with _lock:
        known = _shims.get(artifact.folder)
        if known is None:
            known = _shims[artifact.folder] = shim(artifact.host_shim)
        return cast("AnyShim", known)
