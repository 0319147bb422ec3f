# SPDX-License-Identifier: MIT
"""The driver that Triton asks for its target, and through which it loads and launches kernels."""

import ctypes
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, get_args

import numpy as np

from cklang import emulator, knobs
from cklang.device.device import Device, Launch, open_device
from cklang.emulator.hip.headers import hip_version
from cklang.emulator.triton.memory import host_regions, kernel_arguments
from cklang.errors import error
from cklang.versions import check_version

Autotune = Literal["measure", "first"]
"""How a configuration of a kernel is chosen."""
_QUANTILES = 3
"""Times that Triton asks for when it measures a configuration."""
_SCALAR_TYPE = "int64_t"
"""What Triton would write into a launcher in C; here there is none."""


def _triton() -> Any:
    """Triton's package."""
    try:
        import triton
    except ImportError as problem:
        raise error("E006") from problem
    check_version("triton", triton.__version__)
    return triton


class _Utilities:
    """What Triton calls to load a code object."""

    def __init__(self, gpu: Device) -> None:
        self._gpu = gpu

    def load_binary(self, name: str, code: bytes, shared: int, _: object) -> tuple[Any, ...]:
        """Return module, function, registers, spills and the most threads of a workgroup."""
        function = self._gpu.load(code, name)
        facts = emulator.kernel_facts(int(function.handle))
        return function.module, function, facts.vgprs, facts.vgpr_spills, facts.max_threads

    def unload_module(self, module: object) -> None:
        """Let a module go: it is unloaded when nothing refers to it."""

    def get_device_properties(self, _: object) -> dict[str, Any]:
        """Return what Triton asks of a GPU."""
        spec = self._gpu.spec
        return {
            "max_shared_mem": spec.lds_bytes,
            "max_num_regs": spec.vgprs_per_simd_lane * 4,
            "multiprocessor_count": spec.compute_units // spec.compute_units_per_multiprocessor,
            "sm_clock_rate": int(spec.clock_hz / 1000),
            "mem_clock_rate": int(spec.memory_clock_hz / 1000),
            "mem_bus_width": spec.memory_bus_bits,
            "arch": spec.name,
            "warpSize": spec.wave_size,
            "cooperativeLaunch": True,
        }


class _Launcher:
    """Launches one compiled kernel, and waits for it: its arguments are in host memory."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._types = tuple(source.signature.values())
        self._metadata = metadata

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: object,
        function: Any,
        packed: object,
        launch_metadata: object,
        enter: Callable[[object], None] | None,
        leave: Callable[[object], None] | None,
        *arguments: Any,
    ) -> None:
        if x * y * z == 0:
            return
        if enter is not None:
            enter(launch_metadata)
        self._run((x, y, z), function, arguments)
        if leave is not None:
            leave(launch_metadata)

    def _run(self, grid: tuple[int, int, int], function: Any, arguments: Sequence[Any]) -> None:
        metadata = self._metadata
        groups = grid[0] * grid[1] * grid[2]
        scratch = [
            np.zeros(groups * size, np.uint8)
            # Before Triton 3.8 AMD's kernels have no global scratch memory: its address is null.
            for size in (getattr(metadata, "global_scratch_size", 0), metadata.profile_scratch_size)
        ]
        addresses = [array.ctypes.data if array.size else None for array in scratch]
        words = kernel_arguments(self._types, arguments, addresses)
        gpu: Device = function.device
        gpu.activate()
        block = (metadata.warp_size * metadata.num_warps, 1, 1)
        with _registered(host_regions(self._types, arguments)):
            Launch(function, (*grid, *block), words, metadata.shared)(None)
            gpu.synchronize()


@contextmanager
def _registered(regions: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Let recordings of launches know where arrays in host memory begin and end."""
    library, known = emulator.load(), []
    if knobs.RECORDINGS_NOW:
        for address, size in regions:
            pointer = ctypes.c_void_p(address)
            if not library.hipHostRegister(pointer, ctypes.c_size_t(size), 0):
                known.append(pointer)
    try:
        yield
    finally:
        for pointer in known:
            library.hipHostUnregister(pointer)


