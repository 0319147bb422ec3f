# SPDX-License-Identifier: MIT
"""What functions of one element cost: instructions of a lane for each, counted on the emulator.

    python benchmarks/op_instructions.py

One kernel of rows for each op of floats, f32, 64 rows of 4096. The count of a copy is subtracted,
so an op that costs no more than a negation prints 0 or 1. The table ``INSTRUCTIONS`` of
``cklang/families/function_work.py`` has those above 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cklang.errors import CkError
from cklang.ir.ops import OPS, Kind
from cklang.ir.parser import parse_function
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.op import Op

ARCH = "gfx942"
LANES = 64
COPY = "transpose(%x) {perm = [0, 1]}"
ATTRS = {"clamp": "{hi = 2.0, lo = 1.0}", "elu": "{alpha = 1.0}", "leaky_relu": "{slope = 0.1}"}


def count(call: str, x: np.ndarray[Any, Any]) -> float:
    """Return the instructions of a lane for each element of a program of one operation."""
    body = f"%0: f32[M, N] = {call} return %0"
    op = Op(IrProgram(ir=parse_function(f"func @f(%x: f32[M, N]) -> f32[M, N] {{ {body} }}")))
    op(x, device=f"emu:{ARCH}")
    assert op.last is not None
    return float(op.last.instructions or 0) * LANES / x.size


def main() -> None:
    """Print the table."""
    x = np.random.default_rng(0).uniform(0.1, 3, (64, 4096)).astype(np.float32)
    base = count(COPY, x)
    for name, row in OPS.items():
        if row.kind is not Kind.POINTWISE:
            continue
        operands = ", ".join(["%x"] * row.operands)
        try:
            own = count(f"{name}({operands}) {ATTRS.get(name, '')}", x) - base
        except CkError as mistake:
            print(f"# {name}: {mistake.code}")
            continue
        print(f'"{name}": {own:.0f},', flush=True)


if __name__ == "__main__":
    main()
