# SPDX-License-Identifier: MIT
"""Frozen records to plain JSON values and back, by their annotations; total and strict.

A record's JSON form holds every field, except those that a record got later (:func:`later`) and
that have their default: keys that were written before are the same. Reading refuses unknown and
missing fields and unknown spellings, with the nearest known ones; nothing else is defaulted.
"""

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from cklang.errors import CkError, error
from cklang.types import DTYPES, DType

E = TypeVar("E", bound=Enum)
T = TypeVar("T")


_LATER = "later"


def later(default: Any) -> Any:
    """Return a field of a record that JSON leaves out while it has its default.

    The addresses of kernels are digests of keys, so a new field would change all of them.
    """
    return field(default=default, metadata={_LATER: True})


def _is_left_out(item: Field[Any], value: object) -> bool:
    return _LATER in item.metadata and getattr(value, item.name) == item.default


def canonical_digest(data: object) -> str:
    """Return the SHA-256 (hex) of plain data's one JSON form: sorted names, no spaces."""
    import hashlib

    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def close(name: object, known: Sequence[str]) -> str:
    """Return the names nearest to ``name``, as text."""
    from difflib import get_close_matches

    return ", ".join(get_close_matches(str(name), known, n=2) or ["(none)"])


def unknown(what: str, got: object, known: Sequence[str]) -> CkError:
    """Return K001: ``got`` is no ``what``, with the known ones and the nearest of them."""
    return error("K001", what=what, got=got, known=", ".join(known), nearest=close(got, known))


def enum_of(kind: type[E], text: object) -> E:
    """Return the member of ``kind`` spelled ``text``, or ``text`` if it is one."""
    if isinstance(text, kind):
        return text
    by_value = {member.value: member for member in kind}
    if isinstance(text, str) and text in by_value:
        return by_value[text]
    raise unknown(kind.__name__.lower(), text, sorted(map(str, by_value)))


def dtype_of(text: object) -> DType:
    """Return the dtype named ``text``, or ``text`` if it is one; K001 if there is none."""
    if isinstance(text, DType):
        return text
    if isinstance(text, str) and text in DTYPES:
        return DTYPES[text]
    raise unknown("dtype", text, list(DTYPES))


def encode(value: object) -> Any:
    """Return ``value`` (records, enums, dtypes, tuples, plain values) as JSON data."""
    if isinstance(value, DType):
        return value.name
    if is_dataclass(value):
        kept = (f for f in fields(value) if not _is_left_out(f, value))
        return {f.name: encode(getattr(value, f.name)) for f in kept}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: object, what: str) -> T:
    """Return the ``kind`` that :func:`encode` wrote as ``data``; ``what`` names it in messages.

    Raises:
        CkValueError: K001 for unknown or missing fields and values, K002 for values of other types.
    """
    return cast("T", _decode(kind, data, what))


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a class."""
    return get_type_hints(kind)


def _decode(kind: Any, data: object, what: str) -> object:
    origin = get_origin(kind)
    if origin is tuple:
        return _tuple(get_args(kind), data, what)
    if origin is types.UnionType:
        return _optional(get_args(kind), data, what)
    if origin is Mapping:
        return _mapping(get_args(kind), data, what)
    if kind is Any:
        return tuple(data) if isinstance(data, list) else data
    if kind is DType:
        return dtype_of(data)
    if is_dataclass(kind):
        return _record(kind, data, what)
    if issubclass(kind, Enum):
        return enum_of(kind, data)
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise error("K002", what=what, want=f"of type {kind.__name__}", got=data)
    return data


def _optional(kinds: tuple[Any, ...], data: object, what: str) -> object:
    if data is None and type(None) in kinds:
        return None
    (kind,) = (k for k in kinds if k is not type(None))
    return _decode(kind, data, what)


def _mapping(kinds: tuple[Any, ...], data: object, what: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise error("K002", what=what, want="an object", got=data)
    return {name: _decode(kinds[1], item, f"{what} {name}") for name, item in data.items()}


def _tuple(kinds: tuple[Any, ...], data: object, what: str) -> tuple[object, ...]:
    if not isinstance(data, list | tuple):
        raise error("K002", what=what, want="a list", got=data)
    items: list[object] = list(data)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        raise error("K002", what=what, want=f"a list of {len(kinds)}", got=data)
    return tuple(_decode(k, item, what) for k, item in zip(kinds, items, strict=True))


def _record(kind: Any, data: object, what: str) -> object:
    known = [f.name for f in fields(kind)]
    new = {f.name: f.default for f in fields(kind) if _LATER in f.metadata}
    expect_fields(what, {**new, **data} if isinstance(data, dict) else data, known)
    record = {**new, **cast("dict[str, Any]", data)}
    hints = hints_of(kind)
    return kind(**{name: _decode(hints[name], record[name], f"{what} {name}") for name in known})


def with_defaults(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a record with the defaults of fields that are left out."""
    left_out = {
        f.name: encode(f.default)
        for f in fields(kind)
        if f.name not in data and f.default is not MISSING
    }
    return {**data, **left_out}


def expect_object(what: str, data: object) -> dict[str, Any]:
    """Return ``data``, a JSON object."""
    if not isinstance(data, dict):
        raise error("K002", what=what, want="an object", got=data)
    return data


def expect_fields(what: str, data: object, known: Sequence[str]) -> None:
    """Check that ``data`` is an object with exactly the fields ``known``."""
    names = expect_object(what, data)
    for name in [*names, *known]:
        if name not in known:
            raise unknown(f"{what} field", name, known)
        if name not in names:
            raise unknown(f"missing {what} field", name, known)
