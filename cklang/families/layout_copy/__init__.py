# SPDX-License-Identifier: MIT
"""Copies of a tensor into another order of axes in memory."""
