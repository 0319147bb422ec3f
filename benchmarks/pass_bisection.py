# SPDX-License-Identifier: MIT
"""Which pass of LLVM makes a kernel wrong.

Two searches, because many passes cannot be left out:

- Optional passes are left out from the n-th on (``-opt-bisect-limit``); the first n with a wrong
  result names a pass.
- Code generation is handed over: the IR behind a pass is printed and compiled further by another
  clang, which makes right code of the whole kernel. The first pass whose IR that clang cannot make
  right code of, or one of those between it and the pass printed before, changes what is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Point = TypeVar("Point")

HAND_OVERS = (
    "separate-const-offset-from-gep",
    "nary-reassociate",
    "codegenprepare",
    "flattencfg",
    "fix-irreducible",
    "unify-loop-exits",
    "amdgpu-annotate-uniform",
)
"""Passes of code generation in order, behind which the IR can be printed and compiled again."""

_ANALYSES = frozenset(
    {
        *("domtree", "postdomtree", "domfrontier", "regions", "cycles", "uniformity", "loops"),
        *("scalar-evolution", "basic-aa", "aa", "memoryssa", "memdep", "iv-users"),
        *("branch-prob", "block-freq", "lazy-branch-prob", "lazy-block-freq"),
        *("opt-remark-emitter", "lcssa-verification"),
    }
)
"""Passes that change nothing."""

_NEWER_WORDS = (" nocreateundeforpoison", ", keyInstructions: true")
"""What clang 22 writes into IR and older ones cannot read; none of it changes what is computed."""

_DUMP = re.compile(r"^(?:; )?\*\*\* IR Dump After .* \(([a-z0-9-]+)\) \*\*\*.*\n", re.MULTILINE)
_BISECT = re.compile(r"^BISECT: running pass \((\d+)\) (.+?) on ", re.MULTILINE)


def first_wrong(points: Sequence[Point], is_right: Callable[[Point], bool]) -> Point | None:
    """Return the first point that is not right, if all behind it are not; None if the last is.

    Example:
        >>> first_wrong(range(100), lambda n: n < 42)
        42
    """
    if not points or is_right(points[-1]):
        return None
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high) // 2
        if is_right(points[middle]):
            low = middle + 1
        else:
            high = middle
    return points[low]


def bisected_passes(log: str) -> dict[int, str]:
    r"""Return the numbers and names of the optional passes that clang says it has run.

    Example:
        >>> bisected_passes("BISECT: running pass (7) gvn on kernel\n")
        {7: 'gvn'}
    """
    return {int(number): name for number, name in _BISECT.findall(log)}


def optional_pass(names: Mapping[int, str], is_right: Callable[[int], bool | None]) -> str:
    """Return the optional pass with which a result begins to be wrong; empty if it is right.

    Args:
        names: Of the optional passes, numbered from 1 in the order in which they run.
        is_right: Whether the result is right after so many of them; None if nothing can run.

    Example:
        >>> optional_pass({1: "inline", 2: "gvn", 3: "sink"}, lambda limit: limit < 2)
        'gvn'
        >>> optional_pass({1: "inline", 2: "gvn"}, lambda limit: None if limit < 1 else False)
        'none'
    """
    limit = first_wrong(range(len(names) + 1), lambda n: is_right(n) is not False)
    if limit is None:
        return ""
    return names[limit] if limit and is_right(limit - 1) else "none"


def hand_over_flags() -> tuple[str, ...]:
    """Return the flags with which clang prints the module behind each of :data:`HAND_OVERS`."""
    words = (f"-print-after={','.join(HAND_OVERS)}", "-print-module-scope", "-debug-pass=Arguments")
    return tuple(part for word in words for part in ("-mllvm", word))


def printed_ir(log: str) -> dict[str, str]:
    r"""Return the printed module behind each pass, by the pass.

    Example:
        >>> printed_ir("; *** IR Dump After Sinking (sink) ***\nmodule\n# exit 0, 1 s\n")
        {'sink': 'module\n'}
    """
    _, *parts = _DUMP.split(log)
    # Behind the last one stands what the compiler and the log say next.
    return {
        name: re.split(r"^(?:# |\$ |Pass Arguments)", text, maxsplit=1, flags=re.MULTILINE)[0]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def portable(ir: str) -> str:
    """Return IR without the words that older releases cannot read."""
    for word in _NEWER_WORDS:
        ir = ir.replace(word, "")
    return ir


def passes_between(log: str, first: str, last: str) -> tuple[str, ...]:
    """Return the passes that change IR from behind ``first`` to ``last``.

    Example:
        >>> passes_between("Pass Arguments: -sink -regions -structurizecfg -lcssa", "sink", "lcssa")
        ('structurizecfg', 'lcssa')
    """
    orders = re.findall(r"^Pass Arguments:(.*)$", log, re.MULTILINE)
    names = [word.removeprefix("-") for order in orders for word in order.split()]
    start = names.index(first) + 1
    return tuple(n for n in names[start : names.index(last, start) + 1] if n not in _ANALYSES)


def pairs_of(printed: Sequence[str]) -> dict[str, str]:
    """Return the pass that was printed before each pass.

    Example:
        >>> pairs_of(["a", "b", "c"])
        {'b': 'a', 'c': 'b'}
    """
    return {second: first for first, second in pairwise(printed)}
