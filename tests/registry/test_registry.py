# SPDX-License-Identifier: MIT
"""Registries: what is in them, who wins, and that nothing is lost on the way through JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families.gemm.key import Algorithm
from cklang.selection.registry import Registry
from cklang.selection.rules import candidates
from cklang.selection.space import pattern
from cklang.testing import plain_key
from cklang.types import DTYPES
from tests.support.algorithms import BASE
from tests.support.arrays import half
from tests.support.errors import expect_error
from tests.support.gemm_keys import RELU, epilogue, key, signature
from tests.support.gemm_ops import linear
from tests.support.processes import run_python

EXP = epilogue("exp")


def filled() -> Registry:
    registry = Registry("mine")
    registry.add(key(), RELU)
    registry.add(key(region=EXP), EXP, priority=2)
    registry.add(key("gfx950"), RELU, priority=-1)
    return registry


def code_of(call: Any) -> str:
    with pytest.raises(CkError) as caught:
        call()
    return caught.value.code


def test_add_find_remove() -> None:
    registry = Registry("mine")
    assert registry.add(key(), RELU)
    assert not registry.add(key(), RELU)
    assert key() in registry
    assert len(registry) == 1
    entry = registry.find(key())
    assert entry is not None
    assert (entry.key, entry.functions) == (key(), RELU)
    assert registry.find(key("gfx950")) is None
    assert registry.remove(key())
    assert not registry.remove(key())
    assert len(registry) == 0


def test_the_version_counts_changes_only() -> None:
    registry = Registry("mine")
    before = registry.version
    registry.add(key(), RELU)
    after = registry.version
    assert after != before
    registry.add(key(), RELU)
    registry.remove(key("gfx950"))
    assert registry.version == after
    registry.remove(key())
    assert registry.version != after


def test_archs_and_epilogues_stand_side_by_side() -> None:
    assert len(filled()) == 3
    assert len(filled().filter(lambda k: k.arch == "gfx942")) == 2


@pytest.mark.parametrize(("first", "second", "kept"), [(0, 1, 1), (1, 0, 1), (1, 1, 1), (-1, 0, 0)])
def test_the_higher_priority_stays_for_add_and_for_merge(
    first: int, second: int, kept: int
) -> None:
    added, merged, other = Registry("a"), Registry("b"), Registry("c")
    added.add(key(), RELU, priority=first)
    added.add(key(), RELU, priority=second)
    merged.add(key(), RELU, priority=first)
    other.add(key(), RELU, priority=second)
    assert merged.merge(other) == (second > first)
    for registry in (added, merged):
        entry = registry.find(key())
        assert entry is not None
        assert entry.priority == kept


def test_merging_adds_what_is_new() -> None:
    registry = Registry("mine")
    registry.add(key(), RELU)
    assert registry.merge(filled()) == 2
    assert len(registry) == 3


def test_an_epilogue_must_be_the_one_of_its_key() -> None:
    assert code_of(lambda: Registry("mine").add(key(), EXP)) == "K007"


def test_wildcards_expand_to_all_legal_kernels() -> None:
    registry = Registry("mine")
    wild = pattern(tile="*", warps=(2, 2, 1), warp_tile=[(32, 32, 8), (16, 16, 16)], vector_a=8)
    new = registry.declare(signature(), RELU, "gfx942", wild)
    assert new == len(registry) > 100
    algorithms = [kernel.key.algorithm for kernel in registry]
    assert all(map(wild.accepts, algorithms))
    assert len({algorithm.tile for algorithm in algorithms}) > 20
    assert registry.declare(signature(), RELU, "gfx942", wild) == 0


@pytest.mark.parametrize("name", ["essential", "compute", "memory", "latency"])
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950"])
def test_presets_declare_legal_kernels(name: str, gpu: str) -> None:
    assert Registry("mine").declare(signature(), RELU, gpu, name) > 0


@pytest.mark.parametrize("name", ["essential", "compute", "memory", "latency"])
@pytest.mark.parametrize(
    ("gpu", "dtypes"),
    [
        ("gfx942", "fp8_fnuz bf8_fnuz i8"),
        ("gfx950", "fp8 bf8 i8 fp4"),
        ("gfx1100", "f16 bf16 i8"),
        ("gfx1201", "f16 bf16 i8 fp8 bf8"),
    ],
)
def test_presets_have_8_bit_types_and_wmma(name: str, gpu: str, dtypes: str) -> None:
    for dtype in dtypes.split():
        for layouts in ("rcr",) if DTYPES[dtype].packed else ("rcr", "crr"):
            plain = plain_key(BASE, DTYPES[dtype], gpu, layouts).signature
            named = {str(a.tile) for a in candidates(plain, gpu, name)}
            assert len(named) >= (1 if name == "essential" else 2), (dtype, layouts)


def test_an_empty_set_is_an_error() -> None:
    registry = Registry("mine")
    nothing = pattern(tile=(100, 100, 100))
    assert code_of(lambda: registry.declare(signature(), RELU, "gfx942", nothing)) == "K008"
    assert code_of(lambda: registry.declare(signature(), RELU, "gfx942", "esential")) == "K001"
    assert code_of(lambda: registry.declare(signature(), RELU, "gfx94", "essential")) == "K004"


def test_json_is_lossless() -> None:
    registry = filled()
    again = Registry.from_json(json.loads(json.dumps(registry.to_json())))
    assert again.same_as(registry)
    assert [k.priority for k in again] == [0, 2, -1]
    assert again.to_json() == registry.to_json()


def test_sameness_sees_name_order_and_priority() -> None:
    assert filled().same_as(filled())
    other = Registry("other")
    other.merge(filled())
    assert not other.same_as(filled())
    less = filled()
    less.remove(key())
    assert not less.same_as(filled())
    less.add(key(), RELU)
    assert not less.same_as(filled()), "the order is part of it"
    high = filled()
    high.add(key(), RELU, priority=1)
    assert not high.same_as(filled())


HAND_WRITTEN = """
{"kernels": [{"key": {"arch": "gfx942", "signature": {"dtype_a": "f16"}, "algorithm": {
   "tile": [128, 128, 32], "warps": [2, 2, 1], "warp_tile": [32, 32, 16],
   "vector_a": 8, "vector_b": 8, "vector_e": 8}}}]}
