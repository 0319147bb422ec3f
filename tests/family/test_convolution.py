# SPDX-License-Identifier: MIT
"""Convolutions from a decorated function to the result: all directions and ranks, any problem."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families.gemm.key import ConvSpecial, Reduction
from cklang.runtime.op import Op
from cklang.types import DType
from tests.support.algorithms import narrow
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.coverage import Covered

N, K, C, P, G = ck.dims("N K C P G")
D, H, W, Do, Ho, Wo, Z, Y, X = ck.dims("D H W Do Ho Wo Z Y X")
T: Any = ck.dtype_var("T")


@ck.op
def forward(
    x: ck.f16[N, H, W, C],
    w: ck.f16[K, Y, X, P],
    bias: ck.f16[K],
    gate: ck.f32[N, K],
    res: ck.f16[N, Ho, Wo, K],
    stride: ck.const[int],
    before: ck.const[int],
    after: ck.const[int],
    dilation: ck.const[int],
    groups: ck.const[int],
) -> ck.f16[N, Ho, Wo, K]:
    pads = ((before, after), (after, before))
    y = ck.conv(x, w, stride=stride, padding=pads, dilation=(dilation, 1), groups=groups)
    return ck.clamp(y + bias, -4.0, 4.0) * gate[:, None, None, :] + res


@ck.op
def input_gradient(
    dy: ck.f16[N, Ho, Wo, K],
    w: ck.f16[K, Y, X, P],
    like: ck.f16[N, H, W, C],
    stride: ck.const[int],
    before: ck.const[int],
    after: ck.const[int],
    dilation: ck.const[int],
    groups: ck.const[int],
) -> ck.f16[N, H, W, C]:
    pads = ((before, after), (after, before))
    dx = ck.conv_grad_input(
        dy, w, stride=stride, padding=pads, dilation=(dilation, 1), groups=groups
    )
    return ck.where(like > 0.0, dx, 0.0)


@ck.op
def weight_gradient(
    x: ck.f16[N, H, W, C],
    dy: ck.f16[N, Ho, Wo, K],
    old: ck.f16[K, Y, X, P],
    stride: ck.const[int],
    before: ck.const[int],
    after: ck.const[int],
    dilation: ck.const[int],
    groups: ck.const[int],
) -> ck.f16[K, Y, X, P]:
    pads = ((before, after), (after, before))
    dw = ck.conv_grad_weight(
        x, dy, stride=stride, padding=pads, dilation=(dilation, 1), groups=groups
    )
    return old - 0.125 * dw


@dataclass(frozen=True, kw_only=True)
class Case:
    """A convolution in the plane; features and channels are those of one group."""

    images: int
    size: tuple[int, int]
    window: tuple[int, int]
    features: int
    channels: int
    consts: dict[str, Any]

    @property
    def dims(self) -> dict[str, int]:
        c, g = self.consts, self.consts["groups"]
        pads = c["before"] + c["after"]
        reach = ((self.window[0] - 1) * c["dilation"] + 1, self.window[1])
        out = [(s + pads - r) // c["stride"] + 1 for s, r in zip(self.size, reach, strict=True)]
        names = dict(
            zip(("H", "W", "Y", "X", "Ho", "Wo"), (*self.size, *self.window, *out), strict=True)
        )
        counts = {"N": self.images, "K": g * self.features, "C": g * self.channels}
        return names | counts | {"P": self.channels}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    consts = {
        "stride": draw(st.integers(1, 3)),
        "before": draw(st.integers(0, 2)),
        "after": draw(st.integers(0, 2)),
        "dilation": draw(st.integers(1, 3)),
        "groups": draw(st.integers(1, 4)),
    }
    window = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    pads = consts["before"] + consts["after"]
    least = (window[0] - 1) * consts["dilation"] + 1 - pads, window[1] - pads
    size = [max(1, low + draw(st.integers(0, 7))) for low in least]
    return Case(
        images=draw(st.integers(1, 3)),
        size=(size[0], size[1]),
        window=window,
        features=draw(st.integers(1, 9)),
        channels=draw(st.integers(1, 9)),
        consts=consts,
    )


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "op", [forward, input_gradient, weight_gradient], ids=lambda op: op.program.name
)
def test_any_problem_in_the_plane(op: Op, covered: Covered) -> None:
    single = op.using(narrow(len(op.program.signature.tensors) - 2))

    @given(case=cases())
    @settings(max_examples=12)
    def run(case: Case) -> None:
        check(single, drawn(op, case.dims), **case.consts)

    run()
    names = {"forward": "conv", "input_gradient": "conv_grad_input"}
    covered(f"{names.get(op.program.name, 'conv_grad_weight')} 2D", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "reduction", [Reduction.WORKSPACE, Reduction.TREE], ids=lambda each: each.value
)
def test_images_shared_by_workgroups(reduction: Reduction, covered: Covered) -> None:
    """The gradient of a weight has few tiles and long sums: several workgroups share each."""
    shared = weight_gradient.using(narrow(1, split_k=3, reduction=reduction))
    numbers = {"stride": 2, "before": 1, "after": 0, "dilation": 1}
    for groups, size in ((1, (9, 11)), (3, (4, 5))):
        case = Case(
            images=2,
            size=size,
            window=(3, 2),
            features=7,
            channels=5,
            consts=numbers | {"groups": groups},
        )
        args = drawn(weight_gradient, case.dims)
        first = check(shared, args, **case.consts)
        again = shared(*args, **case.consts, device="emu:gfx942")
        np.testing.assert_array_equal(first, again)
    covered(f"conv_grad_weight, split-K {reduction.value}", "f16", "gfx942")


@ck.op
def plain(x: T[N, H, W, C], w: T[K, 3, 3, C]) -> T[N, Ho, Wo, K]:
    return ck.conv(x, w, stride=2, padding=1)


@ck.op
def plain_input(dy: T[N, Ho, Wo, K], w: T[K, 3, 3, C], x: T[N, H, W, C]) -> T[N, H, W, C]:
    return ck.conv_grad_input(dy, w, stride=2, padding=1) + x


PLANE = {"N": 2, "H": 9, "W": 7, "Ho": 5, "Wo": 4, "C": 16, "K": 24}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "arch", "dtype"),
    [
        (plain, "gfx1100", ck.f16),
        (plain, "gfx1201", ck.bf16),
        (plain, "gfx90a", ck.f32),
        (plain_input, "gfx950", ck.bf16),
        pytest.param(plain, "gfx1100", ck.bf16, marks=pytest.mark.full),
        pytest.param(plain, "gfx1201", ck.f16, marks=pytest.mark.full),
    ],
    ids=lambda value: value.program.name if isinstance(value, Op) else str(value),
)
def test_gpus(op: Op, arch: str, dtype: DType, covered: Covered) -> None:
    """The kernel that is selected, with the widest accesses: channels are multiples of 8."""
    check(op, drawn(op, PLANE, T=dtype), arch)
    algorithm = launches(op)[0].key.algorithm
    assert algorithm.vector_a * dtype.bytes == algorithm.vector_b * dtype.bytes == 16
    name = {"plain": "conv", "plain_input": "conv_grad_input"}[op.program.name]
    covered(f"{name} 2D", dtype.name, arch)


@ck.op
def depthwise(x: ck.f16[N, H, W, C], w: ck.f16[C, 3, 3, 1]) -> ck.f16[N, Ho, Wo, C]:
    return ck.conv(x, w, stride=2, padding=1, groups=32)


@pytest.mark.usefixtures("stencils")
def test_groups_that_share_a_tile(covered: Covered) -> None:
    """Of products; a window over the image is quicker, and taken unless somebody names one."""
    problem = ck.dispatch.conv_problem((2, 9, 7, 32), (32, 3, 3, 1), groups=32, stride=2, padding=1)
    op = depthwise.using(ck.dispatch.select(problem, arch="gfx942").key.algorithm)
    check(op, drawn(op, PLANE | {"C": 32}))
    algorithm = launches(op)[0].key.algorithm
    assert algorithm.groups_merged > 1
    assert algorithm.special is ConvSpecial.DEPTHWISE
    covered("conv, depthwise", "f16", "gfx942")


@pytest.mark.usefixtures("emulator")
def test_channels_must_be_contiguous() -> None:
    """An NCHW array seen with its channels last is refused with the way to convert it."""
    x = np.moveaxis(np.zeros((2, 16, 9, 7), np.float16), 1, -1)
    with pytest.raises(CkError, match="A036") as refusal:
        plain(x, np.zeros((24, 3, 3, 16), np.float16), device="emu:gfx942")
    assert "numpy.moveaxis(x, 1, -1)" in str(refusal.value)


@pytest.mark.usefixtures("emulator")
def test_wrong_special_is_refused() -> None:
    named = plain.using(narrow(special=ConvSpecial.POINTWISE))
    with pytest.raises(CkError, match="conv-special"):
        named(*drawn(plain, PLANE, T=ck.f16), device="emu:gfx942")
