# SPDX-License-Identifier: MIT
"""Kernel identity: total, canonical, lossless."""

import json
from dataclasses import fields, replace
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkValueError
from cklang.families import key_from_json
from cklang.families.attention.key import AttentionKey
from cklang.families.gemm.key import (
    READ_KINDS,
    Algorithm,
    DKind,
    DOperand,
    EpilogueKind,
    GemmKey,
    Layout,
    Pipeline,
    ProductKind,
    Scheduler,
    Signature,
)
from cklang.keys import SCHEMA_VERSION
from cklang.types import DTYPES
from tests.support.algorithms import ATTENTION, BASE
from tests.support.errors import expect_error
from tests.support.gemm_keys import OPEN

dtypes = st.sampled_from(list(DTYPES.values()))
counts = st.integers(1, 8)
triples = st.tuples(st.integers(1, 512), st.integers(1, 512), st.integers(1, 512))
operands = st.builds(DOperand, dtype=dtypes, kind=st.sampled_from(READ_KINDS))
results = st.builds(
    DOperand, dtype=dtypes, kind=st.sampled_from((DKind.RESULT, DKind.STRIDED_RESULT))
)
signatures = st.builds(
    Signature,
    kind=st.sampled_from(ProductKind),
    dtype_a=dtypes,
    dtype_b=dtypes,
    dtype_acc=dtypes,
    dtype_e=dtypes,
    layout_a=st.sampled_from(Layout),
    layout_b=st.sampled_from(Layout),
    layout_e=st.sampled_from(Layout),
    d=st.builds(add, st.lists(operands, max_size=6), st.lists(results, max_size=2)).map(tuple),
    a=st.lists(operands, max_size=3).map(tuple),
    b=st.lists(operands, max_size=3).map(tuple),
    functions=st.text("0123456789abcdef", max_size=64),
)
algorithms = st.builds(
    Algorithm,
    tile=triples,
    warps=triples,
    warp_tile=triples,
    pipeline=st.sampled_from(Pipeline),
    scheduler=st.sampled_from(Scheduler),
    epilogue=st.sampled_from(EpilogueKind),
    pad_m=st.booleans(),
    pad_n=st.booleans(),
    pad_k=st.booleans(),
    vector_a=counts,
    vector_b=counts,
    vector_e=counts,
    vector_d=st.lists(counts, max_size=8).map(tuple),
    block_per_cu=counts,
    split_k=counts,
    persistent=st.booleans(),
    double_buffer=st.booleans(),
    num_wave_groups=counts,
    transpose_c=st.booleans(),
)
keys = st.builds(GemmKey, signatures, algorithms, st.sampled_from(["gfx90a", "gfx942", "gfx950"]))


@given(keys)
def test_json_round_trip(key: GemmKey) -> None:
    assert key_from_json(json.loads(json.dumps(key.to_json()))) == key


@given(keys, keys)
def test_digest_is_equality(a: GemmKey, b: GemmKey) -> None:
    assert (a.digest == b.digest) == (a == b)
    assert (a.label == b.label) == (a == b)


@given(keys, st.data())
def test_every_field_is_in_the_identity(key: GemmKey, data: st.DataObject) -> None:
    for part, strategy in (("signature", signatures), ("algorithm", algorithms)):
        record: Any = getattr(key, part)
        other = data.draw(strategy)
        for f in fields(record):
            changed = replace(record, **{f.name: getattr(other, f.name)})
            same = getattr(other, f.name) == getattr(record, f.name)
            assert (replace(key, **{part: changed}).digest == key.digest) == same


@given(keys)
def test_stencils_differ_from_their_fills_only_by_the_functions(key: GemmKey) -> None:
    stencil = key.stencil
    assert stencil.signature.functions == ""
    refilled = replace(stencil.signature, functions=key.signature.functions)
    assert GemmKey(refilled, stencil.algorithm, stencil.arch) == key


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("version",), 99, "K003"),
        (("signature", "layout_a"), "row", "K001"),
        (("signature", "dtype_a"), "fp16", "K001"),
        (("signature", "colour"), "red", "K001"),
        (("algorithm", "pipeline"), "compv33", "K001"),
        (("algorithm", "tile"), [128, 0, 32], "K011"),
        (("algorithm", "vector_a"), 0, "K011"),
    ],
)
def test_unknown_or_illegal_json_is_refused(
    path: tuple[str, ...], value: object, code: str
) -> None:
    good = GemmKey(OPEN, BASE, "gfx942").to_json()
    record: Any = good
    for step in path[:-1]:
        record = record[step]
    record[path[-1]] = value
    with expect_error(code, kind=CkValueError):
        key_from_json(good)


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(CkValueError, match="missing signature field"):
        key_from_json(
            {
                "version": SCHEMA_VERSION,
                "family": "gemm",
                "arch": "gfx942",
                "signature": {},
                "algorithm": {},
            }
        )


def test_a_later_field_changes_no_key_that_was_written_before() -> None:
    rows = ck.dispatch.attention_problem(1, 8, 128, 128, 64).signature
    columns = replace(rows, transposed_v=True)
    before, after = (AttentionKey(each, ATTENTION, "gfx942") for each in (rows, columns))
    assert "transposed_v" not in before.to_json()["signature"]
    assert after.to_json()["signature"]["transposed_v"] is True
    assert before.digest != after.digest
    for key in (before, after):
        assert key_from_json(json.loads(json.dumps(key.to_json()))) == key
    data = after.to_json()
    wrong = {**data, "signature": {**data["signature"], "transposed_v": "yes"}}
    with pytest.raises(CkValueError, match="CK-K002"):
        key_from_json(wrong)
