# SPDX-License-Identifier: MIT
"""The violations that rules of several families make alike: one function a kind of bound."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from cklang.arch import ArchSpec
from cklang.families.rule import Violation
from cklang.types import DType
from cklang.widths import ACCESS_BYTES


def multiple(what: str, value: int, of: int) -> Violation | None:
    """Object unless ``value`` is a multiple of ``of``."""
    if value % of == 0:
        return None
    return Violation(what=what, value=str(value), bound=f"a multiple of {of}")


def at_most(what: str, value: int, bound: int) -> Violation | None:
    """Object to a ``value`` above ``bound``."""
    if value <= bound:
        return None
    return Violation(what=what, value=str(value), bound=f"at most {bound}")


def at_least(what: str, value: int, bound: int) -> Violation | None:
    """Object to a ``value`` below ``bound``."""
    return (
        None if value >= bound else Violation(what=what, value=str(value), bound=f"{bound} or more")
    )


def equal(what: str, value: object, bound: object) -> Violation | None:
    """Object to a ``value`` other than ``bound``."""
    return None if value == bound else Violation(what=what, value=str(value), bound=str(bound))


def among(what: str, value: object, legal: Collection[object]) -> Violation | None:
    """Object to a ``value`` other than the ``legal`` ones."""
    if value in legal:
        return None
    return Violation(what=what, value=str(value), bound=f"one of {', '.join(map(str, legal))}")


def first(violations: Iterable[Violation | None]) -> Violation | None:
    """Return the first violation there is."""
    return next((violation for violation in violations if violation is not None), None)


def one_of(
    what: str, extents: tuple[int, ...], legal: Sequence[tuple[int, ...]]
) -> Violation | None:
    """Object to ``extents`` that the GPU's table does not have."""
    if extents in legal:
        return None
    shown = ", ".join(map(by_extents, legal)) or "(none)"
    return Violation(what=what, value=by_extents(extents), bound=f"one of {shown}")


def by_extents(extents: Iterable[int]) -> str:
    """Return extents as rules word them: ``32x32x16``."""
    return "x".join(map(str, extents))


def narrow_access(what: str, vector: int, dtype: DType) -> Violation | None:
    """Object unless ``vector`` elements are a power of two that one access moves."""
    most = max(1, ACCESS_BYTES * 8 // dtype.bits)
    if vector <= most and vector & (vector - 1) == 0:
        return None
    return Violation(what=what, value=str(vector), bound=f"a power of two up to {most}")


def encoded_for(spec: ArchSpec, named: Mapping[str, DType]) -> Violation | None:
    """Object to an 8-bit float whose encoding is not the GPU's."""
    for name, dtype in named.items():
        if dtype.encoding not in ("", spec.fp8):
            what = f"the 8-bit float encoding of {name} on {spec.name}"
            return Violation(what=what, value=f"{dtype.encoding} ({dtype})", bound=spec.fp8)
    return None
