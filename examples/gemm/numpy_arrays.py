# SPDX-License-Identifier: MIT
"""NumPy arrays as they are: views, transposes, slices and ``out=``, none of them copied.

python examples/gemm/numpy_arrays.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


def main() -> None:
    """Call the op with arrays of several layouts and compare with NumPy."""
    rng = np.random.default_rng(0)
    m, n, k = 48, 40, 64
    w = rng.uniform(-1, 1, (n, k)).astype(np.float16)
    wide = rng.uniform(-1, 1, (m, 2 * k)).astype(np.float16)
    page = rng.uniform(-1, 1, (3 * m, k)).astype(np.float16)
    views = {
        "C order": np.ascontiguousarray(wide[:, :k]),
        "half of wider rows": wide[:, :k],
        "every third row": page[::3],
        "read only": np.broadcast_to(page[:m], (1, m, k))[0],
    }
    print("x                     strides in bytes  error / bound")
    for name, x in views.items():
        y = linear(x, w)
        assert type(y) is np.ndarray
        result = report(linear, (x, w), y)
        result.check()
        print(f"{name:20}  {x.strides!s:>16}  {result.ratio:13.2f}")

    # A result in memory of your own, here the columns of a larger array.
    large = np.full((m, n + 8), 7, np.float16)
    y = linear(views["C order"], w, out=large[:, :n])
    assert np.shares_memory(y, large)
    assert (large[:, n:] == 7).all(), "nothing else is written"

    # Without a decorator: the functions of the language compute on arrays in NumPy.
    eager = ck.relu(views["C order"].astype(np.float32) @ w.astype(np.float32).T)
    np.testing.assert_allclose(y, eager, atol=2e-2)

    # What does not fit is refused before anything runs, by a code that documents it.
    try:
        linear(views["C order"].astype(np.float64), w)
    except ck.CkError as error:
        print(f"refused: {error.code}, {error.message}")
    else:
        raise AssertionError


if __name__ == "__main__":
    main()
