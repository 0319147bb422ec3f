# SPDX-License-Identifier: MIT
"""``cklang doctor --specs``: check the warp-tile rows of arch_specs against a CK Tile tree.

Reading finds the specialisations of ``WarpGemmDispatcher``. Compiling (``--compile``) makes one
kernel for each row and counts the matrix instructions in its assembly.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cklang.arch import ArchSpec, WarpTile, all_archs
from cklang.toolchain.compilers import CkTree, Toolchain, find_ck_tree, find_toolchain

__all__ = ["Mismatch", "check_by_compiling", "check_by_reading", "run"]

_DISPATCHER = "ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp"

# CK Tile's C++ names of the element types that rows have.
_CPP = {
    "f16": "half_t",
    "bf16": "bf16_t",
    "f32": "float",
    "fp8": "fp8_t",
    "bf8": "bf8_t",
    "fp4": "pk_fp4_t",
    "i8": "int8_t",
    "i32": "int32_t",
}
_NAMES = {cpp: name for name, cpp in _CPP.items()}

_ROW = re.compile(
    r"struct\s+WarpGemmDispatcher<\s*(?P<types>[\w:]+\s*,\s*[\w:]+\s*,\s*[\w:]+)\s*,"
    r"\s*(?P<m>\d+)\s*,\s*(?P<n>\d+)\s*,\s*(?P<k>\d+)\s*,"
    r"\s*(?P<transposed>\w+)\s*(?P<rest>[^>]*)>"
)
_WMMA = "Wmma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A row that says something else than the tree or the compiler."""

    arch: str
    row: WarpTile
    says: str
    actual: str

    def __str__(self) -> str:
        r = self.row
        tile = f"{r.m}x{r.n}x{r.k}{' sparse' if r.sparse else ''}"
        return f"{self.arch}: {r.a} by {r.b} to {r.acc} {tile}: {self.says}, but {self.actual}"


Tile = tuple[str, str, str, int, int, int, bool]


def _tile(row: WarpTile) -> Tile:
    return (row.a, row.b, row.acc, row.m, row.n, row.k, row.sparse)


@cache
def instantiated(tree: CkTree) -> tuple[frozenset[Tile], frozenset[Tile]]:
    """Return the tiles of the dispatcher: of GPUs with MFMA, and of GPUs with WMMA."""
    mfma: set[Tile] = set()
    wmma: set[Tile] = set()
    text = (tree.include / _DISPATCHER).read_text()
    for line in re.split(r"template\s*<", text):
        match = _ROW.search(line)
        if match is None or match["transposed"] == "true":
            continue
        swizzled, sparse = ("true" in word for word in [*match["rest"].split(",")[1:], "", ""][:2])
        if swizzled:
            continue
        types = [part.strip().removeprefix("ck_tile::") for part in match["types"].split(",")]
        a, b, acc = (_NAMES.get(part, part) for part in types)
        tile = (a, b, acc, int(match["m"]), int(match["n"]), int(match["k"]), sparse)
        (wmma if _WMMA in line else mfma).add(tile)
    return frozenset(mfma), frozenset(wmma)


def check_by_reading(spec: ArchSpec, tree: CkTree) -> Iterator[Mismatch]:
    """Yield each row whose ``headers`` is not what the dispatcher's text says."""
    mfma, wmma = instantiated(tree)
    tiles = wmma if spec.has_wmma else mfma
    rows = {_tile(row): row for row in spec.warp_tiles}
    for tile, row in rows.items():
        if row.headers != (tile in tiles):
            says = "instantiated" if row.headers else "not instantiated"
            actual = "the tree has it" if tile in tiles else "the tree does not have it"
            yield Mismatch(arch=spec.name, row=row, says=says, actual=actual)
    for a, b, acc, m, n, k, sparse in sorted(tiles - set(rows)):
        row = WarpTile(a=a, b=b, acc=acc, m=m, n=n, k=k, isa=None, headers=False, sparse=sparse)
        actual = "the tree has it"
        yield Mismatch(arch=spec.name, row=row, says="there is no row", actual=actual)


