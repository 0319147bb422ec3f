# SPDX-License-Identifier: MIT
"""Instruction tables of AMD GPU families, as data."""
