# SPDX-License-Identifier: MIT
"""A convolution as what its host shim is asked."""

from collections.abc import Sequence

from cklang.families.conv.host import ConvRequest
from cklang.families.conv.problem import ConvProblem
from cklang.ir.windows import Role


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