_PROBE = """#include "cklang/gemm.hpp"
#include "cklang/sparse.hpp"
template <typename G>
__device__ void probe(void* a, void* b, void* c)
{
    using namespace ck_tile;
    const auto i = threadIdx.x;
    using A      = typename G::AWarpTensor;
    using B      = typename G::BWarpTensor;
    auto acc     = static_cast<typename G::CWarpTensor*>(c)[i];
    G{}(acc, static_cast<A*>(a)[i], static_cast<B*>(b)[i]);
    static_cast<typename G::CWarpTensor*>(c)[i] = acc;
}
"""
_KERNEL = """extern "C" __global__ void row{index}(void* a, void* b, void* c)
{{
    using Dispatched =
        ck_tile::WarpGemmDispatcher<{a}, {b}, {acc}, {m}, {n}, {k}, false, false, {sparse}>;
    probe<{ours}>(a, b, c);
}}
"""
_SCALED = ("fp4",)
"""Types whose warp tiles take block scales too, so that only MX pipelines can call them."""
_INSTRUCTION = re.compile(r"\b(v_(?:mfma|smfmac|wmma)_\w+)")


def probe_source(rows: list[WarpTile]) -> str:
    """Return HIP C++ with one kernel for each row."""
    kernels = [
        _KERNEL.format(
            index=index,
            a=_cpp(row.a),
            b=_cpp(row.b),
            acc=_cpp(row.acc),
            m=row.m,
            n=row.n,
            k=row.k,
            sparse=str(row.sparse).lower(),
            ours="cklang::SparseWarpGemm<Dispatched>" if row.sparse else "Dispatched",
        )
        for index, row in enumerate(rows)
    ]
    return _PROBE + "".join(kernels)


def _cpp(name: str) -> str:
    cpp = _CPP[name]
    return cpp if cpp in ("float", "int32_t") else f"ck_tile::{cpp}"


def check_by_compiling(
    spec: ArchSpec, toolchain: Toolchain, tree: CkTree, folder: Path
) -> Iterator[Mismatch]:
    """Compile every legal row without block scales; yield those made of another instruction.

    Raises:
        CkBuildError: B010, the compiler refuses the rows.
    """
    from cklang.build.steps import device_assembly

    rows = [row for row in spec.warp_tiles if row.legal and row.a not in _SCALED]
    text = device_assembly(probe_source(rows), spec.name, folder, toolchain, tree)
    parts = re.split(r"^row(\d+):", text, flags=re.M)
    bodies = {int(index): body for index, body in zip(parts[1::2], parts[2::2], strict=True)}
    for index, row in enumerate(rows):
        used = sorted(set(_INSTRUCTION.findall(bodies[index])))
        if [_plain(name) for name in used] != [_plain(str(row.isa))]:
            instructions = ", ".join(used) or "no matrix instruction"
            yield Mismatch(
                arch=spec.name, row=row, says=str(row.isa), actual=f"compiled to {instructions}"
            )


def _plain(name: str) -> str:
    """Drop what assemblers add: the encoding's suffix, the scaled form of f8f6f4."""
    return re.sub(r"_e(32|64)$", "", name).replace("v_mfma_scale_", "v_mfma_")


def run(compile_rows: bool) -> int:
    """Print every mismatch; return 1 if there is one."""
    tree = find_ck_tree()
    wrong = 0
    for spec in all_archs():
        mismatches = list(check_by_reading(spec, tree))
        if compile_rows:
            with tempfile.TemporaryDirectory() as folder:
                mismatches += check_by_compiling(spec, find_toolchain(), tree, Path(folder))
        wrong += len(mismatches)
        legal = sum(row.legal for row in spec.warp_tiles)
        state = "as the tree says" if not mismatches else f"{len(mismatches)} wrong"
        sys.stdout.write(
            f"{spec.name}: {len(spec.warp_tiles)} warp tiles, {legal} legal, {state}\n"
        )
        for mismatch in mismatches:
            sys.stdout.write(f"  {mismatch}\n")
    return 1 if wrong else 0
