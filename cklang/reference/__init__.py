# SPDX-License-Identifier: MIT
"""What a function of the mini-IR means, in NumPy; it shares no code with lowering."""
