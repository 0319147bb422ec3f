# SPDX-License-Identifier: MIT
"""Code of documents and docstrings without kernels: calls of ops return what the reference says.

The results have the dtypes and shapes that kernels give.
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import pytest

import cklang as ck
from cklang.device.arrays import Library, maker, read, view
from cklang.errors import CkError
from cklang.families.attention_backward.stages import GradientKind
from cklang.ops.attention_backward import Gradients, bias_of, expect_gradient, plan_of_gradients
from cklang.reference.attention_grad import SharedBias, gradients_with_bound
from cklang.reference.evaluate import evaluate
from cklang.runtime.bind import Binding
from cklang.runtime.call_key import of_call
from cklang.runtime.result_orders import with_result_orders
from cklang.runtime.results import targets_of
from cklang.testing.report import reference_values


def replace_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls return the results of the reference; what only measures or builds returns nothing.

    Arguments are checked as in a call.
    """
    monkeypatch.setattr(ck.Op, "_called", _called)
    monkeypatch.setattr(ck.Op, "grouped", _grouped)
    monkeypatch.setattr(ck, "attention_grad", _gradients)
    for owner, name in ((ck, "autotune"), (ck.Op, "build"), (ck.dispatch.Registry, "build")):
        monkeypatch.setattr(owner, name, _bound_only(getattr(owner, name)))


def bind_calls(tree: ast.AST, names: dict[str, Any]) -> None:
    """Import what code imports, and check its calls against the signatures, without running it.

    Args:
        tree: The code.
        names: The names that it knows; those that it imports are added.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            exec(compile(ast.Module([node], []), "import", "exec"), names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = eval(compile(ast.Expression(node.func), "call", "eval"), names)
            count = len(node.args)
            named = {str(word.arg): None for word in node.keywords}
            inspect.signature(function).bind(*[None] * count, **named)


def _called(op: ck.Op, values: Sequence[Any], out: Any, device: Any) -> Any:
    del device
    # It raises what a call does for an argument that torch is to see.
    try:
        of_call(op.program.parameters, values, None, ())
    except CkError as mistake:
        op._name_in(mistake)
        raise
    pairs = dict(zip([each.name for each in op.program.parameters], values, strict=True))
    binding = op._bound((), pairs)
    function = op.ir(**pairs)
    arrays = reference_values(op, function, (), pairs)
    results = evaluate(function, arrays)
    if out is None:
        binding = with_result_orders(op._planned(binding), binding)
        new = [_like(result, binding, index) for index, result in enumerate(results)]
        return new[0] if len(new) == 1 else tuple(new)
    targets_of(binding, out)
    for index, target in enumerate(out if isinstance(out, tuple) else (out,)):
        target[...] = _like(results[index], binding, index)
    return out


def _like(result: Any, binding: Binding, index: int) -> Any:
    """Return a result as an array of the library of the arguments."""
    if binding.library is Library.NUMPY:
        return result
    layout = binding.results[index]
    tensor = maker(layout.shape, layout.dtype, Library.TORCH, order=layout.order)()
    array = read("a result", tensor)
    view(array.pointer, array.dtype, array.shape, array.strides)[...] = result
    return tensor


def _grouped(op: ck.Op, calls: Sequence[Sequence[Any]], *, device: Any = None) -> list[Any]:
    return [op(*args, device=device) for args in calls]


def _gradients(
    op: ck.Op,
    *args: Any,
    grad: Any,
    deterministic: bool = False,
    bias: bool = False,
    device: Any = None,
    **kwargs: Any,
) -> Gradients:
    del device
    binding = op._bound(args, kwargs)
    expect_gradient(op, binding, GradientKind(deterministic=deterministic, bias=bias))
    function, shared = op.ir(*args, **kwargs), None
    if bias:
        added = bias_of(plan_of_gradients(op, binding), binding)
        place = [param.name for param in function.params].index(added.value.name)
        shared = SharedBias(param=place, axes=added.axes)
    return Gradients(*gradients_with_bound(function, args, grad, shared)[0])


def _bound_only(function: Callable[..., Any]) -> Callable[..., str]:
    """Return a function that checks the arguments of a call and does nothing."""
    signature = inspect.signature(function)

    @wraps(function)
    def check(*args: Any, **kwargs: Any) -> str:
        signature.bind(*args, **kwargs)
        return f"{function.__name__} was not run"

    return check
