# SPDX-License-Identifier: MIT
"""The random numbers of dropout: Philox 4x32 with seven rounds, as CK Tile draws them.

Philox is the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011. The matrix of weights is cut into tiles of 32 by 32. A tile takes
64 results of 16 bytes; result number n of the tile (r, c) of head h of batch b has the counter
(offset + 64 (b heads + h) + n, r + 2**32 c) and the seed as key. Byte t of result n belongs to row
16 (t // 8) + 8 (n // 32) + t % 8 and column n % 32 of the tile.
"""

import math

import numpy as np

from cklang.ir.numeric import Array

_ROUNDS = 7
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_TILE = 32
_RESULTS = 64


def philox(counter: Array, stream: Array, seed: int | Array) -> Array:
    """Return four 32-bit numbers for each pair of 64-bit words of the counter.

    Args:
        counter: Low words, uint64.
        stream: High words, uint64, of a shape that broadcasts with ``counter``.
        seed: The key, of 64 bits; or one for each pair, uint64.

    Returns:
        uint32, with a last axis of 4.
    """
    low, high = np.broadcast_arrays(counter, stream)
    words = [low & _LOW, low >> _SHIFT, high & _LOW, high >> _SHIFT]
    key = np.asarray(seed, np.uint64)
    keys = [key & _LOW, key >> _SHIFT]
    for _ in range(_ROUNDS):
        first, second = words[0] * _MULTIPLIERS[0], words[2] * _MULTIPLIERS[1]
        words = [
            second >> _SHIFT ^ words[1] ^ keys[0],
            second & _LOW,
            first >> _SHIFT ^ words[3] ^ keys[1],
            first & _LOW,
        ]
        keys = [(key + step) & _LOW for key, step in zip(keys, _WEYL, strict=True)]
    return np.stack(words, axis=-1).astype(np.uint32)


def random_bytes(shape: tuple[int, int, int, int], seed: int, offset: int, first: int = 0) -> Array:
    """Return the byte of each weight: uint8 of ``shape``, [batch, head, row, column].

    ``first`` is the index of the first of the batch.
    """
    batch, heads, rows, columns = shape
    tiles = (math.ceil(rows / _TILE), math.ceil(columns / _TILE))
    head = first * heads + np.arange(batch * heads, dtype=np.uint64)[:, None, None, None]
    r, c = (np.arange(count, dtype=np.uint64) for count in tiles)
    result = np.arange(_RESULTS, dtype=np.uint64)
    with np.errstate(over="ignore"):
        counter = np.uint64(offset & (2**64 - 1)) + head * np.uint64(_RESULTS) + result
        stream = r[:, None, None] + (c[:, None] << _SHIFT)
        words = philox(counter, stream, seed)
    # One word is four bytes, the low one first: axes head, r, c, lane half, lane, half, byte.
    drawn = words.astype("<u4").view(np.uint8).reshape(batch * heads, *tiles, 2, _TILE, 2, 8)
    # Row 16 half + 8 (lane half) + byte of tile r, column lane of tile c.
    placed = drawn.transpose(0, 1, 5, 3, 6, 2, 4)
    padded = placed.reshape(batch, heads, tiles[0] * _TILE, tiles[1] * _TILE)
    return padded[:, :, :rows, :columns]


def keep_mask(
    shape: tuple[int, int, int, int], dropout: float, seed: int, offset: int, first: int = 0
) -> Array:
    """Return which weights are kept: those whose byte is at most floor(255 (1 - dropout)).

    ``seed`` and ``offset`` of 32 bits are taken without a sign.
    """
    kept = np.float32(1.0 - np.float64(np.float32(dropout)))
    limit = math.floor(float(kept * np.float32(255)))
    return random_bytes(shape, seed & 0xFFFFFFFF, offset & 0xFFFFFFFF, first) <= limit