class EmulatedDriver:
    """Triton's driver of an emulated GPU: ``triton.runtime.driver.set_active(EmulatedDriver(…))``.

    Tensors are torch's in host memory, or a :class:`~cklang.emulator.triton.HostArray`.

    Raises:
        CkValueError: D001, no GPU of that name is emulated.
        CkUnsupportedError: E006, Triton is not installed; E009, its version is not supported.
    """

    launcher_cls = _Launcher

    def __init__(self, gpu: str) -> None:
        _triton()
        self.gpu = open_device(f"emu:{gpu}")
        self.utils = _Utilities(self.gpu)

    @classmethod
    def is_active(cls) -> bool:
        """Return False: Triton does not choose it by itself."""
        return False

    def get_current_target(self) -> Any:
        """Return what Triton compiles for."""
        return _triton().backends.compiler.GPUTarget(
            "hip", self.gpu.spec.name, self.gpu.spec.wave_size
        )

    def get_current_device(self) -> str:
        """Return the GPU's name, by which Triton keeps its kernels apart."""
        return self.gpu.name

    def set_current_device(self, _: object) -> None:
        """Stay with the one GPU of this driver."""

    def get_current_stream(self, _: object = None) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return torch's CPU: the emulated GPU uses host memory."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return torch's module for the CPU."""
        import torch

        return torch.cpu

    def map_python_to_cpp_type(self, _: str) -> str:
        """Return a C type; no launcher is compiled that would have it."""
        return _SCALAR_TYPE

    def allocate_default_profile_scratch(self, size: int, *_: object) -> np.ndarray[Any, Any]:
        """Return memory for a profiler of kernels."""
        return np.zeros(size, np.uint8)

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return what autotuning measures with: the wall time of one emulated launch."""

        def benchmark(call: Callable[[], object], quantiles: Any = None, **_: object) -> Any:
            begin = time.perf_counter()
            call()
            milliseconds = 1000 * (time.perf_counter() - begin)
            return milliseconds if quantiles is None else [milliseconds] * len(quantiles)

        return benchmark

    def get_empty_cache_for_benchmark(self) -> np.ndarray[Any, Any]:
        """Return memory to clear between measurements: none, no cache is emulated."""
        return np.zeros(1, np.int32)

    def clear_cache(self, cache: np.ndarray[Any, Any]) -> None:
        """Clear that memory."""
        cache.fill(0)


@contextmanager
def device(
    gpu: str, *, autotune: Autotune = "measure", driver: type[EmulatedDriver] = EmulatedDriver
) -> Iterator[EmulatedDriver]:
    """Let Triton compile for an emulated GPU and launch there, inside of a ``with`` statement.

    torch says meanwhile that it was built for HIP (``torch.version.hip``), which libraries of
    kernels ask when they choose configurations.

    Args:
        gpu: "gfx942", "gfx950", "gfx90a", "gfx1100" or "gfx1201".
        autotune: Which configuration a kernel of ``@triton.autotune`` gets: "measure", the one
            whose emulated launch takes the least time, for which all are compiled and launched;
            "first", the first that the GPU can launch.
        driver: The class of the driver.

    Raises:
        CkValueError: D001, no GPU of that name is emulated; E008, ``autotune`` is another word.
        CkUnsupportedError: E006, Triton is not installed; E009, its version is not supported.
    """
    if autotune not in get_args(Autotune):
        raise error("E008", got=autotune)
    drivers = _triton().runtime.driver
    before = drivers._active
    chosen = driver(gpu)
    with ExitStack() as stack:
        stack.enter_context(_torch_for_hip())
        if autotune == "first":
            stack.enter_context(_first_configurations())
        drivers.set_active(chosen)
        stack.callback(drivers.set_active, before)
        yield chosen


@contextmanager
def _torch_for_hip() -> Iterator[None]:
    try:
        import torch
    except ImportError:
        yield  # kernels on arrays of NumPy
        return
    before = torch.version.hip
    torch.version.hip = hip_version()
    try:
        yield
    finally:
        torch.version.hip = before


@contextmanager
def _first_configurations() -> Iterator[None]:
    """Let Triton measure no configuration after one that the GPU can launch."""
    tuner = _triton().runtime.autotuner.Autotuner
    measure = tuner._bench
    launched: dict[Any, object] = {}

    def measure_first(kernel: Any, *arguments: Any, **settings: Any) -> Any:
        # The arguments by name are a new object in each call that tunes.
        if launched.get(kernel) is kernel.nargs:
            return [math.inf] * _QUANTILES
        times = measure(kernel, *arguments, **settings)
        if times[0] < math.inf:
            launched[kernel] = kernel.nargs
        return times

    tuner._bench = measure_first
    try:
        yield
    finally:
        tuner._bench = measure
