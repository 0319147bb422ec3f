# SPDX-License-Identifier: MIT
"""Tokens drawn from rows of logits."""
