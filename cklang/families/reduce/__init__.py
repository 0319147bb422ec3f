# SPDX-License-Identifier: MIT
"""Sums around the gradients of attention."""
