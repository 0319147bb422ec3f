# SPDX-License-Identifier: MIT
"""Choosing kernels: problems, algorithms, patterns of them, registries, and what selects.

An op needs none of these names: the strategy chooses its kernels. ``docs/dispatch.md`` says what
they are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cklang.families.attention.key import AttentionAlgorithm
    from cklang.families.attention.synthetic import attention_grad_problem, attention_problem
    from cklang.families.attention_backward.key import AttentionGradAlgorithm
    from cklang.families.ck_rows.key import CkTileRows
    from cklang.families.conv.problem import ConvProblem, conv_problem
    from cklang.families.gemm.key import Algorithm
    from cklang.families.gemm.problem import Problem
    from cklang.families.gemm.synthetic import problem
    from cklang.families.grid import Pattern
    from cklang.families.rowwise.key import RowwiseAlgorithm
    from cklang.families.windows.key import WindowAlgorithm
    from cklang.selection.diagnose import advise, fix
    from cklang.selection.registry import Registry
    from cklang.selection.select import Selection, select
    from cklang.selection.space import attention_pattern, pattern
    from cklang.tune.strategies import Tuned

__all__ = [
    "Algorithm",
    "AttentionAlgorithm",
    "AttentionGradAlgorithm",
    "CkTileRows",
    "ConvProblem",
    "Pattern",
    "Problem",
    "Registry",
    "RowwiseAlgorithm",
    "Selection",
    "Tuned",
    "WindowAlgorithm",
    "advise",
    "attention_grad_problem",
    "attention_pattern",
    "attention_problem",
    "conv_problem",
    "fix",
    "pattern",
    "problem",
    "select",
]

_MODULES: Mapping[str, tuple[str, ...]] = {
    "families.attention.key": ("AttentionAlgorithm",),
    "families.attention.synthetic": ("attention_grad_problem", "attention_problem"),
    "families.attention_backward.key": ("AttentionGradAlgorithm",),
    "families.ck_rows.key": ("CkTileRows",),
    "families.conv.problem": ("ConvProblem", "conv_problem"),
    "families.gemm.key": ("Algorithm",),
    "families.gemm.problem": ("Problem",),
    "families.gemm.synthetic": ("problem",),
    "families.rowwise.key": ("RowwiseAlgorithm",),
    "families.windows.key": ("WindowAlgorithm",),
    "selection.diagnose": ("advise", "fix"),
    "selection.registry": ("Registry",),
    "selection.select": ("Selection", "select"),
    "selection.space": ("Pattern", "attention_pattern", "pattern"),
    "tune.strategies": ("Tuned",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
"""Modules that names are imported from when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"cklang.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
