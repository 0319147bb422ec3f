# SPDX-License-Identifier: MIT
"""The kernels of ``sanitizer_study.py``: Triton's, amd-aiter's and those of small ops of cklang."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from ck_mutants import OPS, run_op
from study_mistakes import Kernel

from cklang import emulator

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.emulator import test_foreign_aiter, test_triton
from tests.support import triton_kernels
from tests.support.assembly import DEVICES, hip, ok

__all__ = ["DEVICES", "all_kernels"]


_ADDING = {"norm_f16", "histogram"}
"""Kernels of Triton that add to their results."""


@contextmanager
def triton_code(code: bytes) -> Iterator[None]:
    """Let the tests' Triton kernels be this code."""

    def function(gpu: str, name: str) -> Any:
        ok(hip().hipSetDevice(DEVICES.index(gpu)))
        module = ok(hip().hipModuleLoadData(code))
        symbol = triton_kernels.MADE[gpu][name]["kernel"].encode()
        return ok(hip().hipModuleGetFunction(module, symbol))

    def run(gpu: str, name: str, grid: tuple[int, int], *values: Any) -> None:
        with on_device(values, adds=name in _ADDING) as arguments:
            triton_kernels.run(gpu, name, grid, *arguments)

    with replaced(triton_kernels, _function=function), replaced(test_triton, run=run):
        yield


@contextmanager
def aiter_code(code: bytes) -> Iterator[None]:
    """Let the tests' kernels of amd-aiter be this code."""
    original = test_foreign_aiter.launch

    def launch(file: str, kernel: str, values: tuple[object, ...], *geometry: Any) -> None:
        with on_device(values, adds="bf16gemm" in kernel) as arguments:
            original(file, kernel, arguments, *geometry)

    with replaced(test_foreign_aiter, launch=launch, code_of=lambda _: code):
        yield


@contextmanager
def replaced(module: ModuleType, **names: Any) -> Iterator[None]:
    """Let names of a module mean something else."""
    space = vars(module)
    originals = {name: space[name] for name in names}
    space.update(names)
    try:
        yield
    finally:
        space.update(originals)


@contextmanager
def on_device(values: tuple[Any, ...], *, adds: bool) -> Iterator[tuple[Any, ...]]:
    """The values with arrays in memory of the device; results are copied back at the end.

    Arrays of zeros are results: they are left unwritten, unless the kernel adds to them.
    """
    arrays = {n: value for n, value in enumerate(values) if isinstance(value, np.ndarray)}
    memory = {n: int(ok(hip().hipMalloc(array.nbytes))) for n, array in arrays.items()}
    results = {n for n, array in arrays.items() if not array.view(np.uint8).any()}
    for n in arrays.keys() - (set() if adds else results):
        source = np.ascontiguousarray(arrays[n])
        copy(memory[n], source.ctypes.data, source.nbytes, "hipMemcpyHostToDevice")
    yield tuple(
        as_array(memory[n], value) if n in memory else value for n, value in enumerate(values)
    )
    for n in results:
        copy(arrays[n].ctypes.data, memory[n], arrays[n].nbytes, "hipMemcpyDeviceToHost")
    for address in memory.values():
        hip().hipFree(ctypes.c_void_p(address))


def copy(to: int, source: int, size: int, kind: str) -> None:
    """Copy so many bytes."""
    kinds = hip().hipMemcpyKind
    ok(hip().hipMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), size, getattr(kinds, kind)))


def as_array(address: int, like: np.ndarray) -> np.ndarray:
    """Memory of an emulated device as an array; tests pass arrays by address."""
    memory = (ctypes.c_uint8 * like.nbytes).from_address(address)
    array: np.ndarray = np.ctypeslib.as_array(memory).view(like.dtype).reshape(like.shape)
    return array


def triton_kernel(gpu: str, name: str, test: Callable[[], None]) -> Kernel:
    """One of the code objects that stand beside the tests."""
    code = (triton_kernels.FOLDER / gpu / f"{name}.hsaco").read_bytes()
    run = checked(gpu, triton_code, test)
    return Kernel(gpu=gpu, name=name, code=code, run=run, family="Triton")


