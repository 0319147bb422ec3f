# SPDX-License-Identifier: MIT
"""Rows written behind those of a cache."""
