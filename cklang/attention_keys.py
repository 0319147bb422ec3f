# SPDX-License-Identifier: MIT
"""The identity of an attention kernel, in the three parts of every key: what, how, for which GPU.

As in :mod:`cklang.keys`, identity is the SHA-256 of one canonical JSON form that holds every field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, get_args

from cklang.errors import error
from cklang.keys import KernelKey, make_members, require_positive
from cklang.plain_keys import PlainKey, TransposeKey
from cklang.types import DType, f32

__all__ = [
    "AnyAttentionKey",
    "AnyKey",
    "AppendKey",
    "AttentionAlgorithm",
    "AttentionGradAlgorithm",
    "AttentionGradKey",
    "AttentionGradSignature",
    "AttentionKey",
    "AttentionPipeline",
    "AttentionSignature",
    "CombineKey",
    "GradPipeline",
    "MaskKind",
    "ReduceKey",
    "Rotary",
    "ScoreKind",
    "key_from_json",
]

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
    """Those around its own position, and the first ones."""
    FUNCTION = "function"
    """Those of the window that an expression of the user's lets through."""


class AttentionPipeline(Enum):
    """CK Tile's forward pipelines."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSignature:
    """What a kernel computes: o = softmax(score(scale * q k')) v, for each batch and head."""

    dtype: DType
    """Of q, k and v, and of the weights in the second product."""
    dtype_o: DType
    dtype_bias: DType
    """Of an added bias; with other scores that of q."""
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
    score_function: str = ""
    """SHA-256 of the canonical text of the score; empty in the key of a stencil, as is the mask."""
    mask_function: str = ""
    output: bool = False
    """Whether a function makes of o what is stored."""
    output_function: str = ""

    @property
    def stencil(self) -> AttentionSignature:
        """The same with all functions open."""
        return replace(self, score_function="", mask_function="", output_function="")

    def __post_init__(self) -> None:
        make_members(self, {"score": ScoreKind, "mask": MaskKind})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        flags = ("lse", "dropout", "packed", "paged", "split", "output")
        said = ", ".join(name for name in flags if getattr(self, name))
        text = f"attention of {self.dtype} to {self.dtype_o}, score {self.score.value}"
        return f"{text}, mask {self.mask.value}{', ' if said else ''}{said}"


def _expect_integers(what: str, value: object, count: int) -> None:
    """Refuse what is no tuple of ``count`` integers of 1 or more: K002, naming ``what``."""
    if not isinstance(value, tuple) or len(value) != count:
        raise error("K002", what=what, want=f"{count} integers of 1 or more", got=value)
    for extent in value:
        require_positive(what, extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionAlgorithm:
    """How a kernel computes it: every choice that CK Tile's templates take."""

    tile: Tile
    """Queries, keys, step along the head size; head size of v, step along the keys, head size."""
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
            _expect_integers(name, getattr(self, name), count)
        for name in ("vector", "block_per_cu"):
            require_positive(name, getattr(self, name))
        make_members(self, {"pipeline": AttentionPipeline})


class GradPipeline(Enum):
    """CK Tile's backward pipelines."""

    KR_KTR_VR = "kr_ktr_vr"
    """Keys, their transpose and values in registers; queries come by."""
    KR_KTR_VR_IGLP = "kr_ktr_vr_iglp"
    """The same with loads ahead and hints to the compiler."""
    TRLOAD_KR_KTR_VR = "trload_kr_ktr_vr"
    """The same with loads that transpose: LDS holds queries once."""
    TRLOAD_QR_QTR_DOR = "trload_qr_qtr_dor"
    """All queries of a head, their transpose and the gradient of o in registers; keys come by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradAlgorithm:
    """How a kernel computes the gradients of q, k and v."""

    tile: tuple[int, int, int, int, int, int, int, int, int]
    """Queries, keys, the steps of the five products, and the head sizes of q and of v."""
    warps: tuple[Triple, Triple, Triple]
    """Of q k' and do v', of the two that give dv and dk, and of the one that gives dq."""
    warp_tiles: tuple[Triple, Triple, Triple]
    """The same for matrix instruction tiles."""
    pipeline: GradPipeline = GradPipeline.KR_KTR_VR_IGLP
    vector: int
    """Elements that one access moves along a head."""
    block_per_cu: int = 1

    def __post_init__(self) -> None:
        _expect_integers("tile", self.tile, 9)
        for name in ("warps", "warp_tiles"):
            triples = getattr(self, name)
            if not isinstance(triples, tuple) or len(triples) != 3:
                raise error("K002", what=name, want="three triples (m, n, k)", got=triples)
            for triple in triples:
                _expect_integers(name, triple, 3)
        for name in ("vector", "block_per_cu"):
            require_positive(name, getattr(self, name))
        make_members(self, {"pipeline": GradPipeline})


@dataclass(frozen=True)
class AttentionKey(PlainKey):
    """The identity of one attention kernel on one GPU."""

    signature: AttentionSignature
    algorithm: AttentionAlgorithm
    arch: str

    kind: ClassVar[str] = "attention"

    @property
    def stencil(self) -> AttentionKey:
        """The key of the stencil this kernel is filled from: the same with all functions open."""
        return replace(self, signature=self.signature.stencil)

    @property
    def words(self) -> list[str]:
        """What its label says."""
        s, a = self.signature, self.algorithm
        shape = ("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        dtypes = dict.fromkeys((s.dtype.name, s.dtype_o.name))
        return [*dtypes, s.score.value, s.mask.value, a.pipeline.value, *shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradSignature:
    """What a kernel of the gradients computes; the fields are those of its key."""

    forward: AttentionSignature
    bias_grad: bool
    deterministic: bool

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"the gradient of {self.forward.words}"


@dataclass(frozen=True)
class AttentionGradKey(PlainKey):
    """The identity of a kernel that gives the gradients of q, k and v."""

    signature: AttentionSignature
    """Of the forward kernel; ``dtype_o`` is the type of what it stores for k and v."""
    bias_grad: bool
    """Whether it gives the gradient of the bias too."""
    deterministic: bool
    """Whether each tile of keys gives its part of dq apart, so that they are added in one order."""
    algorithm: AttentionGradAlgorithm
    arch: str

    kind: ClassVar[str] = "attention_grad"

    @property
    def stencil(self) -> AttentionGradKey:
        """The same with all functions open."""
        return replace(self, signature=self.signature.stencil)

    @property
    def words(self) -> list[str]:
        """What its label says."""
        s, a = self.signature, self.algorithm
        dtypes = dict.fromkeys((s.dtype.name, s.dtype_o.name))
        return [*dtypes, s.score.value, s.mask.value, a.pipeline.value, "x".join(map(str, a.tile))]


@dataclass(frozen=True)
class ReduceKey(PlainKey):
    """The identity of a kernel around the gradient of attention."""

    dot: bool
    """Whether it sums the products of two tensors of ``dtype`` along their rows, or parts of a
    tensor to one of ``dtype``."""
    dtype: DType
    arch: str
    parts: DType = f32
    """What the parts of a sum are."""

    kind: ClassVar[str] = "attention_reduce"

    @property
    def stencil(self) -> ReduceKey:
        """Itself: nothing is open."""
        return self

    @property
    def words(self) -> list[str]:
        """What its label says."""
        own = [] if self.parts == f32 else [self.parts.name]
        return ["dot" if self.dot else "sum", *own, self.dtype.name]


@dataclass(frozen=True)
class CombineKey(PlainKey):
    """The identity of a kernel that combines what splits of the keys gave."""

    dtype_o: DType
    lse: bool
    """Whether it stores the lse of all keys too."""
    arch: str
    output: bool = False
    """Whether a function makes of o what is stored."""
    output_function: str = ""

    kind: ClassVar[str] = "attention_combine"

    @property
    def stencil(self) -> CombineKey:
        """The same with the function open."""
        return replace(self, output_function="")

    @property
    def words(self) -> list[str]:
        """What its label says."""
        return [self.dtype_o.name, *(["lse"] if self.lse else [])]


class Rotary(Enum):
    """How the first elements of a row are turned by its position."""

    NONE = "none"
    INTERLEAVED = "interleaved"
    """Neighbours turn together."""
    HALF = "half"
    """An element turns with the one that is half of the turned width further."""


@dataclass(frozen=True)
class AppendKey(PlainKey):
    """The identity of a kernel that writes rows behind those of a cache."""

    dtype: DType
    rotary: Rotary
    paged: bool
    arch: str

    kind: ClassVar[str] = "attention_append"

    def __post_init__(self) -> None:
        make_members(self, {"rotary": Rotary})

    @property
    def stencil(self) -> AppendKey:
        """Itself: nothing is open."""
        return self

    @property
    def words(self) -> list[str]:
        """What its label says."""
        return [self.dtype.name, self.rotary.value, *(["paged"] if self.paged else [])]


AnyAttentionKey = AttentionKey | AttentionGradKey | CombineKey | AppendKey | ReduceKey
"""The identity of a kernel around attention."""

AnyKey = KernelKey | AnyAttentionKey | TransposeKey
"""The identity of a kernel of any family."""


def key_from_json(data: dict[str, Any]) -> AnyKey:
    """Read the JSON form of a key of any family; its ``kind`` says which.

    Raises:
        CkValueError: K003 for another schema version, K001 for unknown fields or values.
    """
    kinds = {each.kind: each for each in (*get_args(AnyAttentionKey), TransposeKey)}
    kind = kinds.get(str(data.get("kind", "")))
    return KernelKey.from_json(data) if kind is None else kind.from_json(data)
