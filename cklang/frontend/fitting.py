# SPDX-License-Identifier: MIT
"""Whether a call has the arguments that a function takes: known without what they are."""

import ast
import inspect
from collections.abc import Iterable
from typing import Any

from cklang.errors import error
from cklang.frontend.intrinsics import Intrinsic
from cklang.frontend.names import NamesOf
from cklang.frontend.other_names import KEYWORDS
from cklang.frontend.text import FunctionText
from cklang.frontend.values import Helper


def misfit(
    name: str, signature: inspect.Signature, keywords: Iterable[str], problem: object
) -> dict[str, Any]:
    """Return what F061 says of arguments that do not fit a function.

    ``problem`` is what Python says.
    """
    call = f"{name}{signature.replace(return_annotation=signature.empty)}"
    known = {
        word: KEYWORDS[word]
        for word in keywords
        if word not in signature.parameters and word in KEYWORDS
    }
    hints = [f"write {instead} in the place of {word}=" for word, instead in known.items()]
    return {"name": name, "problem": problem, "call": "\n".join([call, *hints])}


def check_calls(text: FunctionText, names: NamesOf) -> None:
    """Check the arguments of the functions of the language and the helpers that ``text`` calls."""
    for node in ast.walk(text.node):
        function = names.get(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or not isinstance(function, Intrinsic | Helper):
            continue
        words = [str(keyword.arg) for keyword in node.keywords]
        try:
            function.signature.bind(*node.args, **dict.fromkeys(words))
        except TypeError as exception:
            is_own = isinstance(function, Intrinsic) or function.is_composite
            name = f"ck.{function.name}" if is_own else function.name
            values = misfit(name, function.signature, words, exception)
            raise error("F061", at=text.span(node), **values) from exception
