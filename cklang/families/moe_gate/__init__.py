# SPDX-License-Identifier: MIT
"""Experts of tokens: scores, the greatest of them, and weights."""