"""


def test_what_json_leaves_out_has_its_default() -> None:
    registry = Registry.from_json(json.loads(HAND_WRITTEN))
    (kernel,) = registry
    algorithm = Algorithm(
        tile=(128, 128, 32),
        warps=(2, 2, 1),
        warp_tile=(32, 32, 16),
        vector_a=8,
        vector_b=8,
        vector_e=8,
    )
    assert (kernel.key.algorithm, kernel.priority, registry.name) == (algorithm, 0, "")
    problem = ck.dispatch.problem(512, 512, 512, functions=kernel.functions.digest)
    assert kernel.key.signature == problem.signature
    chosen = ck.dispatch.select(problem, registry=registry, arch="gfx942")
    assert chosen.origin == "registry ''"
    again = Registry.from_json(json.loads(json.dumps(registry.to_json())))
    assert again.same_as(registry)


def test_a_hand_written_kernel_serves_a_call() -> None:
    registry = Registry.from_json(json.loads(HAND_WRITTEN))
    with ck.using(registry=registry, arch="gfx942"):
        assert "registry ''" in linear.explain(half(64, 64), half(32, 64))


@given(st.sampled_from(["version", "name", "priority"]))
def test_complete_json_may_leave_out_what_has_a_default(part: str) -> None:
    registry = Registry("")
    registry.add(key(), RELU)
    data = registry.to_json()
    data.pop(part, None)
    for row in data["kernels"]:
        row.pop(part, None)
        row["key"].pop(part, None)
    assert Registry.from_json(data).same_as(registry)


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        (("key",), "K001", "missing registry kernel field"),
        (("key", "arch"), "K001", "missing kernel key field"),
        (("key", "signature"), "K001", "missing kernel key field"),
        (("key", "signature", "dtype_a"), "K001", "missing signature field"),
        (("key", "algorithm"), "K001", "missing kernel key field"),
        (("key", "algorithm", "tile"), "K001", "missing algorithm field"),
        (("key", "algorithm", "vector_a"), "K001", "missing algorithm field"),
    ],
)
def test_what_has_no_default_must_be_there(path: tuple[str, ...], code: str, words: str) -> None:
    data = json.loads(HAND_WRITTEN)
    *parents, last = path
    record = data["kernels"][0]
    for name in parents:
        record = record[name]
    del record[last]
    with expect_error(code, match=words):
        Registry.from_json(data)
    record["colour"] = "red"
    with expect_error("K001"):
        Registry.from_json(data)


def test_a_kernel_whose_function_reads_something_must_name_it() -> None:
    data = json.loads(HAND_WRITTEN)
    data["kernels"][0]["key"]["signature"]["d"] = [{"dtype": "f16", "kind": "row"}]
    with expect_error("K001", match="missing registry kernel field"):
        Registry.from_json(data)


def test_wrong_json_is_refused() -> None:
    data = filled().to_json()
    assert code_of(lambda: Registry.from_json({**data, "version": 0})) == "K003"
    assert code_of(lambda: Registry.from_json({**data, "colour": "red"})) == "K001"
    assert code_of(lambda: Registry.from_json({**data, "functions": []})) == "K026"
    swapped = {**data, "functions": data["functions"][::-1]}
    assert code_of(lambda: Registry.from_json(swapped)) == "K007"


IMPORT = """
import json, sys
from pathlib import Path
from cklang.dispatch import Registry
made = Registry.from_json(json.loads(Path(sys.argv[1]).read_text()))
print(json.dumps(made.to_json()))
"""


def test_another_process_imports_an_equal_registry(tmp_path: Path) -> None:
    registry = filled()
    registry.declare(signature(), RELU, "gfx942")
    file = tmp_path / "registry.json"
    file.write_text(json.dumps(registry.to_json()))
    done = run_python("-c", IMPORT, file)
    assert Registry.from_json(json.loads(done.stdout)).same_as(registry)


def test_iteration_is_safe_against_changes() -> None:
    registry = filled()
    for kernel in registry:
        registry.remove(kernel.key)
    assert len(registry) == 0


def test_an_op_declares_kernels_for_a_call() -> None:
    registry = Registry("mine")
    x, w = half(64, 64), half(64, 64)
    assert linear.declare(x, w, registry=registry, device="emu:gfx942") == len(registry) > 0
    mine = linear.using(registry=registry)
    assert mine.registry is registry
    assert mine is not linear
    (problem,) = mine.problems(x, w)
    assert ck.dispatch.select(problem, registry=registry, arch="gfx942").key.family == "gemm"
    assert code_of(lambda: linear.using(registry="mine")) == "K025"  # type: ignore[arg-type]
    assert code_of(lambda: linear.using(BASE, strategy="first-fit")) == "K001"
