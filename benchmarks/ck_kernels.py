# SPDX-License-Identifier: MIT
"""Compile kernels of every template family of CK Tile, and count which instructions are emulated.

For each GPU, the device pass of every example folder's sources, of one generated instance for each
attention API, data type and pipeline, and of generated norm instances. Code objects go to a folder,
so that a second run compiles only what is missing; what a family does not compile for is kept
beside them as a ``.txt`` with the compiler's words. Then prints the table of
``instruction_coverage.py`` over them.

    python benchmarks/ck_kernels.py folder [--arch gfx942 ...] [--family gemm ...] [--count-only]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ck_examples import COMMON, FMHA_FLAGS, GEMM_FLAGS, examples_folder
from instruction_coverage import HEADER, measure

from cklang.errors import CkError
from cklang.runtime import hipcc

ARCHS = ("gfx942", "gfx950", "gfx1201", "gfx90a", "gfx1100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Sources of one example folder."""

    folder: str
    sources: tuple[str, ...]
    flags: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One device pass."""

    name: str
    source: Path
    flags: tuple[str, ...]


#: The quick ones first.
FAMILIES = {
    "copy": Family(folder="39_copy", sources=("copy_basic.cpp",)),
    "elementwise": Family(folder="21_elementwise", sources=("*.cpp",)),
    "permute": Family(folder="06_permute", sources=("permute.cpp",)),
    "img2col": Family(folder="04_img2col", sources=("image_to_column.cpp",)),
    "transpose": Family(folder="35_batched_transpose", sources=("batched_transpose_api.cpp",)),
    "reduce": Family(folder="05_reduce", sources=("reduce.cpp",)),
    "pooling": Family(folder="36_pooling", sources=("pool3d.cpp",)),
    "topk_softmax": Family(folder="09_topk_softmax", sources=("topk_softmax_api.cpp",)),
    "moe_sorting": Family(folder="13_moe_sorting", sources=("moe_sorting_api.cpp",)),
    "smoothquant": Family(
        folder="12_smoothquant", sources=("instances/*_n512_*.cpp", "instances/*_tp_*.cpp")
    ),
    "moe_smoothquant": Family(
        folder="14_moe_smoothquant", sources=("instances/*_n512_*.cpp", "instances/*_tp_*.cpp")
    ),
    "rmsnorm_rdquant": Family(
        folder="11_add_rmsnorm2d_rdquant",
        sources=("instances/*_n512_*.cpp", "instances/*_tp_*.cpp"),
    ),
    "gemm_multi_d": Family(folder="19_gemm_multi_d", sources=("gemm_multi_d_fp16.cpp",)),
    "gemm_multi_abd": Family(folder="22_gemm_multi_abd", sources=("*.cpp",)),
    "conv": Family(folder="20_grouped_convolution", sources=("*.cpp",), flags=GEMM_FLAGS),
    "contraction": Family(folder="41_batched_contraction", sources=("*.cpp",)),
    "batched_gemm": Family(folder="16_batched_gemm", sources=("*.cpp",)),
    "streamk": Family(folder="40_streamk_gemm", sources=("*.cpp",)),
    "fused_moe": Family(folder="15_fused_moe", sources=("instances/*_m32.cpp",)),
    "grouped_gemm": Family(folder="17_grouped_gemm", sources=("*.cpp",)),
    "flatmm": Family(folder="18_flatmm", sources=("*.cpp",)),
    "block_scale": Family(folder="38_block_scale_gemm", sources=("*.cpp",)),
    "gemm": Family(folder="03_gemm", sources=("*.cpp",), flags=GEMM_FLAGS),
}
FMHA_APIS = ("fwd", "fwd_splitkv", "fwd_appendkv", "pagedkv_prefill", "batch_prefill", "bwd")
#: How the generator's files name the GPUs they are for; one without a name is for all gfx9.
FMHA_TARGETS = {"gfx90a": "gfx9", "gfx942": "gfx9", "gfx950": "gfx950", "gfx1201": "gfx12"}
NORMS = {"layernorm2d": "02_layernorm2d", "rmsnorm2d": "10_rmsnorm2d"}
NORM_SIZES = ("n512", "n8192_tp")


def units(arch: str, families: Sequence[str], folder: Path) -> Iterator[Unit]:
    """All device passes for one GPU; generated sources are written into ``folder``."""
    root = examples_folder()
    for name, family in FAMILIES.items():
        for pattern in family.sources if name in families else ():
            home = root / family.folder
            for source in sorted(home.glob(pattern)):
                flags = (*family.flags.split(), f"-I{home}")
                yield Unit(name=f"{name}-{source.stem}", source=source, flags=flags)
    for name, home in NORMS.items():
        if name in families:
            yield from _norms(name, root / home, folder)
    if "fmha" in families and arch in FMHA_TARGETS:
        for api in FMHA_APIS:
            yield from _attention(api, arch, root / "01_fmha", folder)


def _norms(name: str, home: Path, folder: Path) -> Iterator[Unit]:
    out = folder / name
    out.mkdir(exist_ok=True)
    words = ("--api", "fwd", "--working_path", str(out), "--gen_blobs")
    subprocess.run([sys.executable, str(home / "generate.py"), *words], check=True)
    for size in NORM_SIZES:
        for source in sorted(out.glob(f"*_{size}*.cpp")):
            flags = (f"-I{home}", f"-I{out}")
            yield Unit(name=f"{name}-{source.stem}", source=source, flags=flags)


def _attention(api: str, arch: str, home: Path, folder: Path) -> Iterator[Unit]:
    """One instance of each kernel, data type and pipeline: that with the most features."""
    out = folder / f"fmha-{api}-{arch}"
    out.mkdir(exist_ok=True)
    target = FMHA_TARGETS[arch]
    targets = {"gfx9": "gfx942", "gfx12": "gfx1201"}.get(target, target)
    words = ("--targets", targets, "--api", api, "--output_dir", str(out))
    subprocess.run([sys.executable, str(home / "generate.py"), *words], check=True)
    chosen: dict[tuple[str, ...], tuple[int, str]] = {}
    for source in sorted(out.glob("fmha_*_d*.cpp")):
        name = source.stem
        if not name.endswith(target) and re.search(r"_gfx\d+$", name):
            continue
        parts = re.match(r"(.*?)_d\d+_(\w+?)_(?=batch|group|b\d|pad|npad|s|o)", name)
        pipeline = re.search(r"_(q[rs]\w*?|trload)_v?", name)
        kind = (*(parts.groups() if parts else (name,)), pipeline[1] if pipeline else "")
        kind += ("trload" if "_trload" in name else "",)
        features = len(re.findall(r"_(?:logits|bias|alibi|mask|lse|dropout|pagedkv|dbias)", name))
        chosen[kind] = max(chosen.get(kind, (-1, "")), (features, name))
    for _, name in sorted(chosen.values()):
        flags = (*FMHA_FLAGS.split(), f"-I{home}")
        yield Unit(name=f"fmha-{name}", source=out / f"{name}.cpp", flags=flags)


def compile_unit(unit: Unit, arch: str, folder: Path) -> None:
    """Make ``<arch>-<name>.co``, or a ``.txt`` that says why there is none."""
    stem = f"{arch}-{unit.name}"[:200]
    output, refusal = folder / f"{stem}.co", folder / f"{stem}.txt"
    if output.exists() or refusal.exists():
        return
    words = [*COMMON, *unit.flags, f"--offload-arch={arch}", "--offload-device-only"]
    said: list[str] = []
    start = time.perf_counter()
    try:
        hipcc.build([*words, "-c", str(unit.source), "-o", str(output)], said.append)
    except CkError:
        lines = "".join(said).splitlines()
        first = next((line for line in lines if "error" in line), "\n".join(lines[-3:]))
        refusal.write_text(f"{first}\n")
    done = "no" if refusal.exists() else "yes"
    print(f"{stem}: {done}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Compile what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", nargs="+", default=ARCHS, choices=ARCHS)
    everything = [*FAMILIES, *NORMS, "fmha"]
    parser.add_argument("--family", nargs="+", default=everything, choices=everything)
    parser.add_argument("--count-only", action="store_true", help="compile nothing")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True, parents=True)
    if not options.count_only:
        with tempfile.TemporaryDirectory() as generated:
            for arch in options.arch:
                for unit in units(arch, options.family, Path(generated)):
                    compile_unit(unit, arch, options.folder)
    print(HEADER)
    counted = measure(sorted(options.folder.glob("*.co")))
    for arch, found in sorted(counted.items()):
        print(found.row(arch))
    for arch, found in sorted(counted.items()):
        for name, count in found.missing.most_common():
            print(f"missing: {arch} {name} {count:,}")
    for refusal in sorted(options.folder.glob("*.txt")):
        print(f"not compiled: {refusal.stem}: {refusal.read_text().strip()}")


if __name__ == "__main__":
    main()
