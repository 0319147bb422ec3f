# SPDX-License-Identifier: MIT
"""Write what two packages say about the lanes of matrix instructions.

    pip install triton && python make_layouts.py triton
    pip install iree-base-compiler && python make_layouts.py iree

Each run writes ``layouts_<package>.json`` beside this file; neither package is needed by the tests.
Triton gives linear layouts: for each bit of the register number and of the lane number the (row,
column) that it adds by exclusive or. IREE gives for each dimension of an operand how many pieces
lie in registers ("outer"), how many threads share it, their stride in lanes, and how many elements
in a row a thread holds.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

#: Triton's number of each GPU's matrix unit.
MFMA = {"gfx90a": 2, "gfx942": 3, "gfx950": 4}
WMMA = {"gfx1100": 1, "gfx1201": 2}

#: M, N, K, bits of an element of A and B, elements that a lane holds in a row along K.
_CDNA2 = (
    (32, 32, 2, 32, 1), (16, 16, 4, 32, 1), (32, 32, 4, 16, 2), (16, 16, 8, 16, 2),
    (32, 32, 8, 16, 4), (16, 16, 16, 16, 4), (32, 32, 8, 8, 4), (16, 16, 16, 8, 4),
    (16, 16, 4, 64, 1), (4, 64, 4, 16, 4),
)  # fmt: skip
_CDNA3 = (
    (32, 32, 2, 32, 1), (16, 16, 4, 32, 1), (32, 32, 4, 32, 2), (16, 16, 8, 32, 2),
    (32, 32, 8, 16, 4), (16, 16, 16, 16, 4), (32, 32, 16, 8, 8), (16, 16, 32, 8, 8),
    (16, 16, 4, 64, 1), (4, 64, 4, 16, 4),
)  # fmt: skip
SHAPES = {
    "gfx90a": _CDNA2,
    "gfx942": _CDNA3,
    "gfx950": (
        *(shape for shape in _CDNA3 if shape[3:] != (32, 2)),  # xf32 is gone
        (32, 32, 16, 16, 8),
        (16, 16, 32, 16, 8),
        (32, 32, 32, 8, 16),
        (16, 16, 64, 8, 16),
        (32, 32, 64, 8, 16),
        (16, 16, 128, 8, 16),
    ),
    "gfx1100": ((16, 16, 16, 16, 16), (16, 16, 16, 8, 16), (16, 16, 16, 4, 16)),
    "gfx1201": ((16, 16, 16, 16, 8), (16, 16, 16, 8, 8), (16, 16, 16, 4, 8), (16, 16, 32, 4, 16)),
}


def main() -> None:
    """Write the file of the package that the command line names."""
    makers = {"triton": _triton, "iree": _iree}
    package = sys.argv[1]
    content = makers[package]()
    path = Path(__file__).with_name(f"layouts_{package}.json")
    lines = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in content["layouts"].items())
    head = json.dumps({key: value for key, value in content.items() if key != "layouts"})
    path.write_text(f'{head[:-1]}, "layouts": {{\n{lines}\n}}}}\n', "utf-8")
    sys.stdout.write(f"{path}: {len(content['layouts'])} layouts\n")
    sys.stdout.flush()
    os._exit(0)  # both packages' native parts complain about an ordinary end


def _triton() -> dict[str, Any]:
    from triton._C.libtriton import gluon_ir, ir
    from triton.experimental.gluon.language._layouts import DotOperandLayout
    from triton.experimental.gluon.language.amd._layouts import AMDMFMALayout, AMDWMMALayout

    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)

    def bases(layout: Any, rows: int, columns: int) -> list[Any]:
        layout_bases = builder.to_linear_layout(layout._to_ir(builder), [rows, columns])
        return [layout_bases.reg_bases, layout_bases.lane_bases]

    layouts = {}
    for arch, shapes in SHAPES.items():
        for m, n, k, bits, run in shapes:
            parent: Any
            if arch in MFMA:
                parent = AMDMFMALayout(
                    version=MFMA[arch],
                    instr_shape=[m, n, k],
                    transposed=False,
                    warps_per_cta=[1, 1],
                    element_bitwidth=max(bits, 32),
                )
            else:
                parent = AMDWMMALayout(
                    version=WMMA[arch], transposed=False, warp_bases=[], instr_shape=[m, n, k]
                )
            a, b = (DotOperandLayout(operand_index=i, parent=parent, k_width=run) for i in (0, 1))
            layouts[f"{arch} {m}x{n}x{k} {bits}"] = {
                "A": bases(a, m, k),
                "B": bases(b, k, n),
                "D": bases(parent, m, n),
            }
    return {"package": "triton", "version": version("triton"), "layouts": layouts}


def _iree() -> dict[str, Any]:
    from iree.compiler import ir
    from iree.compiler.dialects import iree_gpu

    layouts = {}
    with ir.Context(), ir.Location.unknown():
        for name, intrinsic in iree_gpu.MMAIntrinsic.__members__.items():
            # The others are of NVIDIA's GPUs and of gfx1250.
            if not name.startswith(("MFMA_", "WMMAR3_", "WMMAR4_")):
                continue
            attribute = iree_gpu.MMAIntrinsicAttr.get(intrinsic)
            parts = (iree_gpu.get_single_subgroup_layout(attribute, n) for n in range(3))
            layouts[name] = {
                operand: [part.outer, part.thread, part.tstrides, part.element]
                for operand, part in zip("ABD", parts, strict=True)
            }
    package = "iree-base-compiler"
    return {"package": package, "version": version(package), "layouts": layouts}


if __name__ == "__main__":
    main()
