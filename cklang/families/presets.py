# SPDX-License-Identifier: MIT
"""Choices, not facts: the extents that enumeration tries, named sets of tilings, and profiles.

All stand in ``presets.json``. A set names tilings for GPUs and element types; which of them are
legal for a signature is the rules' business.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from cklang.arch import arch
from cklang.codec import decode, dtype_of, encode, unknown
from cklang.errors import error
from cklang.families.attention.helper_keys import Rotary
from cklang.families.attention.key import AttentionSignature
from cklang.families.gemm.key import ProductKind, Signature

SCHEMA_VERSION = 1
_FILE = Path(__file__).with_name("presets.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What ``*`` stands for in fields whose values no table of the GPU lists."""

    tile_m: tuple[int, ...]
    tile_n: tuple[int, ...]
    tile_k: tuple[int, ...]
    block_per_cu: tuple[int, ...]
    split_k: tuple[int, ...]
    num_wave_groups: tuple[int, ...]
    widths: tuple[int, ...]
    """Bytes that one access moves, best first; 1 stands for one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilings:
    """Some tilings of a set, and what they are for."""

    archs: tuple[str, ...]
    dtypes: tuple[tuple[str, str, str], ...]
    """Element types of (A, B, accumulator); 8-bit floats by family."""
    scaled: bool
    """Whether they are for products with block scales alone."""
    kinds: tuple[str, ...] = ()
    """The kinds of products that they are for; every kind if left out."""
    tilings: tuple[Mapping[str, Any], ...]
    """Fields of an algorithm pattern each, best first."""


class Taken(Enum):
    """Which pipelines of a tiling a profile takes."""

    ALL = "all"
    FIRST = "first"
    """The first one that is legal."""


_CHOSEN: Mapping[str, Any] = {
    name: kind
    for name, kind in (
        get_type_hints(AttentionSignature) | {"deterministic": bool, "bias_grad": bool}
    ).items()
    if name not in ("dtype", "dtype_bias") and name not in ("functions", "family")
}
"""The fields of a signature that rows of profiles may name, and the kinds of their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """Some kernels of an attention profile."""

    pads: tuple[str, ...]
    """Which of queries, keys, heads of q and of v are padded: ``tftt``; the quickest first."""
    archs: tuple[str, ...] = ()
    """Every GPU if left out."""
    dtypes: tuple[str, ...] = ()
    """Element types of q, k and v; ``fp8`` is the GPU's own encoding. Every one if left out."""
    fields: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The values of fields of the signature; those left out have their default, and with no field
    at all a row is for any signature."""
    heads: tuple[tuple[int, int], ...] = ()
    """The head sizes of q and of v of its tilings; every one if left out."""
    pipelines: Taken = Taken.FIRST
    """Which of each tiling's pipelines."""
    gradient: bool = False
    append: tuple[Rotary, ...] = ()
    """The rotary embeddings of kernels that write to a cache."""

    def __post_init__(self) -> None:
        for name in self.archs:
            arch(name)
        for name in self.dtypes:
            dtype_of(name)
        for pads in self.pads:
            if len(pads) != 4 or set(pads) - set("tf"):
                raise error("K027", got=pads)
        for name, values in self.fields.items():
            if name not in _CHOSEN:
                raise unknown("profile field of the signature", name, sorted(_CHOSEN))
            for value in values:
                decode(_CHOSEN[name], value, f"profile {name}")


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_FILE.read_text())
    if data.get("version") != SCHEMA_VERSION:
        raise error("K003", what="presets", got=data.get("version"), want=SCHEMA_VERSION)
    return data


@cache
def space() -> Space:
    """Return the values that enumeration tries."""
    return decode(Space, _data()["space"], "space")


def preset_names() -> tuple[str, ...]:
    """Return the names of the sets."""
    return tuple(_data()["sets"])


def parts(name: str) -> tuple[str, ...]:
    """Return the names of the sets that make up a preset, in order; most are one set."""
    if name not in preset_names():
        raise unknown("preset", name, list(preset_names()))
    return tuple(_data()["includes"].get(name, (name,)))


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles of attention."""
    return tuple(_data()["profiles"])


@cache
def profile(name: str) -> tuple[ProfileRow, ...]:
    """Return the rows of an attention profile.

    Raises:
        CkValueError: K001, there is no such profile.
    """
    profiles = _data()["profiles"]
    if name not in profiles:
        raise unknown("profile of attention", name, list(profiles))
    return tuple(profile_row(row) for row in profiles[name])


def profile_row(data: dict[str, Any]) -> ProfileRow:
    """Return a row of a profile from its JSON form, which may leave out all but ``pads``."""
    return decode(ProfileRow, {**_LEFT_OUT, **data}, "profile row")


_LEFT_OUT: Mapping[str, Any] = {
    key: value for key, value in encode(ProfileRow(pads=())).items() if key != "pads"
}


@cache
def _set(name: str) -> tuple[Tilings, ...]:
    sets = _data()["sets"]
    if name not in sets:
        raise unknown("preset", name, list(sets))
    return tuple(
        Tilings(
            archs=tuple(row["archs"]),
            dtypes=tuple(tuple(d) for d in row["dtypes"]),
            scaled=row.get("scaled", False),
            kinds=tuple(row.get("kinds", ())),
            tilings=tuple({k: _choice(v) for k, v in t.items()} for t in row["tilings"]),
        )
        for row in sets[name]
    )


def _choice(value: Any) -> Any:
    """JSON has no tuples: a list of integers is one value, any other list is several."""
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    return [tuple(item) for item in value] if isinstance(value, list) else value


def tilings(name: str, signature: Signature, gpu: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tilings of set ``name`` for a signature on a GPU, as fields of patterns."""
    dtypes = signature.multiplied
    rows = (
        row
        for row in _set(name)
        if gpu in row.archs and dtypes in row.dtypes and (signature.block_k or not row.scaled)
        if not row.kinds or signature.kind.value in row.kinds
    )
    return tuple(tiling for row in rows for tiling in row.tilings)


def variants(kind: ProductKind) -> tuple[Mapping[str, Any], ...]:
    """Return what kernels of a kind are tried with beside their plain form, as in a pattern.

    Sums that workgroups share are added in one order: only such kernels are chosen unasked, so that
    a call gives the same bits each time.
    """
    return tuple(_data()["variants"].get(kind.value, ()))
