# SPDX-License-Identifier: MIT
"""The cost model of products: named terms, fitted to published measurements."""
