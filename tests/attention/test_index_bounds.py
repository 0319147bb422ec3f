# SPDX-License-Identifier: MIT
"""Index arrays of attention: those in host memory are checked before each launch, and no kernel
is built for wrong ones; those on a device are trusted, and the emulator finds what faults."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.build.builder import Builder
from cklang.errors import CkError, CkValueError
from cklang.families.attention.index_arrays import HostLists, host_lists
from cklang.ir.attention_lists import Extents, check_lists
from cklang.ops.attention_backward import attention_of
from cklang.runtime.bind import Binding
from cklang.runtime.op import Op
from cklang.tune.called import operands_of, part_of
from cklang.tune.task import tasks_of_call
from tests.support.arrays import Array, uniform
from tests.support.attention_ops import (
    cached,
    cached_args,
    measured,
    packed,
    packed_args,
    packed_rows,
    packed_rows_args,
    plain,
    prefill,
    prefill_args,
    prefill_of_one_list,
    skipping,
)
from tests.support.processes import run_python
from tests.support.streams import on_device

GPU = "emu:gfx942"

B, H, G, S, T, D, E, P, N, C = ck.dims("B H G S T D E P N C")


@ck.op
def measured_and_dropped(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E], lengths: ck.i32[B]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v, seqlens_k=lengths, dropout=0.25, seed=1)


def i32(*values: int) -> Array:
    return np.array(values, np.int32)


def changed(args: list[Any], place: int, index: int | tuple[int, int], value: int) -> list[Any]:
    """Return the arguments with one element of one index array changed."""
    wrong = args[place].copy()
    wrong[index] = value
    return [wrong if number == place else each for number, each in enumerate(args)]


def of_measured() -> list[Any]:
    return [uniform(2, 4, 3, 64), uniform(2, 2, 75, 64), uniform(2, 2, 75, 48), i32(75, 0)]


def of_packed() -> list[Any]:
    return packed_args([(60, 70), (40, 30)], 1)


def of_gradients() -> list[Any]:
    args, grad = packed_rows_args([(60, 70), (40, 30)], 1)
    return [*args, grad]


def of_cached() -> list[Any]:
    """Two sequences with room for 144 keys each, in 18 pages of 16 rows."""
    return cached_args([100, 20], 1, 1)


def of_list() -> list[Any]:
    """Two sequences of 20 and 40 keys, in 8 pages of 16 rows."""
    *tensors, starts, lengths, table = prefill_args([(5, 20), (7, 40)], 16, 1)
    return [*tensors, starts, lengths, table.reshape(-1), i32(0, 4, 8)]


CALLS: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "beyond the rows of q": (
        packed,
        changed(of_packed(), 3, 2, 130),
        r"mine\[2\] is 130, but it must be from 60 to 100: .* the 100 rows of q",
    ),
    "a start beyond the rows of q": (packed, changed(of_packed(), 3, 1, 101),
                                     r"mine\[1\] is 101, but it must be from 0 to 100"),
    "starts that decrease": (packed, changed(of_packed(), 3, 2, 40),
                             r"mine\[2\] is 40, but it must be from 60 to 100"),
    "a negative start": (packed, changed(of_packed(), 3, 0, -1),
                         r"mine\[0\] is -1, but it must be from 0 to 100"),
    "beyond the keys": (packed, changed(of_packed(), 4, 2, 101),
                        r"theirs\[2\] is 101, but it must be from 70 to 100: .* the 100 rows of k"),
    "where short sequences are skipped": (skipping, [*changed(of_packed(), 4, 1, -5), np.int32(1)],
                                          r"theirs\[1\] is -5"),
    "a length beyond the keys": (
        measured,
        changed(of_measured(), 3, 0, 76),
        r"lengths\[0\] is 76, but it must be from 0 to 75: a sequence of k has 75 rows",
    ),
    "a negative length": (measured, changed(of_measured(), 3, 1, -1), r"lengths\[1\] is -1"),
    "a length beyond the pages": (
        cached,
        changed(of_cached(), 3, 1, 145),
        r"lengths\[1\] is 145, but it must be from 0 to 144: the pages that table lists",
    ),
    "no page": (cached, changed(of_cached(), 4, (0, 6), 18),
                r"table\[0, 6\] is 18, but it must be from 0 to 17: k and v have 18 pages"),
    "a negative page": (cached, changed(of_cached(), 4, (1, 1), -1), r"table\[1, 1\] is -1"),
    "pages of packed queries": (prefill,
                                changed(prefill_args([(5, 20), (7, 40)], 16, 1), 5, (1, 2), 99),
                                r"table\[1, 2\] is 99, but it must be from 0 to 7"),
    "rows of queries to pages": (prefill,
                                 changed(prefill_args([(5, 20), (7, 40)], 16, 1), 3, 2, 13),
                                 r"starts\[2\] is 13, but it must be from 5 to 12"),
    "a page of one list": (prefill_of_one_list, changed(of_list(), 5, 6, 8), r"pages\[6\] is 8"),
    "a beginning beyond one list": (
        prefill_of_one_list,
        changed(of_list(), 6, 1, 9),
        r"begins\[1\] is 9, but it must be from 0 to 8: the block table pages has 8 elements",
    ),
    "a length beyond one list": (prefill_of_one_list, changed(of_list(), 6, 1, 6),
                                 r"lengths\[1\] is 40, but it must be from 0 to 32"),
    "gradients": (lambda *args: ck.attention_grad(packed_rows, *args[:-1], grad=args[-1]),
                  changed(of_gradients(), 4, 2, 130),
                  r"theirs\[2\] is 130, but it must be from 70 to 100"),
    "bytes of a dropout": (lambda *args: ck.dropout_bytes(measured_and_dropped, *args),
                           changed(of_measured(), 3, 0, 76), r"lengths\[0\] is 76"),
    "outside of any op": (
        lambda q, k, v, mine, theirs, _: ck.attention(
            q, k, v, cu_seqlens_q=mine, cu_seqlens_k=theirs
        ),
        changed(of_packed(), 3, 2, 130),
        r"cu_seqlens_q\[2\] is 130",
    ),
}  # fmt: skip


@pytest.fixture
def builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_all(*_: Any) -> Any:
        raise AssertionError("index arrays are checked before any kernel is built")

    monkeypatch.setattr(Builder, "build_all", build_all)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_elements_are_named_and_nothing_is_built(name: str, builds_nothing: None) -> None:
    call, args, message = CALLS[name]
    with ck.using(arch="gfx942"), pytest.raises(CkValueError, match=f"CK-A056 {message}"):
        call(*args)


def test_arrays_of_torch_are_checked(builds_nothing: None, torch: Any) -> None:
    tensors = [torch.from_numpy(np.ascontiguousarray(each)) for each in of_cached()]
    tensors[4][0, 6] = 18
    with pytest.raises(CkError, match=r"CK-A056 table\[0, 6\] is 18"):
        cached(*tensors, device=GPU)


APPENDED: dict[str, tuple[dict[str, Any], str]] = {
    "a page before the first": ({"block_table": [[-1, 1], [2, 3]]}, r"block_table\[0, 0\] is -1"),
    "a page beyond the last": (
        {"block_table": [[0, 1], [2, 4]], "seqlens_k": [0, 6]},
        r"block_table\[1, 1\] is 4, but it must be from 0 to 3: k and v have 4 pages",
    ),
    "a negative length": (
        {"seqlens_k": [0, -3]},
        r"seqlens_k\[1\] is -3, but it must be from 0 to 13",
    ),
    "a length beyond the pages": ({"seqlens_k": [14, 0]}, r"seqlens_k\[0\] is 14"),
    "queries without an angle": (
        {"q": uniform(2, 4, 9, 40), "seqlens_k": [8, 0]},
        r"seqlens_k\[0\] is 8, but it must be from 0 to 7: cos and sin have 16, and .* 9",
    ),
}


@pytest.mark.parametrize("name", APPENDED)
def test_rows_are_written_to_no_foreign_page(name: str, builds_nothing: None) -> None:
    """Three rows behind two caches of up to 16, in pages of 8."""
    change, message = APPENDED[name]
    options: dict[str, Any] = {"seqlens_k": [0, 0], "block_table": [[0, 1], [2, 3]]} | change
    names = ("seqlens_k", "block_table")
    options |= {name: np.array(options[name], np.int32) for name in names}
    caches = [np.zeros((4, 2, 8, 40), np.float16) for _ in "kv"]
    rows = uniform(2, 2, 3, 40)
    options |= {each: uniform(16, 16) for each in ("cos", "sin")}
    with pytest.raises(CkValueError, match=f"CK-A056 {message}"):
        ck.append_kv(caches[0], caches[1], rows, rows, **options, device=GPU)
    assert not any(cache.any() for cache in caches)


@pytest.mark.usefixtures("stencils")
def test_repeated_calls_check_again() -> None:
    """The plan is that of the first call; the numbers are not."""
    args = of_packed()
    result = packed(*args, device=GPU)
    assert packed.last is not None
    out = tuple(np.full_like(each, 7) for each in result)
    packed(*args, device=GPU, out=out)
    packed(*args, device=GPU, out=out)
    assert packed.last.memoised
    before = packed.last
    wanted = [each.copy() for each in out]
    args[3][2] = 130
    with pytest.raises(CkError, match=r"CK-A056 mine\[2\] is 130"):
        packed(*args, device=GPU, out=out)
    assert packed.last == before, "nothing was launched"
    for got, want in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    args[3][2] = 100
    packed(*args, device=GPU)
    assert packed.last.memoised


@pytest.mark.usefixtures("compiler")
def test_repeated_gradients_check_again() -> None:
    args, grad = packed_rows_args([(60, 70), (40, 30)], 1)
    with ck.using(arch="gfx942"):
        ck.attention_grad(packed_rows, *args, grad=grad)
        ck.attention_grad(packed_rows, *args, grad=grad)
        assert packed_rows.last is not None
        assert packed_rows.last.memoised
        args[4][1] = -1
        with pytest.raises(CkError, match=r"CK-A056 theirs\[1\] is -1"):
            ck.attention_grad(packed_rows, *args, grad=grad)


@pytest.mark.usefixtures("stencils")
def test_what_is_not_looked_up_may_be_anything() -> None:
    args = of_cached()
    lengths, table = args[3:]
    op = cached.using(splits=3)
    want = op(*args, device=GPU)
    for row, length in zip(table, lengths, strict=True):
        row[-(-length // 16) :] = -1
    np.testing.assert_array_equal(op(*args, device=GPU), want)


def lists_of(op: Op, binding: Binding) -> HostLists | None:
    (kernel,) = op._planned(binding).kernels
    return host_lists(attention_of(kernel), binding.arrays, binding.dims)


def test_calls_without_index_arrays_check_nothing() -> None:
    args = of_measured()[:3]
    binding = plain._bind(args)
    assert lists_of(plain, binding) is None
    args = of_measured()
    binding = measured._bind(args)
    assert lists_of(measured, binding) is not None


@given(
    st.lists(st.integers(-2, 8), min_size=1, max_size=4),
    st.lists(st.integers(-2, 8), min_size=1, max_size=4),
)
def test_packed_starts_are_legal_if_every_row_is_there(mine: list[int], theirs: list[int]) -> None:
    """Each sequence, one by one."""

    def there(starts: list[int], extent: int) -> bool:
        ends = all(0 <= start <= extent for start in starts)
        return ends and all(first <= stop for first, stop in pairwise(starts))

    lists = {"starts_q": i32(*mine), "starts_k": i32(*theirs)}
    refused = False
    try:
        check_lists(lists, {role: role for role in lists}, Extents(rows=6, keys=5, pages=0))
    except CkValueError:
        refused = True
    assert refused == (not (there(mine, 6) and there(theirs, 5)))


@given(
    st.lists(st.integers(-1, 7), min_size=1, max_size=3),
    st.lists(st.integers(-1, 4), min_size=12, max_size=12),
    st.booleans(),
    st.lists(st.integers(-1, 13), min_size=4, max_size=4),
)
def test_pages_are_legal_if_every_key_is_in_one(
    lengths: list[int], pages: list[int], one_list: bool, begins: list[int]
) -> None:
    """Each key of each sequence, one by one: pages of 2 rows, four of them in k."""
    batch = len(lengths)
    table = i32(*pages).reshape(3, 4)[:batch]
    lists = {"lengths_k": i32(*lengths), "pages": table}
    firsts = [4 * b for b in range(batch)]
    if one_list:
        firsts = begins[:batch]
        lists |= {"pages": i32(*pages), "page_starts": i32(*begins[: batch + 1])}
    ends = [12 if one_list else first + 4 for first in firsts]
    legal = all(length >= 0 for length in lengths) and all(0 <= first <= 12 for first in firsts)
    if legal:
        legal = all(
            first + key // 2 < end and 0 <= pages[first + key // 2] < 4
            for first, end, length in zip(firsts, ends, lengths, strict=True)
            for key in range(length)
        )
    refused = False
    try:
        check_lists(lists, {role: role for role in lists}, Extents(rows=1, keys=2, pages=4))
    except CkValueError:
        refused = True
    assert refused == (not legal)


def test_what_tuning_measures_is_legal() -> None:
    """The part of a large problem that is held against the reference has lengths of its own."""
    args = [uniform(3, 4, 2, 64), uniform(3, 2, 500, 64), uniform(3, 2, 500, 48), i32(0, 0, 0)]
    binding = measured._bind(args)
    (task,) = tasks_of_call(measured._planned(binding), binding)
    whole = operands_of(task, args)
    assert whole[3].tolist() == [500, 500, 500]
    some = part_of(task, whole)
    assert some[1].shape[2] < 500
    binding = measured._bind(some)
    lists = lists_of(measured, binding)
    assert lists is not None
    lists.check([array.pointer for array in binding.arrays.values()])


_ON_DEVICE = """
import sys
from importlib import import_module

