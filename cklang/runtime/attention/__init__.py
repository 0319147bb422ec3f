# SPDX-License-Identifier: MIT
"""Attention calls: their problems, the rules and the choice of a kernel, the launch."""
