# SPDX-License-Identifier: MIT
"""Lists of lengths, starts and pages that do not go together are refused where they stand."""

from typing import Any

import pytest

from cklang.errors import CkError
from tests.support.written_ops import written_op

DIMS = "B H G S T D E P C N"


def read(packed: bool, options: str) -> Any:
    """Return the op of an attention with ``options``, of packed queries or of a batch."""
    q, o = ("S, H", "S, H") if packed else ("B, H, S", "B, H, S")
    text = (
        "@ck.op\n"
        f"def f(q: ck.f16[{q}, D], k: ck.f16[N, G, T, D], v: ck.f16[N, G, T, E],\n"
        "      starts: ck.i32[P], keys: ck.i32[P], lengths: ck.i32[B], table: ck.i32[B, C],\n"
        f"      pages: ck.i32[C], begins: ck.i32[P]) -> ck.f16[{o}, E]:\n"
        f"    return ck.attention(q, k, v, {options})\n"
    )
    return written_op(text, DIMS)


IN_PAGES = "cu_seqlens_q=starts, seqlens_k=lengths"
TABLED = f"{IN_PAGES}, block_table=table"


@pytest.mark.parametrize(
    ("packed", "options"),
    [
        (False, "seqlens_k=lengths, block_table=table"),
        (True, f"{IN_PAGES}, block_table=table"),
        (True, f"{IN_PAGES}, block_table=pages, page_starts=begins"),
        (True, f"{IN_PAGES}, block_table=pages, page_starts=begins, min_seqlen_q=1"),
        (True, f"{TABLED}, min_seqlen_q=4"),
    ],
)
def test_what_goes_together(packed: bool, options: str) -> None:
    body = read(packed, options).program.specialise().body
    assert next(each.op for each in body if each.op != "constant") == "attention"


@pytest.mark.parametrize(
    ("packed", "options", "sentence"),
    [
        (False, "block_table=table", "block_table needs seqlens_k"),
        (True, "cu_seqlens_q=starts, block_table=table", "block_table needs seqlens_k"),
        (
            True,
            f"{IN_PAGES}, block_table=table, cu_seqlens_k=keys",
            "block_table says where keys are, and so does cu_seqlens_k",
        ),
        (
            True,
            f"{IN_PAGES}, block_table=pages",
            "block_table cannot be a tensor i32.C.\n(.|\n)*rank 2, its first axis the batch",
        ),
        (
            True,
            f"{IN_PAGES}, block_table=table, page_starts=begins",
            "block_table cannot be a tensor i32.B, C.\n(.|\n)*rank 1, the pages of all sequences",
        ),
        (
            True,
            f"{IN_PAGES}, block_table=pages, page_starts=lengths",
            "page_starts is i32.B., but the batch of cu_seqlens_q is P",
        ),
        (
            False,
            "seqlens_k=lengths, block_table=pages, page_starts=begins",
            "page_starts says where sequences begin",
        ),
        (False, "seqlens_k=starts, block_table=table", "seqlens_k is i32.P., but the batch of q"),
        (
            False,
            "seqlens_k=lengths, block_table=table, min_seqlen_q=1",
            "min_seqlen_q skips packed sequences, and q is not packed",
        ),
        (True, f"{TABLED}, min_seqlen_q=keys", "min_seqlen_q cannot be a tensor i32"),
        (True, f"{TABLED}, min_seqlen_q=True", "min_seqlen_q(.|\n)*None skips nothing"),
    ],
)
def test_what_does_not(packed: bool, options: str, sentence: str) -> None:
    with pytest.raises(CkError, match=sentence):
        read(packed, options).program.specialise()
