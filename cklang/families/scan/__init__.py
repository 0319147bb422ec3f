# SPDX-License-Identifier: MIT
"""Cumulative sums along an axis."""
