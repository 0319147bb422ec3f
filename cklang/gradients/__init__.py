# SPDX-License-Identifier: MIT
"""Gradients of ops: ``ck.vjp``, ``ck.grad`` and ``ck.vjp_saving``.

:mod:`cklang.autodiff` differentiates functions; :mod:`.program` makes a program of a backward
function, :mod:`.api` an op of that, and :mod:`.saving` a pair of ops that share values.
"""

from __future__ import annotations

from cklang.gradients.api import grad, vjp
from cklang.gradients.saving import SavingGradient, vjp_saving

__all__ = ["SavingGradient", "grad", "vjp", "vjp_saving"]
