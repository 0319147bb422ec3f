# SPDX-License-Identifier: MIT
"""Graphs: captured, built by hand, changed and launched again."""

import ctypes

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import assemble, call, hip, ok, status
from tests.support.hip_streams import BODIES, Kernels, Words, stream

pytestmark = pytest.mark.usefixtures("emulator")

_UNSUPPORTED, _INVALIDATED, _UNJOINED, _IMPLICIT, _UPDATE = 900, 901, 904, 906, 910


def capture(one: int) -> int:
    graph = ctypes.c_void_p()
    assert call("hipStreamEndCapture", one, ctypes.byref(graph)) == 0
    return int(graph.value or 0)


def instantiate(graph: int) -> int:
    executable = ctypes.c_void_p()
    name = "hipGraphInstantiate"
    assert call(name, ctypes.byref(executable), graph, None, None, ctypes.c_size_t(0)) == 0
    return int(executable.value or 0)


def test_captured_work_runs_at_each_launch(kernels: Kernels, words: Words) -> None:
    one = stream()
    handle = int(one)
    assert call("hipStreamBeginCapture", handle, 0) == 0
    kernels.enqueue("increment", 0, words.address, one)
    kernels.enqueue("double", 0, words.address, one)
    ok(
        hip().hipMemcpyAsync(
            words.address + 128, words.address, 128, hip().hipMemcpyKind.hipMemcpyDefault, one
        )
    )
    graph = capture(handle)
    assert not words.values.any()  # nothing has run
    executable = instantiate(graph)
    assert call("hipGraphDestroy", graph) == 0
    for expected in (2, 6, 14):
        assert call("hipGraphLaunch", executable, handle) == 0
        ok(hip().hipStreamSynchronize(one))
        assert words.values[0] == expected
    assert call("hipGraphExecDestroy", executable) == 0


def test_arguments_straddle_no_page(words: Words) -> None:
    """Else a kernel's time would depend on where they happen to lie."""
    one, kernels = stream(), Kernels(assemble({"increment": BODIES["increment"]}, arguments=480))
    with emulator.timing(1) as recording:
        assert call("hipStreamBeginCapture", int(one), 0) == 0
        for _ in range(100):
            kernels.enqueue("increment", 0, words.address, one)
        executable = instantiate(capture(int(one)))
        assert call("hipGraphLaunch", executable, int(one)) == 0
        ok(hip().hipStreamSynchronize(one))
    assert call("hipGraphExecDestroy", executable) == 0
    extents = np.concatenate([launch.extents for launch in recording.launches])
    assert len(np.unique(extents)) > 200
    assert (extents[:, 0] // 4096 == (extents[:, 1] - 1) // 4096).all()


def test_a_capture_follows_events_to_other_streams(kernels: Kernels, words: Words) -> None:
    first, second = stream(), stream()
    fork, join = ok(hip().hipEventCreate()), ok(hip().hipEventCreate())
    assert call("hipStreamBeginCapture", int(first), 0) == 0
    kernels.enqueue("increment", 0, words.address, first)
    ok(hip().hipEventRecord(fork, first))
    ok(hip().hipStreamWaitEvent(second, fork, 0))
    kernels.enqueue("double", 0, words.address, second)
    ok(hip().hipEventRecord(join, second))
    assert status(hip().hipEventQuery(join)) == "hipErrorCapturedEvent"
    ok(hip().hipStreamWaitEvent(first, join, 0))
    kernels.enqueue("increment", 0, words.address, first)
    graph = capture(int(first))
    state = ctypes.c_int(7)
    assert call("hipStreamIsCapturing", int(second), ctypes.byref(state)) == 0
    assert state.value == 0
    count = ctypes.c_size_t(0)
    assert call("hipGraphGetNodes", graph, None, ctypes.byref(count)) == 0
    assert count.value == 3
    assert call("hipGraphLaunch", instantiate(graph), int(first)) == 0
    ok(hip().hipStreamSynchronize(first))
    assert words.values[0] == 3


def test_what_a_capture_does_not_take(kernels: Kernels, words: Words) -> None:
    one, graph = stream(), ctypes.c_void_p()
    handle = int(one)
    assert call("hipStreamBeginCapture", None, 0) == _UNSUPPORTED
    for wrong, expected in (
        (lambda: call("hipStreamSynchronize", handle), _UNSUPPORTED),
        (lambda: call("hipMemsetAsync", words.address, 0, ctypes.c_size_t(4), None), _IMPLICIT),
    ):
        assert call("hipStreamBeginCapture", handle, 0) == 0
        assert wrong() == expected
        assert call("hipStreamEndCapture", handle, ctypes.byref(graph)) == _INVALIDATED
    other, event = stream(), ok(hip().hipEventCreate())
    assert call("hipStreamBeginCapture", handle, 0) == 0
    ok(hip().hipEventRecord(event, one))
    ok(hip().hipStreamWaitEvent(other, event, 0))
    kernels.enqueue("increment", 0, words.address, other)
    assert call("hipStreamEndCapture", handle, ctypes.byref(graph)) == _UNJOINED
    kernels.enqueue("increment", 0, words.address, one)  # the stream works as before
    ok(hip().hipStreamSynchronize(one))
    assert words.values[0] == 1


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint32) for axis in "xyz"]


