# SPDX-License-Identifier: MIT
"""The mini-IR: nodes, the op table, text form, verifier and builder. Import the modules.

Functions are pickled as their text, which any version that knows the grammar reads. That is said
here, since nodes know nothing of the parser, which makes them.
"""

import copyreg

from cklang.ir.nodes import Function


def _parsed(text: str) -> Function:
    from cklang.ir.parser import parse_function

    return parse_function(text)


def _reduced(function: Function) -> tuple[object, ...]:
    return _parsed, (str(function),)


copyreg.pickle(Function, _reduced)  # type: ignore[arg-type]
