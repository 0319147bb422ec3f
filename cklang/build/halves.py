# SPDX-License-Identifier: MIT
"""The main loop of a product's stencil as a text of its own.

Kernels that differ in what their epilogue reads and stores have one main loop. It is compiled once
for all of them, so its text must hold nothing that it does not depend on.
"""

from __future__ import annotations

import re
from collections import Counter

LOOP_NAME = "ck_mainloop"
"""The function that is a main loop, whichever kernels it is for."""

_EPILOGUE = "#if !defined(CKLANG_ONLY_MAINLOOP)"
_NAME = re.compile(r"\bck_\w+_mainloop\b")
_EPILOGUES = "log_sums|results|scattered|quantised"
_INCLUDED = re.compile(rf'^#include "cklang/({_EPILOGUES})\.hpp"\n', re.MULTILINE)
_COMMENT = re.compile(r"[ \t]*//.*")
_ALIAS = re.compile(r"^using (\w+)\s*=[^;]*;\n", re.MULTILINE)
_WORD = re.compile(r"\w+")
_GAP = re.compile(r"\n{3,}")


def has_main_loop(source: str) -> bool:
    """Tell whether a stencil has two halves, one of them its main loop.

    Example:
        >>> has_main_loop("#if !defined(CKLANG_ONLY_MAINLOOP)"), has_main_loop("int main;")
        (True, False)
    """
    return _EPILOGUE in source


def loop_flag(source: str) -> str:
    """Return the compiler's flag by which a stencil calls its main loop as all do.

    Example:
        >>> loop_flag("void ck_gemm_f16_mainloop(float* acc);")
        '-Dck_gemm_f16_mainloop=ck_mainloop'
    """
    match = _NAME.search(source)
    return f"-D{match[0] if match else LOOP_NAME}={LOOP_NAME}"


def main_loop(source: str) -> str:
    """Return the part of a stencil that is its main loop, without aliases that it does not use.

    Example:
        >>> print(main_loop('''
        ... using E = float; // of the epilogue
        ... using A = float;
        ... extern "C" void ck_gemm_mainloop(A* acc) {}
        ... #if !defined(CKLANG_ONLY_MAINLOOP)
        ... using D = E;
        ... #endif
        ... ''').strip())
        using A = float;
        extern "C" void ck_mainloop(A* acc) {}
    """
    text = _INCLUDED.sub("", _COMMENT.sub("", source.partition(_EPILOGUE)[0]))
    text = _without_unused(_NAME.sub(LOOP_NAME, text))
    return _GAP.sub("\n\n", text).strip() + "\n"


def _without_unused(text: str) -> str:
    words = Counter(_WORD.findall(text))
    fewer = _ALIAS.sub(lambda alias: alias[0] if words[alias[1]] > 1 else "", text)
    return text if fewer == text else _without_unused(fewer)
