# SPDX-License-Identifier: MIT
"""Widths and limits of memory accesses that every supported GPU shares."""

DWORD_BYTES = 4
"""Bytes of a dword, the unit of registers, of LDS banks and of buffer loads."""

ACCESS_BYTES = 16
"""Bytes that one load or store of a lane moves at most."""

BUFFER_BYTES = 1 << 31
"""Bytes that a tensor may span: buffer instructions take 32-bit byte offsets, and CK Tile uses the
lower half of them."""

PACKED_ROW = 32
"""Elements that rows of 4-bit types are a multiple of, 16 bytes: the widest access stays in its
row."""

I32_MAX = (1 << 31) - 1
"""The largest index, extent or count that a 32-bit integer of a kernel holds."""


def packed_row(elements: int) -> int:
    """Return how many elements a row of a 4-bit type has room for that holds ``elements``.

    Example:
        >>> packed_row(33)
        64
    """
    return -(-elements // PACKED_ROW) * PACKED_ROW
