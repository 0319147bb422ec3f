# SPDX-License-Identifier: MIT
"""The mini-IR: nodes, the op table, text form, verifier and builder. Import the modules."""
