# SPDX-License-Identifier: MIT
"""Two dwords side by side are one access: what a wave stores together, another loads together.

Scans of rocPRIM pass a value and its flag from one workgroup to the next as 64 bits.
"""

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import assembled

pytestmark = pytest.mark.usefixtures("emulator")

#: Where lanes read and write: all the same pair, neighbours, each fourth, and a few lanes alone.
PLACES = {
    "one": "v_mov_b32 v1, 0",
    "neighbours": "v_lshlrev_b32 v1, 3, v0",
    "apart": "v_lshlrev_b32 v1, 5, v0",
    "few": "v_lshlrev_b32 v1, 5, v0\n  s_mov_b64 exec, 0x91",
}


def body(place: str, name: str) -> str:
    """Workgroup 0 stores pairs (n, n); the others load them and collect the bits that differ."""
    return f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  {place}
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  v_mov_b32 v4, 0
  s_mov_b32 s8, 0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc1 write_{name}
read_{name}:
  global_load_dwordx2 v[2:3], v1, s[4:5] sc1
  s_waitcnt vmcnt(0)
  v_xor_b32 v2, v2, v3
  v_or_b32 v4, v4, v2
  s_add_u32 s8, s8, 1
  s_cmp_lt_u32 s8, 0x8000
  s_cbranch_scc1 read_{name}
  v_lshlrev_b32 v1, 2, v0
  global_store_dword v1, v4, s[6:7]
  s_endpgm
write_{name}:
  global_store_dwordx2 v1, v[2:3], s[4:5] sc1
  v_add_u32 v2, 1, v2
  v_add_u32 v3, 1, v3
  s_add_u32 s8, s8, 1
  s_cmp_lt_u32 s8, 0x8000
  s_cbranch_scc1 write_{name}
"""


BODIES = {name: body(place, name) for name, place in PLACES.items()}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.usefixtures("both_ways")
def test_pairs_are_whole(name: str, widths: tuple[int, ...]) -> None:
    module = assembled(BODIES)
    for bits in widths:
        emulator.vector_width(bits)
        cells, differing = np.zeros(1024, np.uint32), np.zeros(64, np.uint32)
        assert module.launch(name, cells, differing, grid=3) == "hipSuccess"
        assert not differing.any()
