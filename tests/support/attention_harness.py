# SPDX-License-Identifier: MIT
"""Attention kernels launched directly: a key and the C of its holes, NumPy arrays in place.

The formula in float64 stands here a second time, on purpose: what tests compare with shares no code
with the library.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cklang import emulator
from cklang.build import code_object
from cklang.build.builder import shared_builder, source_of
from cklang.build.steps import identity, link_fill
from cklang.device.device import Device, open_device
from cklang.families.attention.host import (
    AppendShim,
    AttentionGradShim,
    AttentionProblem,
    AttentionShim,
    AttentionTensor,
    ReduceShim,
)
from cklang.families.attention.key import AttentionAlgorithm, AttentionKey, AttentionSignature
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.keys import AnyKey
from cklang.lowering.source import KernelSource
from cklang.testing import assert_close
from cklang.types import DType, bf16, f16
from tests.support.algorithms import ATTENTION
from tests.support.arrays import Array

Expression = Callable[..., Any]
"""Of (s, b, h, i, j) or (b, h, i, j), whose indices broadcast."""

SMALL = replace(ATTENTION, block_per_cu=2)
"""Head sizes up to 64 of f16 and bf16 on gfx942."""


def key_of(
    dtype: DType = f16, algorithm: AttentionAlgorithm = SMALL, arch: str = "gfx942", **what: Any
) -> AttentionKey:
    """Return the key of a stencil; ``what`` are fields of the signature."""
    fields: dict[str, Any] = {"dtype_o": dtype, "dtype_bias": dtype, "lse": True} | what
    return AttentionKey(AttentionSignature(dtype=dtype, **fields), algorithm, arch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A filled stencil."""

    key: AnyKey
    source: KernelSource
    code: Path
    face: Any
    """The host shim of its kind."""

    @property
    def facts(self) -> code_object.KernelFacts:
        """What the code object says of the kernel."""
        return code_object.read(self.code).kernel(self.source.kernel)


_FACES = {
    "attention": AttentionShim,
    "attention_backward": AttentionGradShim,
    "combine": AttentionShim,
    "append": AppendShim,
    "reduce": ReduceShim,
}


@cache
def filled_source(key: AnyKey, fill: str) -> KernelSource:
    """Return the source of a kernel around attention whose holes are filled with C."""
    return replace(source_of(key, NO_FUNCTIONS), fill=fill)


def build(key: AnyKey, fill: str = "") -> Built:
    """Return the kernel of ``key`` with its holes filled; stencils are kept in the cache."""
    builder, source = shared_builder(), filled_source(key, fill)
    parts = builder.stencil_of(key, source)

    def filled(folder: Path) -> Mapping[str, Any]:
        link_fill(parts.bitcode, fill, key.arch, folder, builder.toolchain)
        return {}

    tools = identity(builder.toolchain, builder.tree)
    inputs = {"source": source.stencil, "arch": key.arch, "tools": tools, "fill": fill}
    entry, _ = builder.store.get_or_build("test-filled", inputs, filled)
    face = _FACES[key.family](parts.host_shim)
    return Built(key=key, source=source, code=entry.file("kernel.hsaco"), face=face)


@cache
def _device(arch: str) -> Device:
    return open_device(f"emu:{arch}")


def run(built: Built, problem: Any) -> emulator.Stats:
    """Launch on the emulator, wait, and return what it counted.

    Raises:
        ValueError: The host shim refuses; its sentence.
    """
    shape = built.face.describe(problem)
    if isinstance(shape, str):
        raise ValueError(shape)  # noqa: TRY004 (a refusal, not a mistake in types)
    device = _device(built.key.arch)
    function = device.load(built.code.read_bytes(), built.source.kernel)
    device.launch(function, shape.grid, shape.block, shape.kernarg)(None)
    device.synchronize()
    return emulator.stats(device.index)


def tensor(array: Array) -> AttentionTensor:
    """Return an array of batch, head and sequence (and head size) as a kernel takes it."""
    strides = [stride // array.itemsize for stride in array.strides[:3]]
    strides += [0] * (3 - len(strides))
    return AttentionTensor(
        pointer=array.ctypes.data,
        stride_batch=strides[0],
        stride_head=strides[1],
        stride_seq=strides[2],
    )


def stored(values: Array, dtype: DType) -> Array:
    """Round to ``dtype``; bf16 is kept as its bits."""
    if dtype is not bf16:
        return values.astype(np.dtype(dtype.name.replace("f", "float")))
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(values: Array) -> Array:
    """Return the numbers that :func:`stored` made, in float64."""
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def reference(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    score: Expression | None = None,
    mask: Expression | None = None,
    keep: Array | None = None,
) -> tuple[Array, Array]:
    """Return (o, lse) in float64 for q [B, H, S, D], k [B, G, T, D] and v [B, G, T, Dv].

    ``keep`` [B, H, S, T] is what dropout multiplies the weights with.
    """
    o, lse, _, _ = reference_with_bound(q, k, v, scale, f16, score, mask, keep)
    return o, lse


_WEIGHT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 0.0}
"""How far a weight is rounded, relative to it: toward zero, as CK Tile does."""
_RESULT = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
"""The same of o, to nearest."""
_LEAST = {"f16": 2.0**-24, "bf16": 2.0**-126, "f32": 2.0**-126}
"""What a weight or an element of o may lose below the normal numbers."""
_UNIT = 2.0**-24


