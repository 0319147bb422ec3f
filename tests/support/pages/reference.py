# SPDX-License-Identifier: MIT
"""``docs/reference.md``: the public names with signature, first paragraph and example."""

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import cklang as ck
from cklang import dispatch, emulator, testing
from cklang.frontend import composites
from cklang.frontend.intrinsics import INTRINSICS
from cklang.types import DType
from tests.support.public_names import CLASSES, METHODS

__all__ = ["GROUPS", "LANGUAGE", "example", "first_paragraph", "reference_page", "signature"]

LANGUAGE = tuple(sorted([*composites.__all__, *INTRINSICS]))
"""Functions that programs call."""

DTYPES = tuple(name for name in ck.__all__ if isinstance(getattr(ck, name), DType))

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Ops and helpers": ("op", "fn", "Op", "Fn", "parse", "CkError"),
    "Types and annotations": ("dims", "dtype_var", "const", "inout"),
    "Arrays and operands": (
        *("DeviceArray", "empty", "to_device", "to_host", "synchronize", "Packed", "pack"),
        *("PreparedWeight", "prepare", "sparse24"),
    ),
    "Gradients and attention outside an op": (
        *("grad", "vjp", "vjp_saving", "attention_grad", "append_kv", "dropout_bytes"),
    ),
    "Choosing kernels": ("using",),
    "Calls without cklang": ("export",),
    "Debugging": ("debug",),
    "Measuring and predicting": ("bench", "predict", "profile", "autotune", "workers_of"),
}
"""The names of ``ck`` that are no dtypes and no functions of the language, by subject."""

FROM_CALLS = ("ck.Fn", "ck.Op", "ck.PreparedWeight", "cklang.dispatch.Selection")
"""Classes whose objects functions return: users do not call them."""

_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}

_HEAD = """\
# Reference

Signatures, first paragraphs and examples of the public names, from their docstrings.
`help(ck.op)` in Python shows a docstring with its arguments and errors. The examples know
`ck` and `np`; those of a method go on from those of its class.

`python -m tests.support.pages` writes this page.
"""


def first_paragraph(value: Any) -> str:
    """Return the first paragraph of a docstring as Markdown."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0]
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def example(value: Any) -> str:
    """Return the example of a docstring, with prompts and results, or nothing."""
    lines = (inspect.getdoc(value) or "").splitlines()
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
    if first is None:
        return ""
    indent = len(lines[first]) - len(lines[first].lstrip())
    shown = []
    for line in lines[first:]:
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            break
        shown.append(re.sub(r"\s*# doctest: \+\w+", "", line[indent:]))
    return "\n".join(shown).rstrip()


def _default(value: Any) -> str:
    """Return a default as a call would spell it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        parts = ", ".join(map(_default, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if isinstance(value, Mapping) and not value:
        return "{}"
    if callable(value):
        return str(value.__name__)
    return repr(value)


def signature(value: Any) -> str:
    """Return the parameters of a function or class as they are called: no types."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    is_starred = False
    for each in parameters:
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not is_starred:
            parts.append("*")
        is_starred |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        default = "" if each.default is each.empty else f"={_default(each.default)}"
        parts.append(f"{_STARS.get(each.kind.name, '')}{each.name}{default}")
    return f"({', '.join(parts)})"


CONSTANTS = {"cklang.emulator.MEMORY_LINE": "bytes in a line of the caches in front of memory"}
"""What the public numbers are: the docstring of an int is that of its type."""


def _entry(name: str, value: Any, level: str) -> Iterator[str]:
    if name in CONSTANTS:
        yield f"\n{level} `{name}`\n\n{value} {CONSTANTS[name]}.\n"
        return
    is_called = callable(value) and name not in FROM_CALLS
    shown = signature(value) if is_called else ""
    yield f"\n{level} `{name}`\n"
    if shown:
        yield f"\n```text\n{name}{shown}\n```\n"
    yield f"\n{first_paragraph(value)}\n"
    if example(value):
        yield f"\n```pycon\n{example(value)}\n```\n"


def _named(prefix: str, name: str, value: Any) -> Iterator[str]:
    """Yield an object, then its public methods, or what a module has."""
    yield from _entry(f"{prefix}{name}", value, "###")
    if isinstance(value, ModuleType):
        for part in value.__all__:
            yield from _entry(f"{prefix}{name}.{part}", getattr(value, part), "####")
    owner = prefix.removeprefix("ck.").removeprefix("cklang.") + name
    if owner in CLASSES:
        for method, each in METHODS.items():
            if method.rpartition(".")[0] == owner:
                bare = each.__func__ if isinstance(each, classmethod | staticmethod) else each
                yield from _entry(f"{name}.{method.rpartition('.')[2]}", bare, "####")


def _language() -> Iterator[str]:
    yield (
        "\n## Functions of the language\n\nCalled in an op they become part of its program; called "
        "outside they compute the same on NumPy arrays. `docs/language.md` explains them by "
        "subject.\n\n| function | meaning |\n|---|---|\n"
    )
    for name in LANGUAGE:
        meaning = getattr(ck, name).doc.replace("|", "\\|")
        yield f"| [`ck.{name}`](#ck{name}) | {meaning} |\n"
    for name in LANGUAGE:
        value = getattr(ck, name)
        yield f"\n### `ck.{name}`\n\n```text\nck.{name}{signature(value)}\n```\n\n{value.doc}\n"
        if example(value):
            yield f"\n```pycon\n{example(value)}\n```\n"


def _dtypes() -> Iterator[str]:
    yield "\n## Dtypes\n\n| name | bits | in NumPy |\n|---|---|---|\n"
    for name in DTYPES:
        dtype = getattr(ck, name)
        yield f"| `ck.{name}` | {dtype.bits} | `{dtype.numpy}` |\n"


def reference_page() -> str:
    """Return the text of ``docs/reference.md``."""
    parts = [_HEAD]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            parts.extend(_named("ck.", name, getattr(ck, name)))
        if title == "Types and annotations":
            parts.extend(_dtypes())
    parts.extend(_language())
    for module in (dispatch, testing, emulator):
        title = module.__name__
        parts.append(f"\n## {title}\n\n{first_paragraph(module)}\n")
        for name in module.__all__:
            parts.extend(_named(f"{title}.", name, getattr(module, name)))
    return "".join(parts)
