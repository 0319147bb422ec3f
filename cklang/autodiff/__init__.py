# SPDX-License-Identifier: MIT
"""Gradients of ops by reverse-mode differentiation of the mini-IR.

:mod:`.transform` builds the backward function of a function, with one rule for each op
(:mod:`.rules`); :mod:`.program` makes a program of it and :mod:`.api` an op.
"""

from __future__ import annotations

from cklang.autodiff.api import grad, vjp
from cklang.autodiff.saving import SavingGradient, vjp_saving

__all__ = ["SavingGradient", "grad", "vjp", "vjp_saving"]