def reference_with_bound(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    dtype: DType,
    score: Expression | None = None,
    mask: Expression | None = None,
    keep: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Return what :func:`reference` does, and how far a kernel of ``dtype`` may be from o and lse.

    The sum of a score is off by gamma of its length times its magnitudes, a weight by what its
    exponent is, a row by that and the sum over the keys; weights and o are rounded once each. An
    expression may take 32 roundings of its largest operand.
    """
    shared, keys = q.shape[1] // k.shape[1], k.shape[2]
    k, v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    s = scale * (q @ k.swapaxes(2, 3))
    sums = (2 * q.shape[3] + 8) * _UNIT * abs(scale) * (abs(q) @ abs(k).swapaxes(2, 3))
    plain = abs(s)
    b, h, i, j = np.ogrid[: s.shape[0], : s.shape[1], : s.shape[2], : s.shape[3]]
    if score is not None:
        s = score(s, b, h, i, j)
    if mask is not None:
        s = np.where(mask(b, h, i, j), s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)
    weights = np.exp(s - top)
    total = weights.sum(-1, keepdims=True)
    p = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    kept = p if keep is None else p * keep
    o = kept @ v
    size = np.where(np.isfinite(s), abs(s), 0)
    off = sums + 32 * _UNIT * (1 + plain + size + abs(top))
    off = np.where(p > 0, off, 0).max(-1, keepdims=True, initial=0) + (2 * keys + 8) * _UNIT
    moved = np.expm1(2 * off) + _WEIGHT[dtype.name] + (2 * keys + 8) * _UNIT
    bound = moved * (kept @ abs(v)) + _RESULT[dtype.name] * abs(o) + _LEAST[dtype.name] * keys
    return o, lse, bound, off[..., 0] + 16 * _UNIT * (1 + abs(np.where(np.isfinite(lse), lse, 0)))


@dataclass(slots=True, kw_only=True)
class Inputs:
    """Random inputs of one problem; ``bshd`` puts sequences outside heads in memory."""

    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    seqlen_q: int = 64
    seqlen_k: int = 64
    hdim_q: int = 64
    hdim_v: int = 64
    bshd: bool = False
    seed: int = 0
    dtype: DType = f16

    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return q, k, v, and o and lse full of what no kernel may leave there."""
        rng = np.random.default_rng(self.seed)

        def random_array(heads: int, length: int, width: int) -> Array:
            shape = (self.batch, heads, length, width)
            if self.bshd:
                values = rng.uniform(-1, 1, (shape[0], length, heads, width))
                return stored(values, self.dtype).transpose(0, 2, 1, 3)
            return stored(rng.uniform(-1, 1, shape), self.dtype)

        q = random_array(self.heads, self.seqlen_q, self.hdim_q)
        k = random_array(self.kv_heads, self.seqlen_k, self.hdim_q)
        v = random_array(self.kv_heads, self.seqlen_k, self.hdim_v)
        o = random_array(self.heads, self.seqlen_q, self.hdim_v)
        o[...] = stored(np.full(1, 77.0), self.dtype)[0]
        lse = np.full((self.batch, self.heads, self.seqlen_q), 77, np.float32)
        return q, k, v, o, lse

    @property
    def scale(self) -> float:
        """What attention usually scales by."""
        return 1 / math.sqrt(self.hdim_q)

    def problem(self, arrays: tuple[Array, ...], **more: Any) -> AttentionProblem:
        """Return the problem of these arrays."""
        q, k, v, o, lse = map(tensor, arrays)
        fields: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "hdim_q", "hdim_v")
        }
        operands = {"q": q, "k": k, "v": v, "o": o, "lse": lse}
        return AttentionProblem(**({"scale": self.scale} | operands | fields | more))


def check(
    built: Built,
    inputs: Inputs,
    score: Expression | None = None,
    mask: Expression | None = None,
    **more: Any,
) -> None:
    """Launch ``built`` on ``inputs`` and compare with the formula, within its bound."""
    arrays = inputs.arrays()
    q, k, v, o, lse = arrays
    run(built, inputs.problem(arrays, **more))
    want, want_lse, bound, bound_lse = reference_with_bound(
        widened(q), widened(k), widened(v), inputs.scale, inputs.dtype, score=score, mask=mask
    )
    assert_close(widened(o), want, bound)
    assert_close(lse.astype(np.float64), want_lse, bound_lse)