class KernelNode(ctypes.Structure):
    _fields_ = [
        ("block", Dim3),
        ("extra", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("grid", Dim3),
        ("parameters", ctypes.c_void_p),
        ("lds", ctypes.c_uint32),
    ]


class SetNode(ctypes.Structure):
    _fields_ = [
        ("to", ctypes.c_void_p),
        ("element", ctypes.c_uint32),
        ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
    ]


class Launch:
    """Parameters of a kernel node."""

    def __init__(self, kernels: Kernels, name: str, output: int) -> None:
        function = ok(hip().hipModuleGetFunction(kernels.handle, name.encode()))
        self.words = (ctypes.c_uint64 * 4)(0, output)
        self.size = ctypes.c_size_t(32)
        self.extra = (ctypes.c_void_p * 5)(
            1, ctypes.addressof(self.words), 2, ctypes.addressof(self.size), 3
        )
        extra = ctypes.addressof(self.extra)
        self.node = KernelNode(Dim3(64, 1, 1), extra, int(function), Dim3(1, 1, 1), None, 0)


def add(name: str, graph: int, after: list[int], *arguments: object) -> int:
    node = ctypes.c_void_p()
    before = (ctypes.c_void_p * len(after))(*after)
    size = ctypes.c_size_t(len(after))
    assert call(name, ctypes.byref(node), graph, before, size, *arguments) == 0
    return int(node.value or 0)


def test_a_graph_built_by_hand(kernels: Kernels, words: Words) -> None:
    handle = ctypes.c_void_p()
    assert call("hipGraphCreate", ctypes.byref(handle), 0) == 0
    graph = int(handle.value or 0)
    fill = SetNode(words.address, 4, 1, 256, 5, 64)
    double, increment = (Launch(kernels, name, words.address) for name in ("double", "increment"))
    last = add("hipGraphAddKernelNode", graph, [], ctypes.byref(double.node))
    middle = add("hipGraphAddKernelNode", graph, [], ctypes.byref(increment.node))
    first = add("hipGraphAddMemsetNode", graph, [], ctypes.byref(fill))
    # Made in the wrong order: dependencies alone decide.
    nodes, later = (ctypes.c_void_p * 2)(first, middle), (ctypes.c_void_p * 2)(middle, last)
    assert call("hipGraphAddDependencies", graph, nodes, later, ctypes.c_size_t(2)) == 0
    back = np.zeros(64, np.uint32)
    copy = (back.ctypes.data, words.address, ctypes.c_size_t(256), 4)
    add("hipGraphAddMemcpyNode1D", graph, [last], *copy)
    executable = instantiate(graph)
    assert call("hipGraphLaunch", executable, None) == 0
    ok(hip().hipDeviceSynchronize())
    np.testing.assert_array_equal(back, 12)
    # Other arguments for a node, then a graph of another shape.
    fill.value = 1
    name = "hipGraphExecMemsetNodeSetParams"
    assert call(name, executable, first, ctypes.byref(fill)) == 0
    assert call("hipGraphLaunch", executable, None) == 0
    ok(hip().hipDeviceSynchronize())
    np.testing.assert_array_equal(back, 4)
    result, differing = ctypes.c_int(), ctypes.c_void_p()
    outcome = (ctypes.byref(differing), ctypes.byref(result))
    assert call("hipGraphExecUpdate", executable, graph, *outcome) == 0
    add("hipGraphAddEmptyNode", graph, [first])
    assert call("hipGraphExecUpdate", executable, graph, *outcome) == _UPDATE
    # A circle cannot be put in order.
    backward = ((ctypes.c_void_p * 1)(last), (ctypes.c_void_p * 1)(first), ctypes.c_size_t(1))
    assert call("hipGraphAddDependencies", graph, *backward) == 0
    circle = ctypes.c_void_p()
    arguments = (ctypes.byref(circle), graph, None, None, ctypes.c_size_t(0))
    assert call("hipGraphInstantiate", *arguments) == 1


class HostNode(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("data", ctypes.c_void_p)]


_HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def new_graph() -> int:
    handle = ctypes.c_void_p()
    assert call("hipGraphCreate", ctypes.byref(handle), 0) == 0
    return int(handle.value or 0)


def roots(graph: int) -> list[int]:
    count, nodes = ctypes.c_size_t(8), (ctypes.c_void_p * 8)()
    assert call("hipGraphGetRootNodes", graph, nodes, ctypes.byref(count)) == 0
    return [int(node or 0) for node in nodes[: count.value]]


def test_host_functions_and_graphs_within_graphs(kernels: Kernels, words: Words) -> None:
    observed: list[int] = []

    @_HOST
    def note(_data: int) -> None:
        observed.append(int(words.values[0]))

    increment, double = (Launch(kernels, name, words.address) for name in ("increment", "double"))
    inner, outer = new_graph(), new_graph()
    first = add("hipGraphAddKernelNode", inner, [], ctypes.byref(increment.node))
    host = HostNode(ctypes.cast(note, ctypes.c_void_p).value, None)
    add("hipGraphAddHostNode", inner, [first], ctypes.byref(host))
    child = add("hipGraphAddChildGraphNode", outer, [], inner)
    add("hipGraphAddKernelNode", outer, [child], ctypes.byref(double.node))
    # What the child becomes later is not the outer graph's affair.
    assert call("hipGraphDestroy", inner) == 0
    executable = instantiate(outer)
    assert call("hipGraphUpload", executable, None) == 0
    assert call("hipGraphLaunch_spt", executable, None) == 0
    assert call("hipStreamSynchronize", ctypes.c_void_p(2)) == 0
    assert (observed, words.values[0]) == ([1], 2)


def test_clones_and_changed_dependencies(kernels: Kernels, words: Words) -> None:
    graph, clone = new_graph(), ctypes.c_void_p()
    increment, double = (Launch(kernels, name, words.address) for name in ("increment", "double"))
    first = add("hipGraphAddKernelNode", graph, [], ctypes.byref(increment.node))
    second = add("hipGraphAddKernelNode", graph, [first], ctypes.byref(double.node))
    assert roots(graph) == [first]
    assert call("hipGraphClone", ctypes.byref(clone), graph) == 0
    # The other way round in the original: (0 * 2) + 1.
    edge = ((ctypes.c_void_p * 1)(first), (ctypes.c_void_p * 1)(second), ctypes.c_size_t(1))
    assert call("hipGraphRemoveDependencies", graph, *edge) == 0
    assert call("hipGraphRemoveDependencies", graph, *edge) == 1
    assert roots(graph) == [first, second]
    turned = ((ctypes.c_void_p * 1)(second), (ctypes.c_void_p * 1)(first), ctypes.c_size_t(1))
    assert call("hipGraphAddDependencies", graph, *turned) == 0
    for which, expected in ((graph, 1), (int(clone.value or 0), 4)):
        assert call("hipGraphLaunch", instantiate(which), None) == 0
        ok(hip().hipDeviceSynchronize())
        assert words.values[0] == expected


def test_nodes_of_a_ready_graph_get_new_work(kernels: Kernels, words: Words) -> None:
    graph, back = new_graph(), np.zeros(64, np.uint32)
    increment = Launch(kernels, "increment", words.address)
    node = add("hipGraphAddKernelNode", graph, [], ctypes.byref(increment.node))
    copy = (back.ctypes.data, words.address, ctypes.c_size_t(256), 4)
    copied = add("hipGraphAddMemcpyNode1D", graph, [node], *copy)
    executable = instantiate(graph)
    other = Launch(kernels, "double", words.address)
    words.values[:] = 21
    name = "hipGraphExecKernelNodeSetParams"
    assert call(name, executable, node, ctypes.byref(other.node)) == 0
    assert call(name, executable, copied, ctypes.byref(other.node)) == 1
    name = "hipGraphExecMemcpyNodeSetParams1D"
    half = (back.ctypes.data, words.address, ctypes.c_size_t(128), 4)
    assert call(name, executable, copied, *half) == 0
    assert call("hipGraphLaunch", executable, None) == 0
    ok(hip().hipDeviceSynchronize())
    np.testing.assert_array_equal(back, np.repeat([42, 0], 32))


def test_captures_of_the_threads_own_stream(kernels: Kernels, words: Words) -> None:
    own, state, graph = ctypes.c_void_p(2), ctypes.c_int(7), ctypes.c_void_p()
    mode = ctypes.c_int(2)
    assert call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == 0
    assert mode.value == 0
    assert call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == 0
    assert mode.value == 2
    assert call("hipStreamBeginCapture_spt", None, 0) == 0
    assert call("hipStreamIsCapturing_spt", None, ctypes.byref(state)) == 0
    assert state.value == 1
    kernels.enqueue("increment", 0, words.address, own)
    assert call("hipStreamEndCapture_spt", None, ctypes.byref(graph)) == 0
    assert not words.values.any()
    assert call("hipGraphLaunch", instantiate(int(graph.value or 0)), None) == 0
    ok(hip().hipDeviceSynchronize())
    assert words.values[0] == 1
