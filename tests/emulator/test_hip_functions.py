# SPDX-License-Identifier: MIT
"""HIP: modules, what is known of their functions, and the rarer ways to launch and to order."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cklang import emulator
from cklang.arch import arch
from tests.emulator.test_hip_program import _ADD, Dim3, Program, bundle
from tests.support.assembly import DEVICES, assemble, call, hip, ok, status
from tests.support.hip_streams import BODIES, Kernels, Words, stream

pytestmark = pytest.mark.usefixtures("emulator")

_LDS, _THREADS = 32768, 1024
_PER_THREAD = ctypes.c_void_p(2)


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble(BODIES, lds=_LDS, scratch=256)


@pytest.fixture(scope="module")
def added() -> bytes:
    return assemble({"add": _ADD})


@pytest.fixture
def program(added: bytes) -> Iterator[Program]:
    ok(hip().hipSetDevice(0))
    one = Program({"gfx942": added})
    yield one
    one.call("__hipUnregisterFatBinary", one.handle)
    one.call("hipGetLastError")


def handle_of(kernels: Kernels, name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p(int(ok(hip().hipModuleGetFunction(kernels.handle, name.encode()))))


@pytest.mark.parametrize("name", ["hipModuleLoadDataEx", "hipModuleLoadFatBinary"])
def test_ways_to_load(name: str, image: bytes) -> None:
    ok(hip().hipSetDevice(0))
    module, count = ctypes.c_void_p(), ctypes.c_uint()
    data = bundle({"gfx942": image}) if "Fat" in name else image
    more = () if "Fat" in name else (0, None, None)
    assert call(name, ctypes.byref(module), data, *more) == 0
    assert call("hipModuleGetFunctionCount", ctypes.byref(count), module) == 0
    assert count.value == len(BODIES)
    assert call("hipModuleUnload", module) == 0


def test_variables_of_modules(added: bytes) -> None:
    api = hip()
    ok(api.hipSetDevice(0))
    module = ok(api.hipModuleLoadData(added))
    status_, address, size = api.hipModuleGetGlobal(module, b"offset")
    assert (status_.name, size) == ("hipSuccess", 4)
    assert ctypes.c_uint32.from_address(int(address)).value == 5
    assert status(api.hipModuleGetGlobal(module, b"none")) == "hipErrorNotFound"
    ok(api.hipModuleUnload(module))


def test_attributes_of_functions(kernels: Kernels) -> None:
    api, spec = hip(), arch(DEVICES[0])
    function = handle_of(kernels, "increment")
    value = ctypes.c_int()
    facts = {"MAX_THREADS_PER_BLOCK": _THREADS, "SHARED_SIZE_BYTES": _LDS, "LOCAL_SIZE_BYTES": 256,
             "CONST_SIZE_BYTES": 0, "NUM_REGS": 128,
             "MAX_DYNAMIC_SHARED_SIZE_BYTES": spec.lds_bytes - _LDS}  # fmt: skip
    for name, wanted in facts.items():
        code = int(getattr(api.hipFunction_attribute, f"HIP_FUNC_ATTRIBUTE_{name}"))
        assert call("hipFuncGetAttribute", ctypes.byref(value), code, function) == 0
        assert value.value == wanted, name
    assert call("hipFuncGetAttribute", ctypes.byref(value), 99, function) == 1
    dynamic = int(api.hipFuncAttribute.hipFuncAttributeMaxDynamicSharedMemorySize)
    assert call("hipFuncSetAttribute", function, dynamic, spec.lds_bytes - _LDS) == 0
    assert call("hipFuncSetAttribute", function, dynamic, spec.lds_bytes) == 1
    assert call("hipFuncSetCacheConfig", function, 1) == 0
    assert call("hipFuncSetSharedMemConfig", function, 1) == 0
    name_of = emulator.load().hipKernelNameRef
    name_of.restype = ctypes.c_char_p
    assert name_of(function) == b"increment"


def test_functions_of_programs(program: Program) -> None:
    function, library = ctypes.c_void_p(), emulator.load()
    assert call("hipGetFuncBySymbol", ctypes.byref(function), program.host()) == 0
    library.hipKernelNameRef.restype = library.hipKernelNameRefByPtr.restype = ctypes.c_char_p
    assert library.hipKernelNameRef(function) == b"add"
    assert library.hipKernelNameRefByPtr(program.host(), None) == b"add"
    assert library.hipKernelNameRefByPtr(ctypes.c_void_p(12), None) is None


def test_occupancy_in_every_form(kernels: Kernels, program: Program) -> None:
    """Half of the LDS each: two blocks on a compute unit, whoever asks."""
    spec, function = arch(DEVICES[0]), handle_of(kernels, "increment")
    blocks, grid, block = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    nothing = ctypes.c_size_t(0)
    for name, more in (
        ("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", ()),
        ("hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (0,)),
    ):
        assert call(name, ctypes.byref(blocks), function, 256, nothing, *more) == 0
        assert blocks.value == 2
        quarter = ctypes.c_size_t(_LDS // 2)
        assert call(name, ctypes.byref(blocks), function, 256, quarter, *more) == 0
        assert blocks.value == 1
    both = (ctypes.byref(grid), ctypes.byref(block))
    for name, more in (
        ("hipModuleOccupancyMaxPotentialBlockSize", ()),
        ("hipModuleOccupancyMaxPotentialBlockSizeWithFlags", (0,)),
    ):
        # Registers for 1,024 threads: one block of as many, or two of half.
        assert call(name, *both, function, nothing, 0, *more) == 0
        assert (grid.value, block.value) == (spec.compute_units, 1024)
        assert call(name, *both, function, nothing, 128, *more) == 0
        assert (grid.value, block.value) == (2 * spec.compute_units, 128)
    name = "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
    assert call(name, ctypes.byref(blocks), program.host(), 256, nothing, 0) == 0
    assert blocks.value == 4  # 128 registers
    left = ctypes.c_size_t()
    name = "hipOccupancyAvailableDynamicSMemPerBlock"
    assert call(name, ctypes.byref(left), program.host(), 4, 256) == 0
    assert left.value == spec.lds_bytes // 4


def _by_module(name: str, kernels: Kernels, words: Words, on: Any) -> int:
    """Launch `increment` on 64 words with arguments one by one."""
    function, none = handle_of(kernels, "increment"), ctypes.c_void_p(None)
    values = [ctypes.c_uint64(0), ctypes.c_uint64(words.address)]
    values += [ctypes.c_uint64(0)] * 2
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
    queue = ctypes.c_void_p(int(on))
    shape = (1, 1, 1, 64, 1, 1)
    if name == "hipModuleLaunchCooperativeKernel":
        return call(name, function, *shape, 0, queue, pointers)
    events = (none, none)
    if name == "hipExtModuleLaunchKernel":
        events = (none, none, 0)  # type: ignore[assignment]
    items = (64, 1, 1, 64, 1, 1)  # these count work items
    return call(name, function, *items, ctypes.c_size_t(0), queue, pointers, none, *events)


@pytest.mark.parametrize(
    "name",
    ["hipModuleLaunchCooperativeKernel", "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"],
)
def test_launches_of_loaded_kernels(name: str, kernels: Kernels, words: Words) -> None:
    one = stream()
    assert _by_module(name, kernels, words, one) == 0
    ok(hip().hipStreamSynchronize(one))
    assert (words.values == 1).all()


def test_a_grid_of_work_items_must_be_whole_blocks(kernels: Kernels) -> None:
    function, none = handle_of(kernels, "increment"), ctypes.c_void_p(None)
    rest = (ctypes.c_size_t(0), none, none, none, none, none, 0)
    invalid_configuration = 9
    assert (
        call("hipExtModuleLaunchKernel", function, 65, 1, 1, 64, 1, 1, *rest)
        == invalid_configuration
    )


@pytest.mark.parametrize(
    "name",
    ["hipExtLaunchKernel", "hipLaunchCooperativeKernel", "hipLaunchKernel_spt",
     "hipLaunchCooperativeKernel_spt"],
)  # fmt: skip
def test_launches_of_the_programs_kernels(name: str, program: Program) -> None:
    source, output = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    places = [ctypes.c_void_p(array.ctypes.data) for array in (source, output)]
    arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(place) for place in places))
    grid, block, none = Dim3(1, 1, 1), Dim3(64, 1, 1), ctypes.c_void_p(None)
    size = 0 if "Cooperative" in name else ctypes.c_size_t(0)
    events = (none, none, 0) if name == "hipExtLaunchKernel" else ()
    assert call(name, program.host(), grid, block, arguments, size, none, *events) == 0
    waited = _PER_THREAD if name.endswith("_spt") else none
    assert call("hipStreamSynchronize", waited) == 0
    np.testing.assert_array_equal(output, source + 5)


def test_events_around_a_launch(program: Program) -> None:
    api = hip()
    start, stop = ok(api.hipEventCreate()), ok(api.hipEventCreate())
    source, output = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    places = [ctypes.c_void_p(array.ctypes.data) for array in (source, output)]
    arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(place) for place in places))
    events = [ctypes.c_void_p(int(event)) for event in (start, stop)]
    shape = (Dim3(1, 1, 1), Dim3(64, 1, 1), arguments, ctypes.c_size_t(0), None)
    assert call("hipExtLaunchKernel", program.host(), *shape, *events, 0) == 0
    ok(api.hipEventSynchronize(stop))
    assert ok(api.hipEventElapsedTime(start, stop)) > 0
    np.testing.assert_array_equal(output, source + 5)


@pytest.mark.parametrize(
    ("to_symbol", "from_symbol"),
    [
        ("hipMemcpyToSymbolAsync", "hipMemcpyFromSymbolAsync"),
        ("hipMemcpyToSymbolAsync_spt", "hipMemcpyFromSymbolAsync_spt"),
    ],
)
def test_variables_in_order_with_a_stream(
    to_symbol: str, from_symbol: str, program: Program
) -> None:
    one, to_device, to_host = ctypes.c_void_p(int(stream())), 1, 2
    value, back = ctypes.c_uint32(77), ctypes.c_uint32()
    four, zero = ctypes.c_size_t(4), ctypes.c_size_t(0)
    variable = ctypes.byref(program.variable)
    put = (variable, ctypes.byref(value), four, zero, to_device, one)
    assert call(to_symbol, *put) == 0
    take = (ctypes.byref(back), variable, four, zero, to_host, one)
    assert call(from_symbol, *take) == 0
    assert call("hipStreamSynchronize", one) == 0
    assert back.value == 77
    beyond = (ctypes.byref(back), variable, four, ctypes.c_size_t(1), to_host, one)
    assert call(from_symbol, *beyond) == 1


def test_what_is_known_of_streams() -> None:
    api = hip()
    _, least, greatest = api.hipDeviceGetStreamPriorityRange()
    assert least > greatest
    for requested, got in ((greatest, greatest), (greatest - 9, greatest), (least + 9, least)):
        one = ok(api.hipStreamCreateWithPriority(1, requested))
        handle, value = ctypes.c_void_p(int(one)), ctypes.c_int()
        assert ok(api.hipStreamGetPriority(one)) == got
        assert call("hipStreamGetPriority_spt", handle, ctypes.byref(value)) == 0
        assert value.value == got
        assert ok(api.hipStreamGetFlags(one)) == 1
        assert call("hipStreamGetFlags_spt", handle, ctypes.byref(value)) == 0
        assert value.value == 1
        assert call("hipGetStreamDeviceId", handle) == 0
        ok(api.hipStreamDestroy(one))
    assert call("hipGetStreamDeviceId", ctypes.c_void_p(12)) == -1
    mask, masked_stream = (ctypes.c_uint32 * 2)(0xF, 0), ctypes.c_void_p()
    assert call("hipExtStreamCreateWithCUMask", ctypes.byref(masked_stream), 2, mask) == 0
    assert call("hipExtStreamCreateWithCUMask", ctypes.byref(masked_stream), 0, mask) == 1


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.mark.parametrize("name", ["hipStreamAddCallback", "hipStreamAddCallback_spt"])
def test_callbacks_come_after_what_was_before(name: str, kernels: Kernels, words: Words) -> None:
    observed: list[int] = []

    @_CALLBACK
    def note(_stream: int, status: int, _data: int) -> None:
        observed.extend((int(words.values[0]), status))

    null = None if name.endswith("_spt") else ctypes.c_void_p(int(stream()))
    waited = _PER_THREAD if null is None else null
    kernels.enqueue("increment", 0, words.address, waited)
    assert call(name, null, note, None, 0) == 0
    assert call(name, null, note, None, 1) == 1  # there are no flags
    assert call("hipStreamSynchronize", waited) == 0
    assert observed == [1, 0]


def test_the_threads_own_null_stream(kernels: Kernels, words: Words) -> None:
    """What `_spt` calls are given as the null stream is that of the thread."""
    observed: list[int] = []

    @_HOST
    def note(_data: int) -> None:
        observed.append(int(words.values[0]))

    event = ctypes.c_void_p(int(ok(hip().hipEventCreate())))
    other = stream()
    kernels.enqueue("await", words.flag_address, words.address, other)
    after = ctypes.c_void_p(int(ok(hip().hipEventCreate())))
    ok(hip().hipEventRecord(after, other))
    assert call("hipStreamWaitEvent_spt", None, after, 0) == 0
    assert call("hipLaunchHostFunc_spt", None, note, None) == 0
    assert call("hipEventRecord_spt", event, None) == 0
    not_ready = 600
    assert call("hipStreamQuery_spt", None) == not_ready
    words.flag.value = 1
    assert call("hipStreamSynchronize_spt", None) == 0
    assert call("hipStreamQuery_spt", None) == 0
    assert call("hipEventQuery", event) == 0
    assert observed == [1]


def test_events_with_flags_and_wide_words(kernels: Kernels, words: Words) -> None:
    one, event = stream(), ok(hip().hipEventCreate())
    place, queue = ctypes.c_void_p(words.flag_address), ctypes.c_void_p(int(one))
    wanted, all_bits, equal = ctypes.c_uint64(1 << 40), ctypes.c_uint64(2**64 - 1), 1
    assert call("hipStreamWaitValue64", queue, place, wanted, equal, all_bits) == 0
    kernels.enqueue("increment", 0, words.address, one)
    assert call("hipEventRecordWithFlags", ctypes.c_void_p(int(event)), queue, 0) == 0
    assert call("hipEventRecordWithFlags", ctypes.c_void_p(int(event)), queue, 9) == 1
    assert status(hip().hipEventQuery(event)) == "hipErrorNotReady"
    other = ctypes.c_void_p(int(stream(nonblocking=True)))
    assert call("hipStreamWriteValue64", other, place, wanted, 0) == 0
    ok(hip().hipStreamSynchronize(one))
    assert ctypes.c_uint64.from_address(words.flag_address).value == 1 << 40
    assert words.values[0] == 1
