# SPDX-License-Identifier: MIT
"""Host shims from Python: a library beside each kernel that says how to launch it, or why not.

Each family has a C struct for its problems and one function that describes them; what the function
answers is alike in all (``ck_gemm_launch`` of ``include/cklang/host.h``, which is mirrored here).
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cklang.errors import error

_MAX_KERNARG = 4096

Problem = TypeVar("Problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """How to launch the kernel for one problem."""

    kernarg: bytes
    """The kernel's one argument."""
    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""
    lds_bytes: int
    workspace_bytes: int
    zeroed_bytes: int
    """How many bytes of the workspace, from the first on, must be 0 before a launch."""


class _Launch(ctypes.Structure):
    _fields_ = (
        ("refusal", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("lds_bytes", ctypes.c_uint32),
        ("kernarg_bytes", ctypes.c_uint32),
        ("workspace_bytes", ctypes.c_uint64),
        ("zeroed_bytes", ctypes.c_uint64),
        ("kernarg", ctypes.c_ubyte * _MAX_KERNARG),
    )


class HostShim(Generic[Problem]):
    """A loaded ``host.so``; a class for each kind of problem."""

    symbol: ClassVar[str]
    """The function that describes a launch."""
    version_symbol: ClassVar[str]
    """The function that returns the version of the struct layouts."""
    version: ClassVar[int]
    """The version that is mirrored here."""

    def __init__(self, path: Path) -> None:
        """Load the library.

        Raises:
            CkBuildError: B013, it was built for another version of the struct layouts.
        """
        library = ctypes.CDLL(str(path))
        version = library[self.version_symbol]()
        if version != self.version:
            raise error("B013", path=path, got=version, want=self.version)
        self._describe = library[self.symbol]
        self._describe.restype = None

    @staticmethod
    def to_c(problem: Problem, /) -> ctypes.Structure:
        """Return the C struct of a problem."""
        raise NotImplementedError

    def describe(self, problem: Problem) -> LaunchShape | str:
        """Return how to launch the kernel for ``problem``, or the sentence that refuses it."""
        launch = _Launch()
        self._describe(ctypes.byref(self.to_c(problem)), ctypes.byref(launch))
        return _shape(launch)


def _shape(launch: Any) -> LaunchShape | str:
    """Return what a host shim wrote: how to launch, or the sentence that refuses the problem."""
    if launch.refusal is not None:
        return str(launch.refusal.decode())
    return LaunchShape(
        kernarg=bytes(launch.kernarg[: launch.kernarg_bytes]),
        grid=tuple(launch.grid),
        block=tuple(launch.block),
        lds_bytes=launch.lds_bytes,
        workspace_bytes=launch.workspace_bytes,
        zeroed_bytes=launch.zeroed_bytes,
    )
