# SPDX-License-Identifier: MIT
"""GEMM: a kernel key and an epilogue function become CK Tile C++ and the C that fills it."""

from collections.abc import Collection, Iterator, Sequence
from enum import Enum

from cklang.arch import arch
from cklang.errors import error
from cklang.families.gemm.key import (
    GROUP_KINDS,
    PARTS,
    SEGMENTED_ROWS,
    Algorithm,
    ConvSpecial,
    DKind,
    DOperand,
    GemmKey,
    Layout,
    Pipeline,
    ProductKind,
    Reduction,
    Scale,
    Signature,
    accumulator,
)
from cklang.families.gemm.kinds import KINDS, kind_names
from cklang.families.gemm.masked import moves_masked
from cklang.families.gemm.pipelines import PIPELINES, PipelineRow, transposable
from cklang.fusion.functions import Functions
from cklang.ir.log_sums import COLUMNS
from cklang.ir.nodes import Function
from cklang.lowering.headers import PRECOMPILED, PRECOMPILED_MASKED
from cklang.lowering.pointwise import c_functions, c_result, c_type, results_struct
from cklang.lowering.render import key_json, listed, template
from cklang.lowering.source import KernelSource
from cklang.types import DType, Kind, bool_, e8m0, f32, fp4, i4
from cklang.widths import ACCESS_BYTES

HOLES = {"epilogue": "ck_epilogue", "prologue_a": "ck_prologue_a", "prologue_b": "ck_prologue_b"}
"""The symbols that a stencil leaves open: the epilogue, and what computes A or B if a function
does."""

_LAYOUTS = {
    Layout.ROW: "Row",
    Layout.COL: "Column",
    Layout.PREPARED: "Column",
    **dict.fromkeys((*PARTS.values(), Layout.WRITTEN, Layout.ADDED), "Row"),
}

_OF_BLOCKS = {
    Layout.LOG_SUMS: ("LogSumsEpilogue", "log-sum-exp"),
    Layout.SUMS: ("SumsEpilogue", "sum"),
    Layout.MAXIMA: ("MaximaEpilogue", "largest element"),
}
"""The C++ epilogue that stores a number for each block of columns, and what that is."""

_RESULT_KINDS = {DKind.RESULT: "full", DKind.STRIDED_RESULT: "strided"} | dict.fromkeys(
    GROUP_KINDS.values(), "strided"
)
"""How C++ addresses a further result: as it would an operand."""

_SPECIAL = {special: special.value for special in ConvSpecial} | {ConvSpecial.DEFAULT: "ordinary"}
"""C++ has other plans for the word default."""


def lower(key: GemmKey, functions: Functions, source_lines: Sequence[str] = ()) -> KernelSource:
    """Return the source of the kernel ``key`` with these functions.

    Args:
        key: What to compute, how, and for which GPU.
        functions: ``epilogue`` (acc, d0, ...), with a parameter for each operand of the signature,
            and ``prologue_a`` (a0, ...) and ``prologue_b`` where A and B are computed.
        source_lines: The user's Python, written as comments above the functions.
    """
    _check(key, functions)
    kernel = _kernel_name(key)
    is_masked = moves_masked(key.signature, key.algorithm)
    text = template(KINDS[key.signature.kind].template).render(_context(key, functions, kernel))
    return KernelSource(
        stencil=text,
        fill=c_functions({HOLES[hole]: code for hole, code in functions.items()}, source_lines),
        hole=HOLES["epilogue"],
        kernel=kernel,
        precompiled=PRECOMPILED_MASKED if is_masked else PRECOMPILED,
        overlapped=key.algorithm.pipeline is Pipeline.MEM,
    )


def _check(key: GemmKey, functions: Functions) -> None:
    s, a = key.signature, key.algorithm
    operands = {"epilogue": s.reads, "prologue_a": s.a, "prologue_b": s.b}
    want = {
        hole: [c_type(operand.dtype) for operand in reads]
        for hole, reads in operands.items()
        if reads or hole == "epilogue"
    }
    want["epilogue"][:0] = [c_type(s.dtype_acc)] * s.sums
    want["epilogue"] += [c_type(f32)] * bool(s.group)
    got = {
        hole: [c_type(p.type.dtype) for p in function.params]
        for hole, function in functions.items()
    }
    results = len(functions["epilogue"].results) - bool(s.group)
    if want != got or len(a.vector_d) != len(s.d) or results != 1 + len(s.d) - len(s.reads):
        raise error("L002", want=want, got=got, vectors=a.vector_d)
    for name, value, legal in unsupported(s, a):
        raise error("L003", name=name, got=value, want=legal)


