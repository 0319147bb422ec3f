# SPDX-License-Identifier: MIT
"""Sources of kernels in which nothing is open for a user's functions."""

from cklang.keys import AnyKey
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource


def closed_source(key: AnyKey, name: str, kernel: str, **context: object) -> KernelSource:
    """Return the source of a kernel that calls no function of the user's."""
    text = template(name).render(key_json=key_json(key), kernel=kernel, **context)
    return KernelSource(
        stencil=text,
        fill="",
        hole="",
        kernel=kernel,
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )


def flag(value: bool) -> str:
    """Return a bool as C++ spells it."""
    return str(value).lower()
