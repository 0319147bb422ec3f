# SPDX-License-Identifier: MIT
"""The instruction tables by themselves: well formed, complete, generated deterministically."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.emulator.engine.isa import schema, tables
from cklang.emulator.engine.isa.schema import FAMILIES, TYPE_BITS, Row, Table, TableError

pytestmark = pytest.mark.usefixtures("emulator")

TABLES = {family: schema.load(family) for family in FAMILIES}
FOLDER = Path(schema.__file__).parent

CDNA = FAMILIES[:3]
WITH_FIELDS = [e for t in TABLES.values() for e in t.encodings if e.fields]
LANES = 64
RDNA_LANES = 32


@pytest.mark.parametrize("family", FAMILIES)
def test_table_is_valid(family: str) -> None:
    tables.validate(TABLES[family])


@pytest.mark.parametrize(
    ("family", "arch", "rows"),
    [
        ("cdna2", "gfx90a", 1107),
        ("cdna3", "gfx942", 1149),
        ("cdna4", "gfx950", 1245),
        ("rdna3", "gfx1100", 1056),
        ("rdna4", "gfx1201", 1166),
    ],
)
def test_every_instruction_is_there(family: str, arch: str, rows: int) -> None:
    table = TABLES[family]
    assert table.arch == arch
    assert len(table.rows) == rows


@pytest.mark.parametrize("family", FAMILIES)
def test_file_has_one_row_a_line_in_order(family: str) -> None:
    text = (FOLDER / f"{family}.json").read_text("utf-8")
    names = [row["name"] for row in json.loads(text)["instructions"]]
    lines = [line for line in text.splitlines() if line.lstrip().startswith('{"name"')]
    assert names == sorted(set(names))
    assert len(lines) == len(names)


def expect_counts(row: schema.Row, encoding: schema.Encoding, lanes: int, copies: int = 1) -> None:
    """Expect each lane's share of A, B and D; a sparse A has half of its elements."""
    m = row.matrix
    assert m is not None
    dst, src = schema.operands(row, encoding)
    d, a, b, c = (operand for operand in (*dst, *src[:3]) if operand is not None)
    spread = copies if TYPE_BITS[m.d] == 16 else 1
    packed = 2 if m.sparse else 1
    assert (d.type, d.count) == (m.d, m.m * m.n * m.blocks * spread // lanes), row.name
    assert (a.type, a.count) == (m.a, m.m * m.k * m.blocks * copies // lanes // packed), row.name
    assert (b.type, b.count) == (m.b, m.n * m.k * m.blocks * copies // lanes), row.name
    assert m.sparse or (c.type, c.count) == (d.type, d.count), row.name


@pytest.mark.parametrize("family", CDNA)
def test_matrix_operands_follow_from_the_shape(family: str) -> None:
    rows = [row for row in TABLES[family].rows if row.matrix is not None]
    assert len(rows) > 25
    for row in rows:
        expect_counts(row, TABLES[family].encoding(row.opcodes[0][0]), LANES)


@pytest.mark.parametrize(("family", "count", "copies"), [("rdna3", 6, 2), ("rdna4", 22, 1)])
def test_rdna_matrix_operands_follow_from_the_shape(family: str, count: int, copies: int) -> None:
    """gfx11: both halves of 32 lanes hold A and B; 16-bit results fill half registers."""
    rows = [row for row in TABLES[family].rows if row.matrix is not None]
    assert len(rows) == count
    for row in rows:
        expect_counts(row, TABLES[family].encoding("VOP3P"), RDNA_LANES, copies)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_fields_of_an_encoding_overlap(family: str) -> None:
    for encoding in TABLES[family].encodings:
        fields = [f.place(-1) for f in encoding.fields]
        if encoding.opcode is not None:
            fields.append(encoding.opcode.place(-1))
        fields += [encoding.mask, encoding.ignored]
        union = 0
        for bits in fields:
            assert not union & bits, encoding.name
            union |= bits
        assert union >> (32 * encoding.dwords) == 0, encoding.name


@given(st.data())
def test_a_field_keeps_its_value(data: st.DataObject) -> None:
    encoding = data.draw(st.sampled_from(WITH_FIELDS))
    field = data.draw(st.sampled_from(encoding.fields))
    value = data.draw(st.integers(0, (1 << field.width) - 1))
    word, shift, extracted = field.place(value), 0, 0
    for low, width in field.parts:
        extracted |= (word >> low & ((1 << width) - 1)) << shift
        shift += width
    assert extracted == value
    assert word.bit_count() == value.bit_count()


def test_generation_is_deterministic(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        tables.generate(folder)
    for name in ("isa_tables.h", "isa_tables.inc"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    header = (one / "isa_tables.h").read_text("utf-8")
    assert all(f"  {row.name}," in header for t in TABLES.values() for row in t.rows)


def _with_row(row: Row) -> Table:
    table = TABLES["cdna3"]
    return dataclasses.replace(table, rows=(*table.rows, row))


def _row(name: str) -> Row:
    return next(row for row in TABLES["cdna3"].rows if row.name == name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "v_twice_f32"}, "v_twice_f32 and v_add_f32 are both VOP2 1"),
        ({"mods": "neg:01 saturate"}, "unknown modifier 'saturate'"),
        ({"flags": ("fast",)}, "unknown flags"),
        ({"imm": "imm32"}, "unknown immediate 'imm32'"),
        ({"opcodes": (("VOP2", 64),)}, "opcode 64 does not fit VOP2"),
        ({"opcodes": (("VOP9", 1),)}, "no encoding VOP9"),
        ({"opcodes": (("VOP2", 63),), "src": ("f33", "f32")}, r"operand 'f33' is not"),
        ({"opcodes": (("VOP2", 63),), "src": ("f32", "src9=f32")}, "no field src9"),
        ({"opcodes": (("VOP2", 63),), "src": ("tgpr/f32", "f32")}, "unknown class 'tgpr'"),
    ],
)
def test_a_contradiction_is_named(change: dict[str, object], message: str) -> None:
    row = dataclasses.replace(_row("v_add_f32"), **change)  # type: ignore[arg-type]
    with pytest.raises(TableError, match=message):
        tables.validate(_with_row(row))


def _family(tmp_path: Path, **changes: object) -> Path:
    raw = {
        "family": "cdna2",
        "arch": "gfx90a",
        "cache_names": {"sc0": "glc", "nt": "slc", "sc1": "scc"},
        "encodings": {
            "SOP1": {"dwords": 1, "match": {"31:23": "101111101"}, "op": "15:8", "fields": {}}
        },
        "instructions": [{"name": "s_one", "op": {"SOP1": 1}}],
    }
    (tmp_path / "cdna2.json").write_text(json.dumps(raw), "utf-8")
    child: dict[str, object] = {"family": "cdna3", "arch": "gfx942", "extends": "cdna2"}
    child |= {"cache_names": {}, "removed": [], "instructions": []} | changes
    (tmp_path / "cdna3.json").write_text(json.dumps(child), "utf-8")
    return tmp_path


def test_extends_removes_replaces_and_adds(tmp_path: Path) -> None:
    new = {"name": "s_two", "op": {"SOP1": 2}}
    table = schema.load("cdna3", _family(tmp_path, removed=["s_one"], instructions=[new]))
    assert [row.name for row in table.rows] == ["s_two"]
    assert [e.name for e in table.encodings] == ["SOP1"]


def test_removing_an_unknown_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="s_none"):
        schema.load("cdna3", _family(tmp_path, removed=["s_none"]))


def test_unknown_key_of_a_row_is_an_error(tmp_path: Path) -> None:
    bad = {"name": "s_two", "op": {"SOP1": 2}, "latency": 3}
    with pytest.raises(TableError, match="latency"):
        schema.load("cdna3", _family(tmp_path, instructions=[bad]))


def test_operand_widths() -> None:
    field = schema.Field(name="vdst", parts=((0, 8),), operand_class="vgpr")
    widths = {
        "f32": 1,
        "f16": 1,
        "f16x2": 1,
        "f64": 2,
        "f16x4": 2,
        "b96": 3,
        "rsrc": 4,
        "f32x16": 16,
    }
    widths |= {"fp6x32": 6, "f8f6f4x32": 8, "xf32x2": 2, "mask": 2, "fp4x2": 1}
    assert {text: schema.parse_operand(text, field).dwords for text in widths} == widths
    known = {4, 6, 8, 16, 24, 32, 64, 96, 128, 256, 512, 1024}
    assert set(TYPE_BITS.values()) <= known
