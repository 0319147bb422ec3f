# SPDX-License-Identifier: MIT
"""What the gradients of an attention take: each of the launches that give them, term by term.

==========  ==========================================================================
launch      work
==========  ==========================================================================
forward     as in :mod:`cklang.families.attention.cost`; leaves o and lse
dot         reads o and its gradient once, a row a thread
gradient    a workgroup holds a tile of keys of one head and walks over the tiles of queries that
            see them; a step is five matrix products: q k', do v', and those that give dv, dk, dq
dq, dk, dv  sums of parts, an element a thread
==========  ==========================================================================

dq is added to by every tile of keys (or, if it is to be the same each time, each stores a part);
dk and dv are those of a query head, summed over the heads that share keys afterwards. A pipeline
that holds all queries of a head walks over tiles of keys instead, and stores each gradient once.
One for heads of any size computes q k' and do v' in every workgroup that shares a head's columns,
and loads queries and keys in every step.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cklang.arch import ArchSpec, arch
from cklang.dims import ranks, require_integer
from cklang.errors import error
from cklang.families.attention.cost import (
    JOIN_FLOPS,
    SCORE_FLOPS,
    AttentionEstimate,
    AttentionShape,
    StepWork,
    attention_estimate,
    more_loads,
    moved_once,
    overlapped,
    product_rate,
    step_prices,
)
from cklang.families.attention.helper_keys import ReduceKey, reduce_key
from cklang.families.attention.key import AttentionKey, ScoreKind
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS, parts_of_dq
from cklang.families.attention_backward.key import AttentionGradKey
from cklang.families.cost_constants import Constants, fitted
from cklang.widths import I32_MAX

_SOFTMAX_FLOPS = 9.0
"""Vector operations on a score: scale and exponential (four) again, the difference of dp and d, its
product, and two roundings."""
_PART_BYTES = 4.0
_REDUCE_THREADS = 256
_WIDE_SUM = 4
"""Elements of a thread that adds parts, where rows are whole numbers of them: that is what
``reduce_wide.hpp`` says."""
_MEGA = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkgroupTile:
    """What a workgroup has in a step."""

    queries: int
    keys: int
    head: int
    """Elements along a head of q and k, padding included."""
    head_v: int
    """The head size of v and o."""
    columns: int
    """Columns of dq and dk that it computes."""
    columns_v: int
    """Columns of dv."""
    slices: int = 1
    """Workgroups that share the columns of a head, each with all scores."""
    loaded: int
    """Elements that it loads in a step, padding included."""

    @property
    def both(self) -> int:
        """Elements along a head of both."""
        return self.head + self.head_v


def _tile_of(key: AttentionGradKey, shape: AttentionShape) -> _WorkgroupTile:
    queries, keys, step, *_, columns, columns_v = key.algorithm.tile
    facts = GRAD_PIPELINE_FACTS[key.algorithm.pipeline]
    head, head_v, slices = columns, columns_v, 1
    loaded = (keys if facts.all_queries else queries) * (head + head_v)
    if facts.any_head:
        head, head_v = (math.ceil(size / step) * step for size in (shape.head, shape.head_v))
        slices = math.ceil(max(head, head_v) / columns)
        own = queries * (columns + columns_v) + keys * columns
        loaded = (queries + keys) * (head + head_v) + own
    return _WorkgroupTile(
        queries=queries,
        keys=keys,
        head=head,
        head_v=head_v,
        columns=columns,
        columns_v=columns_v,
        slices=slices,
        loaded=loaded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardEstimate:
    """All launches of one call of ``ck.attention_grad``."""

    launches: Mapping[str, AttentionEstimate]
    """Estimates by name, in launch order."""

    @property
    def us(self) -> float:
        """Predicted time in µs: the sum of the launches."""
        return sum(launch.us for launch in self.launches.values())

    def __str__(self) -> str:
        lines = [f"{self.us:.2f} µs predicted for {len(self.launches)} launches"]
        for name, estimate in self.launches.items():
            most = sorted(estimate.terms, key=lambda term: -estimate.terms[term])[:3]
            parts = ", ".join(f"{term} {estimate.terms[term]:.2f}" for term in most)
            lines.append(
                f"  {name:<9}{estimate.us:>10.2f} µs  {estimate.workgroups} workgroups  {parts}"
            )
        return "\n".join(lines)


@ranks
def attention_grad_estimate(
    key: AttentionGradKey, shape: AttentionShape, spec: ArchSpec | None = None
) -> AttentionEstimate:
    """Return the predicted time of the kernel that gives the parts of dq, dk and dv.

    The problem has a query and a key at least: without them nothing is launched.
    """
    if not shape.keys:
        raise error("K011", name="keys", least=1, got=shape.keys)
    gpu = spec or arch(key.arch)
    c = fitted(gpu).constants
    tile = _tile_of(key, shape)
    groups = shape.batch * shape.heads
    all_queries = GRAD_PIPELINE_FACTS[key.algorithm.pipeline].all_queries
    workgroups = groups * (1 if all_queries else math.ceil(shape.keys / tile.keys)) * tile.slices
    steps = groups * shape.query_tiles(tile.queries, tile.keys) * tile.slices
    queue = math.ceil(workgroups / gpu.compute_units)
    rounds = math.ceil(queue / key.algorithm.block_per_cu)
    own_steps = steps / workgroups * queue
    # q k' and the two with ds are as wide as q, the two with do as wide as v.
    products = tile.both + 2 * tile.columns + tile.columns_v
    step_flops = 2.0 * tile.queries * tile.keys * products
    price = _step(key, tile, gpu, c, step_flops)
    busy = own_steps * sum(price.values())
    idle = max(0.0, rounds * own_steps / queue * c.latency_prefetch - busy)
    prologue = rounds * c.prologue
    stored = (own_steps if all_queries else queue) * tile.keys
    epilogue = c.epilogue * stored * (tile.columns + tile.columns_v) * _PART_BYTES / 65536.0
    units = busy + idle + prologue + epilogue
    memory, l2 = _traffic(key, tile, shape, gpu, c, steps)
    added = (
        0.0
        if key.signature.deterministic or all_queries
        else steps / tile.slices * tile.queries * shape.head * _MEGA
    )
    terms = {
        "launch": c.launch,
        "clear": c.split,
        **{name: own_steps * value for name, value in price.items()},
        "latency": idle,
        "prologue": prologue,
        "epilogue": epilogue,
        **overlapped(units, memory, l2),
        "atomics": c.split_atomics * added,
    }
    return AttentionEstimate(
        us=sum(terms.values()),
        terms=terms,
        workgroups=workgroups,
        rounds=rounds,
        steps=steps,
        flops=2.0 * groups * shape.visible * (3 * shape.head + 2 * shape.head_v),
        padded_flops=steps * step_flops,
    )


def _step(
    key: AttentionGradKey, tile: _WorkgroupTile, gpu: ArchSpec, c: Constants, flops: float
) -> dict[str, float]:
    """Return the price of one step in µs, by what it is spent on."""
    s = key.signature.forward
    scores = tile.queries * tile.keys
    facts = GRAD_PIPELINE_FACTS[key.algorithm.pipeline]
    staged = tile.loaded * s.dtype.bytes
    # What is transposed on its way to LDS lies there both ways, or was loaded for it apart.
    kept = staged * (1 if facts.transposed_loads or facts.any_head else 2)
    work = StepWork(
        matrix_flops=flops,
        vector_flops=scores * (_SOFTMAX_FLOPS + SCORE_FLOPS[s.score])
        + (_joined(key, tile) * JOIN_FLOPS if gpu.repeats_rows else 0.0),
        lds_bytes=kept + _read(key, tile) * s.dtype.bytes,
        loaded_bytes=staged,
        more_loads=more_loads(
            tile.loaded, key.algorithm.vector, key.algorithm.warps[0], s.dtype, gpu
        ),
    )
    own, walked, last = key.algorithm.warp_tiles
    rate = product_rate(gpu, s.dtype, own, own, walked, walked, last)
    return step_prices(work, rate, gpu, c)


def _joined(key: AttentionGradKey, tile: _WorkgroupTile) -> int:
    """Return the elements of operands of a step's five products, each as often as warps hold it."""
    queries, keys, scores = tile.queries, tile.keys, tile.queries * tile.keys
    own, walked, last = key.algorithm.warps
    products = (
        (own, queries * tile.head, keys * tile.head),  # q k'
        (own, queries * tile.head_v, keys * tile.head_v),  # do v'
        (walked, scores, queries * tile.columns_v),  # dv
        (walked, scores, queries * tile.columns),  # dk
        (last, scores, keys * tile.columns),  # dq
    )
    return sum(along_n * a + along_m * b for (along_m, along_n, _), a, b in products)


