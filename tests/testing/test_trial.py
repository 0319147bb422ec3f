# SPDX-License-Identifier: MIT
"""``ck.testing.check`` finds mistakes that are planted in ops, and shows the smallest call."""

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cklang as ck
from cklang.errors import CkError
from cklang.testing import Call, calls, check, check_call
from cklang.testing.printed_test import printed_test
from cklang.testing.strategies import Layout, Values
from tests.support.algorithms import DEEP, narrow
from tests.support.by_reference import replace_kernels
from tests.support.errors import expect_error

M, N, K, V = ck.dims("M N K V")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls return what the program says: here a mistake is one of the program."""
    replace_kernels(monkeypatch)


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T + bias)


@ck.op
def bias_after_relu(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T) + bias


def numpy_linear(x: Any, w: Any, bias: Any) -> Any:
    return np.maximum(x @ w.T + bias, 0)


@ck.op
def later_keys_too(q: ck.f16[M, K]) -> ck.f32[M, M]:
    i, j = ck.arange(M)[:, None], ck.arange(M)[None, :]
    return ck.where(j <= i + 1, q @ q.T, 0.0)


def causal(q: Any) -> Any:
    return np.tril(q @ q.T)


@ck.op
def no_cast(x: ck.f16[M, K], w: ck.f16[N, K], scale: ck.f32[N]) -> ck.f32[M, N]:
    return (x @ w.T) * scale


def rounded_first(x: Any, w: Any, scale: Any) -> Any:
    return (x @ w.T).astype(np.float16).astype(np.float64) * scale


@ck.op
def sums(x: ck.f32[M, N]) -> tuple[ck.f32[M], ck.f32[M]]:
    return x.sum(-1), ck.max(x, axis=-1)


PLANTED: dict[str, tuple[ck.Op, Callable[..., Any], dict[str, int]]] = {
    "epilogue": (bias_after_relu, numpy_linear, {"M": 1, "N": 1, "K": 1}),
    "mask": (later_keys_too, causal, {"M": 2, "K": 1}),
    "missing cast": (no_cast, rounded_first, {"M": 1, "N": 1}),
    "second result": (sums, lambda x: (x.sum(-1), x.min(-1)), {"M": 1, "N": 2}),
}


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_and_shrunk(name: str) -> None:
    op, expected, smallest = PLANTED[name]
    with expect_error("T005") as caught:
        check(op, expected, largest=40)
    call = next(line for line in str(caught.value).splitlines() if "Call(" in line)
    for dim, extent in smallest.items():
        assert f"'{dim}': {extent}" in call, call


@pytest.mark.usefixtures("reference")
def test_the_shown_test_fails_as_the_drawn_call_did() -> None:
    with pytest.raises(CkError) as caught:
        check(bias_after_relu, numpy_linear, largest=40)
    (note,) = caught.value.__notes__
    names: dict[str, Any] = {}
    exec(note, names)
    names |= {"bias_after_relu": bias_after_relu, "numpy_linear": numpy_linear}
    with expect_error("T001"):
        names["test_bias_after_relu"]()


@pytest.mark.usefixtures("reference")
def test_the_shown_test_has_the_text_of_what_cannot_be_imported() -> None:
    @ck.op
    def local(x: T[M, N], bias: ck.f32[N]) -> ck.f32[M, N]:
        return ck.relu(x) + bias

    with pytest.raises(CkError) as caught:
        check(local, lambda x, bias: np.maximum(x + bias, 0), largest=20)
    (note,) = caught.value.__notes__
    linecache.cache["<note>"] = (len(note), None, note.splitlines(keepends=True), "<note>")
    names: dict[str, Any] = {}
    exec(compile(note, "<note>", "exec"), names)
    with expect_error("T001"):
        names["test_local"]()
    assert "from tests" not in note


@pytest.mark.usefixtures("reference")
def test_a_function_of_torch_is_called_with_tensors(torch: Any) -> None:
    def torch_linear(x: Any, w: Any, bias: Any) -> Any:
        return torch.relu(torch.nn.functional.linear(x, w, bias))

    assert check(linear, torch_linear, library="torch", examples=5) == 5
    with expect_error("T005") as caught:
        check(bias_after_relu, torch_linear, library="torch", largest=40)
    assert "torch_linear, library='torch')" in caught.value.__notes__[0]
    with expect_error("A141"):
        check(linear, torch_linear, library="jax")  # type: ignore[arg-type]


@pytest.mark.usefixtures("reference")
def test_an_error_of_a_call_is_shrunk_too() -> None:
    def refuses(x: Any, w: Any, bias: Any) -> Any:
        if x.shape[0] > 3:
            raise OverflowError("too many rows")
        return numpy_linear(x, w, bias)

    with pytest.raises(OverflowError) as caught:
        check(linear, refuses, largest=40)
    words, test = caught.value.__notes__
    assert words.startswith("the smallest failing call is Call(op=linear, dims={'M': 4,")
    assert "def test_linear():" in test


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("wrong", [lambda x: x.sum(-1), lambda x: (x.sum(-1), x)])
def test_results_of_other_shapes_are_named(wrong: Callable[..., Any]) -> None:
    with pytest.raises(CkError) as caught:
        check(sums, wrong)
    assert "CK-A140 expected returns arrays of the shapes" in str(caught.value)


@pytest.mark.usefixtures("reference")
def test_right_ops_pass() -> None:
    assert check(linear, numpy_linear) == 20
    assert check(linear, examples=5) == 5
    assert check(sums, lambda x: (x.sum(-1), x.max(-1)), values=[Values.CANCELLING]) == 20


@ck.op
def everything(
    x: T[M, N],
    table: T[V, N],
    rows: ck.i32[M],
    bias: ck.f32[N] | None = None,
    *,
    slope: ck.const[float],
) -> ck.f32[M, N]:
    y = ck.leaky_relu(x, slope) + table[rows]
    if bias is not None:
        y = y + bias
    return y


def numpy_everything(x: Any, table: Any, rows: Any, bias: Any, slope: float) -> Any:
    y = np.where(x > 0, x, slope * x) + table[rows]
    return y if bias is None else y + bias


@pytest.mark.usefixtures("reference")
def test_everything_of_a_signature_is_drawn() -> None:
    slopes = {"slope": [0.5, 0.25]}
    assert check(everything, numpy_everything, constants=slopes, largest=20) == 20
    drawn: list[Call] = []

    @settings(max_examples=40, database=None)
    @given(calls(everything, constants=slopes, dims={"N": [8, 16]}))
    def draw(call: Call) -> None:
        drawn.append(call)

    draw()
    assert {each.dims["N"] for each in drawn} == {8, 16}
    assert {each.dtypes["T"].name for each in drawn} == {"f16", "bf16"}
    assert {each.absent for each in drawn} == {(), ("bias",)}
    assert {each.constants["slope"] for each in drawn} == {0.5, 0.25}
    assert any("x" in each.layouts for each in drawn)


@ck.op
def scaled(x: ck.f32[M, N], scale: ck.const[float] = 0.5) -> ck.f32[M, N]:
    return x * scale


@pytest.mark.usefixtures("reference")
def test_a_constant_has_its_default_in_the_function_that_is_compared_with() -> None:
    assert check(scaled, lambda x, scale: x * scale, examples=3) == 3


def test_a_call_is_printed_as_it_is_made() -> None:
    call = Call(
        op=everything,
        dims={"M": 3, "N": 8, "V": 2},
        dtypes={"T": ck.bf16},
        constants={"slope": 0.5},
        absent=("bias",),
        values=Values.ORDINARY,
        layouts={"x": Layout.COLUMN},
        seed=7,
    )
    names = {"Call": Call, "everything": everything, "ck": ck, "Values": Values, "Layout": Layout}
    again = eval(call.source(), names)
    assert again == call
    arguments = call.arguments()
    assert arguments["x"].strides == (2, 6)
    assert arguments["rows"].max() < 2
    assert "bias" not in arguments
    for name, value in again.arguments().items():
        np.testing.assert_array_equal(value, arguments[name])


def test_a_lambda_on_the_line_of_a_function_is_printed_alone() -> None:
    text = "def test(): return lambda x, scale: 2 * x * scale\n"
    linecache.cache["<line>"] = (len(text), None, [text], "<line>")
    names: dict[str, Any] = {}
    exec(compile(text, "<line>", "exec"), names)
    printed = printed_test(Call(op=scaled, dims={"M": 1, "N": 1}), names["test"](), "")
    assert "\nexpected = lambda x, scale: 2 * x * scale\n" in printed


@ck.op
def long_heads(q: ck.f32[M, N, K, V]) -> ck.f32[M, N, K, V]:
    return ck.attention(q, q, q)


@pytest.mark.usefixtures("emulator")
def test_what_no_kernel_computes_is_said() -> None:
    with expect_error("T006", "CK-K101"):
        check(long_heads, dims={"M": 1, "N": 1, "K": 8, "V": [4096, 8192]}, examples=3)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"dims": {"Z": 3}, "constants": {"slope": [0.5]}}, "T007"),
        ({"constants": {"slop": [0.5]}}, "T007"),
        ({}, "T008"),
    ],
)
def test_names_that_the_op_does_not_have(more: dict[str, Any], code: str) -> None:
    with expect_error(code):
        check(everything, **more)


@ck.op
def rectified(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


@pytest.mark.usefixtures("stencils")
def test_kernels_are_compared_too() -> None:
    op = rectified.using(narrow(0, warp_tile=DEEP))
    sizes = {"M": [5, 17, 64], "N": [8, 33], "K": [32, 40]}
    assert check(op, lambda x, w: np.maximum(x @ w.T, 0), dims=sizes, examples=6) == 6
    with pytest.raises(CkError) as caught:
        check(op, lambda x, w: x @ w.T, dims=sizes, examples=6, device="emu:gfx942")
    assert "dims={'M': 5, 'K': 32, 'N': 8}" in str(caught.value)
    check_call(Call(op=op, dims={"M": 5, "N": 8, "K": 32}), device="emu:gfx942")


@ck.op
def leaky(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.leaky_relu(x @ w.T, 0.25)


def run_instead(monkeypatch: pytest.MonkeyPatch, wrong: ck.Op) -> None:
    """Let calls of every op run the kernels of ``wrong``: then a kernel is wrong, no program."""
    called = ck.Op._called
    monkeypatch.setattr(ck.Op, "_called", lambda op, *rest: called(wrong, *rest))


@pytest.mark.usefixtures("stencils")
def test_a_wrong_kernel_is_found_without_a_function_to_compare_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    algorithm = narrow(0, warp_tile=DEEP)
    run_instead(monkeypatch, leaky.using(algorithm))
    with expect_error("T005", "dims={'M': 1, 'K': 32, 'N': 8}"):
        check(
            rectified.using(algorithm),
            dims={"M": [1, 5, 17], "N": [8, 33], "K": [32, 40]},
            device="emu:gfx942",
        )


B, H, D = ck.dims("B H D")


@ck.op
def earlier_keys(q: ck.f16[B, H, M, D]) -> ck.f16[B, H, M, D]:
    return ck.attention(q, q, q, mask=ck.causal())


@ck.op
def next_key_too(q: ck.f16[B, H, M, D]) -> ck.f16[B, H, M, D]:
    return ck.attention(q, q, q, mask=lambda i, j: j <= i + 1)


@ck.op
def rounded(x: ck.f16[M, K], w: ck.f16[N, K], scale: ck.f32[N]) -> ck.f32[M, N]:
    return (x @ w.T).to(ck.f16) * scale


WRONG_KERNELS: dict[str, tuple[ck.Op, ck.Op, dict[str, int]]] = {
    "epilogue": (linear, bias_after_relu, {"M": 1, "N": 1, "K": 1}),
    "mask": (earlier_keys, next_key_too, {"B": 1, "H": 1, "M": 2}),
    "missing cast": (rounded, no_cast, {"M": 1, "N": 1}),
}


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_what_computes_another_program_is_found_and_shrunk(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    op, wrong, smallest = WRONG_KERNELS[name]
    run_instead(monkeypatch, wrong)
    with expect_error("T005") as caught:
        check(op, largest=40)
    call = next(line for line in str(caught.value).splitlines() if "Call(" in line)
    for dim, extent in smallest.items():
        assert f"'{dim}': {extent}" in call, call
