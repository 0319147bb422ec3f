# SPDX-License-Identifier: MIT
"""From a kernel key and an epilogue function to CK Tile C++ and the C of the function."""