def _read(key: AttentionGradKey, tile: _WorkgroupTile) -> int:
    """Return the elements that a step reads from LDS."""
    scores = tile.queries * tile.keys
    if GRAD_PIPELINE_FACTS[key.algorithm.pipeline].any_head:
        # All operands but the weights of dv and the ds of dk.
        return _joined(key, tile) - 2 * key.algorithm.warps[1][1] * scores
    # What comes by is read as it is and transposed; ds goes through LDS; k is read for dq.
    own, walked, _ = (math.prod(warp) for warp in key.algorithm.warps)
    return tile.loaded * (own + walked) + 2 * scores + tile.keys * tile.head


def _traffic(
    key: AttentionGradKey,
    tile: _WorkgroupTile,
    shape: AttentionShape,
    gpu: ArchSpec,
    c: Constants,
    steps: int,
) -> tuple[float, float]:
    """Return the µs of memory traffic, each tensor once, and of L2 traffic, each tile read."""
    s = key.signature.forward
    groups, both = shape.batch * shape.heads, shape.head + shape.head_v
    parts = parts_of_dq(key, shape.keys)
    moved = float(shape.batch * shape.kv_heads * shape.keys * both * s.dtype.bytes)
    moved += groups * shape.queries * (both * s.dtype.bytes + 2 * _PART_BYTES)
    moved += groups * (parts * shape.queries * shape.head + shape.keys * both) * _PART_BYTES
    squares = (s.score is ScoreKind.BIAS) + key.signature.bias_grad
    moved += groups * shape.visible * s.dtype_bias.bytes * squares
    # Padding is not read.
    l2_reads = steps * tile.loaded * both / tile.both * s.dtype.bytes * _MEGA
    return moved_once(moved, gpu, c), l2_reads / c.l2


