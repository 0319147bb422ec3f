# SPDX-License-Identifier: MIT
"""The debugger: launches on emulated GPUs under control, forward and back."""

from cklang.emulator.debugger.breakpoints import Waves
from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.inside import Callback, Observation, callbacks, debug
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal

__all__ = [
    "Callback", "Observation", "Reader", "Registers", "Session", "Terminal", "Waves", "callbacks",
    "debug",
]  # fmt: skip
