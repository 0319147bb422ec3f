# SPDX-License-Identifier: MIT
"""What everybody needs, compiled before anybody asks: the emulator and essential stencils."""

from cklang.prebuilding.folder import compile_essentials, write_folder

__all__ = ["compile_essentials", "write_folder"]
