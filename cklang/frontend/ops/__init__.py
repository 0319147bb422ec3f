# SPDX-License-Identifier: MIT
"""The ops of the language that are more than pointwise, a file each. Nothing is imported here."""
