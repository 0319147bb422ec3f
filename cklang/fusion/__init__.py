# SPDX-License-Identifier: MIT
"""From a function of the mini-IR to the kernels that compute it, with a reason for each choice."""
