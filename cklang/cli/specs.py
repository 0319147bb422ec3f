# SPDX-License-Identifier: MIT
"""``cklang doctor --specs``: check the warp-tile rows of arch_specs against a CK Tile tree.

Reading finds the specialisations of ``WarpGemmDispatcher``. Compiling (``--compile``) makes one
kernel for each form of a row and looks for the matrix instructions in its assembly.
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cklang.arch import ArchSpec, WarpTile, all_archs
from cklang.toolchain.compilers import CkTree, Toolchain, find_ck_tree, find_toolchain

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
_COUNTS = {"::Double": 2, "::Quad": 4}
"""What CK Tile calls two and four loads of an operand; one is not named."""
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
Loads = tuple[tuple[int, ...], tuple[int, ...]]
"""``loads`` and ``transposed_loads`` of a row."""


def _tile(row: WarpTile) -> Tile:
    return (row.a, row.b, row.acc, row.m, row.n, row.k, row.sparse)


@cache
def instantiated(tree: CkTree) -> tuple[Mapping[Tile, Loads], Mapping[Tile, Loads]]:
    """Return the tiles of the dispatcher: of GPUs with MFMA, and of GPUs with WMMA.

    With each are the numbers of loads that it has: as it is, and with its accumulator transposed.
    """
    both: tuple[dict[Tile, Loads], dict[Tile, Loads]] = {}, {}
    text = (tree.include / _DISPATCHER).read_text()
    for line in re.split(r"template\s*<", text):
        match = _ROW.search(line)
        if match is None:
            continue
        flags = [word.strip() for word in match["rest"].split(",")[1:]]
        if "true" in flags[:1]:  # its A is swizzled
            continue
        types = [part.strip().removeprefix("ck_tile::") for part in match["types"].split(",")]
        a, b, acc = (_NAMES.get(part, part) for part in types)
        sparse = "true" in flags[1:2]
        tile = (a, b, acc, int(match["m"]), int(match["n"]), int(match["k"]), sparse)
        count = next((n for name, n in _COUNTS.items() if name in match["rest"]), 1)
        tiles = both[_WMMA in line]
        plain, transposed = tiles.get(tile, ((), ()))
        tiles[tile] = (
            plain if match["transposed"] == "true" else (*plain, count),
            transposed if match["transposed"] == "false" else (*transposed, count),
        )
    return both


def _words(loads: Loads) -> str:
    plain, transposed = (", ".join(map(str, load)) or "none" for load in loads)
    return f"loads {plain}, transposed {transposed}"


def check_by_reading(spec: ArchSpec, tree: CkTree) -> Iterator[Mismatch]:
    """Yield each row whose ``loads`` are not what the dispatcher's text says."""
    mfma, wmma = instantiated(tree)
    tiles = wmma if spec.has_wmma else mfma
    rows = {_tile(row): row for row in spec.warp_tiles}
    for tile, row in rows.items():
        says, actual = (row.loads, row.transposed_loads), tiles.get(tile, ((), ()))
        if says != actual:
            actual_words = f"the tree has {_words(actual)}"
            yield Mismatch(arch=spec.name, row=row, says=_words(says), actual=actual_words)
    for a, b, acc, m, n, k, sparse in sorted(set(tiles) - set(rows)):
        row = WarpTile(a=a, b=b, acc=acc, m=m, n=n, k=k, isa=None, loads=(), sparse=sparse)
        actual_words = "the tree has it"
        yield Mismatch(arch=spec.name, row=row, says="there is no row", actual=actual_words)


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
    using Dispatched = ck_tile::WarpGemmDispatcher<
        {a}, {b}, {acc}, {m}, {n}, {k}, {transposed}, false, {sparse},
        static_cast<ck_tile::WGAttrNumAccessEnum>({loads})>;
    probe<{ours}>(a, b, c);
}}
"""
_SCALED = ("fp4",)
"""Types whose warp tiles take block scales too, so that only MX pipelines can call them."""
_INSTRUCTION = re.compile(r"\b(v_(?:mfma|smfmac|wmma)_\w+)")


Form = tuple[WarpTile, bool, int]
"""A row, whether the accumulator is transposed, and the loads of an operand."""


def _forms(spec: ArchSpec) -> Iterator[Form]:
    """Yield the forms in which kernels use rows.

    Operands come in several loads only where LDS transposes, and no pipeline transposes the
    accumulator of two types.
    """
    for row in spec.warp_tiles:
        if not row.legal or row.a in _SCALED:
            continue
        both = ((False, row.loads), (True, row.transposed_loads if row.a == row.b else ()))
        for transposed, counts in both:
            for count in counts if spec.lds_transposed_bytes else counts[:1]:
                yield row, transposed, count


def probe_source(forms: Sequence[Form]) -> str:
    """Return HIP C++ with one kernel for each form of a row."""
    kernels = [
        _KERNEL.format(
            index=index,
            a=_cpp(row.a),
            b=_cpp(row.b),
            acc=_cpp(row.acc),
            m=row.m,
            n=row.n,
            k=row.k,
            transposed=str(transposed).lower(),
            loads=count,
            sparse=str(row.sparse).lower(),
            ours="cklang::SparseWarpGemm<Dispatched>" if row.sparse else "Dispatched",
        )
        for index, (row, transposed, count) in enumerate(forms)
    ]
    return _PROBE + "".join(kernels)


def _cpp(name: str) -> str:
    cpp = _CPP[name]
    return cpp if cpp in ("float", "int32_t") else f"ck_tile::{cpp}"


def check_by_compiling(
    spec: ArchSpec, toolchain: Toolchain, tree: CkTree, folder: Path
) -> Iterator[Mismatch]:
    """Compile each legal form without block scales; yield those of other instructions."""
    from cklang.build.steps import device_assembly

    forms = list(_forms(spec))
    text = device_assembly(probe_source(forms), spec.name, folder, toolchain, tree)
    parts = re.split(r"^row(\d+):", text, flags=re.M)
    bodies = {int(index): body for index, body in zip(parts[1::2], parts[2::2], strict=True)}
    for index, (row, *_) in enumerate(forms):
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
