# SPDX-License-Identifier: MIT
"""Ops without cklang: code objects, a C interface and a Python module for given calls."""

from cklang.exporting.write import Exported, export

__all__ = ["Exported", "export"]
