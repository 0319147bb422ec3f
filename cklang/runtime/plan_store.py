# SPDX-License-Identifier: MIT
"""The launches of calls, kept on disk: a new process plans nothing that an earlier one planned.

A call that is made for the first time is bound as always. If the kernel cache has the launches
that an earlier process planned for such a call, they are taken from there: nothing is fused,
selected or generated, and none of the modules that do it is imported. What is kept says what a
:class:`~cklang.runtime.call_plan.CallPlan` launches in numbers, without any address.

An entry's address covers all that a plan depends on: the program with its places in the source,
what is known of the arrays, the GPU, the preset, the compiler, and every file of cklang. Calls that
ask for something of their own (an algorithm, a strategy, kernels of a registry or a bundle) and
those that update arguments in place are planned in each process.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cklang import knobs, places
from cklang.build.builder import Builder, shared_builder
from cklang.build.store import digest_of
from cklang.device.arrays import HOST, Array
from cklang.device.device import Device, target_of
from cklang.errors import CkError
from cklang.families.tensor_layout import TensorLayout
from cklang.ir.nodes import Function, print_function
from cklang.runtime.call_plan import CallPlan, Step, access_ranges, step_on
from cklang.selection.context import Defaults, current, device_named
from cklang.selection.strategy import Heuristic
from cklang.toolchain.installed import fingerprint

if TYPE_CHECKING:
    from cklang.device.artifact import Artifact
    from cklang.families.protocol import HostCheck
    from cklang.runtime.bind import Binding
    from cklang.runtime.launch import PlannedLaunch
    from cklang.runtime.workspace import Workspace
    from cklang.selection.request import Request

MOST = 64
"""How many plans a process looks for and keeps: the first ones, for which a user waits."""

_KIND, _FILE = "plan", "plan.pickle"
_RIGHT = "right"
"""Calls in which a check found no mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaunch:
    """One launch: what a :class:`~cklang.runtime.call_plan.Step` is made of in any process."""

    kernel: str
    """The address of the kernel in the cache."""
    places: tuple[str, tuple[str, ...]]
    """The name of its fill, and the user's lines of this one's."""
    problem: bytes
    """What it is launched for, pickled: who asks for it imports the family's classes."""
    planned: PlannedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """The launches of a call without addresses."""

    launches: tuple[StoredLaunch, ...]
    workspace: Workspace
    orders: tuple[tuple[int, ...], ...]
    """The order of the axes of each result in memory."""
    lists: HostCheck | None
    """The index arrays that each call checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPlan:
    """A plan of the cache, and its kernels, which are there too."""

    plan: StoredPlan
    kernels: tuple[Artifact, ...]


_asked = itertools.count()
"""The plans that this process has looked for."""
_checked = itertools.count()
"""The checks that it has."""


def _is_own(request: Request, defaults: Defaults) -> bool:
    """Tell whether somebody asked for kernels that an installation alone does not choose."""
    registry = defaults.registry if request.registry is None else request.registry
    strategy = defaults.strategy if request.strategy is None else request.strategy
    asks = request.algorithms, request.splits is not None, len(registry), knobs.BUNDLE.get()
    return any(asks) or strategy != Heuristic()


def address_of(
    function: Function,
    binding: Binding,
    outs: Sequence[Array] | None,
    device: str | None,
    request: Request,
    asked: Iterator[int] | None = None,
) -> Mapping[str, Any] | None:
    """Return what the launches of a call depend on; None if they are planned in each process.

    Args:
        function: The program.
        binding: The call.
        outs: The arrays that take its results; None for new ones.
        device: Where, as in a call.
        request: What somebody asked for.
        asked: Counts what this process has looked for; None: plans.
    """
    defaults = current()
    is_own = _is_own(request, defaults)
    if is_own or not knobs.PLANS.get() or next(asked or _asked) >= MOST:
        return None
    spec = target_of(device_named(device, defaults)).spec
    layouts = [TensorLayout.of(name, array) for name, array in binding.arrays.items()]
    layouts += [TensorLayout.of("out", array) for array in outs or ()]
    return {
        "cklang": fingerprint(),
        "tools": shared_builder().identity,
        "program": print_function(function),
        "places": list(_places(function)),
        "dims": {name: str(extent) for name, extent in binding.dims.items()},
        "arrays": [repr(layout) for layout in layouts],
        "gpu": hashlib.sha256(repr(spec).encode()).hexdigest(),
        "checks": binding.place == HOST,  # what is in host memory may be checked
        "preset": defaults.preset_name,
    }


def _places(function: Function) -> Iterator[str]:
    """Yield where the operations of a program stand, those of its functions too."""
    for operation in function.body:
        yield str(operation.span)
        for _, attr in operation.attrs:
            if isinstance(attr, Function):
                yield from _places(attr)


def find(address: Mapping[str, Any], builder: Builder) -> KeptPlan | None:
    """Return the launches at an address; None if nobody has planned them or a kernel is gone."""
    entry = builder.store.find(_KIND, digest_of(_KIND, address))
    if entry is None:
        return None
    # Who writes here can also write the machine code that is run.
    plan: StoredPlan = pickle.loads(entry.file(_FILE).read_bytes())  # noqa: S301
    kernels = [builder.at(launch.kernel) for launch in plan.launches]
    present = tuple(kernel for kernel in kernels if kernel is not None)
    return KeptPlan(plan=plan, kernels=present) if len(present) == len(kernels) else None


def keep(
    address: Mapping[str, Any],
    plan: CallPlan,
    orders: Sequence[Sequence[int]],
    lists: HostCheck | None,
    builder: Builder,
) -> None:
    """Keep the launches of a call that have not run yet; not where the cache cannot be written."""
    if any(step.table is not None or step.record.awaited is not None for step in plan.steps):
        return
    stored = StoredPlan(
        launches=tuple(_stored(step, builder) for step in plan.steps),
        workspace=plan.workspace,
        orders=tuple(map(tuple, orders)),
        lists=lists,
    )

    def write(folder: Path) -> Mapping[str, Any]:
        (folder / _FILE).write_bytes(pickle.dumps(stored))
        return {}

    try:
        builder.store.get_or_build(_KIND, address, write)
    except (CkError, OSError):
        return  # the kernels were built: the call itself needs no more room


def address_of_check(
    function: Function, binding: Binding, device: str | None, request: Request
) -> Mapping[str, Any] | None:
    """Return what a check of a call without ``out`` depends on; None if it is made anew."""
    try:
        return address_of(function, binding, None, device, request, _checked)
    except CkError:
        return None  # nothing builds kernels here, and nothing keeps what they are made of


def is_right(address: Mapping[str, Any] | None) -> bool:
    """Whether an earlier process found no mistake in a call."""
    if address is None:
        return False
    return shared_builder().store.find(_RIGHT, digest_of(_RIGHT, address)) is not None


def note_right(address: Mapping[str, Any] | None) -> None:
    """Keep that a call has no mistake; not where the cache cannot be written."""
    if address is None:
        return
    try:
        shared_builder().store.get_or_build(_RIGHT, address, lambda _: {})
    except (CkError, OSError):
        return


def _stored(step: Step, builder: Builder) -> StoredLaunch:
    record = step.record
    fill = builder.fill_name(record.artifact)
    return StoredLaunch(
        kernel=record.artifact.folder.name,
        places=(fill, places.latest(fill)),
        problem=pickle.dumps(record.problem),
        planned=step.planned,
    )


def call_plan(
    kept: KeptPlan, function: Function, binding: Binding, outs: Sequence[Array], device: Device
) -> CallPlan:
    """Return the launches of a call on a device, with every kernel loaded."""
    touched = access_ranges(function, binding, outs)
    plan = kept.plan
    steps = [
        _step(launch, artifact, device)
        for launch, artifact in zip(plan.launches, kept.kernels, strict=True)
    ]
    return CallPlan(device, steps, touched, plan.workspace, binding.place, outs=len(outs))


def _step(stored: StoredLaunch, artifact: Artifact, device: Device) -> Step:
    places.note(*stored.places)
    return step_on(device, artifact, stored.planned, partial(pickle.loads, stored.problem))
