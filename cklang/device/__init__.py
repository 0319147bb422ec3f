# SPDX-License-Identifier: MIT
"""GPUs through hip-python, and arrays on them."""
