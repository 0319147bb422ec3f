# SPDX-License-Identifier: MIT
"""Public functions beside ops: gradients, caches, prepared and packed operands."""
