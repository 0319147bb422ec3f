# SPDX-License-Identifier: MIT
"""Products of groups of rows beside a batch of the same products, by the clock (docs/clock.md).

    python benchmarks/clock_experts.py [--gpu gfx942] [--experts 8] [--tokens 16 256] [--size 2048]

``--tokens`` are those of each expert. The clock times some workgroups and takes the others for such
as these, so groups are of equal sizes here.
"""

import argparse

import numpy as np

import cklang as ck

T, K, N, G = ck.dims("T K N G")


@ck.op
def grouped(x: ck.f16[T, K], w: ck.f16[G, N, K], ends: ck.i32[G]) -> ck.f16[T, N]:
    """Rows of each group by its matrix; the kernel reads where groups end."""
    return ck.grouped_gemm(x, w.mT, ends)


@ck.op
def batched(x: ck.f16[G, T, K], w: ck.f16[G, N, K]) -> ck.f16[G, T, N]:
    """The same where all groups have as many rows."""
    return x @ w.mT


def main() -> None:
    """Print both times for each number of tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--size", type=int, default=2048, help="rows and columns of a matrix")
    options = parser.parse_args()
    experts, size, device = options.experts, options.size, f"emu:{options.gpu}"
    w = np.zeros((experts, size, size), np.float16)
    print(f"{experts} experts of {size}x{size}, f16, {options.gpu}: µs by the clock")
    print(f"{'tokens each':>12}{'grouped':>10}{'batched':>10}")
    for tokens in options.tokens:
        x = np.zeros((experts, tokens, size), np.float16)
        ends = (np.arange(experts, dtype=np.int32) + 1) * np.int32(tokens)
        one = ck.predict(grouped, x.reshape(-1, size), w, ends, device=device)
        other = ck.predict(batched, x, w, device=device)
        print(f"{tokens:>12}{one.us:>10.1f}{other.us:>10.1f}")


if __name__ == "__main__":
    main()
