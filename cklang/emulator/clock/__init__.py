# SPDX-License-Identifier: MIT
"""The clock: how many cycles kernels take, from the instructions that they execute."""
