# SPDX-License-Identifier: MIT
"""The rules of the pipelines that read V from LDS transposed: what they lack, and their tiles.

They are static assertions of the two pipelines, the shapes of their tile distributions, and what
CK Tile makes kernels of.
"""

import math

from cklang.arch import ArchSpec
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    MaskKind,
    ScoreKind,
)
from cklang.families.attention.pipelines import PIPELINE_FACTS
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention.rules import RULES
from cklang.families.bounds import at_most, by_extents, equal, first, multiple, one_of
from cklang.families.rule import Violation
from cklang.widths import ACCESS_BYTES

_rule, _problem = RULES.algorithm, RULES.problem

_WAVES_OF_A_GROUP = 4
_FEW_QUERIES = 32
_BUFFERED_QUERIES = 128
"""From so many on, ``qr_async_trload`` has two buffers; between the two its loads and its view of K
disagree."""
_SQUARE = (128, 128)
_MOST_KEYS = 64
_WIDE_INSTRUCTION = (32, 32)


_SCORES = (ScoreKind.NONE, ScoreKind.SOFT_CAP, ScoreKind.FUNCTION)
"""What our hook does in the pipelines that have none: it sees a score and its place."""


@_rule(
    "attention-scores",
    "what is done to scores in a pipeline that reads V transposed needs no tensor but the user's",
    reads=("pipeline",),
)
def _scores(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if s.score in _SCORES or not PIPELINE_FACTS[a.pipeline].transposed:
        return None
    what = f"what {a.pipeline.value} does to scores"
    return Violation(what=what, value=s.score.value, bound="none, soft_cap or function")


@_rule(
    "attention-drops",
    "CK Tile's pipelines with Q in LDS or V transposed take dropout as an argument and ignore it",
    reads=("pipeline",),
)
def _drops(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    facts = PIPELINE_FACTS[a.pipeline]
    if not s.dropout or facts.drops or facts.any_head:
        return None
    return Violation(what=f"dropout in {a.pipeline.value}", value="true", bound="false")


@_rule(
    "attention-transposed-heads",
    "CK Tile makes pipelines that read V transposed for few head sizes",
    reads=("pipeline", "tile"),
)
def _heads(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    known = PIPELINE_FACTS[a.pipeline].heads
    if not known:
        return None
    return one_of(f"the head sizes of a tile in {a.pipeline.value}", (a.tile[5], a.tile[3]), known)


@_rule(
    "attention-transposed-queries",
    "qr_async_trload keeps K by steps for few queries and whole for many, and mixes both between",
    reads=("pipeline", "tile"),
)
def _queries(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    queries = a.tile[0]
    few_or_many = queries <= _FEW_QUERIES or queries >= _BUFFERED_QUERIES
    if a.pipeline is not AttentionPipeline.QR_ASYNC_TRLOAD or few_or_many:
        return None
    bound = f"at most {_FEW_QUERIES}, or {_BUFFERED_QUERIES} or more"
    return Violation(what="the queries of a tile", value=str(queries), bound=bound)


@_rule(
    "attention-transposed-keys",
    "CK Tile's generator makes qr_async_trload of head size 128 with fewer keys than 128",
    reads=("pipeline", "tile"),
)
def _keys(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    square = (a.tile[5], a.tile[3]) == _SQUARE
    if a.pipeline is not AttentionPipeline.QR_ASYNC_TRLOAD or not square:
        return None
    return at_most("the keys of a tile", a.tile[1], _MOST_KEYS)


@_rule(
    "attention-transposed-vector",
    "loads straight into LDS whose places are exchanged by row move 16 bytes",
    reads=("pipeline", "vector"),
)
def _vector(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not PIPELINE_FACTS[a.pipeline].transposed:
        return None
    return equal("the vector along a head", a.vector, ACCESS_BYTES // s.dtype.bytes)


@_rule(
    "attention-transposed-load",
    "each thread loads equally many 16 bytes of Q, K and V straight into LDS",
    reads=("pipeline", "tile", "warps"),
)
def _load(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    m0, n0, k0, n1, _, head = a.tile
    facts = PIPELINE_FACTS[a.pipeline]
    if not facts.transposed:
        return None
    unit = math.prod(a.warps) * spec.wave_size * ACCESS_BYTES // s.dtype.bytes
    width = head if m0 >= _BUFFERED_QUERIES else k0
    loads = {"K": n0 * width, "V": n0 * n1} | ({} if facts.wave_groups else {"Q": m0 * head})
    return first(
        multiple(f"the elements of {name} in a tile", n, unit) for name, n in loads.items()
    )


@_rule(
    "attention-transposed-lds",
    "what a pipeline that reads V transposed stages fits LDS",
    reads=("pipeline", "tile"),
)
def _lds(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    m0, n0, k0, n1, _, head = a.tile
    facts = PIPELINE_FACTS[a.pipeline]
    if not facts.transposed:
        return None
    two = 2 * n0 * (head + n1)
    if facts.wave_groups:
        staged = max(m0 * n1, two + m0 * n0)
    else:
        staged = max(m0 * head, two if m0 >= _BUFFERED_QUERIES else n0 * (k0 + n1))
    return at_most("LDS bytes of Q, K and V", staged * s.dtype.bytes, spec.lds_bytes)


@_rule(
    "attention-one-step",
    "v3 takes one step along the head and one along the keys of a tile",
    reads=("pipeline", "tile"),
)
def _one_step(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    _, n0, k0, _, k1, head = a.tile
    if not PIPELINE_FACTS[a.pipeline].wave_groups:
        return None
    return equal("the steps of a tile", f"{k0} and {k1}", f"{head} and {n0}")


@_rule("attention-wave-groups", "v3 has two groups of four waves", reads=("pipeline", "warps"))
def _wave_groups(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    waves = PIPELINE_FACTS[a.pipeline].wave_groups * _WAVES_OF_A_GROUP
    if not waves or math.prod(a.warps) == waves:
        return None
    return Violation(what="the warps", value=by_extents(a.warps), bound=f"{waves}x1x1")


@_rule(
    "attention-row-of-a-thread",
    "in v3 a thread has one query, of an instruction of 32 by 32 scores",
    reads=("pipeline", "tile", "warps", "warp_tile"),
)
def _row(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not PIPELINE_FACTS[a.pipeline].wave_groups:
        return None
    if a.warp_tile[:2] != _WIDE_INSTRUCTION:
        return Violation(what="the warp tile", value=by_extents(a.warp_tile), bound="32x32 by any")
    return equal("the queries of a tile", a.tile[0], a.warps[0] * a.warp_tile[0])


@_problem(
    "attention-two-tiles",
    "v3 without a mask waits for a second tile of keys only where it looks for padding or a third",
    reads=("pipeline", "pad_k", "tile"),
)
def _two_tiles(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    s, keys = c.signature, 2 * a.tile[1]
    looks = a.pad_k or s.mask is not MaskKind.NONE or s.score is not ScoreKind.NONE
    if not PIPELINE_FACTS[a.pipeline].wave_groups or looks or c.problem.seqlen_k != keys:
        return None
    return Violation(what="pad_k of two tiles of keys", value="false", bound="true")


@_problem(
    "attention-masked-scale",
    "v3 starts from the least f32, which times a scale above ln 2 overflows if nothing is seen yet",
    reads=("pipeline",),
)
def _masked_scale(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    masked = c.signature.mask is not MaskKind.NONE
    if not PIPELINE_FACTS[a.pipeline].wave_groups or not masked or c.problem.scale <= math.log(2):
        return None
    what = f"the scale of masked scores in {a.pipeline.value}"
    return Violation(what=what, value=f"{c.problem.scale:g}", bound=f"at most {math.log(2):.3f}")
