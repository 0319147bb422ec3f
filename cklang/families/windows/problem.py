# SPDX-License-Identifier: MIT
"""One launch of a window over images as numbers, and the convolutions that are one.

A gradient of an input at stride 1 is the convolution of the other gradient by the weights in the
opposite order; their strides are negative here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

from cklang.errors import CkError
from cklang.families.conv.host import ConvRequest
from cklang.families.conv.plan import FEW_CHANNELS, FusedConv
from cklang.families.conv.problem import (
    Axes,
    ConvExtents,
    ConvProblem,
    ConvRead,
    ConvTensor,
    conv_problem_of,
)
from cklang.families.gemm.key import DKind, ProductKind
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.families.windows.fuse import FusedPool
from cklang.families.windows.key import Space, Windowed, WindowOperand, WindowSignature
from cklang.ir.pooling import AVG_POOL, MAX_POOL, Windows, windows_of
from cklang.ir.windows import Role

_ONES = (1, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProblem:
    """A window over images: extents, and where each tensor lies."""

    how: Windowed
    extents: ConvExtents
    a: ConvTensor
    b: ConvTensor | None
    """The weights, if there are some."""
    e: ConvTensor
    d: tuple[ConvRead, ...]
    functions: str

    @property
    def inputs(self) -> tuple[ConvTensor, ...]:
        """All tensors, in the order of their pointers."""
        return (self.a, *([self.b] if self.b else []), self.e, *self.d)

    @property
    def neighbours(self) -> bool:
        """Whether channels are contiguous, and so what neighbouring threads have."""
        x = self.extents
        steps = [tensor.strides[5] or tensor.strides[4] for tensor in (self.a, self.e)]
        return x.groups * x.channels * x.features > 1 and all(step < 2 for step in steps)

    @property
    def contiguous(self) -> bool:
        """Whether channels or pixels along x are contiguous in image and result."""
        return self.neighbours or all(tensor.strides[3] < 2 for tensor in (self.a, self.e))

    @property
    def signature(self) -> WindowSignature:
        """The signature of the kernels that can compute it."""
        x = self.extents
        return WindowSignature(
            how=self.how,
            dtype_a=self.a.dtype,
            dtype_b=self.b.dtype if self.b else self.a.dtype,
            dtype_e=self.e.dtype,
            window=x.window,
            stride=x.stride,
            dilation=x.dilation,
            channels=x.channels,
            features=x.features,
            neighbours=self.neighbours,
            d=tuple(_operand(read) for read in self.d),
            functions=self.functions,
        )

    @property
    def pixels(self) -> int:
        """The pixels of all channels of the result."""
        return math.prod(self.extents.extents(Role.OUTPUT))

    @property
    def bytes(self) -> int:
        """What is read and written at least."""
        x = self.extents
        read = math.prod(x.extents(Role.INPUT)) * self.a.dtype.bytes
        weights = math.prod(x.extents(Role.WEIGHT)) * self.b.dtype.bytes if self.b else 0
        others = sum(read.span * read.dtype.bytes for read in self.d)
        return read + weights + others + self.pixels * self.e.dtype.bytes

    def request(self, addresses: Sequence[int]) -> ConvRequest:
        """Return what the host shim is asked, for the addresses of :attr:`inputs`."""
        x = self.extents
        a, *rest = addresses[: len(self.inputs)]
        b = rest.pop(0) if self.b else 0
        e, *d = rest
        return ConvRequest(
            n=x.images,
            g=x.groups,
            k=x.features,
            c=x.channels,
            in_=x.input,
            out=x.output,
            window=x.window,
            stride=x.stride,
            dilation=x.dilation,
            pad_before=x.before,
            a=a,
            b=b,
            e=e,
            input_strides=self.a.strides,
            weight_strides=self.b.strides if self.b else (0,) * 6,
            output_strides=self.e.strides,
            d=tuple(d),
            d_strides=tuple(read.strides for read in self.d),
        )

    def __str__(self) -> str:
        x = self.extents
        space, window = ("x".join(map(str, e[3 - x.spatial :])) for e in (x.input, x.window))
        count = f"{x.groups * x.channels} channels of {x.images} images {space}"
        return f"{self.how.value} of windows {window} in {count}"


def _operand(read: ConvRead) -> WindowOperand:
    *pixels, group, feature = read.strides
    return WindowOperand(
        dtype=read.dtype, contiguous=(feature or group) == 1, common=not any(pixels[1:])
    )


def as_window(
    kernel: FusedConv, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> WindowProblem | None:
    """Return a convolution as a window over its image; None if it is none, or a large product."""
    if kernel.operation.op == "conv_grad_weight":
        return None
    try:
        p = conv_problem_of(kernel, layouts, dims, kernel.functions.digest, anywhere=True)
    except CkError:  # its product says what is wrong
        return None
    if p is None or (p.kind is not ProductKind.CONV and p.stride != _ONES):
        return None
    window = _window(p) if p.kind is ProductKind.CONV else _turned(p)
    return window if window.extents.channels <= FEW_CHANNELS else None


def _window(p: ConvProblem) -> WindowProblem:
    return WindowProblem(
        how=Windowed.PRODUCTS,
        extents=ConvExtents(**{f.name: getattr(p, f.name) for f in fields(ConvExtents)}),
        a=p.a,
        b=p.b,
        e=p.e,
        d=p.d,
        functions=p.functions,
    )


def _turned(p: ConvProblem) -> WindowProblem:
    """Return the gradient of an input as a convolution of the output's."""
    plain = _window(p)
    group, feature, z, y, x, channel = p.b.strides
    reach = [d * (w - 1) for d, w in zip(p.dilation, p.window, strict=True)]
    bz, by, bx = (r - b for r, b in zip(reach, p.before, strict=True))
    return replace(
        plain,
        extents=replace(
            plain.extents,
            features=p.channels,
            channels=p.features,
            input=p.output,
            output=p.input,
            before=(bz, by, bx),
            after=(bz, by, bx),
        ),
        b=replace(p.b, strides=(group, channel, -z, -y, -x, feature)),
    )


