# SPDX-License-Identifier: MIT
"""CK Tile's own kernels of rows, for kernels of rows for which somebody named one."""
