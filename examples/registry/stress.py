# SPDX-License-Identifier: MIT
"""48 kernels of a registry (tiles x pipelines x epilogues), each alone on random data of its own.

python examples/registry/stress.py --kernels 48
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Pipeline, Reduction
from cklang.testing import report

M, N, K = ck.dims("M N K")
ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "hardswish")


@ck.op
def layer(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N], act: ck.const[str]
) -> ck.f16[M, N]:
    """Return act(x @ w.T + bias) + res."""
    y = x @ w.T + bias
    if act == "relu":
        return ck.relu(y) + res
    if act == "gelu":
        return ck.gelu(y) + res
    if act == "silu":
        return ck.silu(y) + res
    if act == "tanh":
        return ck.tanh(y) + res
    return (ck.sigmoid(y) if act == "sigmoid" else ck.hardswish(y)) + res


WIDE = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 32),
    vector_a=8,
    vector_b=8,
    vector_e=8,
    vector_d=(8, 8),
)
NARROW = replace(WIDE, vector_a=1, vector_b=1, vector_e=1, vector_d=(1, 1))
STREAM = replace(NARROW, warp_tile=(16, 16, 16), stream_k=True, reduction=Reduction.WORKSPACE)
PAIRS = replace(WIDE, vector_e=2, vector_d=(2, 2))
COMPV5 = replace(
    WIDE, warps=(1, 1, 2), warp_tile=(16, 16, 16), pipeline=Pipeline.COMPV5, num_wave_groups=2
)
ALGORITHMS = {
    "64x64x32": WIDE,
    "64x64x32, single elements": NARROW,
    "64x64x32, short warp tile": replace(WIDE, warp_tile=(16, 16, 16)),
    "64x64x32, stream-K": STREAM,
    "32x32x64": replace(PAIRS, tile=(32, 32, 64)),
    "16x64x128": replace(PAIRS, tile=(16, 64, 128), warps=(1, 4, 1)),
    "64x16x128": replace(PAIRS, tile=(64, 16, 128), warps=(4, 1, 1)),
    "32x32x32, compv5": replace(COMPV5, tile=(32, 32, 32)),
}
SHAPES = (72, 136), (80, 136), (80,), (72, 80)


def main() -> None:
    """Declare all, build them together, then run one after the other and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=48)
    count, rng, mine = (
        parser.parse_args().kernels,
        np.random.default_rng(0),
        ck.dispatch.Registry("stress"),
    )
    cases = [(name, act) for name in ALGORITHMS for act in ACTIVATIONS][:count]
    empty = [np.zeros(shape, np.float16) for shape in SHAPES]
    for name, act in cases:
        algorithm = ALGORITHMS[name]
        one = ck.dispatch.pattern(
            **{each.name: getattr(algorithm, each.name) for each in fields(algorithm)}
        )
        layer.declare(*empty, act=act, registry=mine, device="emu:gfx942", among=one)
    assert len(mine) == len(cases)
    summary = mine.build()
    assert not summary.failures, summary
    print(f"{summary}\n  #  kernel                     epilogue   error / bound")
    for number, (name, act) in enumerate(cases, 1):
        args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in SHAPES]
        op = layer.using(ALGORITHMS[name])
        y = op(*args, act=act, device="emu:gfx942")
        assert op.last is not None
        assert [launch.key in mine for launch in op.last.launches] == [True]
        result = report(op, args, y, act=act)
        verdict = "PASS" if result.passed else "FAIL"
        print(f"{number:3}  {name:25}  {act:9}  {result.ratio:13.2f}  {verdict}")
        result.check()
    print(f"{len(cases)} of {len(cases)} kernels: PASS")


if __name__ == "__main__":
    main()
