# SPDX-License-Identifier: MIT
"""The identity of a kernel of attention: what it computes, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.codec import later
from cklang.dims import require_integer
from cklang.keys import Key, make_members, require_integers
from cklang.types import DType

Triple = tuple[int, int, int]
Tile = tuple[int, int, int, int, int, int]


class ScoreKind(Enum):
    """What happens to the product of query and key after it has been scaled."""

    NONE = "none"
    SOFT_CAP = "soft_cap"
    """CK Tile's own: cap * tanh(s / cap)."""
    ALIBI = "alibi"
    """CK Tile's own: s - slope[b, h] * |j - i|."""
    BIAS = "bias"
    """CK Tile's own: s + bias[b, h, i, j], with keys contiguous."""
    FUNCTION = "function"
    """Any expression of the user's."""


class MaskKind(Enum):
    """Which keys a query sees."""

    NONE = "none"
    CAUSAL = "causal"
    """CK Tile's own: those up to its own position."""
    WINDOW = "window"
    """The keys around the query's position, and the first keys."""
    FUNCTION = "function"
    """The keys of the window that a user's expression admits."""


class AttentionPipeline(Enum):
    """CK Tile's forward pipelines, and ours."""

    QR = "qr"
    """Q in registers; K and V through registers to LDS."""
    QR_ASYNC = "qr_async"
    """Q in registers; K loaded from memory into LDS directly."""
    QS = "qs"
    """Q, K and V in LDS."""
    QR_ASYNC_TRLOAD = "qr_async_trload"
    """All loaded from memory into LDS directly; V is transposed as it is read from there."""
    V3 = "v3"
    """The same of K and V; two groups of four waves take turns at multiplying and loading."""
    LONG_HEAD = "long_head"
    """Ours, for heads of any size: Q and K through LDS in steps along the head; workgroups share
    the columns of v; each has as many as its registers hold of o."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSignature:
    """What a kernel computes: o = softmax(score(scale * q k')) v, for each batch and head."""

    dtype: DType
    """The dtype of q, k and v, and of the weights in the second product."""
    dtype_o: DType
    dtype_bias: DType
    """The dtype of an added bias; with other scores that of q."""
    score: ScoreKind = ScoreKind.NONE
    mask: MaskKind = MaskKind.NONE
    lse: bool = False
    """Whether the logarithm of the sum of exponentials is stored too."""
    dropout: bool = False
    packed: bool = False
    """Whether sequences of different lengths stand one after the other along one axis."""
    paged: bool = False
    """Whether keys and values lie in pages."""
    split: bool = False
    """Whether workgroups share the keys of a query; each part of o is f32, and another kernel
    combines them."""
    output: bool = False
    """Whether a function makes of o what is stored."""
    transposed_v: bool = later(default=False)
    """Whether the keys of v lie side by side in memory, and not the elements of a head."""
    blocks: tuple[int, int] | None = later(default=None)
    """The queries and keys of a block, where a function says which blocks a kernel skips."""
    functions: str = ""
    """Digest of the functions of score, mask and output; empty in the key of a stencil."""

    family: ClassVar[str] = "attention"

    def __post_init__(self) -> None:
        make_members(self, {"score": ScoreKind, "mask": MaskKind})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        flags = ("lse", "dropout", "packed", "paged", "split", "output", "transposed_v")
        said = ", ".join(name for name in flags if getattr(self, name))
        if self.blocks is not None:
            said += f", blocks of {self.blocks[0]} x {self.blocks[1]}"
        text = f"attention of {self.dtype} to {self.dtype_o}, score {self.score.value}"
        return f"{text}, mask {self.mask.value}{', ' if said else ''}{said}"

    def label(self, algorithm: AttentionAlgorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        a = algorithm
        shape = ("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        dtypes = dict.fromkeys((self.dtype.name, self.dtype_o.name))
        kinds = (self.score.value, self.mask.value)
        return [self.family, *dtypes, *kinds, a.pipeline.value, *shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionAlgorithm:
    """How a kernel computes attention: every choice that CK Tile's templates take.

    Example:
        >>> algorithm = ck.dispatch.AttentionAlgorithm(
        ...     tile=(128, 64, 32, 64, 32, 64), warps=(4, 1, 1), warp_tile=(32, 32, 16),
        ...     pipeline="qr_async", vector=8,
        ... )
        >>> problem = ck.dispatch.attention_problem(1, 8, 128, 128, 64)
        >>> ck.dispatch.advise(algorithm, problem.signature, "gfx942")  # no rule objects
        ()
    """

    tile: Tile
    """Queries, keys, step along the head size; head size of v, step along the keys, head size.
    Of ``long_head`` the columns of v that a workgroup has, and the step in place of a head size."""
    warps: Triple
    """Warps of a block, alike in both products."""
    warp_tile: Triple
    """Matrix instruction tile of a warp, alike in both products."""
    pipeline: AttentionPipeline = AttentionPipeline.QR
    pad_q: bool = True
    """Whether the queries may end inside a tile; so for keys and head sizes."""
    pad_k: bool = True
    pad_d: bool = True
    pad_dv: bool = True
    vector: int
    """Elements that one access moves along a head."""
    block_per_cu: int = 1

    def __post_init__(self) -> None:
        for name, count in (("tile", 6), ("warps", 3), ("warp_tile", 3)):
            require_integers(name, getattr(self, name), count)
        for name in ("vector", "block_per_cu"):
            require_integer(name, getattr(self, name))
        make_members(self, {"pipeline": AttentionPipeline})


AttentionKey: TypeAlias = Key[AttentionSignature, AttentionAlgorithm]
"""The identity of a kernel of attention."""
