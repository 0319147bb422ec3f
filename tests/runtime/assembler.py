# SPDX-License-Identifier: MIT
"""The decoder held against clang's assembler, on the file of a kernel that a test has built."""

from __future__ import annotations

from pathlib import Path

import read_back as whole

__all__ = ["read_back"]


def read_back(code_object: Path, arch: str) -> None:
    """Check that the kernel reads back, and that it is one of matrix products."""
    assert "v_mfma" in whole.read_back(code_object.read_bytes(), arch)
