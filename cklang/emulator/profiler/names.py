# SPDX-License-Identifier: MIT
"""Names of kernels for people: without the parameters and template arguments that they encode."""

import re

_LENGTH = re.compile(r"\d+")
_MOST = 80


def readable(symbol: str) -> str:
    """Return the function's name in a symbol of C++, with its namespaces.

    Example:
        >>> readable("_Z5saxpyfPKfPf"), readable("_ZN3app6detail4copyIfEEvPT_")
        ('saxpy', 'app::detail::copy')
        >>> readable("gemm")
        'gemm'
    """
    if not symbol.startswith("_Z"):
        return symbol if len(symbol) <= _MOST else f"{symbol[: _MOST - 3]}..."
    rest = symbol.removeprefix("_Z").lstrip("LNK")
    parts: list[str] = []
    while (match := _LENGTH.match(rest)) is not None:
        end = match.end() + int(match[0])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
        if not symbol.startswith("_ZN"):
            break
    return "::".join(parts) or symbol
