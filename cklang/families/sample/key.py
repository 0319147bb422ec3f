# SPDX-License-Identifier: MIT
"""The identity of a kernel that draws tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSignature:
    """A token of each row of logits."""

    logits: DType
    seed: DType
    offset: DType
    threads: int
    """Threads of a workgroup, which has a row."""

    family: ClassVar[str] = "sample"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"tokens of rows of {self.logits}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        numbers = [dtype.name for dtype in (self.logits, self.seed, self.offset)]
        return [self.family, *numbers, str(self.threads)]


SampleKey: TypeAlias = Key[SampleSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
