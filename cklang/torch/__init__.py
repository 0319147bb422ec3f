# SPDX-License-Identifier: MIT
"""cklang in torch: ops as custom ops, and the backend ``"cklang"`` of ``torch.compile``.

Every ``@ck.op`` is a custom op as soon as torch traces a call of it. Nothing here is needed to call
ops with tensors, in eager mode or under ``torch.compile``: the first call that torch traces imports
this package. ``import cklang`` does not. Autograd calls the ops that :func:`cklang.vjp` makes.
:mod:`cklang.torch.backend` compiles whole models. :func:`pretend` lets torch believe in a GPU.
"""

import torch

from cklang.versions import check_version

check_version("torch", torch.__version__)  # modules below import what other versions lack

from cklang.gradients import vjp
from cklang.pretend import pretend
from cklang.torch.backend import cklang_backend, register, report
from cklang.torch.gradient import set_backward_of, set_saving_of
from cklang.torch.library import custom_op_of
from cklang.torch.saving import saved_values, saving

__all__ = ["cklang_backend", "custom_op_of", "pretend", "report", "saved_values", "set_backward_of"]

register()
set_backward_of(vjp)
set_saving_of(vjp, saving)
