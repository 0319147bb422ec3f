# SPDX-License-Identifier: MIT
"""How far from the best a choice by predicted times can be.

Predictions of two kernels for one problem are wrong by different factors. Fits measure how far
these are apart (``spread`` in the error of a set of constants), on shapes that they have not seen:
a predicted time to the power of ``-1 / spread`` is proportional to the chance that its kernel is
the quickest. That is so if logarithms of factors are Gumbel variables, and says how likely each
regret is, too. ``benchmarks/choice_exam.py`` compares stated chances with published winners.
"""

from __future__ import annotations

import math

import numpy as np

from cklang.families.protocol import Times

CASES = 0.9
"""In which part of cases a choice is as near to the best as its bound says."""


def weights(times: Times, spread: float) -> Times:
    """Return what the chance of each kernel to be the quickest is proportional to, the most 1.

    Of several problems times are [problems, kernels].

    Example:
        >>> import numpy as np
        >>> from cklang.selection.regret import weights
        >>> weights(np.array([10.0, 10.4, np.inf]), 0.04).round(2)
        array([1.  , 0.38, 0.  ])
    """
    logs = np.log(times)
    return np.asarray(np.exp((logs.min(-1, keepdims=True) - logs) / spread))


def regret_bound(times: Times, chosen: int, spread: float) -> float:
    """Return by which part of the best time a choice is slower, at most, in nine of ten cases.

    Args:
        times: Predicted, of kernels whose errors have little to do with each other.
        chosen: The place of the choice.
        spread: How far apart the errors are.

    Example:
        >>> import numpy as np
        >>> from cklang.selection.regret import regret_bound
        >>> regret_bound(np.array([10.0, 20.0]), 0, 0.04)
        0.0
        >>> round(regret_bound(np.array([10.0, 10.2, 10.3]), 0, 0.04), 3)
        0.096
    """
    chances = weights(times, spread)
    others = float(chances.sum() - chances[chosen])
    ratio = CASES / (1.0 - CASES) * others / float(chances[chosen])
    return math.expm1(spread * math.log(ratio)) if ratio > 1.0 else 0.0
