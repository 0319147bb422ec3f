# SPDX-License-Identifier: MIT
"""HIP programs compiled by a clang without ROCm."""
