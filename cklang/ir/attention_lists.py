# SPDX-License-Identifier: MIT
"""Which numbers the index arrays of attention may hold: starts, lengths and pages.

A kernel uses them as addresses and checks none of them, so whoever can read them does so first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cklang.errors import error
from cklang.ir.attention import LENGTHS, PAGE_STARTS, PAGES, STARTS
from cklang.ir.numeric import Array

OPTIONS: Mapping[str, str] = {
    STARTS[0]: "cu_seqlens_q",
    STARTS[1]: "cu_seqlens_k",
    LENGTHS[0]: "seqlens_k",
    PAGES[0]: "block_table",
    PAGE_STARTS[0]: "page_starts",
}
"""The option of ``ck.attention`` that each role of an index array is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """How far index arrays may reach."""

    rows: int
    """Rows of q, of all packed sequences together."""
    keys: int
    """Rows of k: of each sequence, of all packed sequences together, or of a page."""
    pages: int
    """Pages of k; only meaningful with a block table."""


def check_lists(lists: Mapping[str, Array], names: Mapping[str, str], extents: Extents) -> None:
    """Check every index array of one attention.

    ``names`` are what the user calls each of them, by role; ``extents`` are those of q and k.

    Example:
        >>> starts = np.array([0, 60, 130], np.int32)
        >>> extents = Extents(rows=100, keys=100, pages=0)
        >>> check_lists({"starts_q": starts}, {"starts_q": "cu"}, extents)
        Traceback (most recent call last):
        ...
        cklang.errors.kinds.CkValueError: CK-A056 cu[2] is 130, but it must be from 60 to 100: ...
    """
    for role, tensor, limit in zip(STARTS, "qk", (extents.rows, extents.keys), strict=True):
        if role in lists:
            why = f"sequences follow each other in the {limit} rows of {tensor}"
            _check_starts(names[role], role, lists[role], limit, why)
    lengths, table = lists.get(LENGTHS[0]), lists.get(PAGES[0])
    if lengths is None:
        return
    name = names[LENGTHS[0]]
    if table is None:
        why = f"a sequence of k has {extents.keys} rows"
        check_range(name, LENGTHS[0], lengths, 0, extents.keys, why)
        return
    begins = lists.get(PAGE_STARTS[0])
    if begins is not None:
        # The last element begins no sequence. Whether there is a length for each is another rule.
        lengths, begins = lengths[: begins[:-1].size], begins[:-1].astype(np.int64)[: lengths.size]
        why = f"the block table {names[PAGES[0]]} has {table.size} elements"
        check_range(names[PAGE_STARTS[0]], PAGE_STARTS[0], begins, 0, table.size, why)
    room = (table.shape[-1] if begins is None else table.size - begins) * extents.keys
    why = f"the pages that {names[PAGES[0]]} lists for it have room for no more rows"
    check_range(name, LENGTHS[0], lengths, 0, room, why)
    if not _within(table, extents.pages - 1):
        used = -(-lengths.astype(np.int64) // max(extents.keys, 1))
        check_block_table(names[PAGES[0]], table, extents.pages, 0, used, begins)


def check_block_table(
    name: str,
    table: Array,
    pages: int,
    first: Array | int,
    stop: Array,
    begins: Array | None = None,
) -> None:
    """Check the elements of a block table that a kernel looks up; others may hold anything.

    Args:
        name: What the user calls it.
        table: [sequences, pages of each], or one list with ``begins``.
        pages: How many pages there are.
        first: The first element that is looked up for each sequence.
        stop: One past the last.
        begins: Where the elements of each sequence begin in one list.
    """
    if _within(table, pages - 1):
        return
    used = np.zeros(table.shape, bool)
    if begins is None:
        place = np.arange(table.shape[1])
        used = (place >= np.reshape(first, (-1, 1))) & (place < stop[:, None])
    else:
        for begin, count in zip(begins.tolist(), stop.tolist(), strict=True):
            used[begin : begin + count] = True
    why = f"k and v have {pages} pages"
    check_range(name, PAGES[0], table, 0, pages - 1, why, used)


def check_range(
    name: str,
    role: str,
    values: Array,
    low: Array | int,
    high: Array | int,
    why: str,
    used: Array | bool = True,
) -> None:
    """Raise A056 for the first of ``values`` that is used and not from ``low`` to ``high``."""
    if isinstance(high, int) and isinstance(low, int) and low == 0 and _within(values, high):
        return
    outside = used & ((values < low) | (values > high))
    if not outside.any():
        return
    index = tuple(int(place[0]) for place in np.nonzero(outside))
    least, most = (int(np.broadcast_to(bound, values.shape)[index]) for bound in (low, high))
    raise error(
        "A056",
        name=name,
        index=", ".join(map(str, index)),
        got=int(values[index]),
        low=least,
        high=most,
        why=why,
        option=OPTIONS[role],
    )


def _check_starts(name: str, role: str, starts: Array, limit: int, why: str) -> None:
    """Check that starts neither decrease nor leave the rows."""
    first, last = (starts.item(0), starts.item(-1)) if starts.size else (0, 0)
    if first >= 0 and last <= limit and not np.count_nonzero(starts[1:] < starts[:-1]):
        return
    before = np.zeros_like(starts)
    before[1:] = starts[:-1]
    check_range(name, role, starts, before, limit, why)


def _within(values: Array, high: int) -> bool:
    """Tell whether all values are from 0 to ``high``: in one pass, as every call asks."""
    if values.dtype != np.int32:
        return not values.size or bool(values.min() >= 0 and values.max() <= high)
    # Taken for unsigned, a negative number is above all others.
    return int(np.maximum.reduce(values.view(np.uint32), axis=None, initial=0)) <= high