sys.path[:0] = {path!r}
import numpy as np

import cklang as ck
from cklang import emulator
from cklang.errors import CkError
from cklang.device import device_array
from cklang.device.device import open_device

ops, on_device = import_module({ops!r}), import_module({streams!r}).on_device
device = open_device("emu:gfx942")


def maker(shape, dtype, library, place="host", order=()):
    return lambda: on_device(device, np.empty(shape, dtype.numpy))


device_array.maker = maker
if {which!r} == "rows":
    call, args = ops.packed, ops.packed_args([(60, 70), (40, 30)], 1)
    args[3][2] = 130
elif {which!r} == "pages":
    # Pages of 4 KiB: 16 rows of 2 heads of 64 f16. What lies behind the last is not there.
    call, args = ops.cached.using(splits=3), ops.cached_args([100, 20], 1, 1)
    args[4][0, 2] = len(args[1])
else:
    rows = np.ones((1, 2, 5, 64), np.float16)
    caches = [np.zeros((6, 2, 16, 64), np.float16) for _ in "kv"]
    lengths, table = np.array([16], np.int32), np.array([[0, 6]], np.int32)
    args = [*caches, rows, rows, lengths, table]

    def call(k_cache, v_cache, k, v, lengths, table):
        ck.append_kv(k_cache, v_cache, k, v, seqlens_k=lengths, block_table=table)


try:
    call(*(on_device(device, np.ascontiguousarray(each)) for each in args))
    device.synchronize()
except CkError as problem:
    print(problem.code, emulator.fault(device.index))
"""


@pytest.mark.parametrize(
    ("which", "access"), [("rows", "load"), ("pages", "load"), ("rows behind a cache", "store")]
)
def test_the_emulator_finds_what_a_device_array_makes_a_kernel_touch(
    which: str, access: str
) -> None:
    """In a process of its own, whose device has failed afterwards."""
    places = {"ops": packed_args.__module__, "streams": on_device.__module__, "path": sys.path}
    code = _ON_DEVICE.format(which=which, **places)
    done = run_python("-c", code)
    assert "D003 memory access fault at address" in done.stdout, done.stdout + done.stderr
    assert f"_{access}_" in done.stdout
