# SPDX-License-Identifier: MIT
"""The debugger: launches on emulated GPUs under control, forward and back."""
