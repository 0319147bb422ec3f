# SPDX-License-Identifier: MIT
"""The identity of an attention kernel, in the three parts of every key: what, how, for which GPU.

As in :mod:`cklang.keys`, identity is the SHA-256 of one canonical JSON form that holds every field.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from cklang.codec import decode, encode, enum_of
from cklang.errors import error
from cklang.keys import SCHEMA_VERSION, KernelKey
from cklang.types import DType

__all__ = [
    "AnyKey",
    "AttentionAlgorithm",
    "AttentionKey",
    "AttentionPipeline",
    "AttentionSignature",
    "MaskKind",
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
    score_function: str = ""
    """SHA-256 of the canonical text of the score; empty in the key of a stencil, as is the mask."""
    mask_function: str = ""

    def __post_init__(self) -> None:
        for name, kind in (("score", ScoreKind), ("mask", MaskKind)):
            _close(self, name, kind)


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
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != count:
                raise error("K002", what=name, want=f"{count} integers of 1 or more", got=value)
            for extent in value:
                _positive(name, extent)
        for name in ("vector", "block_per_cu"):
            _positive(name, getattr(self, name))
        _close(self, "pipeline", AttentionPipeline)


@dataclass(frozen=True)
class AttentionKey:
    """The identity of one attention kernel on one GPU."""

    signature: AttentionSignature
    algorithm: AttentionAlgorithm
    arch: str

    @property
    def stencil(self) -> AttentionKey:
        """The key of the stencil this kernel is filled from: the same with both functions open."""
        return replace(self, signature=replace(self.signature, score_function="", mask_function=""))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: the identity."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def label(self) -> str:
        """A readable name, unique through a piece of the digest; never parsed."""
        s, a = self.signature, self.algorithm
        dtypes = "_".join(dict.fromkeys((s.dtype.name, s.dtype_o.name)))
        shape = "_".join("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        parts = ["attention", dtypes, s.score.value, s.mask.value, a.pipeline.value, shape]
        return "_".join([*parts, self.arch, self.digest[:12]])

    def __str__(self) -> str:
        return self.label

    def to_json(self) -> dict[str, Any]:
        """Return the canonical, total, versioned JSON form."""
        return {
            "version": SCHEMA_VERSION,
            "arch": self.arch,
            "signature": encode(self.signature),
            "algorithm": encode(self.algorithm),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> AttentionKey:
        """Read the form that :meth:`to_json` writes.

        Raises:
            CkValueError: K003 for another schema version, K001 for unknown fields or values.
        """
        if data.get("version") != SCHEMA_VERSION:
            raise error("K003", what="kernel key", got=data.get("version"), want=SCHEMA_VERSION)
        return AttentionKey(
            signature=decode(AttentionSignature, data["signature"], "signature"),
            algorithm=decode(AttentionAlgorithm, data["algorithm"], "algorithm"),
            arch=str(data["arch"]),
        )


AnyKey = KernelKey | AttentionKey
"""The identity of a kernel of any family."""


def key_from_json(data: dict[str, Any]) -> AnyKey:
    """Read the JSON form of a key of any family; its signature says which.

    Raises:
        CkValueError: K003 for another schema version, K001 for unknown fields or values.
    """
    is_attention = "score" in data.get("signature", {})
    return AttentionKey.from_json(data) if is_attention else KernelKey.from_json(data)


def _positive(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise error("K002", what=what, want="an integer of 1 or more", got=value)


def _close(record: object, name: str, kind: type[Enum]) -> None:
    """Turn a spelling into a member; what is neither is refused with the nearest spellings."""
    value = getattr(record, name)
    if type(value) is not kind:
        object.__setattr__(record, name, enum_of(kind, value))
