# SPDX-License-Identifier: MIT
"""Compilers, linkers and CK Tile trees; where files are kept; logs and progress."""
