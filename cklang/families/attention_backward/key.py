# SPDX-License-Identifier: MIT
"""The identity of a kernel of the gradients of attention: what it computes, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.codec import later
from cklang.dims import require_integer
from cklang.errors import error
from cklang.families.attention.key import AttentionSignature
from cklang.keys import Key, make_members, require_integers

Triple = tuple[int, int, int]


class GradPipeline(Enum):
    """CK Tile's backward pipelines, and ours."""

    KR_KTR_VR = "kr_ktr_vr"
    """Keys, their transpose and values in registers; queries come by."""
    KR_KTR_VR_IGLP = "kr_ktr_vr_iglp"
    """The same with loads ahead and hints to the compiler."""
    TRLOAD_KR_KTR_VR = "trload_kr_ktr_vr"
    """The same with loads that transpose: LDS holds queries once."""
    TRLOAD_QR_QTR_DOR = "trload_qr_qtr_dor"
    """All queries of a head, their transpose and the gradient of o in registers; keys come by."""
    LONG_HEAD = "long_head"
    """Ours, for heads of any size: queries and keys through LDS in steps along the head; workgroups
    share the columns of dq, dk and dv; each has as many as its registers take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradAlgorithm:
    """How a kernel computes the gradients of q, k and v.

    Example:
        >>> forward = ck.dispatch.attention_problem(1, 8, 128, 128, 64)
        >>> problem = ck.dispatch.attention_grad_problem(forward)
        >>> algorithm = ck.dispatch.select(problem, arch="gfx942").key.algorithm
        >>> algorithm.pipeline.value, len(algorithm.tile), algorithm.vector
        ('kr_ktr_vr_iglp', 9, 8)
    """

    tile: tuple[int, int, int, int, int, int, int, int, int]
    """Queries, keys, the steps of the five products, and the head sizes of q and of v. Of
    ``long_head`` the columns of the gradients that a workgroup has, in place of head sizes."""
    warps: tuple[Triple, Triple, Triple]
    """Warps of q k' and do v', of the products for dv and dk, and of the one for dq."""
    warp_tiles: tuple[Triple, Triple, Triple]
    """The same for matrix instruction tiles."""
    pipeline: GradPipeline = GradPipeline.KR_KTR_VR_IGLP
    vector: int
    """Elements that one access moves along a head."""
    block_per_cu: int = 1

    def __post_init__(self) -> None:
        require_integers("tile", self.tile, 9)
        for name in ("warps", "warp_tiles"):
            triples = getattr(self, name)
            if not isinstance(triples, tuple) or len(triples) != 3:
                raise error("K014", name=name, got=triples)
            for triple in triples:
                require_integers(name, triple, 3)
        for name in ("vector", "block_per_cu"):
            require_integer(name, getattr(self, name))
        make_members(self, {"pipeline": GradPipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradSignature:
    """What a kernel of the gradients of q, k and v computes."""

    forward: AttentionSignature
    """The forward kernel, its functions open; ``dtype_o`` is the type of what is stored for k and
    v."""
    bias_grad: bool
    """Whether it gives the gradient of the bias too."""
    deterministic: bool
    """Whether each tile of keys gives its part of dq apart, so that they are added in one order."""
    derivative: bool = later(default=False)
    """Whether a function is the derivative of the score, and of what the gradient of the bias is;
    else that is 1."""
    lengths: bool = later(default=False)
    """Whether each sequence has a number of keys of its own."""
    functions: str = ""
    """Digest of the functions of score, mask and derivative; empty in the key of a stencil."""

    family: ClassVar[str] = "attention_backward"

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        own = ", with the derivative of the score" if self.derivative else ""
        own += ", with lengths of keys" if self.lengths else ""
        return f"the gradient of {self.forward.words}{own}"

    def label(self, algorithm: AttentionGradAlgorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        s, a = self.forward, algorithm
        dtypes = dict.fromkeys((s.dtype.name, s.dtype_o.name))
        kinds = (s.score.value, s.mask.value)
        own = [name for name in ("derivative", "lengths") if getattr(self, name)]
        return [self.family, *dtypes, *kinds, *own, a.pipeline.value, "x".join(map(str, a.tile))]


AttentionGradKey: TypeAlias = Key[AttentionGradSignature, AttentionGradAlgorithm]
"""The identity of a kernel of the gradients of attention."""
