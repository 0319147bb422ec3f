# SPDX-License-Identifier: MIT
"""What an export with free extents weighs: bytes of code objects and host shims, compressed.

One row for each op and GPU. Compressed is xz over all files that the launchers load, in one
archive, as an image or a package would hold them.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cklang as ck
from cklang.exporting import Exported

M, N, K = ck.dims("M N K")
ROWS = range(1, 8193)


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f32[N]) -> ck.f16[M, N]:
    """Return a layer of a network."""
    return ck.gelu(x @ w.T + b)


@ck.op
def norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    """Return rows in their norm."""
    return ck.rms_norm(x, gain)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "linear": (linear, {"M": ROWS, "N": 4096, "K": 4096}),
    "norm": (norm, {"M": ROWS, "K": 4096}),
}


def packed(written: Exported) -> int:
    """Return the bytes of an archive of what the launchers load."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:xz") as archive:
        for path in sorted(written.folder.iterdir()):
            if path.suffix in (".hsaco", ".so"):
                archive.add(path, path.name)
    return len(memory.getvalue())


def rows(ops: list[str], gpus: list[str], kernels: int) -> Iterator[str]:
    """Yield a row of a table for each op and GPU."""
    yield "| op | GPU | kernels | bytes | compressed | same choice |"
    yield "|---|---|---|---|---|---|"
    for name in ops:
        op, problem = CASES[name]
        for gpu in gpus:
            with tempfile.TemporaryDirectory() as folder:
                written = ck.export(op, [problem], [gpu], Path(folder), kernels=kernels)
                (free,) = written.free
                same = "{} of {}".format(*free.agreement)
                yield (
                    f"| {name} | {gpu} | {len(written.code_objects)} | {written.bytes:,} "
                    f"| {packed(written):,} | {same} |"
                )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--gpus", nargs="+", default=["gfx942", "gfx950", "gfx1100", "gfx1201"])
    parser.add_argument("--kernels", type=int, default=5)
    args = parser.parse_args()
    for row in rows(args.ops, args.gpus, args.kernels):
        print(row, flush=True)


if __name__ == "__main__":
    main()
