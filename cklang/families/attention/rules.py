# SPDX-License-Identifier: MIT
"""The rules of attention: what its pipelines ask of an algorithm, and a kernel of a problem.

Those of an algorithm are CK Tile's: static assertions of its pipelines, the limits of its tile
distributions, and what its own generator makes. Those of a problem are our kernel's.
"""

import math
from collections.abc import Iterator

from cklang.arch import ArchSpec, AttentionTile
from cklang.families.attention.buffers import buffer_order, is_raced, steps_of
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    MaskKind,
    ScoreKind,
)
from cklang.families.attention.pipelines import MOST_HEAD, PIPELINE_FACTS
from cklang.families.attention.problem import AttentionCase
from cklang.families.bounds import (
    among,
    at_least,
    at_most,
    by_extents,
    encoded_for,
    equal,
    first,
    multiple,
    narrow_access,
    one_of,
)
from cklang.families.rule import RuleSet, Violation
from cklang.types import DType
from cklang.widths import BUFFER_BYTES, DWORD_BYTES, I32_MAX

RULES = RuleSet(
    placeholder=AttentionAlgorithm(
        tile=(1, 1, 1, 1, 1, 1), warps=(1, 1, 1), warp_tile=(1, 1, 1), vector=1
    )
)
"""The rules of attention forwards."""

_rule, _problem = RULES.algorithm, RULES.problem

_MOST_LENGTH = 2**30 - 1
_LDS_OF_A_STEP = 65536
"""Bytes of Q and K that a step may stage, as CK Tile's generator has it, on every GPU."""
_WIDE = 256
_WIDE_GROUP = 8
"""The matrix instructions of a warp that ``qr`` schedules together where a head is this wide."""
_INSTRUCTION_STEP = 16
"""A warp tile's step is that of its instruction, or several; those of CDNA divide this."""


def rows_of(spec: ArchSpec, dtype: DType) -> Iterator[AttentionTile]:
    """Yield the GPU's tilings for an element type; ``fp8`` there is its own encoding."""
    name = dtype.name.removesuffix("_fnuz")
    return (row for row in spec.attention_tiles if name in row.dtypes)


def walks_over_heads(signature: AttentionSignature, spec: ArchSpec) -> bool:
    """Whether the GPU has a pipeline without a limit of heads for what a kernel computes."""
    pipelines = {name for row in rows_of(spec, signature.dtype) for name in row.pipelines}
    any_head = any(PIPELINE_FACTS[AttentionPipeline(name)].any_head for name in pipelines)
    return any_head and not signature.dropout


