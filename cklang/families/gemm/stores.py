# SPDX-License-Identifier: MIT
"""Which stores of a tile that is not full come round to the start of the result.

A kernel stores whole tiles. Rows beyond the last one lie out of the range of the buffer's
descriptor, and CK Tile moves the addresses of columns beyond the last one by 2 GiB, out of range
too. But offsets have 32 bits: where a result spans almost 2 GiB, a row beyond the last one and 2
GiB together are the offset of an element again.
"""

from cklang.widths import BUFFER_BYTES


def stored_bytes(
    rows: int, columns: int, strides: tuple[int, int], tile: tuple[int, int], bytes_: int
) -> int:
    """Return the bytes from the start of a result to the end of its tiles.

    ``strides`` are elements from one row to the next, and from one column; ``bytes_`` is the size
    of one.
    """
    whole_rows, whole_columns = (
        -(-extent // size) * size for extent, size in zip((rows, columns), tile, strict=True)
    )
    # One row takes no step: the host shim gives it the stride of packed rows.
    along_m = columns if rows == 1 else strides[0]
    return ((whole_rows - 1) * along_m + (whole_columns - 1) * strides[1] + 1) * bytes_


def comes_round(
    rows: int, columns: int, strides: tuple[int, int], tile: tuple[int, int], bytes_: int
) -> bool:
    """Whether a store beyond the last row or column may hit an element; as :func:`stored_bytes`.

    Example:
        >>> [comes_round(rows, 32830, (32830, 1), (256, 256), 2) for rows in (32512, 32700)]
        [False, True]
    """
    return stored_bytes(rows, columns, strides, tile, bytes_) > BUFFER_BYTES
