# SPDX-License-Identifier: MIT
"""Rows written or added at indices."""
