# SPDX-License-Identifier: MIT
"""Exported calls with free extents: as the op, bit for bit, from Python and C; refused by name."""

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.device.device import open_device
from cklang.dims import ranks
from cklang.errors import CkError
from cklang.exporting.free import free_call
from cklang.exporting.traced import Relation, Trace, Traced, hinted
from cklang.runtime.op import Op
from tests.exporting.test_export import chain, loaded, mean_norm, printed_by
from tests.support.arrays import drawn
from tests.support.errors import expect_error
from tests.support.gemm_ops import linear

B, C, D, H, P, Q, S, T, X, Y, K = ck.dims("B C D H P Q S T X Y K")
GPU = "gfx942"
ROWS = range(1, 301)
EXTENTS = (1, 2, 5, 16, 33, 64, 65, 100, 129, 255, 300)


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v)


@ck.op
def convolve(x: ck.f16[B, Y, X, C], w: ck.f16[K, 3, 3, C]) -> ck.f16[B, Q, P, K]:
    return ck.conv(x, w, padding=1)


SQUARE = {"N": 64, "K": 64}
OPS: dict[str, tuple[Op, dict[str, int], str, range]] = {
    "linear": (linear, SQUARE, "M", ROWS),
    "chain": (chain, SQUARE, "M", ROWS),
    "mean_norm": (mean_norm, {"K": 64}, "M", ROWS),
    "queries": (attend, {"B": 1, "H": 2, "T": 100, "D": 64}, "S", ROWS),
    "keys": (attend, {"B": 1, "H": 2, "S": 33, "D": 64}, "T", ROWS),
    "images": (convolve, {"Y": 6, "X": 7, "C": 64, "K": 64}, "B", range(1, 9)),
}
"""Ops with the extents that are given, and the dim that is free."""


@pytest.fixture(autouse=True)
def current_device(request: pytest.FixtureRequest) -> None:
    """Launch on this GPU, whichever another test has used."""
    if "compiler" in request.fixturenames:
        open_device(f"emu:{GPU}").activate()


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    @cache
    def of(name: str) -> tuple[Path, Any]:
        folder = tmp_path_factory.mktemp(name)
        op, fixed, free, extents = OPS[name]
        written = ck.export(op, [{**fixed, free: extents}], [GPU], folder)
        return folder, loaded(written)

    return of


def wanted(op: Op, args: list[Any]) -> tuple[Any, ...]:
    got = op(*args, device=f"emu:{GPU}")
    return got if isinstance(got, tuple) else (got,)


def apart(array: Any) -> Any:
    """Return the same elements in rows that are 64 elements further apart."""
    if array.ndim < 2:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 64), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", OPS)
def test_any_extents_are_as_the_op(name: str, exports: Callable[[str], tuple[Path, Any]]) -> None:
    (op, fixed, free, extents), (_, calls) = OPS[name], exports(name)
    for extent in (each for each in EXTENTS if each in extents):
        args = drawn(op, {**fixed, free: extent}, seed=extent)
        want = wanted(op, args)
        outs = tuple(np.zeros_like(each) for each in want)
        workspace = np.zeros(max(calls.workspace_bytes(*args, out=outs), 1), np.uint8)
        calls(*args, out=outs, workspace=workspace)
        calls.synchronize()
        for one, other in zip(outs, want, strict=True):
            assert np.array_equal(one, other, equal_nan=True), extent


@pytest.mark.usefixtures("compiler")
def test_rows_that_are_apart(exports: Callable[[str], tuple[Path, Any]]) -> None:
    calls = exports("linear")[1]
    for rows in (2, 65, 130):
        args = [apart(each) for each in drawn(linear, {**SQUARE, "M": rows})]
        (want,) = wanted(linear, args)
        out = apart(np.zeros_like(want))
        calls(*args, out=out)
        calls.synchronize()
        assert np.array_equal(out, want)


