# SPDX-License-Identifier: MIT
"""Convolutions and their gradients, computed by the main loop of products."""
