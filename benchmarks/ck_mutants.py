# SPDX-License-Identifier: MIT
"""Kernels of cklang for ``sanitizer_study.py``: those that small ops launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from programs import half

import cklang as ck
from cklang import emulator, knobs
from cklang.device import module_cache
from cklang.device.device import Device, open_device
from cklang.errors import CkError

M, N, K, B, H, S, D = ck.dims("M N K B H S D")


def _product(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


def _plain(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


def _residual(x: ck.f16[M, K], w: ck.f16[N, K], rest: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T) + rest


def _gate(x: ck.f16[M, K], w: ck.f16[N, K], rest: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.silu(x @ w.T) * rest


def _scaled(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return (x @ w.T) * 0.5 + bias


def _attention(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v)


def _causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal())


def _norm(x: ck.f16[M, N], gain: ck.f16[N], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.layer_norm(x, gain, bias).to(ck.f16)


def _rms(x: ck.f16[M, N], gain: ck.f16[N]) -> ck.f16[M, N]:
    return ck.rms_norm(x, gain).to(ck.f16)


def _softmax(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.softmax(x).to(ck.f16)


def _sum(x: ck.f16[M, N]) -> ck.f32[M]:
    return ck.sum(x, -1)


def _maximum(x: ck.f16[M, N]) -> ck.f32[M]:
    return ck.max(ck.abs(x), -1)


def _chain(x: ck.f16[M, N], y: ck.f16[M, N]) -> ck.f16[M, N]:
    return (ck.exp(x) * y + ck.sigmoid(y)).to(ck.f16)


def _columns(x: ck.f16[M, N]) -> ck.f32[N]:
    return ck.sum(x, 0)


def _cumsum(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.cumsum(x, -1).to(ck.f16)


def _added_norm(x: ck.f16[M, N], y: ck.f16[M, N], gain: ck.f16[N]) -> ck.f16[M, N]:
    return ck.rms_norm(x + y, gain).to(ck.f16)


def _log_softmax(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.log_softmax(x).to(ck.f16)


def _log_sum(x: ck.f16[M, N]) -> ck.f32[M]:
    return ck.logsumexp(x, -1)


def _where_largest(x: ck.f16[M, N]) -> ck.i32[M]:
    return ck.argmax(x, -1)


def _variance(x: ck.f16[M, N]) -> ck.f32[M]:
    return ck.var(x, -1)


def _sorted(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.sort(x)


def _product_of_rows(x: ck.f16[M, N]) -> ck.f32[M]:
    return ck.prod(1 + x / 64, -1)


def _single_norm(x: ck.f32[M, N], gain: ck.f32[N]) -> ck.f32[M, N]:
    return ck.rms_norm(x, gain)


def _single_softmax(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.softmax(x)


def _gated_rows(x: ck.f16[M, N], y: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.silu(x) * y


def _shares_of_columns(x: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.softmax(x, 0).to(ck.f16)


@dataclass(frozen=True, slots=True, kw_only=True)
class CkOp:
    """A function of which an op is made anew for each run, and the shapes of its arguments."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: type = np.float16

    def arguments(self, gpu: str) -> list[Any]:
        """The same numbers each time, in memory of the device: mutants may write anywhere."""
        rng = np.random.default_rng(7)
        arrays = [half(rng, *shape).astype(self.dtype) for shape in self.shapes]
        return [ck.to_device(array, device=f"emu:{gpu}") for array in arrays]

    def call(self, gpu: str) -> Any:
        """Run it on a GPU with nothing loaded before."""
        module_cache._functions.clear()
        with knobs.scope(CKLANG_DEVICE=f"emu:{gpu}"):
            return ck.to_host(ck.op(self.function)(*self.arguments(gpu)))

    def codes(self, gpu: str) -> list[bytes]:
        """The code objects that it loads."""
        loaded: list[bytes] = []

        def record(code: bytes) -> bytes:
            loaded.append(code)
            return code

        with loading(record):
            self.call(gpu)
        return loaded


_PRODUCT, _ROWS = ((160, 96), (144, 96)), (40, 1024)

OPS = {
    "product": CkOp(function=_product, shapes=(*_PRODUCT, (144,))),
    "plain product": CkOp(function=_plain, shapes=_PRODUCT),
    "product and residual": CkOp(function=_residual, shapes=(*_PRODUCT, (160, 144))),
    "gated product": CkOp(function=_gate, shapes=(*_PRODUCT, (160, 144))),
    "scaled product": CkOp(function=_scaled, shapes=(*_PRODUCT, (144,))),
    "attention": CkOp(function=_attention, shapes=((1, 2, 160, 64),) * 3),
    "causal attention": CkOp(function=_causal, shapes=((1, 2, 160, 64),) * 3),
    "norm": CkOp(function=_norm, shapes=(_ROWS, (1024,), (1024,))),
    "root mean square": CkOp(function=_rms, shapes=(_ROWS, (1024,))),
    "softmax": CkOp(function=_softmax, shapes=(_ROWS,)),
    "sum": CkOp(function=_sum, shapes=(_ROWS,)),
    "maximum": CkOp(function=_maximum, shapes=(_ROWS,)),
    "pointwise": CkOp(function=_chain, shapes=(_ROWS, _ROWS)),
    "sum of columns": CkOp(function=_columns, shapes=(_ROWS,)),
    "cumulative sum": CkOp(function=_cumsum, shapes=(_ROWS,)),
    "logarithmic softmax": CkOp(function=_log_softmax, shapes=(_ROWS,)),
    "logarithm of a sum": CkOp(function=_log_sum, shapes=(_ROWS,)),
    "place of the maximum": CkOp(function=_where_largest, shapes=(_ROWS,)),
    "variance": CkOp(function=_variance, shapes=(_ROWS,)),
    "sort": CkOp(function=_sorted, shapes=(_ROWS,)),
    "product of rows": CkOp(function=_product_of_rows, shapes=(_ROWS,)),
    "norm of f32": CkOp(function=_single_norm, shapes=(_ROWS, (1024,)), dtype=np.float32),
    "softmax of f32": CkOp(function=_single_softmax, shapes=(_ROWS,), dtype=np.float32),
    "gated rows": CkOp(function=_gated_rows, shapes=(_ROWS, _ROWS)),
    "softmax of columns": CkOp(function=_shares_of_columns, shapes=(_ROWS,)),
    "norm of a sum": CkOp(function=_added_norm, shapes=(_ROWS, _ROWS, (1024,))),
}


@contextmanager
def loading(change: Callable[[bytes], bytes]) -> Iterator[None]:
    """Let devices load what ``change`` makes of each code object."""
    original = Device.load

    def load(device: Device, code: bytes, symbol: str) -> Any:
        return original(device, change(code), symbol)

    Device.load = load  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Device.load = original  # type: ignore[method-assign]


def run_op(op: CkOp, gpu: str, code: bytes) -> Callable[[bytes], str]:
    """Return what runs the op with other code in the place of ``code`` and compares its result."""
    expected = op.call(gpu)

    def run(changed: bytes) -> str:
        try:
            with loading(lambda loaded: changed if loaded == code else loaded):
                result = op.call(gpu)
        except CkError as problem:
            device = open_device(f"emu:{gpu}")
            text = emulator.fault(device.index) or str(problem)
            device.activate()
            emulator.load().hipDeviceReset()
            return text
        return "" if np.array_equal(result, expected, equal_nan=True) else "another result"

    return run
