# SPDX-License-Identifier: MIT
"""Rows of a tensor reduced to a number each."""
