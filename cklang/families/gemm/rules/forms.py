# SPDX-License-Identifier: MIT
"""Rules about the forms in which CK Tile has warp tiles and loads: few of either have all."""

from cklang.arch import ArchSpec
from cklang.families.bounds import one_of
from cklang.families.gemm.key import Algorithm, Layout, Signature
from cklang.families.gemm.pipelines import PIPELINES, transposable
from cklang.families.gemm.rules import RULES
from cklang.families.rule import Violation
from cklang.widths import DWORD_BYTES


@RULES.algorithm(
    "transposed-tile",
    "CK Tile has some warp tiles with C as it is, and not with C transposed",
    reads=("warp_tile", "transpose_c"),
)
def _transposed_tile(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    rows = spec.tile_rows(*s.multiplied, sparse=s.sparse)
    if not a.transpose_c or a.warp_tile not in [row.extents for row in rows]:
        return None
    legal = [row.extents for row in rows if row.transposed_loads]
    return one_of(f"the warp tile with C transposed, {_types(s, spec)},", a.warp_tile, legal)


@RULES.algorithm(
    "transposing-loads",
    "loads from LDS that transpose move few bytes; CK Tile has few warp tiles whose operands a "
    "lane takes in several",
    reads=("warp_tile", "transpose_c"),
)
def _transposing_loads(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    count = _loads_of_operand(a, s, spec)
    for row in spec.tile_rows(*s.multiplied, sparse=s.sparse):
        counts = row.transposed_loads if a.transpose_c else row.loads
        if row.extents == a.warp_tile and counts and count not in counts:
            loads = f"the number of {spec.lds_transposed_bytes}-byte loads of a lane's operand"
            what, bound = f"{loads}, {_types(s, spec)},", " or ".join(map(str, counts))
            return Violation(what=what, value=f"{count:g}", bound=bound)
    return None


def _types(s: Signature, spec: ArchSpec) -> str:
    return f"{s.multiplied[0]} by {s.multiplied[1]} on {spec.name}"


def _loads_of_operand(a: Algorithm, s: Signature, spec: ArchSpec) -> float:
    """Return in how many loads from LDS a lane takes its part of a warp tile of A or B.

    It is one, unless loads from LDS transpose either operand; then CK Tile divides the bytes that a
    lane has of B by those of such a load, for A too.
    """
    is_turned = Layout.COL is s.layout_a or Layout.ROW is s.layout_b
    if not (spec.lds_transposed_bytes and is_turned and transposable(s)):
        return 1
    _, n, k = a.warp_tile
    return n * k * s.dtype_a.bytes / spec.wave_size / spec.lds_transposed_bytes


@RULES.algorithm(
    "async-loads",
    "memory is loaded straight into LDS by dwords, or as wide as the GPU can",
    reads=("pipeline", "vector_a", "vector_b"),
)
def _async_loads(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    row = PIPELINES.get(a.pipeline)
    if row is None or not row.into_lds:
        return None
    legal = (DWORD_BYTES, spec.lds_load_bytes)
    for name, vector, dtype in (("A", a.vector_a, s.dtype_a), ("B", a.vector_b, s.dtype_b)):
        moved = vector * dtype.bits // 8
        if moved not in legal:
            bound = " or ".join(map(str, dict.fromkeys(legal)))
            return Violation(what=f"the bytes of a load of {name}", value=str(moved), bound=bound)
    return None
