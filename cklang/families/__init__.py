# SPDX-License-Identifier: MIT
"""The families of kernels, one folder each, behind one protocol."""
