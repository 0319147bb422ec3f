# SPDX-License-Identifier: MIT
"""Registries as JSON: exported without loss, imported elsewhere, and written by hand in few lines.

python examples/registry/json_files.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return x @ w.T: the epilogue that a file has if it names none."""
    return x @ w.T


BY_HAND = """
{"kernels": [{"key": {"arch": "gfx942", "signature": {"dtype_a": "f16"}, "algorithm": {
   "tile": [64, 64, 32], "warps": [2, 2, 1], "warp_tile": [16, 16, 32],
   "vector_a": 1, "vector_b": 1, "vector_e": 1}}}]}
"""


def arrays(m: int, n: int, k: int) -> list[np.ndarray]:
    """Make the operands."""
    rng = np.random.default_rng(m)
    return [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k))]


def main() -> None:
    """Export, import, compare, and call with the kernels of the file."""
    # Export: all fields of every key, the epilogue as text, and a version of the schema.
    mine = ck.dispatch.Registry("mine")
    args = arrays(96, 80, 64)
    count = product.declare(*args, registry=mine, device="emu:gfx942", among="essential")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.json"
        path.write_text(json.dumps(mine.to_json(), indent=1))
        again = ck.dispatch.Registry.from_json(json.loads(path.read_text()))
        print(f"{count} kernels, {path.stat().st_size} bytes, imported the same:", end=" ")
    print(again.same_as(mine))
    assert again.same_as(mine)
    assert {kernel.key for kernel in again} == {kernel.key for kernel in mine}

    # Import: a file of three lines; what it leaves out has its documented default.
    written = ck.dispatch.Registry.from_json(json.loads(BY_HAND))
    (kernel,) = written
    print(f"by hand: {kernel.key.label}")
    assert not written.build().failures
    with ck.using(registry=written, arch="gfx942"):
        y = product(*args)
        report(product, args, y).check()
        assert product.last is not None
        assert product.last.launches[0].key == kernel.key
        print(f"called:  {product.last.launches[0].key.label}")

    # What a file must not do is refused: an unknown field is no comment.
    wrong = json.loads(BY_HAND)
    wrong["kernels"][0]["key"]["algorithm"]["pipelines"] = "compv4"
    try:
        ck.dispatch.Registry.from_json(wrong)
    except ck.CkError as error:
        print(f"refused: {error.code}, {error.message}")
    else:
        raise AssertionError


if __name__ == "__main__":
    main()
