# SPDX-License-Identifier: MIT
"""How loads of A and B give zeros beyond the end of K: by a choice of values, or of addresses.

Windows of a convolution that lie beside the image are loaded in the same way.

CK Tile loads whatever is there and replaces it by zeros afterwards, or moves the address by 2 GiB,
out of the range of the buffer's descriptor, where loads give zeros. The first way works for every
matrix that a descriptor covers. But each load has to be waited for at once, and what was loaded
ahead takes registers twice; large tiles have neither time nor registers for that.
"""

from cklang.families.gemm.key import Algorithm, Layout, Pipeline, Signature
from cklang.types import i4

_LARGE = 128 * 128
"""Elements of E in the smallest tile of 16-bit A whose loads are moved, unless K is contiguous in
both A and B: then a smaller one is quicker so too (``benchmarks/masked_loads.py``). Of other types
all are moved: to choose among bytes keeps the vector units busy, and to choose among f32 waits for
twice as much."""


def may_move(algorithm: Algorithm) -> bool:
    """Whether kernels of an algorithm move the addresses of loads beyond K, if A and B allow it."""
    return algorithm.pipeline is Pipeline.COMPV3


def moves_masked(signature: Signature, algorithm: Algorithm) -> bool:
    """Whether a kernel moves the addresses of loads beyond K, where A and B are read as stored."""
    s, (m, n, _) = signature, algorithm.tile
    is_prepared = s.layout_b is Layout.PREPARED
    others = (s.a, s.b, s.sparse, i4 in (s.dtype_a, s.dtype_b), is_prepared)
    along_k = s.layout_a is Layout.ROW and s.layout_b is Layout.COL
    is_slow = s.dtype_a.bytes != 2 or m * n >= _LARGE or along_k
    return not any(others) and may_move(algorithm) and is_slow


def reached_k(k: int, tile_k: int) -> int:
    """Return how far along K a kernel of the pipeline compv3 loads at most.

    The loop begins with two tiles, runs at least once, and loads one more each time. A workgroup
    that shares K with others may have the last tile alone.

    Example:
        >>> reached_k(100, 64), reached_k(0, 64)
        (256, 192)
    """
    return (max(-(-k // tile_k), 1) + 2) * tile_k
