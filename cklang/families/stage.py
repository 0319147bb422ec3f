# SPDX-License-Identifier: MIT
"""One launch of a plan, before anything is built: a kernel, and what its host shim is asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cklang.device.host_shim import HostShim
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.keys import AnyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One kernel, its functions, and its request as a function of addresses."""

    key: AnyKey
    functions: Functions = NO_FUNCTIONS
    problem: object
    """What records and messages say that it is launched for."""
    shim: type[HostShim[Any]]
    """The class of its host shim, which answers a request with a grid and argument bytes."""
    values: tuple[str, ...]
    """The values whose addresses the request takes, by name; one may stand there twice."""
    written: frozenset[str]
    """The values that the kernel writes."""
    request: Callable[[Sequence[int]], Any]
    """Gives what the shim is asked, for the addresses of ``values`` and then of the workspace."""
    offsets: tuple[int, ...] = ()
    """For each of ``values``: bytes from its address to the part that the launch is for; none if
    all are 0."""
    temporaries: Mapping[str, int] = field(default_factory=dict)
    """The bytes of those of ``values`` that neither the caller nor the program has."""
    constants: Mapping[str, int | range] = field(default_factory=dict)
    """The numbers of those that are integers in device memory, or i32 one after the other."""
    zeroed: tuple[str, ...] = ()
    """The ``values`` that must be 0 before the launch."""
    awaited: AnyKey | None = None
    """A better kernel for it, which is being built."""