def unsupported(signature: Signature, algorithm: Algorithm) -> Iterator[tuple[str, str, str]]:
    """Yield (field, value, legal values) for each choice that has no CK Tile spelling here.

    What is said of a field depends on the signature and on fields before it alone.
    """
    s, a = signature, algorithm
    row = PIPELINES.get(a.pipeline)
    if row is None:
        yield "pipeline", _word(a.pipeline), " or ".join(map(_word, PIPELINES))
    elif (s.a or s.b) and not row.computed:
        through = [_word(name) for name, facts in PIPELINES.items() if facts.computed]
        yield "pipeline", _word(a.pipeline), " or ".join(through)
    elif s.sums > 1 and not _has_plain_pairs(s, row):
        yield "kind", s.kind.value, "gemm: pairs have two plain B, which all waves load together"
    else:
        for name, value, legal in _choices(s, a, row):
            if value not in legal:
                yield name, _word(value), " or ".join(map(_word, legal))


def _has_plain_pairs(s: Signature, row: PipelineRow) -> bool:
    return not (row.wave_groups > 1 or row.prepared or s.b or _has_loop(s) or s.dtype_b.packed)


def _choices(
    s: Signature, a: Algorithm, row: PipelineRow
) -> tuple[tuple[str, object, Collection[object]], ...]:
    """Return each choice with its value and the legal ones."""
    # K is not split where the pipeline's wave groups share it, or where the family never splits it.
    family = KINDS[s.kind]
    splits_k = row.wave_groups == 1 and family.shares
    conv = s.spatial > 0
    more = len(s.d) - len(s.reads)
    along_k = (a.warps[0], a.warps[1], 1) if row.wave_groups == 1 else (1, 1, row.wave_groups)
    return (
        ("pipeline", a.pipeline, _scaled_pipelines() if _has_loop(s) else (a.pipeline,)),
        ("dtype_acc", s.dtype_acc, (accumulator(s.dtype_a, scaled=s.block_k > 0),)),
        ("dtype_b", s.dtype_b, _dtypes_b(s, row)),
        ("layouts", s.layouts, (family.layouts or s.layouts,)),
        ("scales", s.block_k, _any_if(s.kind not in _WITHOUT_SCALES, s.block_k, 0)),
        ("sparse", s.sparse, _both_if(row.sparse)),
        ("further results", more, _any_if(not conv, more, 0)),
        ("groups of columns", s.group, _any_if(s.sums == row.wave_groups == 1, s.group, 0)),
        ("layout_a", s.layout_a, _layouts_a(s, row)),
        ("layout_b", s.layout_b, _layouts_b(s, row)),
        ("layout_e", s.layout_e, _layouts_e(s, row)),
        ("special", a.special, family.specials),
        ("groups_merged", a.groups_merged, _any_if(conv, a.groups_merged, 1)),
        ("warps", a.warps, (along_k,)),
        ("reduction", a.reduction, _reductions(a)),
        ("stream_k", a.stream_k, _both_if(splits_k and a.split_k <= 1)),
        ("split_k", a.split_k, _any_if(splits_k, a.split_k, 1)),
        ("persistent", a.persistent, _both_if(_may_persist(a, row))),
        ("double_buffer", a.double_buffer, (row.buffers == 2,)),
        ("num_wave_groups", a.num_wave_groups, (row.wave_groups,)),
        ("transpose_c", a.transpose_c, _both_if(row.transposed and not s.sparse)),
    )


_WITHOUT_SCALES = (ProductKind.SEGMENTED_PAIR, ProductKind.SEGMENTED_K)
"""Kinds whose kernels take no scales of blocks."""


def _both_if(condition: bool) -> tuple[bool, ...]:
    return (False, True) if condition else (False,)


def _any_if(condition: bool, value: int, otherwise: int) -> tuple[int, ...]:
    """Return the value that is chosen, if any is legal, or the only legal one."""
    return (value,) if condition else (otherwise,)


_PLAIN = (Layout.ROW, Layout.COL)


def _stored_as(signature: Signature) -> str:
    """Return what B's source is called, if it is no matrix of whole elements in rows or columns."""
    if signature.sums > 1:
        return "Pair"
    return "Prepared" if _is_prepared(signature) else _rows_of(signature.dtype_b)


