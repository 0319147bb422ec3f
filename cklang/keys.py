# SPDX-License-Identifier: MIT
"""The identity of a kernel: what it computes (signature), how (algorithm), and for which GPU.

Each family of kernels has records of its own for the first two (``families/<name>/key.py``); the
key around them is the same for all. Identity is the SHA-256 of one canonical JSON form that holds
every field; the readable label is derived from it and never parsed. Two keys that differ in any
field differ in digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from cklang.codec import canonical_digest, encode, enum_of
from cklang.dims import require_integer
from cklang.errors import error
from cklang.forks import cached_property

SCHEMA_VERSION = 3
"""Version of the JSON form; raised whenever a field is added, removed or changes meaning."""


class KernelSignature(Protocol):
    """What the records of all families that say what a kernel computes have alike."""

    @property
    def family(self) -> str:
        """The name of the family in :data:`cklang.families.FAMILIES`."""

    @property
    def functions(self) -> str:
        """Digest of the user's functions (:class:`cklang.fusion.functions.Functions`).

        Empty if the kernel has none, and in the key of a stencil, which leaves them open.
        """

    @property
    def words(self) -> str:
        """What is computed, for messages."""

    def label(self, algorithm: Any) -> Sequence[str]:
        """Return what the label of a kernel says of it."""

    def __hash__(self) -> int:
        """Equal signatures have equal hashes."""


S = TypeVar("S", bound=KernelSignature)
A = TypeVar("A")


@dataclass(frozen=True)
class Key(Generic[S, A]):
    """The identity of one kernel on one GPU."""

    signature: S
    algorithm: A
    """None of a family that has one kernel for each signature."""
    arch: str

    @property
    def family(self) -> str:
        """The name of the kernel's family."""
        return self.signature.family

    @property
    def stencil(self) -> Key[S, A]:
        """The key of the stencil that this kernel is filled from: the same, its functions open."""
        return replace(self, signature=opened(self.signature))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: the identity."""
        return canonical_digest(self.to_json())

    @cached_property
    def label(self) -> str:
        """A readable name, unique through a piece of the digest; never parsed."""
        return "_".join([*self.signature.label(self.algorithm), self.arch, self.digest[:12]])

    def __str__(self) -> str:
        return self.label

    def to_json(self) -> dict[str, Any]:
        """Return the canonical, total, versioned JSON form.

        :func:`cklang.families.key_from_json` reads it.
        """
        return {
            "version": SCHEMA_VERSION,
            "family": self.family,
            "arch": self.arch,
            "signature": encode(self.signature),
            "algorithm": encode(self.algorithm),
        }


AnyKey = Key[Any, Any]
"""The key of a kernel of any family."""


def opened(signature: S) -> S:
    """Return the signature of a kernel's stencil: the same with its functions open."""
    if not signature.functions:
        return signature
    return replace(signature, functions="")  # type: ignore[type-var]


def require_integers(what: str, value: object, count: int) -> None:
    """Refuse what is no tuple of ``count`` integers of 1 or more."""
    if not isinstance(value, tuple) or len(value) != count:
        raise error("K012", name=what, count=count, got=value)
    for extent in value:
        require_integer(what, extent)


def make_members(record: object, kinds: Mapping[str, type[Enum]]) -> None:
    """Turn the spellings in fields of a frozen record into members of their enumerations."""
    for name, kind in kinds.items():
        value = getattr(record, name)
        if type(value) is not kind:
            object.__setattr__(record, name, enum_of(kind, value))
