# SPDX-License-Identifier: MIT
"""What CK Tile and the hardware ask of a product's algorithm and problem.

The modules beside this one hold the rules: those about an algorithm are asked first.
"""

from cklang.families.gemm.key import Algorithm
from cklang.families.rule import RuleSet

__all__ = ["RULES"]

RULES = RuleSet(
    placeholder=Algorithm(
        tile=(1, 1, 1), warps=(1, 1, 1), warp_tile=(1, 1, 1), vector_a=1, vector_b=1, vector_e=1
    )
)
"""The rules of products; convolutions share those about algorithms."""
