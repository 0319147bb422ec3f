# SPDX-License-Identifier: MIT
"""cklang: a Python language for AMD's CK Tile kernels.

Write an op as a decorated function; call it with NumPy arrays or torch tensors. Without an AMD GPU
the same compiled kernel runs on an emulated one::

    import cklang as ck

    M, N, K = ck.dims("M N K")

    @ck.op
    def linear_gelu(
        x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
    ) -> ck.f16[M, N]:
        return ck.gelu(x @ w.T + bias) + res
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cklang.errors import CkError, error
from cklang.frontend import composites
from cklang.frontend.composites import *  # noqa: F403 - as those of functions
from cklang.frontend.functions import *  # noqa: F403 - the names of INTRINSICS
from cklang.frontend.helper import Fn, fn
from cklang.frontend.intrinsics import INTRINSICS as _INTRINSICS
from cklang.frontend.other_names import advice_for
from cklang.ops import sparse24
from cklang.runtime.op import Op, op
from cklang.runtime.op_pickle import reduced_op as _reduced_op  # noqa: F401 - makes ops picklable
from cklang.selection.context import using
from cklang.selection.strategy import STRATEGIES, Strategy
from cklang.types import dims, dtype_var

if TYPE_CHECKING:
    from cklang import dispatch as dispatch
    from cklang.build.dask_executor import workers_of
    from cklang.device.device_array import DeviceArray, empty, synchronize, to_device, to_host
    from cklang.device.packed import Packed, pack
    from cklang.emulator.debugger.inside import debug
    from cklang.emulator.profiler.session import profile
    from cklang.exporting import export
    from cklang.gradients import attention_grad, grad, vjp, vjp_saving
    from cklang.ops.append_kv import append_kv
    from cklang.ops.bench import bench
    from cklang.ops.dropout_bytes import dropout_bytes
    from cklang.ops.predict import predict
    from cklang.ops.prepare import PreparedWeight, prepare
    from cklang.runtime.ir_text import parse
    from cklang.tune.session import autotune

MYPY = False
"""True to mypy alone."""

if not TYPE_CHECKING:
    from cklang.in_place import inout
    from cklang.types import (
        bf8,
        bf8_fnuz,
        bf16,
        bool_,
        const,
        e8m0,
        f16,
        f32,
        fp4,
        fp8,
        fp8_fnuz,
        i4,
        i8,
        i32,
        i64,
    )
else:
    # No one declaration of the dtypes is legal in annotations to both mypy and pyright. pyright
    # knows that the first condition does not hold, mypy that the second does not.
    import os

    from cklang.annotations import Tensor, const, inout

    if os.name == "mypy":
        bf8: Any
        bf8_fnuz: Any
        bf16: Any
        bool_: Any
        e8m0: Any
        f16: Any
        f32: Any
        fp4: Any
        fp8: Any
        fp8_fnuz: Any
        i4: Any
        i8: Any
        i32: Any
        i64: Any
    if not MYPY:
        bf8 = Tensor
        bf8_fnuz = Tensor
        bf16 = Tensor
        bool_ = Tensor
        e8m0 = Tensor
        f16 = Tensor
        f32 = Tensor
        fp4 = Tensor
        fp8 = Tensor
        fp8_fnuz = Tensor
        i4 = Tensor
        i8 = Tensor
        i32 = Tensor
        i64 = Tensor

_LATE: Mapping[str, str] = {
    "grad": "gradients",
    "vjp": "gradients",
    "vjp_saving": "gradients",
    "workers_of": "build.dask_executor",
    "debug": "emulator.debugger.inside",
    "DeviceArray": "device.device_array",
    "empty": "device.device_array",
    "synchronize": "device.device_array",
    "to_device": "device.device_array",
    "to_host": "device.device_array",
    "Packed": "device.packed",
    "pack": "device.packed",
    "export": "exporting",
    "append_kv": "ops.append_kv",
    "attention_grad": "gradients",
    "dropout_bytes": "ops.dropout_bytes",
    "predict": "ops.predict",
    "PreparedWeight": "ops.prepare",
    "prepare": "ops.prepare",
    "profile": "emulator.profiler.session",
    "parse": "runtime.ir_text",
    "bench": "ops.bench",
    "autotune": "tune.session",
}
"""Public names whose modules are imported when they are first asked for."""


_MODULES = ("dispatch", "emulator", "testing")
"""Modules that are imported when they are first asked for: ``ck.testing.check``."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATE:
        if name.startswith("_"):  # what Python, copy and inspect ask every module for
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in import_module(f"{__name__}.dispatch").__all__:
            raise error("A142", name=name, advice=f"write ck.dispatch.{name}")
        raise error("A142", name=name, advice=advice_for(name, __all__))
    value = getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def _strategy(name: str) -> Strategy:
    """Return a strategy that measures, or looks at what is built."""
    strategy: Strategy = getattr(import_module(f"{__name__}.tune.strategies"), name)()
    return strategy


STRATEGIES |= {
    name.lower(): partial(_strategy, name) for name in ("Autotune", "Clock", "Tuned", "Tiered")
}
STRATEGIES["compiled_first"] = partial(_strategy, "CompiledFirst")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__version__ = "0.1.0"

__all__ = [
    "CkError",
    "DeviceArray",
    "Fn",
    "Op",
    "Packed",
    "PreparedWeight",
    "append_kv",
    "attention_grad",
    "autotune",
    "bench",
    "bf8",
    "bf8_fnuz",
    "bf16",
    "bool_",
    "const",
    "debug",
    "dims",
    "dropout_bytes",
    "dtype_var",
    "e8m0",
    "empty",
    "export",
    "f16",
    "f32",
    "fp4",
    "fp8",
    "fp8_fnuz",
    "fn",
    "grad",
    "i4",
    "i8",
    "i32",
    "i64",
    "inout",
    "op",
    "pack",
    "parse",
    "predict",
    "prepare",
    "profile",
    "sparse24",
    "synchronize",
    "to_device",
    "to_host",
    "using",
    "vjp",
    "vjp_saving",
    "workers_of",
    *composites.__all__,
    *_INTRINSICS,
]
