# SPDX-License-Identifier: MIT
"""Kernels that HIP programs compile while they run."""
