# SPDX-License-Identifier: MIT
"""Which operations of the tables the emulator refuses: these, and no others."""

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from ck_examples import examples_folder

from cklang import emulator
from cklang.emulator.engine.isa import schema
from tests.support.instruction_samples import sample

pytestmark = pytest.mark.usefixtures("emulator")

_EVERYWHERE = {"s_endpgm_saved", "s_rfe_b64", "s_sendmsghalt", "s_sethalt", "s_setkill"}
_WAVE_SYNC = {
    f"ds_gws_{name}"
    for name in ("barrier", "init", "sema_br", "sema_p", "sema_release_all", "sema_v")
}
_CDNA = (
    _EVERYWHERE
    | _WAVE_SYNC
    | {"s_endpgm_ordered_ps_done", "s_rfe_restore_b64", "v_screen_partition_4se_b32"}
)

#: No kernel of a compute language needs them: `src/ops/refusals.cpp` says why.
REFUSED = {
    ("cdna2", "gfx90a"): _CDNA,
    ("cdna3", "gfx942"): _CDNA,
    ("cdna4", "gfx950"): _CDNA,
    ("rdna3", "gfx1100"): _EVERYWHERE
    | _WAVE_SYNC
    | {
        "ds_add_gs_reg_rtn",
        "ds_bvh_stack_rtn_b32",
        "ds_ordered_count",
        "ds_sub_gs_reg_rtn",
        "s_code_end",
        "s_endpgm_ordered_ps_done",
    },
    ("rdna4", "gfx1201"): _EVERYWHERE
    | {
        "ds_bvh_stack_push4_pop1_rtn_b32",
        "ds_bvh_stack_push8_pop1_rtn_b32",
        "ds_bvh_stack_push8_pop2_rtn_b64",
        "global_atomic_ordered_add_b64",
        "s_alloc_vgpr",
        "s_barrier_init",
        "s_barrier_join",
        "s_barrier_leave",
        "s_code_end",
    },
}
_DOCUMENT = Path(__file__).parents[2] / "docs" / "emulator_fidelity.md"


def _census(
    table: schema.Table, gpu: str, rows: Iterable[schema.Row], times: int
) -> emulator.Census:
    """Random words of each encoding of some operations."""
    random = Random(0)
    codes = [
        sample(table, row, table.encoding(name), "", random)
        for row in rows
        for name, _ in row.opcodes
        if name != "VOPDY"
        for _ in range(times)
    ]
    return emulator.instruction_census(gpu, b"".join(codes))


@pytest.mark.parametrize(("family", "gpu"), REFUSED)
def test_what_is_refused(family: str, gpu: str) -> None:
    table = schema.load(family)
    census = _census(table, gpu, table.rows, 3)
    assert census.undecoded == 0
    named = {row.name for row in table.rows}
    assert set(census.emulated) | set(census.missing) == named
    # Signs are refused on integers, so few random words of their operations have none.
    rare = [row for row in table.rows if row.name not in census.emulated]
    again = _census(table, gpu, rare, 500)
    refused = {row.name for row in rare} - set(again.emulated)
    assert refused == REFUSED[family, gpu], "add handlers (src/ops), or reasons (refusals.cpp)"


def test_no_template_of_ck_tile_asks_for_what_is_refused() -> None:
    """A compiler makes these of their builtins or of inline assembly alone, and both name them.

    All others of a GPU's table are emulated, so this holds for kernels that nobody compiled too.
    """
    root = examples_folder().parents[1]
    # The builtins of ds_ordered_count.
    names = {"ds_ordered_add", "ds_ordered_swap"}.union(*REFUSED.values())
    word = re.compile("|".join(sorted(names)))
    places = [root / "include/ck_tile", root / "example/ck_tile", root / "tile_engine"]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    texts = {path: path.read_text("utf-8", "replace") for path in files}
    assert [path for path, text in texts.items() if word.search(text)] == []
    # The words are found if they are there.
    assert sum("ds_bpermute" in text for text in texts.values()) > 0
    assert word.search("__builtin_amdgcn_s_alloc_vgpr(8)")


def test_every_refusal_has_a_reason() -> None:
    """A table in C++ has them and the documentation counts them; test_refused.py reads some."""
    source = (Path(emulator.__file__).parent / "engine" / "src" / "ops" / "refusals.cpp").read_text(
        "utf-8"
    )
    assert set(re.findall(r"\{Op::(\w+), k", source)) == set().union(*REFUSED.values())
    text = _DOCUMENT.read_text("utf-8")
    for (family, gpu), refused in REFUSED.items():
        operations = {row.name for row in schema.load(family).rows}
        assert f"| {gpu} | {len(operations):,} | {len(refused)} |" in text
