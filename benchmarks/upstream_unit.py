# SPDX-License-Identifier: MIT
"""Upstream's own unit for one GEMM kernel (tile_engine), compiled by the compiler cklang uses."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cklang.build.steps import compile_host, compile_inline
from cklang.toolchain.compilers import find_ck_tree, find_toolchain

ARCH = "gfx942"
TILE = "128x128x32_2x2x1_32x32x16"
TRAITS = "compv3_cshuffle_intrawave_True_True_True_False"

_UNIT = """#include "{header}"
float run(const ck_tile::GemmHostArgs& args, const ck_tile::stream_config& stream)
{{
    return SelectedKernel::launch(args, stream);
}}
"""


def generate(
    folder: Path,
    root: Path,
    *,
    arch: str = ARCH,
    dtype: str = "fp16",
    tile: str = TILE,
    traits: str = TRAITS,
) -> str:
    """Write upstream's header into ``folder``; return a unit that uses all of it."""
    engine = root / "tile_engine" / "ops" / "gemm"
    command = [sys.executable, str(engine / "gemm_instance_builder.py")]
    options = {
        "--working_path": folder,
        "--gpu_target": arch,
        "--datatype": dtype,
        "--layout": "rcr",
        "--kernel_name": "gemm",
        "--tile_config": tile,
        "--trait_combo": traits,
        "--config_json": engine / "configs" / "default_config.json",
    }
    words = [str(word) for pair in options.items() for word in pair]
    subprocess.run([*command, "--gen_single", *words], check=True, stdout=subprocess.DEVNULL)
    (header,) = folder.glob("*.hpp")
    return _UNIT.format(header=header.name)


def measure() -> float:
    """Return the seconds from the generated unit to code object and host object.

    The passes run one after the other, as in the one compiler call that upstream's build makes.
    """
    toolchain, tree = find_toolchain(), find_ck_tree()
    with tempfile.TemporaryDirectory() as name:
        device, host = Path(name, "device"), Path(name, "host")
        for folder in (device, host):
            folder.mkdir()
            source = generate(folder, tree.include.parent)
        start = time.perf_counter()
        compile_inline(source, ARCH, device, toolchain, tree)
        compile_host(source, ARCH, host, toolchain, tree)
        return time.perf_counter() - start


if __name__ == "__main__":
    print(f"upstream's unit for one kernel: {measure():.1f} s")
