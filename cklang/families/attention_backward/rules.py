# SPDX-License-Identifier: MIT
"""The rules of the gradients of attention. What arrays must be is as in the forward direction."""

import math

from cklang.arch import ArchSpec
from cklang.families.attention import rules as forward_rules
from cklang.families.attention.key import MaskKind, ScoreKind
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS, MOST_HEAD
from cklang.families.attention.problem import AttentionGradCase as Case
from cklang.families.attention_backward.key import AttentionGradAlgorithm as Algorithm
from cklang.families.attention_backward.key import AttentionGradSignature as Signature
from cklang.families.attention_backward.key import GradPipeline
from cklang.families.bounds import (
    among,
    at_most,
    encoded_for,
    equal,
    first,
    multiple,
    narrow_access,
    one_of,
)
from cklang.families.rule import ProblemCheck, RuleSet, Violation
from cklang.widths import ACCESS_BYTES

RULES = RuleSet(
    placeholder=Algorithm(
        tile=(1, 1, 1, 1, 1, 1, 1, 1, 1),
        warps=((1, 1, 1), (1, 1, 1), (1, 1, 1)),
        warp_tiles=((1, 1, 1), (1, 1, 1), (1, 1, 1)),
        pipeline=GradPipeline.KR_KTR_VR_IGLP,
        vector=1,
    )
)
"""The rules of the gradients of attention."""

_rule, _problem = RULES.algorithm, RULES.problem


def _walks_over_heads(signature: Signature, spec: ArchSpec) -> bool:
    """Whether the GPU has a pipeline without a limit of heads for these gradients."""
    f = signature.forward
    rows = (row for row in spec.attention_grad_tiles if f.dtype.name in row.dtypes)
    pipelines = {GradPipeline(name) for row in rows for name in row.pipelines}
    return not f.dropout and any(GRAD_PIPELINE_FACTS[pipeline].any_head for pipeline in pipelines)


