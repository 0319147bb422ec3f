# SPDX-License-Identifier: MIT
"""The profiler: where the time of kernels goes on an emulated GPU, by the clock."""
