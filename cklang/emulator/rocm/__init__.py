# SPDX-License-Identifier: MIT
"""AMD's own runtime on emulated GPUs: what their driver tells of them, how programs start."""
