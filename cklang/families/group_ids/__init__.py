# SPDX-License-Identifier: MIT
"""Places of ids in the order of their groups."""