@pytest.mark.usefixtures("compiler")
def test_what_is_refused_is_named(exports: Callable[[str], tuple[Path, Any]]) -> None:
    calls = exports("linear")[1]
    x, w, y = np.ones((301, 64), "f2"), np.ones((64, 64), "f2"), np.zeros((301, 64), "f2")
    odd = np.zeros((8, 65), "f2")[:, :64]
    cases = (
        ((x, w, y), r"M=301 is not in range\(1, 301\)"),
        ((x[:8, :32], w[:, :32], y[:8]), r"the shape of x is \[8, 32\], not \[8, 64\]"),
        ((x[:8].astype("f4"), w, y[:8]), "x is f16 with 2 axes"),
        ((x[7::-1], w, y[:8]), "x has strides that no exported kernel takes"),
        ((odd, w, y[:8]), "vector-a: each vector load of A is aligned"),
    )
    for (a, b, out), why in cases:
        with pytest.raises(ValueError, match=why):
            calls(a, b, out=out)


C_PROGRAM = """
int main(int count, char** arguments) {
  chain_calls* calls = NULL;
  if (chain_load(arguments[1], &calls) != 0) return 2;
  void *w = on_device("w", 64 * 64 * 2), *v = on_device("v", 64 * 64 * 2);
  for (int each = 2; each < count; ++each) {
    const int64_t rows = atoi(arguments[each]), bytes = rows * 64 * 2;
    int64_t x_shape[] = {rows, 64}, w_shape[] = {64, 64}, strides[] = {64, 1};
    chain_tensor tensors[] = {{"f16", 2, x_shape, strides}, {"f16", 2, w_shape, strides},
        {"f16", 2, w_shape, strides}, {"f16", 2, x_shape, strides}};
    int call = chain_find(calls, tensors);
    if (call < 0 || chain_find(calls, tensors) != call) return 3;
    void *addresses[] = {on_device("x", bytes), w, v, NULL}, *workspace = NULL;
    if (hipMalloc(&addresses[3], bytes) != 0) return 5;
    if (chain_launch(calls, call, addresses, NULL, NULL) == 0) return 7;
    if (hipMalloc(&workspace, chain_workspace(calls, call)) != 0) return 5;
    if (chain_launch(calls, call, addresses, workspace, NULL) != 0) return 8;
    if (hipDeviceSynchronize() != 0) return 9;
    void* result = malloc(bytes);
    if (hipMemcpy(result, addresses[3], bytes, 2) != 0) return 12;
    fwrite(result, 1, bytes, stdout);
    free(result);
    x_shape[0] = 301;
    if (chain_find(calls, tensors) != -1) return 4;
    if (strstr(chain_reason(), "M=301 is not one of 1 to 300") == NULL) return 6;
    x_shape[0] = rows;
    if (rows == 1) continue; /* one row has no step */
    strides[0] = 65;
    if (chain_find(calls, tensors) != -1 || strstr(chain_reason(), "vector-a") == NULL) return 13;
  }
  chain_unload(calls);
  return 0;
}
"""


@pytest.mark.usefixtures("compiler")
def test_a_c_program_takes_any_rows(exports: Callable[[str], tuple[Path, Any]]) -> None:
    folder, _ = exports("chain")
    args = drawn(chain, {**SQUARE, "M": max(EXTENTS)})
    got = printed_by(C_PROGRAM, folder, args, GPU, *EXTENTS)
    x, w, v = args
    want = [chain(x[:rows], w, v, device=f"emu:{GPU}") for rows in EXTENTS]
    assert np.array_equal(got, np.concatenate(want))


@pytest.mark.usefixtures("compiler")
def test_all_extents_are_free(tmp_path: Path) -> None:
    free = {"M": range(1, 65), "N": range(16, 65, 16), "K": range(32, 65, 32)}
    written = ck.export(linear, [free], [GPU], tmp_path)
    assert written.free[0].agreement == (64, 64)
    assert "any M, N, K" in str(written)
    assert written.bytes < 20_000, "debug information is left out"
    calls, draw = loaded(written), random.Random(1)
    for seed in range(12):
        args = drawn(linear, {name: draw.choice(each) for name, each in free.items()}, seed=seed)
        (want,) = wanted(linear, args)
        out = np.zeros_like(want)
        calls(*args, out=out)
        calls.synchronize()
        assert np.array_equal(out, want), want.shape


