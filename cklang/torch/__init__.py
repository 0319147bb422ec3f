# SPDX-License-Identifier: MIT
"""Ops in torch: every ``@ck.op`` is a custom op as soon as torch traces a call of it.

Nothing here is needed to call ops with tensors, in eager mode or under ``torch.compile``: the first
call that torch traces imports this package. ``import cklang`` does not.
"""

from __future__ import annotations

from cklang.torch.gradient import set_backward_of
from cklang.torch.library import custom_op_of

__all__ = ["custom_op_of", "set_backward_of"]
