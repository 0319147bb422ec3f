# SPDX-License-Identifier: MIT
"""Which kernel serves a problem: rules, registries, search spaces, strategies."""
