# SPDX-License-Identifier: MIT
"""Windows that are moved over images by the vector units."""
