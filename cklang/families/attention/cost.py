# SPDX-License-Identifier: MIT
"""What an attention kernel takes, term by term: the GEMM model's prices, attention's counts.

A workgroup holds a tile of queries of one head and walks over the key tiles that its mask leaves.
Each is one step: the product with the keys, the softmax of the scores, the product with the values.
Rates, bandwidths and latencies are those of the GPU and of the constants fitted for its GEMMs
(:mod:`cklang.families.cost_constants`); no attention kernel was measured, so the order of
candidates, set beside the clock's by ``benchmarks/attention_choice.py``, is more to be trusted than
the µs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import harmonic_mean

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec, arch
from cklang.dims import ranks, require_integer
from cklang.errors import error
from cklang.families.attention.key import AttentionKey, ScoreKind
from cklang.families.attention.pipelines import PIPELINE_FACTS
from cklang.families.attention.space import widest
from cklang.families.cost_constants import Constants, fitted
from cklang.families.memory_cost import cache_bytes, matrix_rate
from cklang.types import DType

_SOFTMAX_FLOPS = 8.0
"""Vector operations on a score: scale, maximum, subtraction, sum, rounding; and the exponential,
which takes the time of four. What more there is hides behind the products of other workgroups."""
_SOFTMAX_ALONE = 60.0
"""The same where groups of waves take turns and nothing else hides what one of them does: fifteen
instructions; each takes the time of four operations (counted on the emulated GPU)."""
_TURNED_FLOPS = 2.0
"""Vector operations on an element of v that is transposed in registers on its way to LDS: for each
pair a permutation."""
SCORE_FLOPS: Mapping[ScoreKind, float] = {
    ScoreKind.NONE: 0.0,
    ScoreKind.BIAS: 2.0,
    ScoreKind.ALIBI: 4.0,
    ScoreKind.SOFT_CAP: 12.0,
    # What a user's function does is not known; a division and an exponential stand for it.
    ScoreKind.FUNCTION: 12.0,
}
JOIN_FLOPS = 1.5
"""Vector operations on an element of an operand in registers that both half-waves need: for each
pair of elements a permutation and two selections."""
_MEGA = 1e-6
_PARTIAL_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """The extents of an attention: q [batch, heads, queries, head], k and v with ``kv_heads``."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head: int
    head_v: int
    left: int = -1
    """Keys that a query sees before its own place; -1 for all. So for those after it."""
    right: int = -1
    from_bottom_right: bool = False
    """Whether the last query, not the first, stands at the last (first) key."""
    sink: int = 0
    """First keys that every query sees that comes after them, whatever ``left`` says."""
    splits: int = 1
    """Workgroups that share the keys of a tile of queries."""

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "kv_heads", "queries", "head", "head_v", "splits"):
            require_integer(name, getattr(self, name))
        for name in ("keys", "sink"):
            require_integer(name, getattr(self, name), 0)

    @property
    def _shift(self) -> int:
        """The key that query 0 stands at."""
        return self.keys - self.queries if self.from_bottom_right else 0

    def key_tiles(self, queries: int, keys: int) -> int:
        """Return how many tiles of ``keys`` all tiles of ``queries`` of one head walk over."""
        first = np.arange(0, self.queries, queries)
        last = first + queries - 1  # the mask does not know how many queries there are
        begin, end = np.zeros_like(first), np.full_like(first, self.keys)
        if self.left >= 0 and not self.sink:
            begin = np.maximum(first + self._shift - self.left, 0)
        if self.right >= 0:
            end = np.minimum(end, last + self._shift + self.right + 1)
        return _walked(begin, end, keys)

    def query_tiles(self, queries: int, keys: int) -> int:
        """Return how many tiles of ``queries`` all tiles of ``keys`` of one head walk over."""
        first = np.arange(0, self.keys, keys)
        last = first + keys - 1  # nor how many keys
        begin, end = np.zeros_like(first), np.full_like(first, self.queries)
        if self.right >= 0:
            begin = np.maximum(first - self._shift - self.right, 0)
        if self.left >= 0:
            window_end = np.minimum(end, last - self._shift + self.left + 1)
            end = np.where(first < self.sink, end, window_end)
        return _walked(begin, end, queries)

    @property
    def visible(self) -> int:
        """How many scores of one head the mask leaves."""
        scores = replace(self, sink=0).key_tiles(1, 1)
        if self.sink and self.left >= 0:
            # Of the sink, what lies before the window of a query.
            begin = np.arange(self.queries) + self._shift - self.left
            scores += int(np.clip(begin, 0, min(self.sink, self.keys)).sum())
        return scores


