# SPDX-License-Identifier: MIT
"""``torch.compile(model, backend="cklang")``: whole models as programs of kernels."""

from cklang.torch.backend.compiler import cklang_backend, register
from cklang.torch.backend.report import GraphReport, NodeReport, Report, report

__all__ = ["GraphReport", "NodeReport", "Report", "cklang_backend", "register", "report"]
