# SPDX-License-Identifier: MIT
"""The public objects of cklang by the names that users know, and their public methods."""

import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import cklang as ck
import cklang.dispatch
import cklang.testing
from cklang import types
from cklang.tune.database import Database

VALUES = {name for name in ck.__all__ if isinstance(getattr(ck, name), types.DType | types.Const)}
"""Values, which cannot have a docstring: the docstring of :mod:`cklang.types` uses each."""

INTERNAL: Mapping[str, str] = {
    "DeviceArray.data_ptr": "calls, as of torch's tensors",
    "Fn.described": "errors of the frontend",
    "Fn.place": "errors of the frontend",
    "dispatch.Registry.derived": "select",
    "dispatch.Registry.forget_choices": "the strategy tiered",
    "dispatch.Tuned.choose": "select",
}
"""Methods of public classes that users do not call, and who does."""

FURTHER = {"Database": Database}
"""Classes that users take from another module."""


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the public objects by the names that users know, modules as what they contain."""
    for module, prefix in ((ck, ""), (cklang.dispatch, "dispatch."), (cklang.testing, "testing.")):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                yield from ((f"{name}.{part}", getattr(value, part)) for part in value.__all__)
            elif name not in VALUES:
                yield f"{prefix}{name}", value
    yield from FURTHER.items()


OBJECTS = dict(public_objects())
CLASSES = {name: value for name, value in OBJECTS.items() if inspect.isclass(value)}


def members(of: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the methods and properties that users of a class know, its bases' in cklang too."""
    names = {name: each for base in reversed(of.__mro__) for name, each in vars(base).items()}
    for name, each in names.items():
        static = isinstance(each, classmethod | staticmethod)
        if not name.startswith("_") and (
            static or inspect.isfunction(each) or isinstance(each, property)
        ):
            yield name, each


METHODS = {
    f"{owner}.{name}": each
    for owner, of in CLASSES.items()
    for name, each in members(of)
    if not issubclass(of, tuple) and f"{owner}.{name}" not in INTERNAL
}
