# SPDX-License-Identifier: MIT
"""What CK Tile and the hardware ask of a product's algorithm and problem."""
