# SPDX-License-Identifier: MIT
"""Several registries side by side: one for each kind of call, merged, with priorities, on threads.

python examples/registry/several_registries.py
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


TILE = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
GPU = "gfx942"


def arrays(m: int, n: int, k: int) -> list[np.ndarray]:
    """Make the operands."""
    rng = np.random.default_rng(m)
    return [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k))]


def registry(name: str, width: int, priority: int = 0) -> ck.dispatch.Registry:
    """Return a registry of one kernel, which moves ``width`` elements at a time."""
    new = ck.dispatch.Registry(name)
    among = ck.dispatch.pattern(**TILE, vector_a=width, vector_b=width, vector_e=width)
    where: dict[str, Any] = {"registry": new, "device": f"emu:{GPU}", "priority": priority}
    linear.declare(*arrays(64, 64, 64), among=among, **where)
    return new


def width_of(op: Any, args: list[np.ndarray]) -> int:
    """Call, check, and return how wide the kernel loads."""
    report(op, args, op(*args)).check()
    return int(op.last.launches[0].key.algorithm.vector_a)


def main() -> None:
    """Each block, thread and op has the registry that it names."""
    any_size, eights, args = registry("any size", 1), registry("eights", 8), arrays(96, 80, 64)

    print("where                      loads of")
    with ck.using(registry=any_size, arch=GPU):
        print(f"a block with 'any size'    {(outer := width_of(linear, args))}")
        with ck.using(registry=eights):
            print(f"a block in it, 'eights'    {(inner := width_of(linear, args))}")
        named = linear.using(registry=eights)  # an op keeps what it was told
        print(f"an op that names 'eights'  {(kept := width_of(named, args))}")
    assert (outer, inner, kept) == (1, 8, 8)

    def in_thread(mine: ck.dispatch.Registry) -> int:
        return width_of(linear.using(registry=mine), args)

    with ThreadPoolExecutor(2) as pool:
        widths = list(pool.map(in_thread, (any_size, eights)))
    print(f"two threads at once        {widths}")
    assert widths == [1, 8]
    # Together: the kernel of the higher priority comes first, then the order of declaration.
    both = registry("both", 1, priority=1)
    assert both.merge(eights) == 1
    with ck.using(registry=both, arch=GPU, strategy="first_fit"):
        print(f"merged, priority to 1      {width_of(linear, args)}")
    assert both.merge(any_size) == 0, "of one key the older or higher entry stays"


if __name__ == "__main__":
    main()