@_rule("attention-grad-encoding", "a GPU has one encoding of 8-bit floats, or none", reads=())
def _encoding(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return encoded_for(spec, {"q, k and v": s.forward.dtype})


@_rule(
    "attention-grad-dtype", "a GPU's gradients multiply the types that it has tilings for", reads=()
)
def _dtype(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    known = dict.fromkeys(name for row in spec.attention_grad_tiles for name in row.dtypes)
    if s.forward.dtype.name in known:
        return None
    what = f"the element type of q, k and v on {spec.name}"
    bound = f"one of {', '.join(known)}" if known else "none: the pinned tree has no kernel for it"
    return Violation(what=what, value=s.forward.dtype.name, bound=bound)


@_rule(
    "attention-grad-plain",
    "the gradients of keys and values are arrays like these, which pages are not",
    reads=(),
)
def _plain(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return equal("paged, for a gradient,", str(s.forward.paged).lower(), "false")


@_rule(
    "attention-grad-bias",
    "the gradient of a bias is that of an added tensor of its own, or a function says of what",
    reads=(),
)
def _bias(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not s.bias_grad or s.derivative:
        return None
    what = "the score of a kernel that gives the gradient of a bias"
    return equal(what, s.forward.score.value, ScoreKind.BIAS.value)


@_rule(
    "attention-grad-pipeline",
    "CK Tile's pipelines do not all work for every GPU and element type",
    reads=("pipeline",),
)
def _pipeline(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    rows = (row for row in spec.attention_grad_tiles if s.forward.dtype.name in row.dtypes)
    known = dict.fromkeys(name for row in rows for name in row.pipelines)
    what = f"the pipeline for {s.forward.dtype} on {spec.name}"
    return among(what, a.pipeline.value, known) if known else None


@_rule(
    "attention-grad-tiling",
    "pipelines that transpose as they load have the tilings of CK Tile's generator, and other "
    "pipelines have others",
    reads=("tile", "warps", "warp_tiles", "pipeline"),
)
def _tiling(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    tiling = (a.tile, a.warps, a.warp_tiles)
    known = dict.fromkeys(
        name
        for row in spec.attention_grad_tiles
        if s.forward.dtype.name in row.dtypes and (row.tile, row.warps, row.warp_tiles) == tiling
        for name in row.pipelines
    )
    free = not known and not GRAD_PIPELINE_FACTS[a.pipeline].transposed_loads
    if free or a.pipeline.value in known:
        return None
    bound = f"one of {', '.join(known)}" if known else "one that does not transpose as it loads"
    return Violation(what="the pipeline of this tiling", value=a.pipeline.value, bound=bound)


@_rule(
    "attention-grad-whole",
    "a pipeline that holds all queries of a head walks over its keys alone: there is no bias to "
    "move along with, no other sequence behind, and no window that hides keys from all",
    reads=("pipeline",),
)
def _all_queries(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not GRAD_PIPELINE_FACTS[a.pipeline].all_queries:
        return None
    f = s.forward
    refused = {
        "score": f.score is ScoreKind.BIAS and f.score.value,
        "bias_grad": s.bias_grad and "true",
        "mask": f.mask in (MaskKind.CAUSAL, MaskKind.WINDOW) and f.mask.value,
        "packed": f.packed and "true",
    }
    for name, value in refused.items():
        if value:
            what = f"{name} in {a.pipeline.value}"
            return Violation(what=what, value=str(value), bound="another pipeline")
    return None


@_rule(
    "attention-grad-instruction",
    "the GPU has a fixed set of matrix instructions",
    reads=("warp_tiles",),
)
def _instruction(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    name = s.forward.dtype.family
    legal = spec.tiles(name, name, "f32")
    what = f"a warp tile for {name} on {spec.name}"
    return first(one_of(what, tile, legal) for tile in a.warp_tiles)


@_rule("attention-grad-warps", "all products are made by the same warps", reads=("warps",))
def _warps(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    counts = [math.prod(warps) for warps in a.warps]
    if len(set(counts)) == 1:
        return None
    shown = ", ".join(map(str, counts))
    return Violation(what="the warps of the products", value=shown, bound="alike")


@_rule("attention-grad-threads", "a workgroup has a limited number of threads", reads=("warps",))
def _threads(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    threads = math.prod(a.warps[0]) * spec.wave_size
    return at_most("threads of a workgroup", threads, spec.max_threads_per_block)


@_rule(
    "attention-grad-steps",
    "the products along the queries take a whole tile of them in one step",
    reads=("tile",),
)
def _steps(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    m0, _, _, k1, _, k3, _, _, _ = a.tile
    return equal("the step of dv", k1, m0) or equal("the step of dk", k3, m0)


@_rule(
    "attention-grad-head-steps",
    "the products along a head take a whole one in one step",
    reads=("tile", "pipeline"),
)
def _head_steps(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if GRAD_PIPELINE_FACTS[a.pipeline].any_head:
        return None  # attention-grad-long-step
    _, _, k0, _, k2, _, _, hdim_q, hdim_v = a.tile
    violation = equal("the step along q and k", k0, hdim_q)
    return violation or equal("the step along v", k2, hdim_v)


@_rule("attention-grad-key-steps", "a tile's keys are whole steps of dq", reads=("tile",))
def _key_steps(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return multiple("the keys of a tile", a.tile[1], a.tile[6])


@_rule(
    "attention-grad-tile",
    "tiles are whole warp tiles of each product",
    reads=("tile", "warps", "warp_tiles"),
)
def _tile(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    m0, n0, k0, _, k2, *_ = a.tile
    # Rows and columns of s = q k', of a step of dv and dk, and of one of dq.
    extents = (((m0, n0),), ((n0, k2), (n0, k0)), ((m0, k0),))
    for products, warps, tile in zip(extents, a.warps, a.warp_tiles, strict=True):
        for rows, columns in products:
            violation = multiple(
                "the rows of a product's tile", rows, warps[0] * tile[0]
            ) or multiple("the columns of a product's tile", columns, warps[1] * tile[1])
            if violation is not None:
                return violation
    return None


@_rule(
    "attention-grad-head-limit",
    "no pipeline holds a longer head in a tile",
    reads=("tile", "pipeline"),
)
def _head_limit(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if GRAD_PIPELINE_FACTS[a.pipeline].any_head:
        return None  # attention-grad-long-registers
    violation = at_most("the head size of a tile", a.tile[7], MOST_HEAD)
    return violation or at_most("the head size of v in a tile", a.tile[8], MOST_HEAD)


@_rule(
    "attention-grad-vector",
    "an access moves a power of two of bytes, 16 at most",
    reads=("vector",),
)
def _vector(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return narrow_access("the vector along a head", a.vector, s.forward.dtype)


@_rule(
    "attention-grad-load",
    "loads straight into LDS that are transposed there move 16 bytes",
    reads=("vector", "pipeline"),
)
def _load(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not GRAD_PIPELINE_FACTS[a.pipeline].transposed_loads:
        return None
    what = f"the bytes of an access in {a.pipeline.value}"
    return equal(what, a.vector * s.forward.dtype.bytes, ACCESS_BYTES)


@_problem(
    "attention-grad-head-most",
    "no kernel of gradients holds a longer head; ck.vjp(op) computes them by products and kernels "
    "of rows",
    reads=(),
)
def _head_most(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    if _walks_over_heads(c.signature, spec):
        return None
    p = c.forward.problem
    violation = at_most("the head size of q and k", p.hdim_q, MOST_HEAD)
    return violation or at_most("the head size of v", p.hdim_v, MOST_HEAD)


@_problem("attention-grad-head-size", "a tile holds a whole head", reads=("tile", "pipeline"))
def _head_size(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    if GRAD_PIPELINE_FACTS[a.pipeline].any_head:
        return None
    p = c.forward.problem
    violation = at_most("the head size of q and k", p.hdim_q, a.tile[7])
    return violation or at_most("the head size of v", p.hdim_v, a.tile[8])


@_problem(
    "attention-grad-queries",
    "a pipeline that holds all queries of a head has one tile of them, and sees all keys",
    reads=("tile", "pipeline"),
)
def _queries(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    if not GRAD_PIPELINE_FACTS[a.pipeline].all_queries:
        return None
    p = c.forward.problem
    for name in ("left", "right"):
        if getattr(p, name) >= 0:
            what = f"{name} of the window in {a.pipeline.value}"
            return Violation(what=what, value=str(getattr(p, name)), bound="none")
    return at_most("the queries of a head", p.seqlen_q, a.tile[0])


@_problem("attention-grad-result", "o has the element type of q, k and v", reads=())
def _result(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    return equal("the element type of o", c.forward.signature.dtype_o, c.forward.signature.dtype)


_SHARED = (
    "heads", "head-vector", "contiguous", "lists", "alignment", "head-least", "span", "window",
    "reads",
)  # fmt: skip
"""The rules of the forward direction that read nothing of an algorithm but its vectors."""


def _of_forward(check: ProblemCheck) -> ProblemCheck:
    def check_forward(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
        return check(c.forward, a, spec)

    return check_forward


def _share() -> None:
    known = {rule.id: rule for rule in forward_rules.RULES.problems}
    for name in _SHARED:
        rule = known[f"attention-{name}"]
        register = _problem(f"attention-grad-{name}", rule.sentence, reads=rule.reads)
        register(_of_forward(rule.check))


_share()