def checked(
    gpu: str, using: Callable[[bytes], AbstractContextManager[None]], test: Callable[[], None]
) -> Callable[[bytes], str]:
    """What runs a test with other code and says why it fails."""

    def run(code: bytes) -> str:
        with using(code), np.errstate(all="ignore"):
            try:
                test()
            except AssertionError as problem:
                return after_failure(DEVICES.index(gpu)) or str(problem) or "wrong"
        return ""

    return run


def after_failure(device: int) -> str:
    """Why the device has failed, if it has; it works again."""
    text = emulator.fault(device)
    hip().hipSetDevice(device)
    hip().hipDeviceReset()
    return text


Wanted = Callable[[str, str], bool]
"""Whether to study a kernel, by GPU and name."""


_SINGLE = {"sort_i32": "sort", "norm_f16": "norm", "histogram": "histogram"}
"""The tests of these take a GPU alone."""


def triton_all(wanted: Wanted) -> Iterator[Kernel]:
    """The kernels of Triton, whose tests compare them with NumPy."""
    for gpu in test_triton.GPUS:
        for name in triton_kernels.MADE[gpu]:
            if not wanted(gpu, name):
                continue
            test = getattr(test_triton, f"test_{_SINGLE.get(name, name.partition('_')[0])}")
            call = (gpu,) if name in _SINGLE else (gpu, name)
            yield triton_kernel(gpu, name, partial(test, *call))


def ck_all(wanted: Wanted) -> Iterator[Kernel]:
    """Kernels that cklang's ops launch: CK Tile's products and attention, and kernels of rows."""
    for gpu in DEVICES:
        for name, op in OPS.items():
            for code in op.codes(gpu) if wanted(gpu, f"ck {name}") else ():
                run = run_op(op, gpu, code)
                yield Kernel(gpu=gpu, name=f"ck {name}", code=code, run=run, family="cklang")


_AITER: dict[str, Callable[[], None]] = {
    "gfx942/layer_norm.co": partial(test_foreign_aiter.test_layer_norm, False),
    "gfx942/layer_norm_qnt.co": partial(test_foreign_aiter.test_layer_norm, True),
    **{
        f"gfx942/topksoftmax/topksoftmax_4x{experts}x{best}.co": partial(
            test_foreign_aiter.test_softmax_of_the_best, experts, best
        )
        for experts, best in ((128, 8), (256, 6))
    },
    **{
        f"{gpu}/bf16gemm/bf16gemm_outf32_tn_{tile}x64_pf3.co": partial(
            test_foreign_aiter.test_gemm, gpu, tile, *call
        )
        for gpu in ("gfx942", "gfx950")
        for tile, *call in ((32, 1, 40, 128, 256), (64, 2, 64, 64, 512), (96, 1, 100, 192, 128))
    },
    **{
        f"gfx942/i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_{tile}x128.co": partial(
            test_foreign_aiter.test_gemm_of_int8, tile
        )
        for tile in (128, 192)
    },
    **{
        f"gfx950/f8_block_scale_mi350_x{tile}.co": partial(
            test_foreign_aiter.test_gemm_of_fp8_with_block_scales, m, tile
        )
        for m, tile in ((32, 32), (100, 128))
    },
    **{
        f"{gpu}/fmha_v3_fwd/{folder}fwd_hd128_bf16{ending}.co": partial(
            test_foreign_aiter.test_attention, gpu, "causal" in ending
        )
        for gpu, folder, endings in (
            ("gfx942", "MI300/", ("_rtne", "_causal_rtne")),
            ("gfx950", "", ("", "_causal")),
        )
        for ending in endings
    },
}
"""The tests of amd-aiter's code objects, by file."""


def aiter_all(wanted: Wanted) -> Iterator[Kernel]:
    """Kernels of amd-aiter that the tests compare with NumPy."""
    for file, test in _AITER.items():
        gpu, name = file.partition("/")[0], Path(file).stem
        if wanted(gpu, name):
            run = checked(gpu, aiter_code, test)
            code = test_foreign_aiter.code_of(file)
            yield Kernel(gpu=gpu, name=name, code=code, run=run, family="amd-aiter")


def all_kernels(wanted: Wanted) -> list[Kernel]:
    """Every kernel that is wanted."""
    return [*triton_all(wanted), *aiter_all(wanted), *ck_all(wanted)]
