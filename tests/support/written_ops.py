# SPDX-License-Identifier: MIT
"""Ops from text that a test writes or draws; their source is found as that of a file is."""

import linecache
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

import cklang as ck
from cklang.runtime.op import Op


def written_op(text: str, dims: str, name: str = "f") -> Op:
    """Return the op ``name`` of a text, in which ``ck`` and the named dims are known.

    Args:
        text: The op, decorator and all.
        dims: Names of dims, apart by spaces.
        name: The function's name.
    """
    file = f"<written {hash(text):x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"ck": ck, **{dim.name: dim for dim in ck.dims(dims)}}
    exec(compile(text, file, "exec"), namespace)
    op = namespace[name]
    assert isinstance(op, Op)
    return op


def expression_op(params: str, result: str, value: str, before: Sequence[str] = ()) -> Op:
    """Return the op ``f`` of an expression, after statements; each capital letter is a dim."""
    lines = "".join(f"    {line}\n" for line in (*before, f"return {value}"))
    return written_op(f"@ck.op\ndef f({params}) -> {result}:\n{lines}", " ".join(ascii_uppercase))
