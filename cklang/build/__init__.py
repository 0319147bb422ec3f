# SPDX-License-Identifier: MIT
"""Kernels from keys: compile steps, the store of results, bundles, parallel and remote builds."""
