# SPDX-License-Identifier: MIT
"""How long it takes to plan a program of many equal blocks: norm, gated layer, residual.

python benchmarks/planning_time.py [blocks ...]
"""

from __future__ import annotations

import linecache
import sys
import time

import cklang as ck
from cklang.families import plan_of
from cklang.runtime.op import Op

M, N, K = ck.dims("M N K")


def program(count: int) -> Op:
    """Return an op of so many blocks."""
    parameters = ", ".join(
        f"n{at}: ck.f16[K], g{at}: ck.f16[N, K], u{at}: ck.f16[N, K], d{at}: ck.f16[K, N]"
        for at in range(count)
    )
    lines = [f"@ck.op\ndef blocks(x: ck.f16[M, K], {parameters}) -> ck.f16[M, K]:"]
    for at in range(count):
        lines += [
            f"    y = ck.rms_norm(x, n{at}).to(ck.f16)",
            f"    h = (ck.silu(y @ g{at}.T) * (y @ u{at}.T)).to(ck.f16)",
            f"    x = (x + h @ d{at}.T).to(ck.f16)",
        ]
    text, file = "\n".join([*lines, "    return x\n"]), f"<{count} blocks>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = {"ck": ck, "M": M, "N": N, "K": K}
    exec(compile(text, file, "exec"), namespace)
    op = namespace["blocks"]
    if not isinstance(op, Op):
        raise TypeError(op)
    return op


def main(counts: list[int]) -> None:
    """Print operations, kernels and seconds of processor time."""
    plan_of(program(1).program.specialise())
    print("blocks  operations  kernels  seconds")
    for count in counts:
        function = program(count).program.specialise()
        start = time.process_time()
        plan = plan_of(function)
        seconds = time.process_time() - start
        print(f"{count:6}  {len(function.body):10}  {len(plan.kernels):7}  {seconds:7.2f}")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [4, 12, 24, 48])