# --- pooling


def of_pool(
    kernel: FusedPool, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> WindowProblem | None:
    """Return the problem of a pooling, or None if its result has no element.

    Raises:
        CkValueError: A035, elements of the result overlap.
    """
    operation, name = kernel.operation, kernel.result.name
    refuse_overlap(layouts[name])
    shape = (*operation.operands[0].type.extents(dims), 1)
    extents = (*operation.result.type.extents(dims), 1)
    if 0 in extents:
        return None
    windows, source = windows_of(operation), kernel.a.value.name
    order = _axes_of(windows, shape[:-1], _along(layouts[source], kernel.a.perm))
    tensor = partial(_tensor, order, layouts)
    reads = (tensor(read.value.name, read.axes, extents) for read in kernel.reads)
    missing, pads = 3 - len(windows), [own.before for own in windows]
    return WindowProblem(
        how=_HOW[operation.op, dict(operation.attrs).get("padding", 0) == 1],
        extents=ConvExtents(
            spatial=len(windows),
            images=shape[order[0]],
            groups=shape[order[4]],
            features=1,
            channels=1,
            input=_three([shape[own.axis] for own in windows], missing),
            output=_three([extents[own.axis] for own in windows], missing),
            window=_three([own.size for own in windows], missing),
            stride=_three([own.step for own in windows], missing),
            dilation=_three([own.dilation for own in windows], missing),
            before=_three(pads, missing, 0),
            after=_three(pads, missing, 0),
        ),
        a=tensor(source, kernel.a.perm, shape),
        b=None,
        e=tensor(name, kernel.axes, extents),
        d=tuple(reads),
        functions=kernel.functions.digest,
    )


def _tensor(
    order: Sequence[int],
    layouts: Mapping[str, TensorLayout],
    name: str,
    axes: Sequence[int | None],
    extents: Sequence[int],
) -> ConvRead:
    """Return what is read or written along axes; ``order`` has those of n, z, y, x and g."""
    layout = layouts[name]
    along = (*_along(layout, axes), 0)
    return ConvRead(
        value=name,
        dtype=layout.dtype,
        alignment=layout.alignment,
        strides=_six([*(along[axis] for axis in order), 0]),
        span=1 + sum((n - 1) * step for n, step in zip(extents, along, strict=True)),
        kind=DKind.STRIDED,
    )


_HOW = {
    (MAX_POOL, False): Windowed.LARGEST,
    (AVG_POOL, True): Windowed.MEAN,
    (AVG_POOL, False): Windowed.INSIDE,
}


def _along(layout: TensorLayout, axes: Sequence[int | None]) -> list[int]:
    """Return the stride along each axis of a kernel; an axis of extent 1 takes no step."""
    return [0 if a is None or layout.shape[a] == 1 else layout.strides[a] for a in axes]


def _axes_of(
    windows: Sequence[Windows], shape: Sequence[int], steps: Sequence[int]
) -> tuple[int, ...]:
    """Return which axis is n, z, y, x and g; one that there is not is that behind the last.

    Channels are nearer in memory than images.
    """
    space = [own.axis for own in windows]
    none = len(steps)
    rest = (axis for axis in range(none) if axis not in space)
    beside = sorted(rest, key=lambda axis: (shape[axis] > 1, -steps[axis]))
    image, group = (none, *beside)[-2:] if beside else (none, none)
    return (image, *(none,) * (3 - len(space)), *space, group)


def _three(numbers: Sequence[int], missing: int, usual: int = 1) -> Space:
    z, y, x = (*(usual,) * missing, *numbers)
    return z, y, x


def _six(strides: Sequence[int]) -> Axes:
    first, second, third, fourth, fifth, sixth = strides
    return first, second, third, fourth, fifth, sixth