def _walked(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64], length: int) -> int:
    """Return how many tiles of ``length`` reach from each begin to its end, all together."""
    tiles = -(-end // length) - begin // length
    return int(np.where(begin < end, tiles, 0).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionEstimate:
    """A prediction, term by term."""

    us: float
    """Predicted time in µs: the sum of the terms."""
    terms: Mapping[str, float]
    workgroups: int
    rounds: int
    """Waves of workgroups over the compute units, the last partial one included."""
    steps: int
    """Key tiles of all workgroups."""
    flops: float
    """Multiplications and additions that the visible scores need."""
    padded_flops: float
    """What the matrix instructions do."""

    @property
    def padding(self) -> float:
        """Part of the matrix instructions that works on padding or masked scores, from 0 to 1."""
        return 1.0 - self.flops / self.padded_flops if self.padded_flops else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkgroupTile:
    """What a workgroup has of a problem in one step."""

    queries: int
    keys: int
    head: int
    """Elements along a head of q and k, padding included."""
    columns: int
    """The columns of v and o."""
    slices: int = 1
    """Workgroups that share the columns of v, each with all scores."""
    reread: int = 0
    """Elements of q that it reads again in every step."""


def _tile_of(key: AttentionKey, shape: AttentionShape) -> _WorkgroupTile:
    queries, keys, step, columns, _, head = key.algorithm.tile
    if not PIPELINE_FACTS[key.algorithm.pipeline].any_head:
        return _WorkgroupTile(queries=queries, keys=keys, head=head, columns=columns)
    padded = math.ceil(shape.head / step) * step
    return _WorkgroupTile(
        queries=queries,
        keys=keys,
        head=padded,
        columns=columns,
        slices=math.ceil(shape.head_v / columns),
        reread=queries * padded,
    )


@ranks
def attention_estimate(
    key: AttentionKey, shape: AttentionShape, spec: ArchSpec | None = None
) -> AttentionEstimate:
    """Return the predicted time of one kernel on one problem.

    Raises:
        CkUnsupportedError: N002, the GPU has no matrix rate for the element type.
    """
    gpu = spec or arch(key.arch)
    c = fitted(gpu).constants
    tile = _tile_of(key, shape)
    tiles = math.ceil(shape.queries / tile.queries)
    steps = shape.key_tiles(tile.queries, tile.keys)
    groups = shape.batch * shape.heads * tile.slices
    workgroups = groups * tiles * shape.splits
    # Workgroups that are there at once, and what the busiest compute unit does of all steps.
    queue = math.ceil(workgroups / gpu.compute_units)
    rounds = math.ceil(queue / key.algorithm.block_per_cu)
    own_steps = groups * steps / workgroups * queue
    step_flops = 2.0 * tile.queries * tile.keys * (tile.head + tile.columns)
    price = _step(key, tile, gpu, c, step_flops)
    memory, l2 = _traffic(key, shape, tile, gpu, c, groups * steps)
    busy = own_steps * sum(price.values())
    idle = max(0.0, rounds * own_steps / queue * c.latency_prefetch - busy)
    stored = _PARTIAL_BYTES if shape.splits > 1 else key.signature.dtype_o.bytes
    written = tile.queries * tile.columns * stored
    units = busy + idle + rounds * c.prologue + queue * c.epilogue * written / 65536.0
    terms = {"launch": c.launch * (2 if shape.splits > 1 else 1)}
    terms |= {name: own_steps * value for name, value in price.items()}
    terms |= {
        "latency": idle,
        "prologue": rounds * c.prologue,
        "epilogue": queue * c.epilogue * written / 65536.0,
        **overlapped(units, memory, l2),
        "combine": _combine(shape, c),
    }
    return AttentionEstimate(
        us=sum(terms.values()),
        terms=terms,
        workgroups=workgroups,
        rounds=rounds,
        steps=groups * steps,
        flops=2.0 * shape.batch * shape.heads * shape.visible * (shape.head + shape.head_v),
        padded_flops=groups * steps * step_flops,
    )


def _step(
    key: AttentionKey, tile: _WorkgroupTile, gpu: ArchSpec, c: Constants, flops: float
) -> dict[str, float]:
    """Return the price of one key tile in µs, by what it is spent on."""
    s, a = key.signature, key.algorithm
    facts = PIPELINE_FACTS[a.pipeline]
    softmax = _SOFTMAX_ALONE if facts.wave_groups else _SOFTMAX_FLOPS
    turned = 0 if facts.transposed else tile.keys * tile.columns
    moved = tile.keys * (tile.head + tile.columns)
    staged, again = moved * s.dtype.bytes, tile.reread * s.dtype.bytes
    # Queries and weights, in registers, are joined; keys and values are read from LDS twice.
    joined = tile.queries * (tile.head + tile.keys) if gpu.repeats_rows else 0
    readers = math.prod(a.warps) * (2 if gpu.repeats_rows else 1)
    work = StepWork(
        matrix_flops=flops,
        vector_flops=tile.queries * tile.keys * (softmax + SCORE_FLOPS[s.score])
        + joined * JOIN_FLOPS
        + turned * _TURNED_FLOPS,
        # All warps read all of K and V, and each its own rows of Q.
        lds_bytes=staged + staged * readers + 2 * again,
        loaded_bytes=staged + again,
        more_loads=more_loads(moved + tile.reread, a.vector, a.warps, s.dtype, gpu),
    )
    rate = product_rate(gpu, s.dtype, a.warp_tile)
    price = step_prices(work, rate, gpu, c)
    return _alternated(price) if facts.wave_groups else price


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What a workgroup does in one step."""

    matrix_flops: float
    vector_flops: float
    lds_bytes: float
    """Written to LDS and read from it."""
    loaded_bytes: float
    more_loads: float = 0.0
    """Loads of a thread beyond those that the widest accesses would take."""


def more_loads(
    elements: int, vector: int, warps: Sequence[int], dtype: DType, gpu: ArchSpec
) -> float:
    """Return the loads of a thread beyond those of the widest accesses.

    The workgroup loads ``elements`` in one step, ``vector`` of them by one access of a lane.
    """
    threads = math.prod(warps) * gpu.wave_size
    return elements / threads * max(1 / vector - 1 / widest(dtype), 0.0)


def product_rate(gpu: ArchSpec, dtype: DType, *warp_tiles: tuple[int, int, int]) -> float:
    """Return the matrix rate of products that are as large as one another, by their warp tiles."""
    types = (dtype.family, dtype.family, "f32")
    return harmonic_mean([matrix_rate(gpu, types, warp_tile) for warp_tile in warp_tiles])


def step_prices(work: StepWork, rate: float, gpu: ArchSpec, c: Constants) -> dict[str, float]:
    """Return the price of a step in µs, by what it is spent on."""
    clock = gpu.clock_hz * _MEGA
    return {
        "matrix": c.matrix * work.matrix_flops / (rate * clock),
        "softmax": work.vector_flops / (gpu.vector_flops_per_clock * clock),
        "lds": c.lds * work.lds_bytes / (gpu.lds_bytes_per_clock * clock),
        "load": c.load * work.loaded_bytes / (gpu.l1_bytes_per_clock * clock)
        + c.load_issue * work.more_loads,
        "issue": c.issue,
    }


def _alternated(price: Mapping[str, float]) -> dict[str, float]:
    """Return the price of a step of wave groups that take turns.

    One multiplies while the other does the rest; what takes longer remains.
    """
    rest = sum(price.values()) - price["matrix"]
    left = max(rest - price["matrix"], 0.0) / rest
    return {name: cost * (1.0 if name == "matrix" else left) for name, cost in price.items()}


def _traffic(
    key: AttentionKey,
    shape: AttentionShape,
    tile: _WorkgroupTile,
    gpu: ArchSpec,
    c: Constants,
    steps: int,
) -> tuple[float, float]:
    """Return the µs of memory traffic, each tensor once, and of L2 traffic, each tile read."""
    s = key.signature
    heads = shape.batch * shape.heads
    kept = shape.batch * shape.kv_heads * shape.keys * (shape.head + shape.head_v) * s.dtype.bytes
    rows = heads * shape.queries
    moved = kept + rows * (shape.head * s.dtype.bytes + shape.head_v * s.dtype_o.bytes)
    if s.score is ScoreKind.BIAS:
        moved += heads * shape.visible * s.dtype_bias.bytes
    columns = min(shape.head_v, tile.columns)
    read = tile.keys * (shape.head + columns) + tile.reread
    l2_reads = steps * read * s.dtype.bytes * _MEGA
    return moved_once(moved, gpu, c), l2_reads / c.l2


def moved_once(size: float, gpu: ArchSpec, c: Constants) -> float:
    """Return the µs that so many bytes take from or to memory, or the last cache before it."""
    footprint = size * _MEGA
    warm = 1.0 / (1.0 + (footprint / (cache_bytes(gpu) * _MEGA)) ** 2)
    return footprint * (warm / c.memory_warm + (1.0 - warm) / c.memory_cold)


def overlapped(units: float, memory: float, l2: float) -> dict[str, float]:
    """Return the terms of memory and L2: what they add to the time of the compute units, in µs.

    The three overlap in part, as in :func:`cklang.families.gemm.cost.terms.times`.
    """
    together = (units**1.5 + memory**1.5 + l2**1.5) ** (2.0 / 3.0)
    share = memory**1.5 / (memory**1.5 + l2**1.5) if memory or l2 else 0.0
    return {"memory": (together - units) * share, "l2": (together - units) * (1.0 - share)}


def _combine(shape: AttentionShape, c: Constants) -> float:
    """Return the µs of the kernel that puts the parts of split keys together."""
    if shape.splits == 1:
        return 0.0
    rows = shape.batch * shape.heads * shape.queries
    return rows * shape.splits * (shape.head_v + 1) * _PARTIAL_BYTES * _MEGA / c.memory_warm


def explain_attention(keys: Sequence[AttentionKey], shape: AttentionShape) -> str:
    """Return the predicted times of the quickest two kernels side by side, as text.

    Raises:
        CkUnsupportedError: N002, the GPU has no matrix rate for the element type.
        CkValueError: N005, there is no kernel.
    """
    if not keys:
        raise error("N005")
    ranked = sorted(
        ((attention_estimate(key, shape), key) for key in keys), key=lambda pair: pair[0].us
    )
    best = ranked[:2]
    lines = [f"the quickest of {len(keys)} by the cost model"]
    lines += attention_table([key.label for _, key in best], [estimate for estimate, _ in best])
    return "\n".join(lines)


def attention_table(labels: Sequence[str], estimates: Sequence[AttentionEstimate]) -> list[str]:
    """Return the terms of one or two kernels side by side, as lines: chosen, runner-up."""
    names = ("chosen", "runner-up")[: len(estimates)]
    lines = [f"  {name}: {label}" for name, label in zip(names, labels, strict=True)]

    def row(label: str, cells: Sequence[str]) -> str:
        return f"  {label:<12}" + "".join(f"{cell:>14}" for cell in cells)

    lines.append(row("µs", names))
    lines += [row(term, [f"{e.terms[term]:.2f}" for e in estimates]) for term in estimates[0].terms]
    lines.append(row("total µs", [f"{e.us:.2f}" for e in estimates]))
    lines.append(row("workgroups", [str(e.workgroups) for e in estimates]))
    lines.append(row("padding", [f"{e.padding:.0%}" for e in estimates]))
    return lines
