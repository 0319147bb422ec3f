# SPDX-License-Identifier: MIT
"""What keys of other kernels than products share, and the key of a kernel that transposes.

As in :mod:`cklang.keys`, identity is the SHA-256 of one canonical JSON form that holds every field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from cklang.codec import canonical_digest, decode, encode
from cklang.errors import error
from cklang.keys import SCHEMA_VERSION

__all__ = ["PlainKey", "TransposeKey"]


class PlainKey:
    """An identity, a label, and the JSON form of the fields."""

    arch: str
    kind: ClassVar[str]

    @property
    def words(self) -> list[str]:
        """What its label says."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: the identity."""
        return canonical_digest(self.to_json())

    @cached_property
    def label(self) -> str:
        """A readable name, unique through a piece of the digest; never parsed."""
        return "_".join([self.kind, *self.words, self.arch, self.digest[:12]])

    def __str__(self) -> str:
        return self.label

    def to_json(self) -> dict[str, Any]:
        """Return the canonical, total, versioned JSON form."""
        return {"version": SCHEMA_VERSION, "kind": self.kind, **encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the form that :meth:`to_json` writes.

        Raises:
            CkValueError: K003 for another schema version, K001 for unknown fields or values.
        """
        if data.get("version") != SCHEMA_VERSION:
            raise error("K003", what="kernel key", got=data.get("version"), want=SCHEMA_VERSION)
        fields = {name: value for name, value in data.items() if name not in ("version", "kind")}
        return decode(cls, fields, cls.kind)


@dataclass(frozen=True)
class TransposeKey(PlainKey):
    """The identity of a kernel that copies a tensor so that another axis of it is contiguous."""

    bytes: int
    """Of an element, which is moved as it is: 1, 2 or 4."""
    source_vector: int
    """Elements that one load moves along the axis that is contiguous in the source."""
    target_vector: int
    """The same for a store, in the target."""
    arch: str

    kind: ClassVar[str] = "transpose"

    @property
    def stencil(self) -> TransposeKey:
        """Itself: nothing is open."""
        return self

    @property
    def words(self) -> list[str]:
        """What its label says."""
        return [f"{self.bytes}B", f"{self.source_vector}x{self.target_vector}"]
