# SPDX-License-Identifier: MIT
"""CK Tile's own example programs, built unchanged with ``cklang hipcc`` and run on the emulator.

Each example checks its result against its own CPU reference. Sources, generators and compile
options are those of the amd-aiter package; problem sizes are given by the examples' own options.
Prints a Markdown table: seconds to compile and link (processor time), seconds to run all problems,
and the verdict.

    python benchmarks/ck_examples.py [name ...] [--arch gfx942] [--keep folder]
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cklang.device.device import open_device
from cklang.emulator.hipcc import driver
from cklang.toolchain.compilers import find_ck_tree

ONCE = "-warmup=0 -repeat=1"
"""What every run is given besides its problem: launch once."""

#: Options that CK's build files give every example in a release build.
COMMON = ("-std=c++20", "-DNDEBUG", "-w")
FMHA_FLAGS = (
    "-DCK_TILE_FMHA_FWD_FAST_EXP2=1 -fgpu-flush-denormals-to-zero -DCK_TILE_FMHA_FWD_SPLITKV_API=0 "
    "-DCK_TILE_FMHA_FWD_APPENDKV_API=0 -DCK_TILE_FMHA_FWD_PAGEDKV_API=0"
)
GEMM_FLAGS = "-mllvm -enable-noalias-to-md-conversion=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One program of the tree."""

    folder: str
    sources: tuple[str, ...]
    runs: tuple[str, ...]
    """Command lines, each a problem with the program's own check switched on."""
    right: str
    """What its output says when the check holds."""
    status: int = 0
    """Its exit status then."""
    flags: str = ""
    generate: str = ""
    """Arguments of the folder's generate.py; ``{out}`` is the folder to write to."""
    generated: tuple[str, ...] = ()
    """Which of the generated sources are compiled."""
    library: bool = False
    """Whether generated sources go into a library whose other instances are never called."""


