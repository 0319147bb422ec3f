# SPDX-License-Identifier: MIT
"""cklang beside torch: the backend ``"cklang"`` of ``torch.compile``, and what it did."""

from cklang.torch.backend import cklang_backend, register, report

__all__ = ["cklang_backend", "report"]

register()
