# SPDX-License-Identifier: MIT
"""The identity of a kernel that chooses the experts of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType

SIZES = (64, 256, 1024)
"""Experts that a workgroup compares, of 12 bytes of LDS each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeGateSignature:
    """The experts of each row of logits, and their weights."""

    logits: DType
    bias: DType | None
    """None if scores alone decide."""
    size: int
    """Experts that a workgroup compares, at most."""
    sigmoid: bool
    """Whether a score is the sigmoid of its own logit, not the softmax of all."""
    grouped: bool
    """Whether only some groups of experts are allowed."""
    renormalised: bool
    scale: float

    family: ClassVar[str] = "moe_gate"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        scores = "sigmoids" if self.sigmoid else "softmax"
        return f"experts of rows of {self.logits} by {scores}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        bias = [] if self.bias is None else ["bias", self.bias.name]
        flags = [name for name in ("grouped", "renormalised") if getattr(self, name)]
        scale = [] if self.scale == 1.0 else [f"times{self.scale:g}"]
        scores = "sigmoid" if self.sigmoid else "softmax"
        return [self.family, self.logits.name, *bias, str(self.size), scores, *flags, *scale]


MoeGateKey: TypeAlias = Key[MoeGateSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
