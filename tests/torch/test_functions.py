# SPDX-License-Identifier: MIT
"""Functions that torch has under the same name: the same numbers, and the same gradients."""

import re
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from cklang.autodiff.transform import backward
from cklang.frontend import composites, functions
from cklang.frontend.intrinsics import INTRINSICS
from cklang.frontend.other_names import advice_for
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from tests.support.written_ops import expression_op, written_op

pytestmark = pytest.mark.usefixtures("torch")

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(torch, name) for name in ("sinh", "cosh", "asinh", "acosh", "atanh")},
    **{name: getattr(torch, name) for name in ("erfc", "log10", "deg2rad", "rad2deg", "frac")},
    **{name: getattr(torch, name) for name in ("logit", "sinc", "nan_to_num", "heaviside")},
    **{name: getattr(torch, name) for name in ("atan2", "hypot", "fmod", "copysign", "xlogy")},
    **{name: getattr(torch, name) for name in ("logaddexp", "logaddexp2", "fmax", "fmin")},
    **{name: getattr(functional, name) for name in ("relu6", "hardtanh", "selu", "celu")},
    **{name: getattr(functional, name) for name in ("logsigmoid", "softshrink", "hardshrink")},
    **{name: getattr(torch.special, name) for name in ("entr", "ndtr", "xlog1py")},
    "tanhshrink": functional.tanhshrink,
    "threshold": lambda x: functional.threshold(x, 0.25, 2.0),
    "lerp": lambda x, y: torch.lerp(x, y, 0.25),
    "prelu": lambda x, y: torch.where(x > 0, x, y * x),
}
WORDS = {"threshold": "ck.threshold(x, 0.25, 2.0)", "lerp": "ck.lerp(x, y, 0.25)"}
TWO = (
    *("atan2", "hypot", "fmod", "copysign", "xlogy", "logaddexp", "logaddexp2", "fmax", "fmin"),
    *("heaviside", "lerp", "prelu", "xlog1py"),
)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
WITHOUT_GRADIENT = {"heaviside"}


def operands(name: str) -> list[np.ndarray[Any, Any]]:
    """Return ordinary numbers where a function is defined."""
    rng = np.random.default_rng(3)
    count = 2 if name in TWO else 1
    low, high = {"acosh": (1.1, 4), "logit": (0.1, 0.9), "entr": (0.1, 0.9), "log10": (0.1, 9)}.get(
        name, (-0.9, 0.9)
    )
    return [rng.uniform(low, high, 64).astype(np.float32) for _ in range(count)]


def program(name: str) -> Any:
    pair = name in TWO
    params = "x: ck.f32[M], y: ck.f32[M]" if pair else "x: ck.f32[M]"
    words = WORDS.get(name, f"ck.{name}({'x, y' if pair else 'x'})")
    return expression_op(params, "ck.f32[M]", words).program.specialise()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_torchs(name: str) -> None:
    arrays = operands(name)
    special = np.array(SPECIAL, np.float32)
    # In f64 the ends of nan_to_num are others; NumPy's heaviside keeps nan, torch's does not.
    if name not in ("nan_to_num", "heaviside"):
        grids = np.meshgrid(*[special] * len(arrays))
        arrays = [np.append(x, grid.ravel()) for x, grid in zip(arrays, grids, strict=True)]
    (got,) = evaluate(program(name), arrays)
    want = FUNCTIONS[name](*(torch.tensor(x, dtype=torch.float64) for x in arrays)).numpy()
    np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - WITHOUT_GRADIENT))
def test_a_gradient_is_torchs(name: str) -> None:
    function, arrays = program(name), operands(name)
    wrt = [param.name for param in function.params]
    dy = np.random.default_rng(4).standard_normal(64).astype(np.float32)
    derived = verify(backward(function, wrt, ["dy"], name="f_vjp"), allow_unused=True)
    got, bounds = evaluate_with_bound(derived, [*arrays, dy])
    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays]
    FUNCTIONS[name](*tensors).backward(torch.tensor(dy, dtype=torch.float64))
    for mine, bound, tensor in zip(got, bounds, tensors, strict=True):
        theirs = np.zeros(64) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=1e-6)
        assert np.isfinite(bound).all()


def test_functions_of_torch_special_are_here_or_listed_as_left_out() -> None:
    known = {*INTRINSICS, *composites.__all__}
    page = (Path(__file__).parents[2] / "docs/language.md").read_text("utf-8")
    patterns = re.findall(r"`(\w+\*?)`", page.split("## Functions that are left out")[1])
    missing = {
        name
        for name in set(torch.special.__all__) - known
        if not advice_for(name, known).startswith("write ") and "polynomial" not in name
    }
    assert {name for name in missing if not any(fnmatch(name, p) for p in patterns)} == set()