def test_fewer_kernels_are_those_that_lose_least() -> None:
    problem = {"M": range(1, 8193), "N": 4096, "K": 4096}
    every, few = (free_call(linear, problem, GPU, count) for count in (None, 1))
    assert len(every.kernels) > len(few.kernels) == 1
    assert set(few.kernels) <= set(every.kernels)
    assert every.agreement == few.agreement == (64, 64)


@pytest.mark.parametrize(
    ("code", "op", "problem"),
    [
        ("K074", linear, {"M": range(5, 5), "N": 64, "K": 64}),
        ("K074", linear, {"M": range(9), "N": 64, "K": 64}),
        ("K019", linear, {"M": ..., "N": 64}),
        ("K001", linear, {"M": ..., "N": 64, "K": 64, "Z": ...}),
    ],
)
def test_bad_extents(code: str, op: Op, problem: Any, tmp_path: Path) -> None:
    with expect_error(code):
        ck.export(op, [problem], [GPU], tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_what_only_ranks_kernels_reads_numbers() -> None:
    rows = Trace().variable("M", 70, (1, 300))
    assert ranks(lambda: (rows / 2, float(rows), 35 / rows))() == (35.0, 70.0, 0.5)
    assert not isinstance(rows / 2, float)
    with pytest.raises(CkError):
        float(rows)


def test_numbers_that_are_needed_are_refused() -> None:
    rows = Trace().variable("M", 70, (1, 300))
    for use in (int, range, hash, float, lambda each: each.bit_length(), lambda each: each & 5):
        with expect_error("K073") as caught:
            use(rows)
        assert "M cannot be left free" in caught.value.message


def computed(m: Any, k: Any, draw: random.Random) -> Any:
    """Return a number that a random program computes of two, with branches."""
    values = [m, k, draw.randrange(-9, 10), draw.randrange(1, 9)]
    for _ in range(12):
        a, b = draw.choice(values), draw.choice(values)
        step = draw.randrange(8)
        if step == 0:
            values.append(a + b)
        elif step == 1:
            values.append(a - 3 * b)
        elif step == 2:
            values.append(a * b % 1009)
        elif step == 3:
            values.append(a // b if b else a)
        elif step == 4:
            values.append(a % b if b > 0 else b)
        elif step == 5:
            values.append(max(a, b) if a != b else 7)
        elif step == 6:
            values.append(-(-a // 16) * 16)
        else:
            values.append(abs(a) if a < b else b & 7)
    return values[-1] + values[-2]


def test_a_trace_is_right_wherever_its_conditions_hold() -> None:
    held = 0
    for seed in range(200):
        draw = random.Random(seed)
        trace = Trace()
        m, k = (trace.variable(name, draw.randrange(1, 400), (1, 400)) for name in "MK")
        result = computed(m, k, random.Random(seed))
        assert hinted(result) == computed(m.hint, k.hint, random.Random(seed))
        for _ in range(20):
            at = draw.randrange(1, 401), draw.randrange(1, 401)
            if all(
                _holds(each.relation, value_at(trace, each.of, at))
                for each in trace.conditions.values()
            ):
                held += 1
                own = (
                    value_at(trace, result.polynomial, at) if isinstance(result, Traced) else result
                )
                assert own == computed(*at, random.Random(seed)), (seed, at)
    assert held > 400


def _holds(relation: Relation, value: int) -> bool:
    return {
        Relation.ZERO: value == 0,
        Relation.NOT_ZERO: value != 0,
        Relation.NOT_NEGATIVE: value >= 0,
    }[relation]


def value_at(trace: Trace, polynomial: Any, at: tuple[int, int]) -> int:
    def atom(number: int) -> int:
        own = trace.atoms[number]
        if not own.of:
            return at["MK".index(own.name)]
        a, b = (value_at(trace, each, at) for each in own.of)
        if not b:
            return 0
        return a // b if own.name == "//" else a % b

    total = 0
    for atoms, factor in polynomial:
        for number in atoms:
            factor *= atom(number)
        total += factor
    return total
