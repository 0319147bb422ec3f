# SPDX-License-Identifier: MIT
"""Rules about an algorithm for a signature on a GPU: what CK Tile and the hardware allow at all."""

from cklang.arch import ANY, ArchSpec, Forbidden, KnownWrong
from cklang.families.bounds import (
    among,
    at_most,
    encoded_for,
    equal,
    multiple,
    narrow_access,
    one_of,
)
from cklang.families.gemm.key import Algorithm, EpilogueKind, Layout, Pipeline, Signature
from cklang.families.gemm.lower import is_mx, unsupported
from cklang.families.gemm.pipelines import PIPELINES
from cklang.families.gemm.rules import RULES, resources
from cklang.families.gemm.rules.dealing import DealtTile, threads_of, tile_of_a, tile_of_b
from cklang.families.rule import Violation
from cklang.ir.log_sums import COLUMNS
from cklang.types import DType, bf16, f16, i4
from cklang.widths import ACCESS_BYTES


@RULES.algorithm(
    "pipeline", "CK Tile's pipelines do not all work on every GPU", reads=("pipeline",)
)
def _pipeline(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if spec.budget(a.pipeline.value) is not None:
        return None
    legal = ", ".join(p.pipeline for p in spec.pipelines)
    what = f"the pipeline on {spec.name}"
    return Violation(what=what, value=a.pipeline.value, bound=f"one of {legal}")


@RULES.algorithm(
    "computed",
    "functions compute A and B in registers: not where memory is loaded straight into LDS, nor "
    "with a prepared B",
    reads=("pipeline",),
)
def _computed(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if a.pipeline not in PIPELINES or not (s.a or s.b):
        return None
    legal = [name.value for name, row in PIPELINES.items() if row.computed]
    return among("the pipeline of a computed operand", a.pipeline.value, legal)


@RULES.algorithm(
    "gathered",
    "rows at indices are those of a stored A of whole elements, contiguous along K",
    reads=(),
)
def _gathered(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if s.gather is None:
        return None
    facts = (
        ("the layout of A", s.layout_a.value, s.layout_a is Layout.ROW, Layout.ROW.value),
        ("the type of A", s.dtype_a.name, not s.dtype_a.packed, "whole bytes"),
        ("A", s.words, not (s.a or s.sparse), "stored and dense"),
    )
    for what, value, holds, bound in facts:
        if not holds:
            return Violation(what=f"{what}, whose rows are at indices", value=value, bound=bound)
    return None


@RULES.algorithm(
    "combination",
    "CK Tile lacks some combinations of pipeline, epilogue and scheduler",
    reads=("pipeline", "epilogue", "scheduler"),
)
def _combination(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    names = (a.pipeline.value, a.epilogue.value, a.scheduler.value)
    for row in spec.forbidden:
        if _covers(row, names):
            what = "pipeline, epilogue and scheduler"
            return Violation(what=what, value=", ".join(names), bound=f"another: {row.reason}")
    return None


def _covers(row: Forbidden, names: tuple[str, str, str]) -> bool:
    wanted = (row.pipeline, row.epilogue, row.scheduler)
    return all(pattern in (ANY, name) for pattern, name in zip(wanted, names, strict=True))


@RULES.algorithm(
    "multiplied-types", "CK Tile has warp tiles for few types of A and B on each GPU", reads=()
)
def _multiplied_types(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    types = s.multiplied
    if spec.tiles(*types, sparse=s.sparse):
        return None
    rows = (row for row in spec.warp_tiles if row.legal and row.sparse == s.sparse)
    legal = dict.fromkeys(f"{row.a} by {row.b}" for row in rows)
    sparse = "sparse " if s.sparse else ""
    return Violation(
        what=f"A by B on {spec.name}",
        value=f"{sparse}{types[0]} by {types[1]}",
        bound=f"one of {', '.join(legal)}" if legal else f"not {sparse.strip()}",
    )


@RULES.algorithm("packed-along-k", "elements that share a byte are neighbours along K", reads=())
def _packed_along_k(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    wanted = (("A", s.dtype_a, s.layout_a, Layout.ROW), ("B", s.dtype_b, s.layout_b, Layout.COL))
    for name, dtype, layout, required in wanted:
        if dtype.packed and layout is not required:
            axis = 1 if name == "A" else 0
            bound = f"{required.value}: packed along axis {axis} of {name}, which counts K"
            return Violation(what=f"the layout of {name}", value=layout.value, bound=bound)
    return None


@RULES.algorithm(
    "warp-tile", "the GPU has a fixed set of matrix instructions", reads=("warp_tile",)
)
def _warp_tile(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    types = s.multiplied
    sparse = "sparse " if s.sparse else ""
    what = f"the warp tile for {sparse}{types[0]} by {types[1]} to {types[2]} on {spec.name}"
    return one_of(what, a.warp_tile, spec.tiles(*types, sparse=s.sparse))


@RULES.algorithm(
    "packed-run",
    "4-bit integers are converted by eights, which one lane has next to one another along K",
    reads=("warp_tile",),
)
def _packed_run(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if s.dtype_b != i4:
        return None
    _, n, k = a.warp_tile
    return multiple("elements of B in a lane", k * n // spec.wave_size, 8)


@RULES.algorithm("packed-made", "CK Tile makes elements of few types of 4-bit integers", reads=())
def _packed_made(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if s.dtype_b != i4 or s.dtype_a in (f16, bf16) or s.dtype_a.encoding:
        return None
    bound = "f16, bf16 or an 8-bit float"
    return Violation(what="the type of A beside 4-bit integers", value=s.dtype_a.name, bound=bound)


@RULES.algorithm("packed-conv", "the pixels of a convolution are whole bytes", reads=())
def _packed_conv(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    packed = [dtype.name for dtype in (s.dtype_a, s.dtype_b) if dtype.packed]
    if not (s.spatial and packed):
        return None
    what = "the element type of a convolution"
    return Violation(what=what, value=packed[0], bound="8 bits or more")


@RULES.algorithm("computed-type", "functions give elements of whole bytes", reads=())
def _computed_type(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    for name, dtype, operands in (("A", s.dtype_a, s.a), ("B", s.dtype_b, s.b)):
        if operands and dtype.packed:
            what = f"the type of a computed {name}"
            return Violation(what=what, value=dtype.name, bound="8 bits or more")
    return None


@RULES.algorithm("fp8-encoding", "a GPU has one encoding of 8-bit floats, or none", reads=())
def _fp8_encoding(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    named = {"A": s.dtype_a, "B": s.dtype_b, "E": s.dtype_e}
    for name, operands in (("D", s.d), ("operand of A ", s.a), ("operand of B ", s.b)):
        named |= {f"{name}{i}": operand.dtype for i, operand in enumerate(operands)}
    return encoded_for(spec, named)


@RULES.algorithm("warps", "CK Tile arranges the warps of a block in few ways", reads=("warps",))
def _warps(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return one_of(f"the warps on {spec.name}", a.warps, spec.warp_configs)


@RULES.algorithm("threads", "a workgroup has a limited number of threads", reads=("warps",))
def _threads(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    threads = resources.warps_of(a) * spec.wave_size
    return at_most("threads of a workgroup", threads, spec.max_threads_per_block)


_DIVIDES = ("tile", "warps", "warp_tile")


def _tile_rule(axis: str, place: int) -> None:
    def check(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
        unit = a.warps[place] * a.warp_tile[place]
        return multiple(f"the tile along {axis}", a.tile[place], unit)

    sentence = f"the block tile is whole warp tiles along {axis}"
    RULES.algorithm(f"tile-{axis.lower()}", sentence, reads=_DIVIDES)(check)


for _place, _axis in enumerate("MNK"):
    _tile_rule(_axis, _place)


@RULES.algorithm(
    "pair",
    "one half of the waves loads one B of a pair; a wave has as many warp tiles of either",
    reads=("tile", "warps", "warp_tile"),
)
def _pair(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if s.sums == 1:
        return None
    _, repeat = resources.repeats(a)
    return multiple("the number of warps", resources.warps_of(a), 2) or multiple(
        "the number of warp tiles of a wave along N", repeat, 2
    )


_LEAST_BLOCK = 16
"""K of the shortest tiles."""


@RULES.algorithm("scale-block", "a block of K that shares a scale is whole tiles", reads=())
def _scale_block(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return multiple("the block along K of the scales", s.block_k, _LEAST_BLOCK)


@RULES.algorithm(
    "scale-k", "a block of K that shares a scale is whole tiles", reads=("tile", "warp_tile")
)
def _scale_k(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not s.block_k or s.block_k % a.tile[2] == 0 or is_mx(s, a):
        return None
    bound = f"a divisor of the block, {s.block_k}"
    return Violation(what="the tile along K", value=str(a.tile[2]), bound=bound)


@RULES.algorithm(
    "scale-mx",
    "matrix instructions with scales take operands whose K is contiguous",
    reads=("warp_tile", "transpose_c"),
)
def _scale_mx(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not is_mx(s, a) or (s.layouts[:2] == "rc" and not a.transpose_c):
        return None
    layouts = f"{s.layouts}{', C transposed' if a.transpose_c else ''}"
    bound = "rcr, or a warp tile of less than 64 along K"
    return Violation(what="the layouts", value=layouts, bound=bound)


@RULES.algorithm(
    "lds-mainloop",
    "the tiles of A and B that are loaded together fit the pipeline's share of LDS",
    reads=("tile", "pipeline"),
)
def _lds_mainloop(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    budget = spec.budget(a.pipeline.value)
    if budget is None:
        return None
    staged = resources.staged_bytes(a, s)
    return at_most(f"LDS bytes of A and B in {a.pipeline.value}", staged, budget)


@RULES.algorithm(
    "lds-epilogue",
    "what the cshuffle epilogue passes through LDS fits it",
    reads=("tile", "warps", "warp_tile", "epilogue", "vector_e"),
)
def _lds_epilogue(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if a.epilogue is not EpilogueKind.CSHUFFLE:
        return None
    shuffled = resources.shuffled_bytes(a, s, spec)
    return at_most("LDS bytes of the epilogue", shuffled, spec.lds_bytes)


@RULES.algorithm(
    "registers",
    "accumulators, fragments and loads of a lane fit its registers",
    reads=("tile", "warps", "warp_tile", "pipeline", "block_per_cu"),
)
def _registers(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    wanted = resources.registers(a, s, spec)
    return at_most("estimated registers of a lane", wanted, resources.register_limit(a, spec))


@RULES.algorithm(
    "shuffle",
    "the cshuffle epilogue joins warp tiles along M for a wide store, in whole groups",
    reads=("tile", "warps", "warp_tile", "epilogue", "vector_e"),
)
def _shuffle(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    # CK Tile falls back to single tiles in one place and not in another: 47 % of the elements of a
    # 96x64 tile of 16x16 warp tiles were wrong on the emulated gfx942 (benchmarks/known_wrong.py).
    if a.epilogue is not EpilogueKind.CSHUFFLE:
        return None
    repeat, _ = resources.repeats(a)
    joined = resources.joined_tiles(a, spec)
    return multiple("the number of warp tiles of a wave along M", repeat, joined)


@RULES.algorithm(
    "prepared-reads",
    "the pipeline of a prepared B reads the fragments of A in whole 16 bytes",
    reads=("pipeline", "tile", "warps", "warp_tile"),
)
def _prepared_reads(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if a.pipeline is not Pipeline.PRESHUFFLE_V2:
        return None
    m, _, k = a.warp_tile
    repeat, _ = resources.repeats(a)
    read = m * k * s.dtype_a.bytes * repeat // spec.wave_size
    return multiple("bytes of A that a lane reads for a step along K", read, ACCESS_BYTES)


_WIDTHS = "an access moves at most 16 bytes, in powers of two"
_LOADS = "every wave takes whole rows of the tile and every thread equally many accesses"


@RULES.algorithm("load-a", _LOADS, reads=("tile", "warps", "vector_a"))
def _load_a(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return tile_of_a(a, s, spec).refusal(spec)


@RULES.algorithm("load-b", _LOADS, reads=("tile", "warps", "vector_b"))
def _load_b(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    tile = tile_of_b(a, s, spec)
    return tile.refusal(spec) if tile else None


@RULES.algorithm("store-e", _LOADS, reads=("tile", "warps", "warp_tile", "epilogue", "vector_e"))
def _store_e(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if a.epilogue is not EpilogueKind.CSHUFFLE:
        return None
    outer, row = resources.shuffle_extents(a, spec)
    return DealtTile("E", outer, row, a.vector_e, threads_of(a, spec)).refusal(spec)


def _pass_of(columns: int, row: int, a: Algorithm) -> Violation | None:
    """Object unless blocks of so many columns are whole where ``row`` pass through LDS at once."""
    violation = equal("the epilogue", a.epilogue.value, EpilogueKind.CSHUFFLE.value)
    if violation or row % columns == 0 or columns % row == 0:
        return violation
    what, bound = "the columns of a pass through LDS", f"a divisor or a multiple of {columns}"
    return Violation(what=what, value=str(row), bound=bound)


@RULES.algorithm(
    "log-sums",
    "blocks of columns whose log-sum-exps are stored are whole in a tile that passes through LDS",
    reads=("tile", "warps", "warp_tile", "epilogue", "vector_e"),
)
def _log_sums(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not s.layout_e.of_blocks:
        return None
    outer, row = resources.shuffle_extents(a, spec)
    if violation := _pass_of(COLUMNS, row, a):
        return violation
    sums = DealtTile("sums", outer, row, _LOG_SUMS_VECTOR, threads_of(a, spec))
    return multiple("columns of a tile", a.tile[1], COLUMNS) or sums.refusal(spec)


_LOG_SUMS_VECTOR = 4
"""The neighbours that a lane has of a row where log-sum-exps are computed."""


@RULES.algorithm(
    "groups",
    "a group of columns whose largest element the epilogue takes is in one tile, in whole accesses",
    reads=("tile", "warps", "warp_tile", "epilogue", "vector_e"),
)
def _groups(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not s.group:
        return None
    _, row = resources.shuffle_extents(a, spec)
    if violation := _pass_of(s.group, row, a):
        return violation
    width = max(a.vector_e, row // spec.wave_size)
    return multiple("columns of a tile", a.tile[1], s.group) or multiple(
        f"columns of a group and of a pass, {min(row, s.group)},", min(row, s.group), width
    )


def _width_rule(operand: str) -> None:
    letter = operand.lower()

    def check(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
        return _width(operand, getattr(a, f"vector_{letter}"), getattr(s, f"dtype_{letter}"))

    RULES.algorithm(f"width-{letter}", _WIDTHS, reads=(f"vector_{letter}",))(check)


for _operand in "ABE":
    _width_rule(_operand)


@RULES.algorithm(
    "width-d",
    "an access of an epilogue operand moves elements that the thread has of E",
    reads=("vector_e", "vector_d"),
)
def _width_d(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if violation := equal("the number of vector_d", len(a.vector_d), len(s.d)):
        return violation
    for index, (d, vector) in enumerate(zip(s.d, a.vector_d, strict=True)):
        name = f"D{index}"
        if not d.kind.contiguous:
            violation = at_most(f"vector_d of {name}, which is read one by one,", vector, 1)
        elif a.vector_e % vector:
            bound = f"a divisor of vector_e, {a.vector_e}"
            violation = Violation(what=f"vector_d of {name}", value=str(vector), bound=bound)
        else:
            violation = _width(name, vector, d.dtype)
        if violation is not None:
            return violation
    return None


def _width(name: str, vector: int, dtype: DType) -> Violation | None:
    return narrow_access(f"the vector of {name}", vector, dtype)


@RULES.algorithm(
    "known-wrong",
    "combinations that were seen to give wrong results are kept out",
    reads=("pipeline", "epilogue", "tile", "warps", "warp_tile"),
)
def _known_wrong(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    for row in spec.known_wrong:
        if row.excluded and matches(row, a, s):
            return Violation(what="the combination", value=row.id, bound=f"another: {row.claim}")
    return None


def matches(row: KnownWrong, a: Algorithm, s: Signature) -> bool:
    """Whether ``row`` speaks of algorithm ``a`` for signature ``s``."""
    m, n, k = a.warp_tile
    conditions = (
        not row.pipelines or a.pipeline.value in row.pipelines,
        not row.epilogues or a.epilogue.value in row.epilogues,
        resources.warps_of(a) >= row.warps_at_least,
        not row.warp_tile_mn or m in row.warp_tile_mn or n in row.warp_tile_mn,
        not row.warp_tile_k or k in row.warp_tile_k,
        row.operand_bits in (0, s.dtype_a.bits),
        not row.odd_repeat or any(r > 1 and r % 2 for r in resources.repeats(a)),
    )
    return all(conditions)


@RULES.algorithm(
    "generated",
    "cklang writes CK Tile C++ for these choices",
    reads=(
        "pipeline",
        "warps",
        "split_k",
        "stream_k",
        "reduction",
        "persistent",
        "double_buffer",
        "num_wave_groups",
        "transpose_c",
        "special",
        "groups_merged",
    ),
)
def _generated(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    for name, value, legal in unsupported(s, a):
        return Violation(what=name, value=value, bound=legal)
    return None