def test_signs_and_kinds_of_numbers_are_torchs() -> None:
    x = np.array(SPECIAL, np.float32)
    for name in ("isfinite", "isinf", "isnan", "signbit"):
        got = getattr(functions, name)(x)
        np.testing.assert_array_equal(got, getattr(torch, name)(torch.from_numpy(x)).numpy())


Program = Callable[..., Any]
IN_ORDER: dict[str, tuple[str, Program]] = {
    "sort": ("ck.sort(x, axis=1) * w", lambda x, w: torch.sort(x, 1).values * w),
    "sort of columns": (
        "ck.sort(x, axis=0, descending=True) * w",
        lambda x, w: torch.sort(x, 0, descending=True).values * w,
    ),
    "topk": (
        "ck.topk(x * x, 2)[0].sum(1, keepdims=True) * w",
        lambda x, w: torch.topk(x * x, 2).values.sum(1, keepdim=True) * w,
    ),
    "topk along the first axis": (
        "ck.topk(x * x, 3, axis=0, largest=False)[0].sum(0)[None, :] * w",
        lambda x, w: torch.topk(x * x, 3, 0, largest=False).values.sum(0)[None, :] * w,
    ),
    "cumprod": ("ck.cumprod(x, 1) * w", lambda x, w: torch.cumprod(x, 1) * w),
    "cumprod of columns": ("ck.cumprod(x * w, 0)", lambda x, w: torch.cumprod(x * w, 0)),
}


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("name", IN_ORDER)
def test_gradients_of_what_is_in_order_are_torchs(name: str, zeros: int) -> None:
    words, formula = IN_ORDER[name]
    op = expression_op("x: ck.f32[M, N], w: ck.f32[M, N]", "ck.f32[M, N]", words)
    rng = np.random.default_rng(zeros)
    x, w, dy = rng.standard_normal((3, 4, 6)).astype(np.float32)
    if "cumprod" in name:
        x[:, [3, 1][:zeros]] = 0
    expect_gradients(op.program.specialise(), (x, w), dy, formula)


OF_AXES: dict[str, tuple[str, str, Program]] = {
    "std": (
        "ck.f32[M]",
        "ck.std(x, axis=1, correction=1)",
        lambda x: torch.std(x, 1),
    ),
    "nansum": ("ck.f32[N]", "ck.nansum(x, axis=0)", lambda x: torch.nansum(x, 0)),
    "diff": ("ck.f32[M, N - 1]", "ck.diff(x)", torch.diff),
    "diff of columns": ("ck.f32[M - 1, N]", "ck.diff(x, axis=0)", lambda x: torch.diff(x, dim=0)),
}


@pytest.mark.parametrize("name", OF_AXES)
def test_functions_of_axes_and_their_gradients_are_torchs(name: str) -> None:
    result, words, formula = OF_AXES[name]
    function = expression_op("x: ck.f32[M, N]", result, words).program.specialise()
    x = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)
    if name == "nansum":
        x[1, 2:4] = np.nan
    (got,) = evaluate(function, [x])
    want = formula(torch.tensor(x, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-6)
    dy = np.random.default_rng(6).standard_normal(want.shape).astype(np.float32)
    expect_gradients(function, (x,), dy, formula)


ROUTER = """
@ck.op
def f(x: ck.f16[M, K], w: ck.f16[E, K]) -> ck.f32[M, 2]:
    v, i = ck.topk(ck.softmax(x @ w.T), 2)
    return v / v.sum(-1, keepdims=True) + 0.0 * i
"""


def in_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    v = torch.topk(torch.softmax(x @ w.T, -1), 2).values
    return v / v.sum(-1, keepdim=True)


def test_a_router_is_differentiated() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 16)), rng.standard_normal((8, 16))
    dy = rng.standard_normal((5, 2)).astype(np.float32)
    function = written_op(ROUTER, "M K E").program.specialise()
    arrays = x.astype(np.float16), w.astype(np.float16)
    expect_gradients(function, arrays, dy, in_torch, tolerance=2e-3)


def expect_gradients(
    function: Any, arrays: Any, dy: Any, formula: Program, tolerance: float = 3e-5
) -> None:
    wrt = [param.name for param in function.params]
    derived = verify(backward(function, wrt, ["dy"], name="f_vjp"), allow_unused=True)
    got = evaluate(derived, [*arrays, dy])
    tensors = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in arrays]
    formula(*tensors).backward(torch.tensor(dy, dtype=torch.float64))
    for mine, tensor in zip(got, tensors, strict=True):
        assert tensor.grad is not None
        theirs = tensor.grad.numpy()
        np.testing.assert_allclose(mine.astype(np.float64), theirs, rtol=tolerance, atol=tolerance)
