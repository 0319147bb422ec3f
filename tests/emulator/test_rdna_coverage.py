# SPDX-License-Identifier: MIT
"""Which operations of the RDNA tables the emulator refuses: these, and no others."""

from __future__ import annotations

from random import Random

import pytest
from rdna import GFX11, GFX12

from cklang import emulator
from cklang.emulator.isa import schema
from cklang.emulator.isa.sample import sample

_BOTH = {"s_code_end", "s_endpgm_saved", "s_rfe_b64", "s_sendmsghalt", "s_sethalt", "s_setkill"}

#: No kernel of a compute language needs them: `src/refusals.cpp` says why of most.
REFUSED = {
    ("rdna3", GFX11): _BOTH
    | {
        "ds_add_gs_reg_rtn",
        "ds_bvh_stack_rtn_b32",
        "ds_gws_barrier",
        "ds_gws_init",
        "ds_gws_sema_br",
        "ds_gws_sema_p",
        "ds_gws_sema_release_all",
        "ds_gws_sema_v",
        "ds_ordered_count",
        "ds_sub_gs_reg_rtn",
        "s_endpgm_ordered_ps_done",
        "s_subvector_loop_begin",
        "s_subvector_loop_end",
    },
    ("rdna4", GFX12): _BOTH
    | {
        "ds_bvh_stack_push4_pop1_rtn_b32",
        "ds_bvh_stack_push8_pop1_rtn_b32",
        "ds_bvh_stack_push8_pop2_rtn_b64",
        "global_atomic_ordered_add_b64",
        "global_load_block",
        "global_load_tr_b128",
        "global_load_tr_b64",
        "global_store_block",
        "s_alloc_vgpr",
        "s_barrier_init",
        "s_barrier_join",
        "s_barrier_leave",
        "s_get_barrier_state",
        "scratch_load_block",
        "scratch_store_block",
    },
}


@pytest.mark.parametrize(("family", "gpu"), REFUSED)
def test_what_is_refused(family: str, gpu: str) -> None:
    table, random = schema.load(family), Random(0)
    codes = [
        sample(table, row, table.encoding(name), "", random)
        for row in table.rows
        for name, _ in row.opcodes
        if name != "VOPDY"
        for _ in range(3)
    ]
    found = emulator.census(gpu, b"".join(codes))
    assert found.undecoded == 0
    named = {row.name for row in table.rows}
    assert set(found.emulated) | set(found.missing) == named
    assert set(found.missing) - set(found.emulated) == REFUSED[family, gpu]
