# SPDX-License-Identifier: MIT
"""The gradients of attention."""
