# SPDX-License-Identifier: MIT
"""Which algorithm is quickest: a cost model with named terms, fitted to published measurements."""
