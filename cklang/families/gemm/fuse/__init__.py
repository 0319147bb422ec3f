# SPDX-License-Identifier: MIT
"""How fusion makes kernels of products, and the passes and alternatives of the family."""
