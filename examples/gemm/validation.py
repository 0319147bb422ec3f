# SPDX-License-Identifier: MIT
"""What "correct" means: exact inputs, a bound for each element, and an error that is found.

python examples/gemm/validation.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


def cases(m: int, n: int, k: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, bool]]:
    """Yield operands, and whether the product of them is exact in f16."""
    rng = np.random.default_rng(0)

    def half(values: np.ndarray) -> np.ndarray:
        return values.astype(np.float16)

    yield "ones", half(np.ones((m, k))), half(np.ones((n, k))), True
    yield "identity", half(rng.uniform(0, 1, (m, k))), half(np.eye(n, k)), True
    x, w = (half(rng.integers(-3, 4, shape)) for shape in ((m, k), (n, k)))
    yield "small integers", x, w, True
    x, w = (half(rng.uniform(-1, 1, shape)) for shape in ((m, k), (n, k)))
    yield "uniform", x, w, False
    # Terms that cancel: the relative error of the result may be large, its bound knows that.
    x = half(rng.uniform(100, 200, (m, k)))
    x[:, 1::2] = -x[:, ::2]
    yield "cancelling", x, half(np.ones((n, k))), False


def main() -> None:
    """Compare every case with NumPy in float64 and with the reference."""
    print("operands          largest error  error / bound")
    for name, x, w, exact in cases(96, 80, 64):
        y = product(x, w)
        result = report(product, (x, w), y)
        result.check()
        a, b = x.astype(np.float64), w.astype(np.float64)
        distance = np.abs(y - np.maximum(a @ b.T, 0))
        # f16 has 11 bits, and the f32 sum of k terms is wrong by k roundings of them at most.
        size = np.abs(a) @ np.abs(b).T
        legal = 2.0**-11 * np.maximum(a @ b.T, 0) + 64 * 2.0**-24 * size
        print(f"{name:16}  {distance.max():13.3g}  {result.ratio:13.2f}")
        assert (distance <= legal).all()
        assert not exact or not distance.any()
    y[17, 3] += 1  # a wrong element
    wrong = report(product, (x, w), y)
    assert not wrong.passed
    try:
        wrong.check()
    except ck.CkError as error:
        print(f"found: {error.code}, {error.message}")


if __name__ == "__main__":
    main()
