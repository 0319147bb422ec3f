# SPDX-License-Identifier: MIT
"""What the running test uses: the emulator, stencils, kernels. And what was compiled for it."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any

from cklang import emulator
from cklang.build import steps
from cklang.build.builder import Builder, BuildResult, Wanted
from cklang.build.stencil_files import StencilFiles
from cklang.device import device
from cklang.device.artifact import Artifact
from cklang.device.device import Device, Function, Launch
from cklang.device.launch_sequence import LaunchSequence
from cklang.emulator.engine import library
from cklang.keys import AnyKey
from cklang.lowering.source import KernelSource


@dataclass(slots=True)
class Usage:
    """What one test used."""

    emulator: bool = False
    stencils: dict[str, str] = field(default_factory=dict)
    """Identity and label of each stencil, whether it was compiled now or came from the cache."""
    loaded: list[tuple[str, bytes]] = field(default_factory=list)
    """GPU and code object of each kernel that went onto an emulated device."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A stencil that was compiled in this process."""

    label: str
    seconds: float
    """Of the wall clock, beside whatever else this machine did."""


_usage = Usage()
_kernels: dict[bytes, Artifact] = {}
"""What was built in this process, by the hash of its code object."""
_functions: dict[int, tuple[Function, Artifact]] = {}
"""What was loaded in this process, by the identity of the function: it stays alive here."""
compiled: list[Compiled] = []
"""The stencils that this process compiled, in order."""


def begin() -> None:
    """Forget what earlier tests used."""
    global _usage
    _usage = Usage()


def current() -> Usage:
    """Return what was used since :func:`begin`."""
    return _usage


def kernel_of(code: bytes) -> Artifact | None:
    """Return the kernel that was built in this process and has this code object, if any."""
    return _kernels.get(_digest(code))


@cache
def watch() -> None:
    """Note from now on what is loaded and built in this process."""
    _watch_builds()
    _watch_devices()


def _watch_builds() -> None:
    build_many, stencil_of = Builder.build_many, Builder.stencil_of
    compile_stencil = steps.compile_stencil

    @wraps(build_many)
    def noting_kernels(
        builder: Builder,
        wanted: Sequence[Wanted],
        executor: Executor | None = None,
        max_workers: int | None = None,
    ) -> list[BuildResult]:
        results = build_many(builder, wanted, executor, max_workers)
        if steps.compile_stencil is not compile_stencil:  # a test pretends to compile
            return results
        _usage.stencils |= {key.stencil.digest: key.stencil.label for key, _ in wanted}
        artifacts = [result.artifact for result in results if result.artifact is not None]
        _kernels.update({_digest(each.code_object.read_bytes()): each for each in artifacts})
        compiled.extend(map(_compiled, filter(_is_new, artifacts)))
        return results

    @wraps(stencil_of)
    def noting_stencil(builder: Builder, key: AnyKey, source: KernelSource) -> StencilFiles:
        _usage.stencils[key.stencil.digest] = key.stencil.label
        return stencil_of(builder, key, source)

    _replace((Builder, "build_many", noting_kernels), (Builder, "stencil_of", noting_stencil))


def _watch_devices() -> None:
    load, devices, find = library.load, device._devices, device._find
    load_code, launch, launch_all = Device.load, Launch.__call__, LaunchSequence.__call__

    @wraps(load)
    def noting_load() -> Any:
        _usage.emulator = True
        return load()

    @wraps(devices)
    def noting_devices(mode: str) -> tuple[Device, ...]:
        # The library is loaded once in a process, but each of these needs it.
        _usage.emulator = True
        return devices(mode)

    @wraps(find)
    def noting_device(requested: str | None) -> Device:
        _usage.emulator = True
        return find(requested)

    @wraps(load_code)
    def noting_code(gpu: Device, code: bytes, symbol: str) -> Function:
        if gpu.emulated:
            _usage.loaded.append((gpu.spec.name, code))
        function, kernel = load_code(gpu, code, symbol), kernel_of(code)
        if kernel is not None:
            _functions[id(function)] = function, kernel
        return function

    @wraps(launch)
    def noting_launch(prepared: Launch, stream: int | None) -> None:
        _note_launch(prepared)
        launch(prepared, stream)

    @wraps(launch_all)
    def noting_launches(
        sequence: LaunchSequence, addresses: list[int], stream: int | None, *, waits: bool
    ) -> None:
        for prepared in sequence.launches:
            _note_launch(prepared)
        launch_all(sequence, addresses, stream, waits=waits)

    _replace(
        (library, "load", noting_load),
        (emulator, "load", noting_load),
        (device, "_devices", noting_devices),
        (device, "_find", noting_device),
        (Device, "load", noting_code),
        (Launch, "__call__", noting_launch),
        (LaunchSequence, "__call__", noting_launches),
    )


def _note_launch(prepared: Launch) -> None:
    """Note what a launch uses: a call that is repeated builds and loads nothing."""
    _usage.emulator = True
    if id(prepared._function) in _functions:
        _, kernel = _functions[id(prepared._function)]
        _usage.stencils[kernel.key.stencil.digest] = kernel.key.stencil.label


def _replace(*attributes: tuple[Any, str, Callable[..., Any]]) -> None:
    for owner, name, value in attributes:
        setattr(owner, name, value)


def _digest(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()


def _is_new(artifact: Artifact) -> bool:
    return not artifact.cached and not artifact.steps["stencil"]["cached"]


def _compiled(artifact: Artifact) -> Compiled:
    return Compiled(artifact.key.stencil.label, float(artifact.steps["stencil"]["seconds"]))
