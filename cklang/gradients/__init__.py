# SPDX-License-Identifier: MIT
"""Gradients of ops: ``ck.vjp``, ``ck.grad``, ``ck.vjp_saving`` and ``ck.attention_grad``.

:mod:`cklang.autodiff` differentiates functions; :mod:`.program` makes a program of a backward
function, :mod:`.api` an op of that, :mod:`.saving` a pair of ops that share values, and
:mod:`.attention` chooses between an op of that and kernels for whole attentions.
"""

from cklang.gradients.api import grad, vjp
from cklang.gradients.attention import attention_grad
from cklang.gradients.saving import SavingGradient, vjp_saving

__all__ = ["SavingGradient", "attention_grad", "grad", "vjp", "vjp_saving"]
