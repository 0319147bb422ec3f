# SPDX-License-Identifier: MIT
"""The host shim of a convolution kernel from Python: what ``hostface`` is for products.

The C side is ``include/cklang/conv_host.h``; the struct layout here mirrors it.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.device.host_shim import HostShim
from cklang.families.conv.problem import ConvProblem
from cklang.families.gemm.host import MAX_OPERANDS
from cklang.ir.windows import Role
from cklang.widths import BUFFER_BYTES

VERSION = 2
"""CK_CONV_HOST_VERSION."""

Space = tuple[int, int, int]
"""One number for each axis z, y and x."""
Axes = tuple[int, int, int, int, int, int]
"""One number for each axis of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvRequest:
    """One problem for one kernel. Convolutions of lower rank use the last axes in space.

    Strides count elements; those of axes of extent 1 are ignored. The last axis of each tensor is
    contiguous.
    """

    n: int
    """Images."""
    g: int
    """Groups."""
    k: int
    """Features of a group."""
    c: int
    """Channels of a group."""
    in_: Space
    out: Space
    window: Space
    stride: Space = (1, 1, 1)
    dilation: Space = (1, 1, 1)
    pad_before: Space = (0, 0, 0)
    pad_after: Space = (0, 0, 0)
    a: int
    """Address: forward, of the input; of gradients, that of the output's."""
    b: int
    """Address: of the weights, or the input for the gradient of the weights."""
    e: int
    workspace: int = 0
    input_strides: Axes
    """Strides of the input or its gradient: n, z, y, x, g, c."""
    weight_strides: Axes
    """Strides of the weights or their gradient: g, k, z, y, x, c."""
    output_strides: Axes
    """Strides of the output or its gradient: n, z, y, x, g, k."""
    d: tuple[int, ...] = ()
    """Addresses of the epilogue operands."""
    d_strides: tuple[Axes, ...] = ()
    """Along the axes of the result; 0 where an operand broadcasts."""
    split_k: int = 1
    blocks: int = 1
    """Workgroups that the GPU runs at once."""
    most_bytes: int = BUFFER_BYTES
    """Bytes that a tensor of one product may span, up to 2^31. Larger batches and images are cut
    into pieces, each a product."""


_EXTENTS = ("n", "g", "k", "c")
_MEMORY = ("a", "b", "e", "workspace")
_LIMITS = ("split_k", "blocks", "most_bytes")
_SPACES = ("in", "out", "window", "stride", "dilation", "pad_before", "pad_after")
_STRIDES = ("input_strides", "weight_strides", "output_strides")


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in _EXTENTS),
        *((name, ctypes.c_int64 * 3) for name in _SPACES),
        *((name, ctypes.c_void_p) for name in _MEMORY),
        *((name, ctypes.c_int64 * 6) for name in _STRIDES),
        ("d", ctypes.c_void_p * MAX_OPERANDS),
        ("d_strides", ctypes.c_int64 * 6 * MAX_OPERANDS),
        *((name, ctypes.c_int64) for name in _LIMITS),
    )


def _to_c(request: ConvRequest) -> _Problem:
    q = request
    c_problem = _Problem(**{name: getattr(q, name) for name in (*_EXTENTS, *_MEMORY, *_LIMITS)})
    for name in _SPACES:
        getattr(c_problem, name)[:] = getattr(q, "in_" if name == "in" else name)
    for name in _STRIDES:
        getattr(c_problem, name)[:] = getattr(q, name)
    for i, (address, strides) in enumerate(zip(q.d, q.d_strides, strict=True)):
        c_problem.d[i] = address
        c_problem.d_strides[i][:] = strides
    return c_problem


class ConvShim(HostShim[ConvRequest]):
    """A loaded ``host.so`` of a convolution kernel."""

    symbol = "ck_conv_describe"
    version_symbol = "ck_conv_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)


def request_of(problem: ConvProblem, addresses: Sequence[int]) -> ConvRequest:
    """Return what the host shim is asked of a problem, for the addresses of its inputs."""
    p = problem
    a, b, e, *ds = addresses
    return ConvRequest(
        n=p.images,
        g=p.groups,
        k=p.features,
        c=p.channels,
        in_=p.input,
        out=p.output,
        window=p.window,
        stride=p.stride,
        dilation=p.dilation,
        pad_before=p.before,
        pad_after=p.after,
        a=a,
        b=b,
        e=e,
        input_strides=p.tensors[Role.INPUT].strides,
        weight_strides=p.tensors[Role.WEIGHT].strides,
        output_strides=p.tensors[Role.OUTPUT].strides,
        d=tuple(ds),
        d_strides=tuple(d.strides for d in p.d),
    )