def _rows_of_a(signature: Signature) -> str:
    """Return the same of A's source."""
    return "Gathered" if signature.gather else _rows_of(signature.dtype_a)


def _rows_of(dtype: DType) -> str:
    return "PackedRows" if dtype.packed else ""


def _is_prepared(signature: Signature) -> bool:
    return signature.layout_b is Layout.PREPARED


def _dtypes_b(signature: Signature, row: PipelineRow) -> tuple[DType, ...]:
    if signature.dtype_b == i4:
        return (i4,) if row.packed else (signature.dtype_a,)
    return (signature.dtype_b,) if row.mixed else (signature.dtype_a,)


def _layouts_a(signature: Signature, row: PipelineRow) -> tuple[Layout, ...]:
    by_rows = signature.dtype_a.packed or signature.kind in SEGMENTED_ROWS
    return _PLAIN if row.any_layout and not by_rows else (Layout.ROW,)


def _layouts_b(signature: Signature, row: PipelineRow) -> tuple[Layout, ...]:
    if row.prepared:
        return (Layout.PREPARED,)
    if signature.sums > 1 and not row.computed:
        return (Layout.COL,)
    return _PLAIN if row.any_layout and not signature.dtype_b.packed else (Layout.COL,)


def _layouts_e(signature: Signature, row: PipelineRow) -> tuple[Layout, ...]:
    s = signature
    is_one = s.sums == 1 and len(s.reads) == len(s.d) and not s.spatial
    if s.scatter is not None:
        adds = (Layout.ADDED,) if s.dtype_e == f32 else ()
        return (Layout.WRITTEN, *adds) if is_one else ()
    has_blocks = is_one and row.wave_groups == 1 and s.dtype_e == f32
    return (Layout.ROW, *(PARTS.values() if has_blocks else ()))


def _policy(signature: Signature, algorithm: Algorithm) -> str:
    if signature.sums > 1:
        return "PairPolicy"
    if signature.sparse:
        return "SparsePolicy"
    if _is_prepared(signature):
        return "PreparedPolicy"
    takes_exponents = signature.dtype_a == fp4 or is_mx(signature, algorithm)
    return "MxPolicy" if takes_exponents else "VectorPolicy"


_MX_WARP_K = (64, 128)
"""K of the matrix instructions that take scales."""


def is_mx(signature: Signature, algorithm: Algorithm) -> bool:
    """Whether the matrix instructions apply the scales: exponents of 32 elements each.

    Those of 4-bit floats take exponents always, 0 if there are no scales.
    """
    scales = [scale for scale in (signature.scale_a, signature.scale_b) if scale]
    exponents = all(scale.dtype == e8m0 and scale.block == (1, 32) for scale in scales)
    some = bool(scales) or signature.dtype_a == fp4
    return some and exponents and algorithm.warp_tile[2] in _MX_WARP_K


def _has_loop(signature: Signature) -> bool:
    """Whether the loop over K is ours."""
    return signature.block_k > 0 or signature.dtype_a == fp4


def _scaled_pipelines() -> tuple[Pipeline, ...]:
    return tuple(pipeline for pipeline, row in PIPELINES.items() if row.block_scale_loop)


def _shared(algorithm: Algorithm) -> bool:
    return algorithm.split_k > 1 or algorithm.stream_k


def _may_persist(algorithm: Algorithm, row: PipelineRow) -> bool:
    """Whether workgroups may go from tile to tile; with stream-K, before they share the rest."""
    return row.wave_groups == 1 and (algorithm.stream_k or not _shared(algorithm))


def _reductions(algorithm: Algorithm) -> tuple[Reduction, ...]:
    if not _shared(algorithm):
        return (Reduction.NONE,)
    return (Reduction.WORKSPACE, Reduction.ATOMIC, Reduction.TREE)


