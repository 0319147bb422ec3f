# SPDX-License-Identifier: MIT
"""Attention with the user's score, mask and output functions."""
