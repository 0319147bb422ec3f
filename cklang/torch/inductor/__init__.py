# SPDX-License-Identifier: MIT
"""Kernels of cklang among those that Inductor chooses from under ``max_autotune``."""

from cklang.torch.inductor.choices import considered
from cklang.torch.inductor.record import Declined, Emitted, Record

__all__ = ["Declined", "Emitted", "Record", "considered"]