@_rule("attention-encoding", "a GPU has one encoding of 8-bit floats, or none", reads=())
def _encoding(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return encoded_for(spec, {"q, k and v": s.dtype, "o": s.dtype_o})


@_rule(
    "attention-dtype", "a GPU's attention multiplies the types that it has tilings for", reads=()
)
def _dtype(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if any(rows_of(spec, s.dtype)):
        return None
    known = dict.fromkeys(name for row in spec.attention_tiles for name in row.dtypes)
    what = f"the element type of q, k and v on {spec.name}"
    bound = f"one of {', '.join(known)}" if known else "none: the pinned tree has no kernel for it"
    return Violation(what=what, value=s.dtype.name, bound=bound)


@_rule(
    "attention-pipeline",
    "CK Tile's pipelines do not all work for every GPU and element type",
    reads=("pipeline",),
)
def _pipeline(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    known = dict.fromkeys(name for row in rows_of(spec, s.dtype) for name in row.pipelines)
    what = f"the pipeline for {s.dtype} on {spec.name}"
    return among(what, a.pipeline.value, known) if known else None


@_rule(
    "attention-tiling",
    "some pipelines do not work in every tiling that the GPU's table has",
    reads=("pipeline", "tile", "warps", "warp_tile"),
)
def _tiling(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    what = f"the pipeline in tiles of {by_extents(a.tile)}"
    return first(
        among(what, a.pipeline.value, row.pipelines)
        for row in rows_of(spec, s.dtype)
        if (row.tile, (row.warps, 1, 1), row.warp_tile) == (a.tile, a.warps, a.warp_tile)
    )


@_rule(
    "attention-instruction", "the GPU has a fixed set of matrix instructions", reads=("warp_tile",)
)
def _instruction(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    name = s.dtype.family
    legal = spec.tiles(name, name, "f32")
    return one_of(f"the warp tile for {name} on {spec.name}", a.warp_tile, legal)


@_rule("attention-warps", "the warps of a block share out its queries", reads=("warps",))
def _warps(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if a.warps[1:] == (1, 1):
        return None
    return Violation(what="the warps", value=by_extents(a.warps), bound=f"{a.warps[0]}x1x1")


@_rule("attention-threads", "a workgroup has a limited number of threads", reads=("warps",))
def _threads(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    threads = math.prod(a.warps) * spec.wave_size
    return at_most("threads of a workgroup", threads, spec.max_threads_per_block)


_DIVIDES = ("tile", "warps", "warp_tile")


@_rule("attention-tile-q", "the queries of a tile are whole warp tiles", reads=_DIVIDES)
def _tile_q(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return multiple("the queries of a tile", a.tile[0], a.warps[0] * a.warp_tile[0])


@_rule("attention-tile-k", "the keys of a tile are whole warp tiles", reads=_DIVIDES)
def _tile_k(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return multiple("the keys of a tile", a.tile[1], a.warps[1] * a.warp_tile[1])


@_rule("attention-tile-v", "the head of v in a tile is whole warp tiles", reads=_DIVIDES)
def _tile_v(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return multiple("the head size of v in a tile", a.tile[3], a.warps[1] * a.warp_tile[1])


@_rule(
    "attention-step-d",
    "a tile's head is whole steps, and a step whole warp tiles",
    reads=("tile", "warp_tile"),
)
def _step_d(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    violation = multiple("the head size of a tile", a.tile[5], a.tile[2])
    return violation or multiple("the step along the head", a.tile[2], a.warp_tile[2])


@_rule(
    "attention-step-k",
    "a tile's keys are whole steps of the second product, and a step whole warp tiles",
    reads=("tile", "warp_tile"),
)
def _step_k(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    violation = multiple("the keys of a tile", a.tile[1], a.tile[4])
    return violation or multiple("the step along the keys", a.tile[4], a.warp_tile[2])


@_rule("attention-loops", "a pipeline loads some steps ahead", reads=("tile", "pipeline"))
def _loops(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    least = PIPELINE_FACTS[a.pipeline].least_steps
    what = f"the steps along the head in {a.pipeline.value}"
    return at_least(what, a.tile[5] // a.tile[2], least)


@_rule(
    "attention-head-limit", "no pipeline holds a longer head in a tile", reads=("tile", "pipeline")
)
def _head_limit(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if PIPELINE_FACTS[a.pipeline].any_head:
        return None  # attention-long-registers
    violation = at_most("the head size of a tile", a.tile[5], MOST_HEAD)
    return violation or at_most("the head size of v in a tile", a.tile[3], MOST_HEAD)


def _is_ruled(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> bool:
    """Whether CK Tile's generator has conditions of its own for such tiles."""
    narrow = not spec.has_wmma and s.dtype.bytes < DWORD_BYTES
    facts = PIPELINE_FACTS[a.pipeline]
    return narrow and not facts.transposed and not facts.any_head


def _heads(a: AttentionAlgorithm) -> tuple[int, int]:
    return a.tile[5], a.tile[3]


_SQUARE = (128, 128)
_QUERIES = (64, 128, 192, 256)


@_rule(
    "attention-tile-128",
    "CK Tile's generator makes kernels of head size 128 for CDNA with 128 keys of a tile, the "
    "asynchronous one with 128 queries too",
    reads=("tile", "pipeline"),
)
def _tile_128(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not _is_ruled(a, s, spec) or _heads(a) != _SQUARE:
        return None
    violation = equal("the keys of a tile", a.tile[1], 128)
    if violation is None and PIPELINE_FACTS[a.pipeline].buffers:
        return equal("the queries of a tile", a.tile[0], 128)
    return violation


@_rule(
    "attention-tile-rows",
    "CK Tile's generator makes kernels of other head sizes for CDNA with whole 64 queries",
    reads=("tile", "pipeline"),
)
def _tile_rows(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not _is_ruled(a, s, spec) or _heads(a) == _SQUARE:
        return None
    return among("the queries of a tile", a.tile[0], _QUERIES)


@_rule(
    "attention-step-128",
    "CK Tile's generator makes no kernel of head size 128 for CDNA with a step of 64 but the "
    "asynchronous one",
    reads=("tile", "pipeline"),
)
def _step_128(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    far = a.tile[2] == 64 and not PIPELINE_FACTS[a.pipeline].buffers
    if not (far and _is_ruled(a, s, spec) and _heads(a) == _SQUARE):
        return None
    return Violation(what="the step along the head", value="64", bound="another than 64")


@_rule(
    "attention-schedule",
    "where a head is 256 wide, qr schedules its matrix instructions by eights",
    reads=("tile", "warps", "warp_tile", "pipeline"),
)
def _schedule(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if a.pipeline is not AttentionPipeline.QR or a.tile[5] != _WIDE or spec.has_wmma:
        return None
    m, n, k = a.warp_tile
    tiles = (a.tile[0] // m) * (a.tile[1] // n) // a.warps[0]
    count = tiles * (a.tile[2] // min(k, _INSTRUCTION_STEP))
    return multiple("matrix instructions of a step", count, _WIDE_GROUP)


@_rule("attention-lds", "what a pipeline stages fits its share of LDS", reads=("tile", "pipeline"))
def _lds(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    m0, n0, k0, n1, k1, head = a.tile
    facts, size = PIPELINE_FACTS[a.pipeline], s.dtype.bytes
    if facts.transposed:
        return None  # attention-transposed-lds
    if facts.buffers:
        staged = facts.buffers * max(n0 * k0, n1 * k1) * size
        return at_most("LDS bytes of K and V", staged, spec.lds_bytes)
    violation = at_most("LDS bytes of Q and K in a step", (m0 + n0) * k0 * size, _LDS_OF_A_STEP)
    if violation is not None or not facts.query_in_lds:
        return violation
    staged = (m0 * head + max(n0 * k0, n1 * k1)) * size
    return at_most("LDS bytes of Q, K and V", staged, spec.lds_bytes)


@_rule(
    "attention-async-load",
    "every thread has equally many loads straight into LDS, each as wide as the GPU has them",
    reads=("tile", "warps", "pipeline"),
)
def _async_load(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not PIPELINE_FACTS[a.pipeline].buffers:
        return None
    width = spec.lds_load_bytes // s.dtype.bytes
    threads = math.prod(a.warps) * spec.wave_size
    # The pipeline deals K out by the step of the second product.
    return multiple("the elements of K in a step", a.tile[1] * a.tile[4], threads * width)


@_rule(
    "attention-async-steps",
    "a wave writes no buffer of LDS that others still read",
    reads=("tile", "pipeline"),
)
def _async_steps(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    steps_d, steps_k = steps_of(a)
    if not PIPELINE_FACTS[a.pipeline].buffers or min(steps_d, steps_k) < 1:
        return None
    if not is_raced(buffer_order(steps_d, steps_k), steps_d):
        return None
    what = f"the steps along the keys where {steps_d} go along the head"
    return Violation(what=what, value=str(steps_k), bound="2 or more")


@_rule(
    "attention-async-pads",
    "a pipeline may have been written for padded tensors alone",
    reads=("pipeline", "pad_q", "pad_k", "pad_d", "pad_dv"),
)
def _async_pads(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    for name in PIPELINE_FACTS[a.pipeline].padded:
        if not getattr(a, name):
            return Violation(what=f"{name} in {a.pipeline.value}", value="false", bound="true")
    return None


@_rule(
    "attention-packed-pads",
    "sequences of different lengths end inside a tile",
    reads=("pad_q", "pad_k"),
)
def _packed_pads(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not (s.packed or s.paged) or (a.pad_q and a.pad_k):
        return None
    name = "pad_k" if a.pad_q else "pad_q"
    what = f"{name} of {'packed sequences' if s.packed else 'keys in pages'}"
    return Violation(what=what, value="false", bound="true")


@_rule(
    "attention-split-pads",
    "a workgroup's part of the keys may be empty, which a kernel that pads keys looks for",
    reads=("pad_k",),
)
def _split_pads(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not s.split or a.pad_k:
        return None
    return Violation(what="pad_k where keys are split", value="false", bound="true")


@_rule("attention-paged", "keys in pages are looked up by a tensor view", reads=("pipeline",))
def _paged(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not s.paged:
        return None
    legal = [pipeline.value for pipeline, facts in PIPELINE_FACTS.items() if facts.paged]
    return among("the pipeline of keys in pages", a.pipeline.value, legal)


@_rule("attention-blocks", "tiles that are no neighbours are found by a view", reads=("pipeline",))
def _blocks(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if s.blocks is None:
        return None
    legal = [pipeline.value for pipeline, facts in PIPELINE_FACTS.items() if facts.paged]
    return among("the pipeline that skips blocks", a.pipeline.value, legal)


@_rule("attention-vector", "an access moves a power of two of bytes, 16 at most", reads=("vector",))
def _vector(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return narrow_access("the vector along a head", a.vector, s.dtype)


@_rule(
    "attention-async-vector",
    "loads straight into LDS are as wide as the GPU has them: neighbours in LDS are one access",
    reads=("vector", "pipeline"),
)
def _async_vector(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not PIPELINE_FACTS[a.pipeline].buffers:
        return None
    return at_least("the vector along a head", a.vector, spec.lds_load_bytes // s.dtype.bytes)


@_problem(
    "attention-lengths-pad",
    "sequences with lengths of their own end inside a tile",
    reads=("pad_q", "pad_k"),
)
def _lengths_pad(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if "lengths_k" not in c.values or (a.pad_q and a.pad_k):
        return None
    name = "pad_k" if a.pad_q else "pad_q"
    return Violation(what=f"{name} with lengths of keys", value="false", bound="true")


@_problem(
    "attention-no-keys",
    "a sequence without keys has o = 0, for which a pipeline must look",
    reads=("pipeline",),
)
def _no_keys(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    # Where lengths are on the device, each may be 0.
    may_lack_keys = c.signature.packed or "lengths_k" in c.values or c.problem.seqlen_k == 0
    if not may_lack_keys or c.signature.mask is not MaskKind.NONE:
        return None
    looks = [pipeline.value for pipeline, facts in PIPELINE_FACTS.items() if facts.looks_for_keys]
    return among("the pipeline of sequences that may have no keys", a.pipeline.value, looks)


@_problem("attention-skip", "the kernel that combines splits skips no sequence", reads=())
def _skip(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if "min_seqlen_q" not in c.values or not c.signature.split:
        return None
    return Violation(what="the splits with min_seqlen_q", value=str(c.problem.splits), bound="1")


@_problem("attention-heads", "heads of q share those of k and v evenly", reads=())
def _groups(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    return multiple("the number of query heads", c.problem.heads, max(c.problem.kv_heads, 1))


@_problem("attention-scale", "CK Tile's own scores are scaled by a number above 0", reads=())
def _scale(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if c.signature.score is ScoreKind.FUNCTION or c.problem.scale > 0:
        return None
    return Violation(what="the scale", value=f"{c.problem.scale:g}", bound="above 0")


@_problem("attention-window", "positions are counted by 32 bits", reads=())
def _window(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    p = c.problem
    named = (("left", p.left), ("right", p.right), ("sink", p.sink))
    return first(at_most(f"{name} of the window", value, _MOST_LENGTH) for name, value in named)


@_problem(
    "attention-head-most",
    "no kernel holds a longer head; compute it as ck.softmax(q @ k.mT * scale) @ v, with two "
    "products and a kernel of rows",
    reads=(),
)
def _head_most(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if walks_over_heads(c.signature, spec):
        return None
    violation = at_most("the head size of q and k", c.problem.hdim_q, MOST_HEAD)
    return violation or at_most("the head size of v", c.problem.hdim_v, MOST_HEAD)


@_problem("attention-head-size", "a tile holds a whole head", reads=("tile", "pipeline"))
def _head_size(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if PIPELINE_FACTS[a.pipeline].any_head:
        return None
    violation = at_most("the head size of q and k", c.problem.hdim_q, a.tile[5])
    return violation or at_most("the head size of v", c.problem.hdim_v, a.tile[3])


@_problem(
    "attention-head-pad",
    "a kernel that does not pad heads has one head size",
    reads=("tile", "pad_d", "pad_dv"),
)
def _head_pad(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    violation = None if a.pad_d else equal("the head size of q and k", c.problem.hdim_q, a.tile[5])
    if violation is None and not a.pad_dv:
        return equal("the head size of v", c.problem.hdim_v, a.tile[3])
    return violation


@_problem(
    "attention-length-pad",
    "a kernel that does not pad lengths takes whole tiles",
    reads=("tile", "pad_q", "pad_k"),
)
def _length_pad(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if not a.pad_k and c.problem.seqlen_k == 0:
        return Violation(what="the number of keys", value="0", bound=f"a multiple of {a.tile[1]}")
    violation = (
        None if a.pad_q else multiple("the number of queries", c.problem.seqlen_q, a.tile[0])
    )
    if violation is None and not a.pad_k:
        return multiple("the number of keys", c.problem.seqlen_k, a.tile[1])
    return violation


@_problem(
    "attention-head-vector",
    "one access moves a fixed number of elements along a head",
    reads=("vector",),
)
def _head_vector(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    heads = (
        ("the head size of q and k", c.problem.hdim_q),
        ("the head size of v", c.problem.hdim_v),
    )
    for what, size in heads:
        if size % a.vector:
            padded = math.ceil(size / a.vector) * a.vector
            bound = f"a multiple of {a.vector}: pad the head to {padded}"
            return Violation(what=what, value=str(size), bound=bound)
    return None


@_problem("attention-contiguous", "the elements of a head lie side by side", reads=())
def _contiguous(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    return first(
        equal(f"the stride of the last axis of {name}", step, 1) for name, step in c.steps.items()
    )


@_problem("attention-lists", "lengths, starts and pages lie side by side", reads=())
def _lists(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    return first(equal(f"the stride of {name}", step, 1) for name, step in c.lists.items())


@_problem(
    "attention-alignment", "accesses of a dword or more start at whole dwords", reads=("vector",)
)
def _alignment(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    for name in c.alignments:
        size = (c.signature.dtype_o if name == "o" else c.signature.dtype).bytes
        unit = min(a.vector * size, DWORD_BYTES)
        facts = {f"the address of {name}": c.alignments[name]}
        tensor = getattr(c.problem, name)
        for axis, count in (
            ("batch", 2 if c.problem.page_size else c.problem.batch),
            ("head", c.problem.heads if name in "qo" else c.problem.kv_heads),
            ("seq", c.problem.seqlen_q if name in "qo" else c.problem.seqlen_k),
        ):
            if count > 1:
                stride = getattr(tensor, f"stride_{axis}") * size
                facts[f"the stride of {name} along {axis}, in bytes,"] = stride
        violation = first(multiple(what, value, unit) for what, value in facts.items())
        if violation is not None:
            return violation
    return None


@_problem("attention-head-least", "a head has an element", reads=())
def _head_least(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    violation = at_least("the head size of q and k", c.problem.hdim_q, 1)
    return violation or at_least("the head size of v", c.problem.hdim_v, 1)


@_problem("attention-span", "a head is addressed by 32 bits", reads=())
def _span(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    p, s = c.problem, c.signature
    keys = p.page_size or p.seqlen_k
    v_rows, v_width = (p.hdim_v, keys) if s.transposed_v else (keys, p.hdim_v)
    for name, tensor, rows, width, size in (
        ("q", p.q, p.seqlen_q, p.hdim_q, s.dtype.bytes),
        ("k", p.k, keys, p.hdim_q, s.dtype.bytes),
        ("v", p.v, v_rows, v_width, s.dtype.bytes),
        ("o", p.o, p.seqlen_q, p.hdim_v, s.dtype_o.bytes),
    ):
        if not rows:
            continue
        taken = ((rows - 1) * tensor.stride_seq + width) * size
        violation = at_least(f"the row stride of {name}", tensor.stride_seq if rows > 1 else 0, 0)
        violation = violation or at_most(
            f"the bytes that a head of {name} spans", taken, BUFFER_BYTES
        )
        if violation is not None:
            return violation
    return None


@_problem("attention-lengths", "rows are counted by 32 bits", reads=("tile",))
def _lengths(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    p = c.problem
    tiles = p.batch * p.heads * math.ceil(p.seqlen_q / a.tile[0])
    return (
        at_most("the number of queries", p.seqlen_q, _MOST_LENGTH)
        or at_most("the number of keys", p.seqlen_k, _MOST_LENGTH)
        or at_most("the number of tiles", tiles, I32_MAX)
    )


@_problem("attention-result-rows", "rows of the result do not overlap", reads=())
def _result_rows(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    p = c.problem
    return at_least("the row stride of o", p.o.stride_seq, p.hdim_v) if p.seqlen_q > 1 else None


@_problem("attention-reads", "what score and mask read is addressed by 32 bits", reads=())
def _reads(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    for name, operand in zip(c.reads, c.problem.operands, strict=True):
        pairs = zip(operand.extents, operand.strides, strict=True)
        span = sum((extent - 1) * abs(stride) for extent, stride in pairs)
        violation = at_most(f"the elements that {name} spans", span, I32_MAX)
        if violation is not None:
            return violation
    return None
