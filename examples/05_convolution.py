# SPDX-License-Identifier: MIT
"""Convolutions in one, two and three axes: forward with a fused epilogue, and both gradients.

python examples/05_convolution.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

import cklang as ck
from cklang.runtime.op import Op
from cklang.testing import report

N, C, K, P = ck.dims("N C K P")
D, H, W, Do, Ho, Wo = ck.dims("D H W Do Ho Wo")


# Channels are last. Do, Ho and Wo are names of extents that follow from the others at the call.
@ck.op
def conv1d(x: ck.f16[N, W, C], w: ck.f16[K, 3, C], bias: ck.f16[K]) -> ck.f16[N, Wo, K]:
    """Return silu(conv(x, w) + bias), with a stride of 2."""
    return ck.silu(ck.conv(x, w, stride=2, padding=1) + bias)


@ck.op
def conv2d(
    x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C], bias: ck.f16[K], res: ck.f16[N, Ho, Wo, K]
) -> ck.f16[N, Ho, Wo, K]:
    """Return clamp(conv(x, w) + bias, 0, 6) + res, with zeros after the image alone."""
    y = ck.conv(x, w, stride=2, padding=((0, 1), (0, 1)))
    return ck.clamp(y + bias, 0.0, 6.0) + res


@ck.op
def conv3d(x: ck.f16[N, D, H, W, C], w: ck.f16[K, 3, 3, 3, P]) -> ck.f16[N, D, H, W, K]:
    """Return the convolution in two groups, its taps two elements apart."""
    return ck.conv(x, w, padding=2, dilation=2, groups=2)


# A stride makes the extents of a gradient ambiguous: here another parameter has them.
@ck.op
def conv1d_input(dy: ck.f16[N, Wo, K], w: ck.f16[K, 3, C], x: ck.f16[N, W, C]) -> ck.f16[N, W, C]:
    """Return the gradient by x of conv(relu(x), w)."""
    dx = ck.conv_grad_input(dy, w, stride=2, padding=1)
    return ck.where(x > 0.0, dx, 0.0)


@ck.op
def conv2d_input(dy: ck.f16[N, Ho, Wo, K], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, H, W, C]:
    """Return the gradient by x of conv(x, w); with a stride of 1 its extents are decided."""
    return ck.conv_grad_input(dy, w, padding=1)


@ck.op
def conv3d_input(dy: ck.f16[N, Do, Ho, Wo, K], w: ck.f16[K, 3, 3, 3, C]) -> ck.f16[N, 6, 7, 8, C]:
    """Return the gradient by x of conv(x, w), x of 6 by 7 by 8 elements."""
    return ck.conv_grad_input(dy, w, stride=2, size=(6, 7, 8))


@ck.op
def conv1d_weight(x: ck.f16[N, W, C], dy: ck.f16[N, Wo, K]) -> ck.f32[K, 3, C]:
    """Return the gradient by w of conv(x, w), three taps."""
    return ck.conv_grad_weight(x, dy, stride=2, padding=1, size=(3,))


@ck.op
def conv2d_weight(
    x: ck.f16[N, H, W, C], dy: ck.f16[N, Ho, Wo, K], w: ck.f32[K, 3, 3, C], rate: ck.f32
) -> ck.f32[K, 3, 3, C]:
    """Return w after a step down its gradient."""
    return w - rate * ck.conv_grad_weight(x, dy, padding=1)


@ck.op
def conv3d_weight(x: ck.f16[N, D, H, W, C], dy: ck.f16[N, Do, Ho, Wo, K]) -> ck.f32[K, 2, 2, 2, C]:
    """Return the gradient by w of conv(x, w), 2 by 2 by 2 taps."""
    return ck.conv_grad_weight(x, dy, stride=2, size=(2, 2, 2))


def arrays(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Make f16 operands."""
    rng = np.random.default_rng(len(shapes))
    return tuple(rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)


def calls() -> Iterator[tuple[Op, tuple[object, ...]]]:
    """Yield each op with arguments."""
    yield conv1d, arrays((2, 50, 16), (32, 3, 16), (32,))
    yield conv2d, arrays((2, 14, 14, 64), (64, 3, 3, 64), (64,), (2, 7, 7, 64))
    yield conv3d, arrays((1, 5, 6, 7, 16), (16, 3, 3, 3, 8))
    yield conv1d_input, arrays((2, 25, 32), (32, 3, 16), (2, 50, 16))
    yield conv2d_input, arrays((1, 14, 14, 32), (32, 3, 3, 16))
    yield conv3d_input, arrays((1, 2, 3, 3, 32), (32, 3, 3, 3, 16))
    yield conv1d_weight, arrays((2, 50, 16), (2, 25, 32))
    x, dy, w = arrays((1, 14, 14, 16), (1, 14, 14, 32), (32, 3, 3, 16))
    yield conv2d_weight, (x, dy, w.astype(np.float32), 0.25)
    yield conv3d_weight, arrays((2, 4, 6, 8, 16), (2, 2, 3, 4, 32))


def with_registry(args: tuple[object, ...]) -> None:
    """Declare kernels of conv2d, build them side by side, export, select and call."""
    mine = ck.dispatch.Registry("convolutions")
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
    widths = {"vector_a": 8, "vector_b": 8, "vector_e": 8, "vector_d": (8, 8)}
    conv2d.declare(
        *args, registry=mine, device="emu:gfx942", among=ck.dispatch.pattern(**tile, **widths)
    )
    again = ck.dispatch.Registry.from_json(json.loads(json.dumps(mine.to_json())))
    print(again.build())
    with ck.using(registry=again, arch="gfx942", strategy="first_fit"):
        (problem,) = conv2d.problems(*args)
        chosen = ck.dispatch.select(problem)
        print(f"{problem}: {chosen}")
        conv2d(*args)
        assert conv2d.last is not None
        assert conv2d.last.launches[0].key == chosen.key


def main() -> None:
    """Run every op and check it against the reference."""
    for op, args in calls():
        y = op(*args)
        result = report(op, args, y)
        assert op.last is not None
        print(f"== {op.program.name}: {op.last.launches[0].problem}")
        print(result)
        result.check()
    args = next(args for op, args in calls() if op is conv2d)
    print(conv2d.explain(*args))
    with_registry(args)

    # A problem needs no arrays: what would run for a larger image on another GPU?
    problem = ck.dispatch.conv_problem((8, 56, 56, 64), (64, 3, 3, 64), padding=1, dtype=ck.bf16)
    print(ck.dispatch.select(problem, arch="gfx950"))


if __name__ == "__main__":
    main()
