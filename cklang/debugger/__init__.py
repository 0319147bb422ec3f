# SPDX-License-Identifier: MIT
"""The debugger: launches on emulated GPUs under control, forward and back."""

from __future__ import annotations

from cklang.debugger.breakpoints import Waves
from cklang.debugger.expressions import Reader, Registers
from cklang.debugger.inside import Callback, Observation, callbacks, debug
from cklang.debugger.session import Session
from cklang.debugger.terminal import Terminal

__all__ = [
    "Callback",
    "Observation",
    "Reader",
    "Registers",
    "Session",
    "Terminal",
    "Waves",
    "callbacks",
    "debug",
]
