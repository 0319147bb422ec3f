# SPDX-License-Identifier: MIT
"""Convolution kernels run through their host shim, and what they must give, in NumPy."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from cklang.build.builder import shared_builder
from cklang.device.device import Device, Function, open_device
from cklang.families.conv.host import Axes, ConvRequest, ConvShim
from cklang.families.gemm.key import (
    Algorithm,
    DKind,
    DOperand,
    GemmKey,
    Layout,
    ProductKind,
    Signature,
)
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse
from cklang.types import DType, f16, f32, i8, i32
from tests.support.algorithms import NARROW

PLAIN = "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}\n"
LAYOUTS = {
    ProductKind.CONV: "rcr",
    ProductKind.CONV_GRAD_INPUT: "rrr",
    ProductKind.CONV_GRAD_WEIGHT: "crr",
}


Index = tuple[Any, ...]
"""Of an array: numbers and slices."""


@dataclass(frozen=True)
class Conv:
    """A convolution; tuples have an entry for each axis in space, ``k`` and ``c`` are per group."""

    n: int
    g: int
    k: int
    c: int
    size: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("stride", 1), ("dilation", 1), ("before", 0), ("after", 0)):
            if not getattr(self, name):
                object.__setattr__(self, name, (value,) * len(self.size))

    @property
    def out(self) -> tuple[int, ...]:
        axes = zip(
            self.size, self.before, self.after, self.dilation, self.window, self.stride, strict=True
        )
        return tuple((x + b + a - d * (w - 1) - 1) // s + 1 for x, b, a, d, w, s in axes)

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.n, *self.size, self.g, self.c)

    @property
    def w_shape(self) -> tuple[int, ...]:
        return (self.g, self.k, *self.window, self.c)

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (self.n, *self.out, self.g, self.k)

    def taps(self) -> Iterator[tuple[Index, Index]]:
        """Each tap in the weights, and the places of the padded input that it reads."""
        for tap in itertools.product(*map(range, self.window)):
            axes = zip(tap, self.dilation, self.stride, self.out, strict=True)
            places = (slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, s, o in axes)
            yield (slice(None), slice(None), *tap), (slice(None), *places)

    def padded(self, x: np.ndarray) -> np.ndarray:
        pads = [(0, 0), *zip(self.before, self.after, strict=True), (0, 0), (0, 0)]
        return np.pad(x.astype(np.float64), pads)

    def forward(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded, y = self.padded(x), np.zeros(self.y_shape)
        for tap, places in self.taps():
            weights = w[tap].astype(np.float64)
            y += np.einsum("n...gc,gkc->n...gk", padded[places], weights)
        return y

    def grad_input(self, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded = self.padded(np.zeros(self.x_shape))
        for tap, places in self.taps():
            weights = w[tap].astype(np.float64)
            part = np.einsum("n...gk,gkc->n...gc", dy.astype(np.float64), weights)
            padded[places] += part
        sizes = zip(self.before, self.size, strict=True)
        inside: Index = (slice(None), *(slice(b, b + x) for b, x in sizes))
        return padded[inside]

    def grad_weight(self, dy: np.ndarray, x: np.ndarray) -> np.ndarray:
        padded, dw = self.padded(x), np.zeros(self.w_shape)
        rows = dy.astype(np.float64).reshape(-1, self.g, self.k)
        for tap, places in self.taps():
            under = padded[places].reshape(-1, self.g, self.c)
            dw[tap] = np.einsum("pgk,pgc->gkc", rows, under)
        return dw


@dataclass(frozen=True)
class Kernel:
    """A convolution kernel on an emulated GPU."""

    key: GemmKey
    device: Device
    function: Function
    face: ConvShim

    def ask(self, conv: Conv, arrays: tuple[np.ndarray, ...], **more: Any) -> ConvRequest:
        """The question for arrays A, B, E and each D, whose strides they have."""
        a, b, e, *ds = arrays
        kind = self.key.signature.kind
        tensors = {
            ProductKind.CONV: (a, b, e),
            ProductKind.CONV_GRAD_INPUT: (e, b, a),
            ProductKind.CONV_GRAD_WEIGHT: (b, e, a),
        }[kind]
        x, w, y = tensors
        weight = kind is ProductKind.CONV_GRAD_WEIGHT
        question = ConvRequest(
            n=conv.n,
            g=conv.g,
            k=conv.k,
            c=conv.c,
            in_=_space(conv.size),
            out=_space(conv.out),
            window=_space(conv.window),
            stride=_space(conv.stride),
            dilation=_space(conv.dilation),
            pad_before=_space(conv.before, 0),
            pad_after=_space(conv.after, 0),
            a=a.ctypes.data,
            b=b.ctypes.data,
            e=e.ctypes.data,
            input_strides=_strides(x, 1),
            weight_strides=_strides(w, 2),
            output_strides=_strides(y, 1),
            d=tuple(d.ctypes.data for d in ds),
            d_strides=tuple(_strides(d, 2 if weight else 1) for d in ds),
            split_k=self.key.algorithm.split_k,
            blocks=4,
        )
        return replace(question, **more)

    def run(self, conv: Conv, *arrays: np.ndarray, **more: int) -> np.ndarray:
        """Launch on A, B and each D; return E, made of elements that the kernel must overwrite.

        ``more`` are further fields of the question.
        """
        shape = {
            ProductKind.CONV: conv.y_shape,
            ProductKind.CONV_GRAD_INPUT: conv.x_shape,
            ProductKind.CONV_GRAD_WEIGHT: conv.w_shape,
        }[self.key.signature.kind]
        e = np.full(shape, np.nan, self.key.signature.dtype_e.numpy)
        a, b, *ds = arrays
        question = self.ask(conv, (a, b, e, *ds), **more)
        launch = self.face.describe(question)
        assert not isinstance(launch, str), launch
        space = np.full(max(launch.workspace_bytes, 1), 0xFF, np.uint8)
        space[: launch.zeroed_bytes] = 0
        launch = self.face.describe(replace(question, workspace=space.ctypes.data))
        assert not isinstance(launch, str), launch
        self.device.activate()
        self.device.launch(self.function, launch.grid, launch.block, launch.kernarg)(None)
        self.device.synchronize()
        return e


@cache
def key_of(
    kind: ProductKind,
    spatial: int,
    *,
    arch: str = "gfx942",
    dtype: DType = f16,
    algorithm: Algorithm = NARROW,
    d: tuple[tuple[DType, str, int], ...] = (),
) -> GemmKey:
    """Return the key of a kernel; ``d`` has the type, kind and vector width of each operand."""
    layouts = LAYOUTS[kind]
    signature = Signature(
        kind=kind,
        dtype_a=dtype,
        dtype_b=dtype,
        dtype_acc=i32 if dtype is i8 else f32,
        dtype_e=i32 if dtype is i8 else f32 if dtype.bits == 8 else dtype,
        layout_a=Layout(layouts[0]),
        layout_b=Layout(layouts[1]),
        d=tuple(DOperand(dtype=t, kind=DKind(kind)) for t, kind, _ in d),
        spatial=spatial,
    )
    vectors = tuple(vector for *_, vector in d)
    return GemmKey(signature, replace(algorithm, vector_d=vectors), arch)


def kernel(kind: ProductKind, spatial: int, *, epilogue: str = PLAIN, **more: Any) -> Kernel:
    """Build and load a kernel of the key that :func:`key_of` returns."""
    key = key_of(kind, spatial, **more)
    text = epilogue.replace("f32", "i32") if key.signature.dtype_a is i8 else epilogue
    artifact = shared_builder().build_all([(key, Functions(epilogue=parse(text).functions[0]))])[0]
    device = open_device(f"emu:{key.arch}")
    function = device.load(artifact.code_object.read_bytes(), artifact.symbol)
    return Kernel(key, device, function, ConvShim(artifact.host_shim))


def _space(values: tuple[int, ...], missing: int = 1) -> tuple[int, int, int]:
    first, second, third = (missing,) * (3 - len(values)) + values
    return first, second, third


def _strides(array: np.ndarray, axes: int) -> Axes:
    """In elements, with the missing axes in space after the first ``axes``."""
    strides = [stride // array.itemsize for stride in array.strides]
    a, b, c, d, e, f = (*strides[:axes], *([0] * (6 - len(strides))), *strides[axes:])
    return a, b, c, d, e, f
