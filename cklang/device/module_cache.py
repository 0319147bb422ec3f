# SPDX-License-Identifier: MIT
"""Kernels that stay: each code object is loaded once a process and device, beside its host face."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from cklang.build.record import Artifact
from cklang.device.device import Device, Function
from cklang.device.host_shim import Face

__all__ = ["Resident", "resident"]

AnyFace = TypeVar("AnyFace", bound=Face[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident(Generic[AnyFace]):
    """A kernel on a device, and its host face."""

    function: Function
    face: AnyFace


_held: dict[tuple[int, Path], Resident[Any]] = {}
_lock = threading.Lock()


def resident(
    device: Device, artifact: Artifact, face: Callable[[Path], AnyFace]
) -> Resident[AnyFace]:
    """Return a kernel loaded on ``device``, and its host face opened by ``face``.

    Raises:
        CkBuildError: B013, the host face is of another version.
        CkDeviceError: D003, the device refuses the code object.
    """
    where = (device.index, artifact.folder)
    with _lock:
        known = _held.get(where)
        if known is None:
            known = _held[where] = Resident(
                function=device.load(artifact.code_object.read_bytes(), artifact.symbol),
                face=face(artifact.host_face),
            )
        return cast("Resident[AnyFace]", known)
