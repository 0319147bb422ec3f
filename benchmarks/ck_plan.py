# SPDX-License-Identifier: MIT
"""Which kernels of CK Tile are compiled for the census of ``ck_kernels.py``.

Three kinds of source: example programs, instances that the examples' own generators write
(attention, norms), and kernels that the generators of the tile engine write (products, with
several D, with shuffled weights). A generator writes thousands of instances of few templates that
differ in tile sizes. Of those that are the same kernel, element type and pipeline, as few are taken
as have every word that occurs in the names of all: each layout, epilogue, scheduler, mask, bias,
and so on.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ck_examples import FMHA_FLAGS, GEMM_FLAGS, examples_folder

ARCHS = ("gfx942", "gfx950", "gfx1201", "gfx90a", "gfx1100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Sources of one example folder; ``turn`` orders families by what they cost."""

    folder: str
    sources: tuple[str, ...]
    flags: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One device pass. Units of a lower ``turn`` are compiled first."""

    name: str
    source: Path
    flags: tuple[str, ...]
    turn: int


_INSTANCES = ("instances/*_n512_*.cpp", "instances/*_tp_*.cpp")
FAMILIES = {
    "copy": Family(folder="39_copy", sources=("copy_basic.cpp",)),
    "elementwise": Family(folder="21_elementwise", sources=("*.cpp",)),
    "permute": Family(folder="06_permute", sources=("permute.cpp", "alternative_impl/*.cpp")),
    "img2col": Family(folder="04_img2col", sources=("image_to_column.cpp",)),
    "transpose": Family(folder="35_batched_transpose", sources=("batched_transpose_api.cpp",)),
    "reduce": Family(folder="05_reduce", sources=("reduce.cpp",)),
    "pooling": Family(folder="36_pooling", sources=("pool3d.cpp",)),
    "topk_softmax": Family(folder="09_topk_softmax", sources=("topk_softmax_api.cpp",)),
    "moe_sorting": Family(folder="13_moe_sorting", sources=("moe_sorting_api.cpp",)),
    "smoothquant": Family(folder="12_smoothquant", sources=_INSTANCES),
    "moe_smoothquant": Family(folder="14_moe_smoothquant", sources=_INSTANCES),
    "rmsnorm_rdquant": Family(folder="11_add_rmsnorm2d_rdquant", sources=_INSTANCES),
    "gemm_multi_d": Family(folder="19_gemm_multi_d", sources=("gemm_multi_d_fp16.cpp",)),
    "gemm_multi_abd": Family(folder="22_gemm_multi_abd", sources=("*.cpp",)),
    "fused_moe": Family(
        folder="15_fused_moe",
        sources=("instances/*_m32.cpp",),
        flags="-DCK_TILE_BUFFER_LOAD_AGPR=1 -DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=4",
    ),
    "contraction": Family(folder="41_batched_contraction", sources=("*.cpp",)),
    "batched_gemm": Family(folder="16_batched_gemm", sources=("*.cpp",)),
    "attention_v3": Family(
        folder="01_fmha",
        sources=("instances/*_nmask.cpp", "instances/*_mask.cpp"),
        flags="-fgpu-flush-denormals-to-zero",
    ),
    "conv": Family(folder="20_grouped_convolution", sources=("*.cpp",), flags=GEMM_FLAGS, turn=1),
    "flatmm": Family(
        folder="18_flatmm", sources=("*.cpp", "mixed_prec/*.cpp", "mxgemm/*.cpp"), turn=1
    ),
    "grouped_gemm": Family(folder="17_grouped_gemm", sources=("*.cpp",), turn=2),
    "block_scale": Family(
        folder="38_block_scale_gemm", sources=("*.cpp",), flags=GEMM_FLAGS, turn=2
    ),
    "streamk": Family(folder="40_streamk_gemm", sources=("*.cpp",), turn=2),
    "gemm": Family(folder="03_gemm", sources=("*.cpp",), flags=GEMM_FLAGS, turn=2),
}

NORMS = {"layernorm2d": "02_layernorm2d", "rmsnorm2d": "10_rmsnorm2d"}
#: One row length, and one whose rows are read twice.
NORM_SIZES = ("n512", "n8192_tp")

FMHA_APIS = ("fwd", "fwd_splitkv", "fwd_appendkv", "pagedkv_prefill", "batch_prefill", "bwd")
#: What the generator is asked for, and how the names of its files for that GPU end, best first;
#: batch_prefill's files are for all of gfx9 and have no such ending.
FMHA_TARGETS = {
    "gfx90a": ("gfx90a", ("gfx9", "")),
    "gfx942": ("gfx942", ("gfx9", "")),
    "gfx950": ("gfx950", ("gfx950", "gfx9", "")),
    "gfx1201": ("gfx1201", ("gfx12",)),
}
_FMHA_PIPELINE = re.compile(r"_(q[rs](?:_[a-z]+)*?)_v[rc]_")
_DTYPES = re.compile(r"_((?:fp|bf|int)\d+(?:(?:fp|bf)\d+)?)(?=_|$)")

ENGINES = ("gemm", "gemm_multi_d", "gemm_preshuffle")
ENGINE_LAYOUTS = {
    "gemm": ("rcr", "rrr", "ccr", "crr"),
    "gemm_multi_d": ("rcrr", "rrrr", "ccrr", "crrr"),
    "gemm_preshuffle": ("rcr",),
}
ENGINE_DTYPES = {
    "gemm": ("fp16", "bf16", "fp8", "bf8"),
    "gemm_multi_d": ("fp16",),
    "gemm_preshuffle": ("fp16", "bf16", "fp8", "bf8"),
}
ENGINE_OPTIONS = {"gemm_multi_d": ("--elementwise_function", "mul")}
#: As the engines' build files say.
ENGINE_ARCHS = {
    "gemm": ("gfx90a", "gfx942", "gfx950", "gfx1201"),
    "gemm_multi_d": ("gfx90a", "gfx942", "gfx950"),
    "gemm_preshuffle": ("gfx90a", "gfx942", "gfx950"),
}
#: For gfx12 the generator also lists warp tiles that only MFMA has.
ENGINE_WARP_TILES = {"gfx1201": ("16x16x16",)}

EVERYTHING = (*FAMILIES, *NORMS, "fmha", *(f"engine_{name}" for name in ENGINES))


def units(arch: str, families: Iterable[str], folder: Path) -> Iterator[Unit]:
    """All device passes for one GPU; generated sources are written into ``folder``."""
    root, names = examples_folder(), set(families)
    for name, family in FAMILIES.items():
        if name in names:
            yield from _examples(name, family, root)
    for name, home in NORMS.items():
        if name in names:
            yield from _norms(name, root / home, folder)
    if "fmha" in names and arch in FMHA_TARGETS:
        for api in FMHA_APIS:
            yield from _attention(api, arch, root / "01_fmha", folder)
    for engine in ENGINES:
        if f"engine_{engine}" in names and arch in ENGINE_ARCHS[engine]:
            for dtype in ENGINE_DTYPES[engine]:
                yield from _engine(engine, dtype, arch, root.parents[1] / "tile_engine/ops", folder)


def cover(names: Mapping[str, frozenset[str]]) -> list[str]:
    """Few of ``names`` that together have every word, those with the most new words first.

    >>> cover({"a": frozenset("x"), "b": frozenset("xy"), "c": frozenset("yz")})
    ['b', 'c']
    """
    left = frozenset[str]().union(*names.values())
    chosen: list[str] = []
    while left:
        best = max(sorted(names), key=lambda name: len(names[name] & left))
        chosen.append(best)
        left -= names[best]
    return chosen


def _examples(name: str, family: Family, root: Path) -> Iterator[Unit]:
    """One source of each family in the first turn."""
    home = root / family.folder
    sources = (source for pattern in family.sources for source in sorted(home.glob(pattern)))
    flags = (*family.flags.split(), f"-I{home}")
    for number, source in enumerate(sources):
        turn = family.turn if number else 0
        yield Unit(name=f"{name}-{source.stem}", source=source, flags=flags, turn=turn)


def _chosen(names: Mapping[str, tuple[object, frozenset[str]]]) -> Iterator[tuple[str, int]]:
    """Of each kind those that cover its words, with their turn: f16 first, variants later."""
    kinds: dict[object, dict[str, frozenset[str]]] = {}
    for name, (kind, words) in names.items():
        kinds.setdefault(kind, {})[name] = words | {""}
    for members in kinds.values():
        for number, name in enumerate(cover(members)):
            half = "_fp16_" in f"{name}_"
            yield name, (3 if half else 4) if number else (0 if half else 1)


def _norms(name: str, home: Path, folder: Path) -> Iterator[Unit]:
    """Of each pair of input and output types; the words are what is fused and how it is rounded."""
    out = folder / name
    if not out.exists():
        out.mkdir()
        words = ("--api", "fwd", "--working_path", str(out), "--gen_blobs")
        subprocess.run([sys.executable, str(home / "generate.py"), *words], check=True)
    names = {}
    for size in NORM_SIZES:
        for source in out.glob(f"*_{size}*.cpp"):
            types, rest = source.stem.split(f"_{size}")
            names[source.stem] = (types, frozenset((size, *rest.split("_"))))
    for stem, turn in _chosen(names):
        flags = (f"-I{home}", f"-I{out}")
        yield Unit(name=f"{name}-{stem}", source=out / f"{stem}.cpp", flags=flags, turn=turn)


def _attention(api: str, arch: str, home: Path, folder: Path) -> Iterator[Unit]:
    """Of each kernel, data type and pipeline; the words are masks, biases, paddings, modes."""
    target, endings = FMHA_TARGETS[arch]
    out = folder / f"fmha-{api}-{target}"
    out.mkdir(exist_ok=True)
    words = ("--targets", target, "--api", api, "--output_dir", str(out))
    subprocess.run([sys.executable, str(home / "generate.py"), *words], check=True)
    stems = sorted(source.stem for source in out.glob("fmha_*_d*.cpp"))
    ending = next((e for e in endings if any(_ends(stem) == e for stem in stems)), None)
    names = {stem: _attention_kind(stem) for stem in stems if _ends(stem) == ending}
    for stem, turn in _chosen(names):
        flags = (*FMHA_FLAGS.split(), f"-I{home}")
        yield Unit(name=f"fmha-{stem}", source=out / f"{stem}.cpp", flags=flags, turn=turn)


def _ends(stem: str) -> str:
    match = re.search(r"_(gfx\w+)$", stem)
    return match[1] if match else ""


def _attention_kind(stem: str) -> tuple[object, frozenset[str]]:
    kernel = re.split(r"_d\d+_", stem)[0]
    dtype, pipeline = _DTYPES.search(stem), _FMHA_PIPELINE.search(stem)
    words = frozenset(word for word in stem.split("_") if re.fullmatch(r"[a-z]+", word))
    kind = (kernel, dtype and dtype[1], pipeline and pipeline[1], "_trload" in stem)
    return kind, words


def _engine(engine: str, dtype: str, arch: str, ops: Path, folder: Path) -> Iterator[Unit]:
    """Of each element type; the words are layouts, pipelines, epilogues and warp tiles."""
    home, out = ops / engine, folder / f"engine-{engine}-{dtype}-{arch}"
    out.mkdir(exist_ok=True)
    configuration = home / "configs" / "default_config.json"
    builder = [sys.executable, str(home / f"{engine}_instance_builder.py")]
    builder += ["--working_path", str(out), "--gpu_target", arch, "--datatype", dtype]
    builder += ["--config_json", str(configuration), *ENGINE_OPTIONS.get(engine, ())]
    listed: dict[str, list[str]] = {}
    names = {}
    for layout in ENGINE_LAYOUTS[engine]:
        _quietly([*builder, "--layout", layout, "--list_kernels"])
        for line in (out / f"{engine}_kernel_list.txt").read_text().splitlines():
            name, tile, traits = line.split("|")
            listed[name] = ["--layout", layout, "--tile_config", tile, "--trait_combo", traits]
            pipeline, epilogue, scheduler, *_, persistent = traits.split("_")
            warp_tile = tile.rsplit("_", 1)[1]
            if warp_tile not in ENGINE_WARP_TILES.get(arch, (warp_tile,)):
                continue
            words = (layout, f"{pipeline} {scheduler}", epilogue, persistent, warp_tile)
            names[name] = ((engine, dtype), frozenset(words))
    for name, turn in _chosen(names):
        _quietly([*builder, *listed[name], "--gen_single", "--kernel_name", name])
        short = name.removeprefix(f"{engine}_")
        (header,) = out.glob(f"*_single_*{short}.hpp")
        source = out / f"{name}.cpp"
        source.write_text(f'#include "{header.name}"\nauto* const run = &SelectedKernel::launch;\n')
        flags = (*GEMM_FLAGS.split(), f"-I{out}", f"-I{home}")
        yield Unit(name=f"engine-{name}", source=source, flags=flags, turn=turn)


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
