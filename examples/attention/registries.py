# SPDX-License-Identifier: MIT
"""Attention kernels declared, stored as JSON, built, and each launched alone on random data.

python examples/attention/registries.py
"""

from __future__ import annotations

import json

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def plain(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """See all keys."""
    return ck.attention(q, k, v)


@ck.op
def causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """See earlier keys."""
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"))


@ck.op
def window(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """See the 16 keys before."""
    return ck.attention(q, k, v, mask=ck.sliding_window(16, 0))


GPU, OPS = "gfx942", (plain, causal, window)


def main() -> None:
    """Two registries: one for all ops, one for the plain one alone."""
    rng = np.random.default_rng(0)
    shapes = (1, 2, 70, 64), (1, 2, 90, 64), (1, 2, 90, 64)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    among = ck.dispatch.attention_pattern(
        tile=(128, 64, 32, 64, 32, 64), pipeline="qr_async", vector=8, block_per_cu=2
    )
    every, one = ck.dispatch.Registry("every"), ck.dispatch.Registry("one")
    for op in OPS:
        op.declare(*args, registry=every, device=f"emu:{GPU}", among=among)
    plain.declare(*args, registry=one, device=f"emu:{GPU}", among=among)
    again = ck.dispatch.Registry.from_json(json.loads(json.dumps(every.to_json())))
    assert again.same_as(every)
    summary = again.build()
    assert not summary.failures
    print(f"{summary}\nop      registry  kernel                              error / bound")
    for op in OPS:
        for registry in (again, one):
            if registry is one and op is not plain:
                continue
            fresh = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
            with ck.using(registry=registry, arch=GPU):
                o = op(*fresh)
            result = report(op, fresh, o)
            result.check()
            assert op.last is not None
            (launch,) = op.last.launches
            assert launch.key in registry
            name, label = registry.name, launch.key.label[:34]
            print(f"{op.program.name:6}  {name:8}  {label:34}  {result.ratio:13.2f}  PASS")


if __name__ == "__main__":
    main()
