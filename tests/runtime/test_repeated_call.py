# SPDX-License-Identifier: MIT
"""What a repeated call does and does not do: guards of its time that do not measure time."""

import copy
import gc
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.device import device
from cklang.device.device import PAST_LAUNCHES, Launch
from cklang.device.hip_calls import HipCalls, hip_calls
from cklang.device.launch_sequence import LaunchSequence
from cklang.device.scratch import Scratch
from cklang.errors import CkError
from cklang.runtime import call_key
from cklang.runtime.call_plan import _REPEATED
from cklang.runtime.op import Op
from tests.support.algorithms import DEEP, narrow
from tests.support.errors import expect_error
from tests.support.optional import needed
from tests.support.processes import run_python

M, N, K, P, Q = ck.dims("M N K P Q")
GPU = "emu:gfx942"


@ck.op
def one(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def three(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[P, N], u: ck.f16[Q, P]) -> ck.f16[M, Q]:
    hidden = ((x @ w.T).to(ck.f16) @ v.T).to(ck.f16)
    return hidden @ u.T


PLAIN = narrow(0, warp_tile=DEEP)
OPS = {1: one, 3: three}
CALLED = {
    1: Counter(set_device=1, launch=1, synchronize=1),
    3: Counter(set_device=1, launch=3, synchronize=1),
}
FUNCTIONS = {1: 17, 3: 25}
"""How many Python functions a repeated call with ``out=`` may enter."""
IN_SEQUENCE = {1: 12, 3: 16}
"""The same once its launches are one sequence."""


def values(kernels: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = [(33, 20), (40, 20), (24, 40), (48, 24)][: kernels + 1]
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


def expected(arrays: list[Any]) -> Any:
    result = arrays[0]
    for each in arrays[1:]:
        result = (result.astype(np.float32) @ each.T).astype(np.float16)
    return result


def entered(call: Callable[[], object]) -> list[Any]:
    """Return the code of each Python function that a call enters."""
    codes: list[Any] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            codes.append(frame.f_code)

    gc.disable()  # what others do when it begins and ends is no part of the call
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return codes[1:]


@pytest.fixture
def hip_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each HIP call was made by launches that are prepared in this test."""
    counts: Counter[str] = Counter()

    def counted(name: str, call: Callable[..., int]) -> Callable[..., int]:
        def noting(*args: Any) -> int:
            counts[name] += 1
            return call(*args)

        return noting

    device.open_device(GPU)
    calls = HipCalls(*map(counted, HipCalls._fields, hip_calls()))
    monkeypatch.setattr(device, "hip_calls", lambda: calls)
    return counts


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("kernels", [1, 3])
def test_a_repeated_call_makes_few_hip_calls(
    kernels: int, hip_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    op = OPS[kernels].using(PLAIN)
    op(*values(kernels), device=GPU)
    hip_counts.clear()

    def forbidden() -> Any:
        raise AssertionError("a repeated call needs none of the slower calls of hip-python")

    monkeypatch.setattr(device, "hip_library", forbidden)
    arrays = values(kernels, seed=1)
    result = op(*arrays, device=GPU)
    assert hip_counts == CALLED[kernels]
    np.testing.assert_array_equal(result, expected(arrays))


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("kernels", [1, 3])
def test_a_repeated_call_enters_few_functions(
    kernels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests watch which kernels are launched, and that takes functions too.
    monkeypatch.setattr(Launch, "__call__", inspect.unwrap(Launch.__call__))
    op, arrays = OPS[kernels].using(PLAIN), values(kernels)
    out = op(*arrays, device=GPU)
    op(*arrays, out=out, device=GPU)
    codes = entered(lambda: op(*arrays, out=out, device=GPU))
    assert len(codes) <= FUNCTIONS[kernels], " ".join(code.co_name for code in codes)
    generated = [code.co_name for code in codes if code.co_filename == "<string>"]
    assert not generated, "a repeated call makes no dataclass"


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("kernels", [1, 3])
def test_launches_of_a_call_made_again_and_again_are_one_call_into_c(
    kernels: int, hip_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Launch, "__call__", inspect.unwrap(Launch.__call__))
    monkeypatch.setattr(LaunchSequence, "__call__", inspect.unwrap(LaunchSequence.__call__))
    op, arrays = OPS[kernels].using(PLAIN), values(kernels)
    out = op(*arrays, device=GPU)
    for _ in range(_REPEATED):
        op(*arrays, out=out, device=GPU)
    hip_counts.clear()
    others = values(kernels, seed=3)
    codes = entered(lambda: op(*others, out=out, device=GPU))
    assert not hip_counts, "Python makes none of the HIP calls"
    assert len(codes) <= IN_SEQUENCE[kernels], " ".join(code.co_name for code in codes)
    np.testing.assert_array_equal(out, expected(others))
    assert op.last is not None
    assert op.last.instructions


@pytest.mark.usefixtures("stencils")
def test_a_call_like_the_last_one_makes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    op, arrays = one.using(PLAIN), values(1)
    for _ in range(3):
        op(*arrays, device=GPU)
    others, smaller = values(1, seed=3), values(1, seed=4)
    smaller[0] = smaller[0][:5]
    op(*smaller, device=GPU)
    np.testing.assert_array_equal(op(*others, device=GPU), expected(others))

    def forbidden(*_: Any) -> Any:
        raise AssertionError("the arrays are compared with the key of the last call")

    monkeypatch.setattr(call_key, "of_call", forbidden)
    np.testing.assert_array_equal(op(*others, device=GPU), expected(others))
    with pytest.raises(AssertionError, match="are compared"):
        op(*smaller, device=GPU)


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_calls_are_known_again_once_c_reads_their_arrays(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_key, "reads_in_c", False)
    monkeypatch.setattr(call_key, "_reader", None)
    op, arrays = one.using(PLAIN), values(1)
    if library == "torch":
        torch = needed("torch")
        arrays = [torch.from_numpy(each) for each in arrays]
    out = op(*arrays, device=GPU)
    for _ in range(3):
        op(*arrays, device=GPU)
        op(*arrays, out=out, device=GPU)
    assert call_key._reader is not None
    assert len(op._memo) == 2, "one plan with out, one without"


@pytest.mark.usefixtures("stencils")
def test_a_machine_without_a_compiler_makes_launches_one_by_one(
    hip_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cklang.device.launch_sequence._run_sequence", lambda: None)
    op, arrays = three.using(PLAIN), values(3)
    for _ in range(_REPEATED + 1):
        result = op(*arrays, device=GPU)
    hip_counts.clear()
    np.testing.assert_array_equal(op(*arrays, device=GPU), result)
    assert hip_counts == CALLED[3]
    np.testing.assert_array_equal(result, expected(arrays))


@pytest.mark.usefixtures("stencils")
def test_a_repeated_call_reads_one_variable_without_the_environments_own_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (Launch, LaunchSequence):
        monkeypatch.setattr(kind, "__call__", inspect.unwrap(kind.__call__))
    op, arrays = one.using(PLAIN), values(1)
    monkeypatch.setenv("CKLANG_DEVICE", GPU)
    for _ in range(_REPEATED):
        op(*arrays)
    codes = entered(lambda: op(*arrays))
    package = str(Path(ck.__file__).parent)
    others = [code.co_name for code in codes if not code.co_filename.startswith(package)]
    assert others == ["fsdecode"], "it takes one look into the environment, and nothing else"
    monkeypatch.setenv("CKLANG_DEVICE", "emu:gfx000")
    with expect_error("D001"):
        op(*arrays)


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("remembered", [2, PAST_LAUNCHES])
def test_a_call_of_several_kernels_counts_them_all(
    remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cklang.runtime.call_plan.PAST_LAUNCHES", remembered)
    op, arrays = three.using(PLAIN), values(3)
    op(*arrays, device=GPU)
    record = op.last
    assert record is not None
    assert record.instructions is not None
    ready = op._prepare(arrays, None, GPU)
    result = np.empty((33, 48), np.float16)
    plan = ready.plan
    with plan.ready([*(each.ctypes.data for each in arrays), result.ctypes.data]) as launch:
        before = launch()
        plan.device.synchronize()
        last = plan.device.counters()
    assert before is not None
    assert last is not None
    assert record.instructions == (before + last).instructions > last.instructions


@pytest.mark.usefixtures("stencils")
def test_memory_of_intermediate_results_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    op, arrays = three.using(PLAIN), values(3)
    op(*arrays, device=GPU)

    def forbidden(*_: Any) -> Any:
        raise AssertionError("the memory of the call before is idle")

    for name in ("allocate", "allocate_in_order", "free", "free_in_order"):
        monkeypatch.setattr(device.Device, name, forbidden)
    other = values(3, seed=2)
    np.testing.assert_array_equal(op(*other, device=GPU), expected(other))


@pytest.mark.usefixtures("stencils")
def test_threads_do_not_share_memory_of_intermediate_results() -> None:
    op = three.using(PLAIN)
    op(*values(3), device=GPU)
    cases = [values(3, seed) for seed in range(24)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda arrays: op(*arrays, device=GPU), cases))
    for arrays, result in zip(cases, results, strict=True):
        np.testing.assert_array_equal(result, expected(arrays))


@pytest.mark.usefixtures("stencils")
def test_a_refused_launch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status of a bare call is heard, and memory that kernels may use is not used again."""
    op: Op = three.using(PLAIN)
    arrays = values(3)
    op(*arrays, device=GPU)
    gpu, kept = device.open_device(GPU), list[int]()

    def keep(_: Scratch, size: object, address: int) -> bool:
        kept.append(address)
        return True

    monkeypatch.setattr(Scratch, "keep", keep)
    calls = hip_calls()._replace(synchronize=lambda _: 719)
    with monkeypatch.context() as patch:
        patch.setattr(device, "hip_calls", lambda: calls)
        with pytest.raises(CkError) as caught:
            op(*arrays, device=GPU)
    assert caught.value.code == "D003"
    assert "hipErrorLaunchFailure" in str(caught.value)
    assert not kept
    gpu.synchronize()
    np.testing.assert_array_equal(op(*arrays, device=GPU), expected(arrays))


_FAULTY = """
import sys
import numpy as np
import cklang as ck
from tests.runtime.test_repeated_call import GPU, PLAIN, three, values

op, arrays = three.using(PLAIN), values(3)
result = op(*arrays, device=GPU)
plan = op._prepare(arrays, None, GPU).plan
addresses = [each.ctypes.data for each in (*arrays, result)]
for _ in range(int(sys.argv[1])):
    plan.run(addresses, None)
addresses[3] = 4096
try:
    plan.run(addresses, None)
except ck.CkError as problem:
    print(problem)
print("idle", plan.device.scratch.acquire(plan.workspace.bytes))
"""


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("before", [0, _REPEATED])
def test_a_fault_is_told_of_a_call_with_intermediate_results(before: int) -> None:
    run = run_python("-c", _FAULTY, before)
    assert "address" in run.stdout, run.stderr
    assert "CK-D003" in run.stdout
    assert run.stdout.rstrip().endswith("idle None"), "a kernel may still use the memory"


def test_a_copy_of_a_device_has_no_idle_memory() -> None:
    scratch = Scratch(limit=100)
    scratch.keep(40, 1)
    assert copy.deepcopy(scratch).acquire(40) is None
    assert scratch.acquire(40) == 1


def test_idle_memory_has_a_limit() -> None:
    scratch = Scratch(limit=100)
    assert scratch.acquire(40) is None
    assert [scratch.keep(40, address) for address in (1, 2, 3)] == [True, True, False]
    assert scratch.keep(20, 4)
    assert [scratch.acquire(size) for size in (40, 20, 40, 40)] == [2, 4, 1, None]
    assert not scratch.keep(101, 5)