EXAMPLES = {
    "elementwise": Example(folder="21_elementwise", sources=("elementwise_example.cpp",),
                           runs=("-m=64 -n=256", "-m=33 -n=64 -x_prec=bf16 -y_prec=fp32"),
                           right=r"^(?!.*Error)", status=1),
    "reduce": Example(folder="05_reduce", sources=("reduce.cpp",),
                      runs=("-n=4 -h=7 -w=7 -c=64", "-n=3 -h=5 -w=2 -c=40"), right=r"valid:y"),
    "layernorm2d": Example(folder="02_layernorm2d", sources=("layernorm2d_fwd.cpp",),
                           generate="--api fwd --working_path {out} --gen_blobs",
                           generated=("layernorm2d_fwd_api.cpp", "layernorm2d_fwd_fp16_n64.cpp"),
                           library=True, runs=("-m=33 -n=64", "-m=5 -n=48"), right=r"valid:y"),
    "fmha_fwd": Example(
        folder="01_fmha",
        sources=("example_fmha_fwd.cpp",),
        generate="--targets {arch} --api fwd --optdim 64 --output_dir {out} --filter "
        "*d64_fp16_batch*_psskddv_nlogits_nbias_nmask_nlse_ndropout_nskip*",
        generated=("fmha_fwd_api.cpp", "fmha_fwd_d64*.cpp"),
        flags=FMHA_FLAGS,
        runs=("-b=1 -h=2 -s=100 -d=64 -prec=fp16", "-b=2 -h=2 -h_k=1 -s=65 -s_k=130 -d=64"),
        right=r"valid:y",
    ),
    "gemm_multi_d": Example(folder="19_gemm_multi_d", sources=("gemm_multi_d_fp16.cpp",),
        runs=("-m=256 -n=256 -k=128",), right=r"ve.?ification result is: correct"),
    "conv_fwd": Example(
        folder="20_grouped_convolution",
        sources=("grouped_convolution_forward.cpp",),
        flags=GEMM_FLAGS,
        runs=(
            "-g=1 -n=1 -k=32 -c=32 -h=8 -w=8 -y=3 -x=3",
            "-g=2 -n=2 -k=32 -c=32 -h=9 -w=7 -y=3 -x=3 -lpad_h=1 -rpad_h=1 -stride_w=2",
        ),
        right=r"verification result is:correct",
    ),
    "conv_bwd_weight": Example(
        folder="20_grouped_convolution",
        sources=("grouped_convolution_backward_weight.cpp",),
        flags=GEMM_FLAGS,
        runs=(
            "-g=1 -n=1 -k=32 -c=32 -h=8 -w=8 -y=3 -x=3",
            "-g=2 -n=2 -k=32 -c=32 -h=9 -w=7 -y=3 -x=3 -lpad_h=1 -rpad_h=1 -split_k=2",
        ),
        right=r"verification result is:correct",
    ),
    "conv_bwd_data": Example(
        folder="20_grouped_convolution",
        sources=("grouped_convolution_backward_data.cpp",),
        flags=GEMM_FLAGS,
        runs=(
            "-g=1 -n=1 -k=32 -c=32 -h=8 -w=8 -y=3 -x=3",
            "-g=2 -n=2 -k=32 -c=32 -h=9 -w=7 -y=3 -x=3 -lpad_h=1 -rpad_h=1",
        ),
        right=r"verification result is:correct",
    ),
    "gemm_universal": Example(
        folder="03_gemm",
        sources=("universal_gemm.cpp",),
        flags=GEMM_FLAGS,
        runs=(
            "-m=256 -n=256 -k=128 -v=1 -prec=fp16",
            "-m=256 -n=256 -k=128 -v=1 -prec=bf16 -b_layout=R",
            "-m=256 -n=256 -k=256 -v=1 -prec=fp8",
        ),
        right=r"verification result is:correct",
    ),
    "gemm_streamk": Example(
        folder="40_streamk_gemm",
        sources=("streamk_gemm_basic.cpp",),
        runs=(
            "-m=512 -n=512 -k=256 -v=1 -flush_cache=false",
            "-m=512 -n=512 -k=256 -v=1 -flush_cache=false -reduction_strategy=reduction",
            "-m=512 -n=512 -k=256 -v=1 -flush_cache=false -persistent_dp=1",
        ),
        right=r"verification result is:correct",
    ),
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one example did."""

    run_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    """Command line and output of each run that did not end well."""


def examples_folder() -> Path:
    """The folder of CK Tile's examples beside its headers."""
    folder = find_ck_tree().include.parent / "example" / "ck_tile"
    if not folder.is_dir():
        sys.exit(f"{find_ck_tree().source} has no examples: no folder {folder}")
    return folder


def build(name: str, folder: Path, arch: str) -> Path:
    """Compile and link one example with ``cklang hipcc`` into ``folder``; return the program."""
    example, program = EXAMPLES[name], folder / name
    source = examples_folder() / example.folder
    generated = _generate(example, source, folder, arch)
    flags = (*COMMON, *example.flags.split(), f"--offload-arch={arch}", "-I", source, "-I", folder)
    words = [str(word) for word in (*flags, *(source / file for file in example.sources))]
    if example.library:
        library = folder / f"lib{name}.so"
        lazy = "-Wl,-z,lazy"
        _hipcc([*map(str, flags), "-fPIC", "-shared", lazy, *generated, "-o", str(library)])
        words += [str(library), "-Wl,--allow-shlib-undefined", lazy, f"-Wl,-rpath,{folder}"]
    else:
        words += generated
    _hipcc([*words, "-o", str(program)])
    return program


def run(name: str, program: Path, arch: str) -> Outcome:
    """Run all problems of an example on the emulated ``arch``."""
    example, outcome = EXAMPLES[name], Outcome()
    # The examples take the first device they see.
    number = open_device(f"emu:{arch}").index
    environment = {**os.environ, "HIP_VISIBLE_DEVICES": str(number)}
    start = time.perf_counter()
    for problem in example.runs:
        command = [str(program), *problem.split(), *ONCE.split()]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=program.parent, env=environment
        )
        text = done.stdout + done.stderr
        right = re.search(example.right, text, re.S) and "Error" not in done.stderr
        if done.returncode != example.status or not right:
            outcome.failures.append(f"{problem}: status {done.returncode}\n{text}")
    outcome.run_seconds = time.perf_counter() - start
    return outcome


def _generate(example: Example, source: Path, out: Path, arch: str) -> list[str]:
    if not example.generate:
        return []
    words = example.generate.format(out=out, arch=arch).split()
    subprocess.run([sys.executable, str(source / "generate.py"), *words], check=True)
    return [str(file) for pattern in example.generated for file in sorted(out.glob(pattern))]


def _hipcc(words: Sequence[str]) -> None:
    driver.build(words, sys.stderr.write)


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Build and run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(EXAMPLES), metavar="name")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--keep", type=Path, help="build here, and keep the programs")
    options = parser.parse_args()
    print("| example | compile (CPU s) | problems | run (s) | verdict |\n|---|---|---|---|---|")
    failed = False
    for name in options.names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            before = _processor_seconds()
            program = build(name, folder, options.arch)
            seconds = _processor_seconds() - before
            outcome = run(name, program, options.arch)
        failed |= bool(outcome.failures)
        verdict = "wrong" if outcome.failures else "correct"
        runs = len(EXAMPLES[name].runs)
        print(f"| {name} | {seconds:.0f} | {runs} | {outcome.run_seconds:.1f} | {verdict} |")
        sys.stdout.flush()
        for failure in outcome.failures:
            print(failure, file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