def reduce_estimate(
    key: ReduceKey, rows: int, width: int, parts: int = 1, spec: ArchSpec | None = None
) -> AttentionEstimate:
    """Return the predicted time of the kernel before the gradient, or of one of those after it.

    It sums ``parts`` tensors; a dot product has two, whatever this says.
    """
    require_integer("rows", rows)
    require_integer("width", width)
    gpu = spec or arch(key.arch)
    c, s = fitted(gpu).constants, key.signature
    wide = _WIDE_SUM if width % _WIDE_SUM == 0 and rows * width <= I32_MAX else 1
    threads = rows if s.dot else rows * width // wide
    read = 2 * s.dtype.bytes if s.dot else parts * s.parts.bytes
    written = rows * _PART_BYTES if s.dot else rows * width * s.dtype.bytes
    workgroups = math.ceil(threads / _REDUCE_THREADS)
    queue = math.ceil(workgroups / gpu.compute_units)
    waves = _REDUCE_THREADS // gpu.wave_size
    rounds = math.ceil(queue * waves / (gpu.max_waves_per_simd * gpu.simds_per_cu))
    prologue = rounds * c.prologue
    terms = {
        "launch": c.launch,
        "prologue": prologue,
        **overlapped(prologue, moved_once(rows * width * read + written, gpu, c), 0.0),
    }
    return AttentionEstimate(
        us=sum(terms.values()),
        terms=terms,
        workgroups=workgroups,
        rounds=rounds,
        steps=width if s.dot else parts,
        flops=0.0,
        padded_flops=0.0,
    )


def backward_estimate(
    forward: AttentionKey,
    gradient: AttentionGradKey,
    shape: AttentionShape,
    spec: ArchSpec | None = None,
) -> BackwardEstimate:
    """Return the predicted times of all launches of one ``ck.attention_grad``.

    Raises:
        CkUnsupportedError: N002, the GPU has no matrix rate for the element type.
        CkValueError: K011, there is no key.
    """
    s = forward.signature
    rows = shape.batch * shape.heads * shape.queries
    kept = shape.batch * shape.kv_heads * shape.keys
    shared = shape.heads // shape.kv_heads
    parts = parts_of_dq(gradient, shape.keys)
    dot, total = (reduce_key(forward.arch, s.dtype, dot=dot) for dot in (True, False))
    return BackwardEstimate(
        launches={
            "forward": attention_estimate(forward, shape, spec),
            "dot": reduce_estimate(dot, rows, shape.head_v, spec=spec),
            "gradient": attention_grad_estimate(gradient, shape, spec),
            "dq": reduce_estimate(total, rows, shape.head, parts, spec),
            "dk": reduce_estimate(total, kept, shape.head, shared, spec),
            "dv": reduce_estimate(total, kept, shape.head_v, shared, spec),
        }
    )