def _word(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _kernel_name(key: GemmKey) -> str:
    s, a = key.signature, key.algorithm
    tile = "x".join(map(str, a.tile))
    family = s.kind.value if s.spatial else "gemm"
    return f"ck_{family}_{s.dtype_a}_{s.dtype_b}_{s.dtype_e}_{s.layouts}_{tile}"


def read_width(operand: DOperand, vector: int) -> int:
    """Return the elements that one load moves of what A or B is computed from.

    ``vector`` is how many elements of A or B are computed at once.
    """
    if operand.kind not in (DKind.FULL, DKind.ROW):
        return 1
    return min(vector, ACCESS_BYTES * 8 // operand.dtype.bits)


def _side(
    name: str, operands: Sequence[DOperand], vector: int, functions: Functions, stored: str = ""
) -> dict[str, object]:
    """Return what the template says of A or B: a function and its operands, or a stored matrix."""
    if not operands:
        return {"name": name, "operands": (), "stored": stored}
    arguments = [f"x{i}" for i in range(len(operands))]
    hole = f"prologue_{name.lower()}"
    return {
        "name": name,
        **_hole(HOLES[hole], functions[hole], arguments),
        "operands": [
            {"type": _stored(o.dtype), "kind": o.kind.value, "vector": read_width(o, vector)}
            for o in operands
        ],
    }


_SCALES = {f32: "F32Scale", e8m0: "E8m0Scale"}


def _scale(scale: Scale | None, *, k_is_inner: bool, exact: bool) -> dict[str, object]:
    """Return what the template says of the scales of A or B; ``exact`` of integers."""
    if scale is None:
        return {"scale": None}
    number = _SCALES[scale.dtype]
    if exact:
        number = f"OfIntegers<cklang::{number}>"
    return {
        "scale": f"{number}, {scale.block[0]}, {scale.block[1]}",
        "k_is_inner": str(k_is_inner).lower(),
    }


def _hole(symbol: str, function: Function, names: Sequence[str]) -> dict[str, object]:
    """Return the declaration of a hole in pieces."""
    types = [c_type(p.type.dtype) for p in function.params]
    return {
        "hole": symbol,
        "result": c_result(symbol, function),
        "types": listed(types),
        "params": listed(f"{t} {n}" for t, n in zip(types, names, strict=True)),
        "args": listed(names),
    }


def _operands(s: Signature, a: Algorithm) -> dict[str, object]:
    """Return what the template knows of the epilogue's operands and of further results."""
    count = range(s.operands)
    return {
        "operands": [
            {"type": _stored(d.dtype), "kind": d.kind.value, "vector": vector}
            for d, vector in zip(s.reads, a.vector_d, strict=False)
        ],
        "results": [
            {
                "name": f"D{place}",
                "type": _stored(d.dtype),
                "kind": _RESULT_KINDS[d.kind],
                "vector": vector,
                "group": d.kind.group,
            }
            for place, (d, vector) in enumerate(zip(s.d, a.vector_d, strict=True))
            if d.kind.written
        ],
        "d_types": listed(f"D{i}::DataType" for i in count),
        "d_layouts": listed("Row" for _ in count),
        "d_names": "".join(f", D{i}" for i in count),
        "read_names": "".join(f", D{i}" for i in range(len(s.reads))),
    }


def _work(a: Algorithm) -> str:
    if a.stream_k:
        return "stream_k"
    return "split_k" if a.split_k > 1 else "tiles"


def _context(key: GemmKey, functions: Functions, kernel: str) -> dict[str, object]:
    s, a = key.signature, key.algorithm
    flags = ("pad_m", "pad_n", "pad_k", "double_buffer", "transpose_c", "persistent")
    exact = s.dtype_a.kind is Kind.INT
    epilogue = functions["epilogue"]
    reads = len(s.reads) + bool(s.group)
    arguments = [*("acc", "acc1")[: s.sums], *(f"d{i}" for i in range(reads))]
    return {
        "wide": not transposable(s),
        "key_json": key_json(key),
        "a": s.dtype_a,
        "b": s.dtype_b,
        "acc": s.dtype_acc,
        "e": s.dtype_e,
        "layout_a": _LAYOUTS[s.layout_a],
        "layout_b": _LAYOUTS[s.layout_b],
        "layout_e": _LAYOUTS[s.layout_e],
        **_operands(s, a),
        "results_struct": list(results_struct(HOLES["epilogue"], epilogue)),
        "tile": listed(a.tile),
        "warps": listed(a.warps),
        "warp_tile": listed(a.warp_tile),
        "warps_m": a.warps[0],
        "warps_n": a.warps[1],
        "warp_tile_m": a.warp_tile[0],
        "warp_tile_n": a.warp_tile[1],
        "warp_tile_k": a.warp_tile[2],
        **{name: str(getattr(a, name)).lower() for name in flags},
        **_pipeline(a, s),
        "masked": moves_masked(s, a),
        "masked_sources": _masked_sources(s, a),
        "masked_header": _masked_header(s, a),
        "tile_k": a.tile[2],
        "described": _described(s, a),
        "sparse": s.sparse,
        "blocks": COLUMNS if s.layout_e.of_blocks else 0,
        "blocks_epilogue": _OF_BLOCKS.get(s.layout_e, ("", ""))[0],
        "blocks_words": _OF_BLOCKS.get(s.layout_e, ("", ""))[1],
        "group": s.group,
        "pair": s.sums > 1,
        "n_is_inner": str(s.layout_b is Layout.ROW).lower(),
        "stored_shape": "Half" if s.sums > 1 else "Shape",
        "prepared": _is_prepared(s),
        "packed": s.dtype_b.packed,
        "gather": s.gather.ck if s.gather else "",
        "scatter": s.scatter.ck if s.scatter else "",
        "adds": str(s.layout_e is Layout.ADDED).lower(),
        "integer_scale": exact and s.block_k > 0,
        "multiplied_b": "A" if s.dtype_b == i4 else "B",
        "epilogue": a.epilogue.value,
        "work": _work(a),
        "reduction": a.reduction.value,
        "num_wave_groups": a.num_wave_groups,
        "vector_a": a.vector_a,
        "vector_b": a.vector_b,
        "vector_e": a.vector_e,
        "block_per_cu": a.block_per_cu,
        "sides": (
            {
                **_side("A", s.a, a.vector_a, functions, _rows_of_a(s)),
                **_scale(s.scale_a, k_is_inner=s.layout_a is Layout.ROW, exact=exact),
            },
            {
                **_side("B", s.b, a.vector_b, functions, _stored_as(s)),
                **_scale(s.scale_b, k_is_inner=s.layout_b is not Layout.ROW, exact=exact),
            },
        ),
        "epilogue_hole": _hole(HOLES["epilogue"], epilogue, arguments),
        "kernel": kernel,
        **kind_names(s, a),
        "spatial": s.spatial,
        "merged": a.groups_merged,
        "bytes": 8 in (s.dtype_a.bits, s.dtype_b.bits),
        "special": _SPECIAL[a.special],
        "gfx_major": arch(key.arch).version[0],
    }


def _pipeline(algorithm: Algorithm, signature: Signature) -> dict[str, object]:
    row = PIPELINES[algorithm.pipeline]
    lds = "cklang::mainloop_lds<Shape, A, B>"
    if row.prepared:
        lds = "cklang::tile_lds<Shape::kM * Shape::kK, A>"
    if row.buffers > 1:
        lds = f"{row.buffers} * {lds}"
    if row.acc_in_lds:
        lds = f"ck_tile::max({lds}, cklang::acc_lds<Shape, AccType>)"
    return {
        "headers": row.headers,
        "mainloop": _mainloop(signature, row),
        "policy_class": _policy(signature, algorithm),
        "pipeline": row.ck,
        "policy": row.policy,
        "scheduler": algorithm.scheduler.value.capitalize(),
        "tail": row.tail,
        "step": row.step or 1,
        "loop_lds": lds,
    }


def _mainloop(signature: Signature, row: PipelineRow) -> str:
    """Return the name of our main loop over a pipeline."""
    if _has_loop(signature):
        return row.block_scale_loop
    return "AsyncLoop" if row.into_lds else "Mainloop"


def _described(signature: Signature, algorithm: Algorithm) -> str:
    """Return what C++ calls the description of a launch before that of what is special about it."""
    if algorithm.reduction is Reduction.TREE:
        return "Counted"
    layout = signature.layout_e
    return "Stored" if layout.of_blocks or layout.at_indices else "Single"


def _masked_sources(signature: Signature, algorithm: Algorithm) -> str:
    """Return the arguments of what limits masked loads of A and B that are not one matrix each."""
    is_table, is_pair = bool(signature.gather), signature.sums > 1
    if not is_table and not is_pair:
        return ""
    return listed((algorithm.tile[2], str(is_table).lower(), str(is_pair).lower()))


def _masked_header(signature: Signature, algorithm: Algorithm) -> str:
    """Return the header that says what limits masked loads."""
    if signature.spatial:
        return "describe_masked_conv.hpp"
    return f"describe_masked{'_sources' if _masked_sources(signature, algorithm) else ''}.hpp"


def _stored(dtype: DType) -> str:
    """Return the C++ type that an operand is loaded as; buffer loads know bytes but no bool."""
    return "ck_tile::int8_t" if dtype is bool_ else dtype.ck
