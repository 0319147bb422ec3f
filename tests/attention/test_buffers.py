# SPDX-License-Identifier: MIT
"""Buffers in LDS of ``qr_async``: no wave writes a step where another still reads.

CK Tile's order of buffers allows it in tiles of heads of 96 and of 192 elements. What barriers
order is written down here a second time, from the pipeline's loop. ``test_kinds.py`` runs kernels
of such tiles while the emulator looks for races.
"""

from collections.abc import Iterator

import pytest

from cklang.arch import arch
from cklang.families.attention.buffers import buffer_order, ck_tile_order, is_raced

BARRIER = ("barrier", 0)
Event = tuple[str, int]
"""``write`` or ``read``, and a buffer; or a barrier."""


def events(order: tuple[int, ...], steps_d: int, tiles: int) -> Iterator[Event]:
    """Yield what each wave does: the loop of ``BlockFmhaPipelineQRKSVSAsync``."""
    of_k, of_v = order[:steps_d], order[steps_d:]
    yield "write", of_k[0]
    for tile in range(tiles):
        for step in range(1, steps_d):
            yield "write", of_k[step]
            yield BARRIER
            yield "read", of_k[step - 1]
        yield BARRIER
        yield "read", of_k[-1]
        yield "write", of_v[0]
        for step in range(1, len(of_v)):
            yield BARRIER
            yield "read", of_v[step - 1]
            yield "write", of_v[step]
        if tile + 1 < tiles:
            if len(of_v) >= 2 and of_k[0] == of_v[-2]:
                yield BARRIER
            yield "write", of_k[0]
        yield BARRIER
        yield "read", of_v[-1]


def meets(order: tuple[int, ...], steps_d: int) -> bool:
    """Say whether a buffer is written twice, or read and written, with no barrier between."""
    written: list[int] = []
    read: set[int] = set()
    for what, buffer in events(order, steps_d, tiles=3):
        if (what, buffer) == BARRIER:
            written, read = [], set()
            continue
        if what == "read":
            read.add(buffer)
        else:
            written.append(buffer)
        if len(set(written)) < len(written) or read & set(written):
            return True
    return False


STEPS = [(steps_d, steps_k) for steps_d in range(1, 13) for steps_k in range(1, 9)]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_waves_race_where_barriers_order_nothing(steps: tuple[int, int]) -> None:
    for order in (ck_tile_order(*steps), buffer_order(*steps)):
        assert is_raced(order, steps[0]) == meets(order, steps[0])


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_ours_is_right_from_two_steps_of_v_on(steps: tuple[int, int]) -> None:
    order = buffer_order(*steps)
    assert len(order) == sum(steps)
    assert set(order) <= {0, 1, 2}
    assert steps[1] == 1 or not is_raced(order, steps[0])
    assert order == ck_tile_order(*steps) or is_raced(ck_tile_order(*steps), steps[0])


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950"])
def test_tiles_of_96_and_192_have_an_order_of_ours(gpu: str) -> None:
    rows = [row for row in arch(gpu).attention_tiles if "qr_async" in row.pipelines]
    steps = {row.tile[5]: (row.tile[5] // row.tile[2], row.tile[1] // row.tile[4]) for row in rows}
    raced = {head for head, each in steps.items() if is_raced(ck_tile_order(*each), each[0])}
    assert raced == {96, 192}
