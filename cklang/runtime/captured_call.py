# SPDX-License-Identifier: MIT
"""A call of an op as one HIP graph: planned, built and recorded once, then replayed."""

import weakref
from collections.abc import Sequence
from typing import Any

from cklang.device import arrays
from cklang.device.arrays import HOST
from cklang.device.device import Device
from cklang.device.graph import Graph
from cklang.errors import CkDeviceError, CkError, error
from cklang.runtime import call_key
from cklang.runtime.bind import Binding
from cklang.runtime.call_key import CallKey
from cklang.runtime.call_plan import CallPlan
from cklang.runtime.ready import Ready, put_numbers
from cklang.runtime.record import LaunchRecord
from cklang.runtime.results import one_or_all


class CapturedCall:
    """All launches of one call as a HIP graph; calling it replays them on the same memory.

    It keeps the arrays of the call, and a workspace of its own. A replay reads what the arguments
    hold at that time, and writes the same results. Plain numbers among the arguments stay as they
    were. Replays are in order with the caller's stream, as calls are: that of torch for its
    tensors, else the default one.
    """

    def __init__(self, name: str, ready: Ready, call: CallKey, values: Sequence[Any], out: Any):
        """Record a call whose launches are ready; see :meth:`cklang.Op.captured`."""
        self._name = name
        plan = ready.plan
        self.launches: tuple[LaunchRecord, ...] = plan.records
        """What a replay launches, in order."""
        self._arguments = tuple(values)
        results = [make() for make in ready.result_makers] if out is None else out
        self.result: Any = one_or_all(results) if out is None else out
        """What a replay writes: a new array, a tuple of them, or the ``out`` of the capture."""
        if out is None:
            call.addresses += map(call_key.address, results)
        self._numbers = put_numbers(ready, call) if call.numbers else None
        self.workspace_bytes = plan.workspace.bytes
        """The memory that the graph keeps for its temporaries."""
        addresses = list(call.addresses)
        if plan.workspace.bytes:
            memory = _allocated(plan)
            weakref.finalize(self, _free, plan.device, memory).atexit = False
            addresses += [memory + offset for offset in plan.workspace.offsets]
        self._library, self._place = ready.libraries[0], ready.place
        self._graph = None
        if plan.records:
            self._graph = Graph(plan.device, lambda stream: plan.record(addresses, stream))

    def __repr__(self) -> str:
        return f"<captured call of {self._name}: {len(self.launches)} launches>"

    def __call__(self) -> Any:
        """Replay the launches and return ``result``.

        Nothing is waited for: what follows on the stream sees the result, and so does
        ``ck.to_host``.

        Raises:
            CkDeviceError: D003, the launch was refused.
        """
        if self._graph is not None:
            self._graph.launch(arrays.current_stream(self._library, self._place))
        return self.result


def expect_on_gpu(name: str, binding: Binding) -> None:
    """Check that a call has arrays in the memory of a GPU, and no others."""
    if binding.place == HOST:
        raise error("A073", op=name, names=", ".join(binding.arrays) or "none")


def _allocated(plan: CallPlan) -> int:
    try:
        return plan.device.allocate(plan.workspace.bytes)
    except CkDeviceError as refusal:
        raise plan.workspace.explained(plan.device, refusal) from refusal


def _free(device: Device, memory: int) -> None:
    try:
        device.activate()
        # Replays may still use it.
        device.wait()
        device.free(memory)
    except CkError:
        return  # a device that has failed has lost its memory too
