# SPDX-License-Identifier: MIT
"""Measuring kernels, and strategies that choose by what was measured."""
