# SPDX-License-Identifier: MIT
"""How long attention takes to compile: a new function, a new stencil, and CK Tile's own unit.

    python benchmarks/attention_compile_time.py

All with one clang and one set of HIP headers, one after the other. Run it on an idle machine.

- *a score*, *a mask*, *both functions*: what no kernel has had, on stencils that are in the cache:
  from the call of the build to the code object.
- *stencil*: bitcode of both functions' from the generated C++, its host shim, and the link. CK
  Tile's headers are precompiled before, once for all kernels of a GPU; that is a row of its own.
- *upstream*: the unit that CK Tile's generator writes for the same tiling, pads and mask, with the
  options of CK Tile's build files: device pass, host pass and link.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cklang.arch import arch
from cklang.build.steps import compile_headers, compile_host, compile_stencil, link_fill
from cklang.emulator.hipcc import driver
from cklang.families.attention.key import AttentionKey, AttentionSignature, MaskKind, ScoreKind
from cklang.families.attention.lower import lower_attention
from cklang.families.attention.space import attention_algorithms
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from cklang.types import f16

ARCH = "gfx942"
INDICES = "%b: i32[], %h: i32[], %i: i32[], %j: i32[], %q_len: i32[], %k_len: i32[]"
SCORE = parse_function(f"""
func @score(%s: f32[], {INDICES}, %d0: f32[H], %d1: i32[B, S]) -> f32[] {{
  %0: i32[] = sub(%j, %i)
  %1: f32[] = cast(%0) {{to = f32}}
  %2: f32[] = element(%d0, %h)
  %3: f32[] = mul(%1, %2)
  %4: f32[] = add(%s, %3)
  %5: f32[] = tanh(%4)
  return %5
}}
""")
MASK = parse_function(f"""
func @mask({INDICES}, %d0: f32[H], %d1: i32[B, S]) -> bool[] {{
  %0: i32[] = element(%d1, %b, %i)
  %1: i32[] = element(%d1, %b, %j)
  %2: bool[] = eq(%0, %1)
  return %2
}}
""")
UNIT = "*d{size}_fp16_batch*_{pipeline}_vr_psskddv_nlogits_nbias_mask_nlse_ndropout_nskip*"
FLAGS = (
    "-std=c++20 -DNDEBUG -w -DCK_TILE_FMHA_FWD_FAST_EXP2=1 -fgpu-flush-denormals-to-zero "
    "-DCK_TILE_FMHA_FWD_SPLITKV_API=0 -DCK_TILE_FMHA_FWD_APPENDKV_API=0 "
    "-DCK_TILE_FMHA_FWD_PAGEDKV_API=0"
)


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Run ``step``; return wall seconds and the processor seconds of its child processes."""
    before, start = os.times(), time.perf_counter()
    step()
    after = os.times()
    spent = after.children_user + after.children_system
    return time.perf_counter() - start, spent - before.children_user - before.children_system


def key(size: int, score: bool = True, mask: bool = True) -> AttentionKey:
    """Return the key of an attention whose score and mask, as asked for, are the user's."""
    signature = AttentionSignature(
        dtype=f16,
        dtype_o=f16,
        dtype_bias=f16,
        score=ScoreKind.FUNCTION if score else ScoreKind.NONE,
        mask=MaskKind.FUNCTION if mask else MaskKind.NONE,
    )
    algorithm = attention_algorithms(arch(ARCH), signature, size, size)[0]
    return AttentionKey(signature, algorithm, ARCH)


def upstream(size: int, pipeline: str, folder: Path) -> Callable[[], object]:
    """Write CK Tile's own unit; return what compiles it."""
    source = find_ck_tree().include.parent / "example" / "ck_tile" / "01_fmha"
    pattern = UNIT.format(size=size, pipeline=pipeline)
    options = ("--targets", ARCH, "--api", "fwd", "--optdim", str(size), "--filter", pattern)
    command = [sys.executable, str(source / "generate.py"), *options]
    subprocess.run([*command, "--output_dir", str(folder)], check=True)
    (unit,) = folder.glob("fmha_fwd_d*.cpp")
    library = folder / "unit.so"
    words = [*FLAGS.split(), f"--offload-arch={ARCH}", "-I", str(source), "-fPIC", "-shared"]
    words += ["-Wl,--allow-shlib-undefined", str(unit), "-o", str(library)]
    return lambda: driver.build(words, sys.stderr.write)


def measure(size: int) -> None:
    """Print the rows of one head size."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    wanted = key(size)
    source = lower_attention(wanted, Functions(score=SCORE, mask=MASK))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for step_name in ("headers", "stencil", "host", "fill", "upstream"):
            (folder / step_name).mkdir()
        precompiled = folder / "headers" / "headers.pch"
        steps: dict[str, Callable[[], object]] = {
            "headers, once for a GPU": lambda: compile_headers(
                ARCH, folder / "headers", toolchain, tree, PRECOMPILED_ATTENTION
            ),
            "stencil": lambda: compile_stencil(
                source.stencil,
                ARCH,
                folder / "stencil",
                toolchain,
                tree,
                precompiled=precompiled,
            ),
            "its host shim": lambda: compile_host(
                source.stencil, ARCH, folder / "host", toolchain, tree
            ),
            "both functions": lambda: link_fill(
                folder / "stencil" / "stencil.bc", source.fill, ARCH, folder / "fill", toolchain
            ),
            "upstream's unit": upstream(size, wanted.algorithm.pipeline.value, folder / "upstream"),
        }
        for what, step in steps.items():
            show(size, what, step)
        for what, alone in (("a score", Functions(score=SCORE)), ("a mask", Functions(mask=MASK))):
            some = lower_attention(key(size, "score" in alone, "mask" in alone), alone)
            part = folder / what
            part.mkdir()
            stencil = compile_stencil(
                some.stencil,
                ARCH,
                part,
                toolchain,
                tree,
                precompiled=precompiled,
            )
            show(size, what, partial(link_fill, stencil.file, some.fill, ARCH, part, toolchain))


def show(size: int, what: str, step: Callable[[], object]) -> None:
    """Print the row of a step."""
    wall, processor = timed(step)
    print(f"| {size} | {what} | {wall:.2f} | {processor:.2f} |", flush=True)


def main() -> None:
    """Print the table."""
    print("| head size | step | wall (s) | processors (s) |\n|---|---|---|---|")
    for size in (64, 128):
        measure(size)


if __name__ == "__main__":
    main()
