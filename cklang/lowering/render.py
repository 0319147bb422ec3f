# SPDX-License-Identifier: MIT
"""The texts of kernels are written from the Jinja templates in ``templates/``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

from cklang.keys import AnyKey

_OWN = Path(__file__).parent / "templates"


@cache
def template(name: str, folder: Path = _OWN) -> jinja2.Template:
    """Return a template of C++ by its file name; what it uses and is not given is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (C++, not HTML)
    )
    return environment.get_template(name)


def listed(items: Iterable[object]) -> str:
    """Return items as C++ lists them.

    Example:
        >>> listed((1, "x"))
        '1, x'
    """
    return ", ".join(map(str, items))


def key_json(key: AnyKey) -> str:
    """Return a key as templates print it: that of the stencil, with its functions open."""
    return json.dumps(key.stencil.to_json(), sort_keys=True)
