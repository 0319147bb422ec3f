# SPDX-License-Identifier: MIT
"""Rows in order, or their greatest elements."""
