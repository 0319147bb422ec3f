# SPDX-License-Identifier: MIT
"""Matrix products with fused prologues and epilogues."""
