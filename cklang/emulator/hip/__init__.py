# SPDX-License-Identifier: MIT
"""HIP's headers for clang without ROCm: for kernels alone, and the rest for whole programs."""
