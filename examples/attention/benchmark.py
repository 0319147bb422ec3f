# SPDX-License-Identifier: MIT
"""Time attention over lengths: warm up, repeat, percentiles, counted instructions, checked.

python examples/attention/benchmark.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def attend(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    causal: ck.const[bool] = False,
) -> ck.f16[B, H, S, E]:
    """Return softmax(q k^T / sqrt(D)) v, with or without a causal mask."""
    return ck.attention(q, k, v, mask=ck.causal("bottom_right") if causal else None)


def main() -> None:
    """Print a row for each length; on an emulated GPU the counted instructions are what counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    options, rng = parser.parse_args(), np.random.default_rng(0)
    print("length  causal  median ms  p90 ms  Gflop/s  instructions")
    counted: dict[tuple[int, bool], int | None] = {}
    for length in options.lengths:
        q, k, v = (
            rng.uniform(-1, 1, (1, options.heads, length, 64)).astype(np.float16) for _ in range(3)
        )
        for causal in (False, True):
            seconds = []
            for _ in range(options.warmup + options.repeat):
                start = time.perf_counter()
                o = attend(q, k, v, causal=causal)
                seconds.append(time.perf_counter() - start)
            report(attend, (q, k, v), o, causal=causal).check()
            median, high = np.quantile(seconds[options.warmup :], (0.5, 0.9))
            flops = 4 * q.size * length / (2 if causal else 1)
            assert attend.last is not None
            counted[length, causal] = attend.last.instructions
            rate, count = flops / median / 1e9, attend.last.instructions
            row = f"{median * 1e3:9.2f}  {high * 1e3:6.2f}  {rate:7.2f}  {count!s:>12}"
            print(f"{length:6}  {causal!s:6}  {row}")
    longest = max(options.lengths)
    few, many = counted[longest, True], counted[longest, False]
    assert few is None or many is None or longest < 256 or few < many, "hidden tiles are skipped"


if __name__ == "__main__":
    main()
