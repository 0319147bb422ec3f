# SPDX-License-Identifier: MIT
"""Ops as custom ops of torch, their kernels replaced by the reference: no graph breaks anywhere."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import cklang as ck
from cklang.errors import CkError
from cklang.torch import custom_op_of, fake, set_backward_of
from tests.support.errors import expect_error
from tests.support.processes import run_python
from tests.support.torch_ops import CASES, linear, normed, scaled

pytestmark = pytest.mark.usefixtures("torch", "no_kernels")


def half(*shape: int) -> Any:
    return torch.randn(shape).half()


def all_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def same(one: Any, other: Any) -> bool:
    pairs = list(zip(all_of(one), all_of(other), strict=True))
    return all(torch.equal(a, b) and a.stride() == b.stride() for a, b in pairs)


def traced_values(op: ck.Op, args: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the custom op for a call by position, and its arguments."""
    parameters = op.program.parameters
    pairs = zip(parameters, args, strict=False)
    tensors = [each.name for each, x in pairs if torch.is_tensor(x) and x.ndim == 0]
    defaults = [each.default for each in parameters[len(args) :]]
    return custom_op_of(op, tensors=tensors), (*args, *defaults)


@pytest.mark.parametrize("name", sorted(CASES))
def test_torch_finds_nothing_wrong(name: str) -> None:
    op, values = CASES[name]
    if name == "layer":
        custom, args = custom_op_of(op.op), tuple(values(5))
    else:
        custom, args = traced_values(op, values(5))
    results = torch.library.opcheck(custom, args)
    assert set(results.values()) == {"SUCCESS"}


def test_torch_finds_nothing_wrong_with_results_that_the_caller_passes() -> None:
    x, gain = half(5, 7), torch.ones(7)
    outs = half(5, 7), torch.empty(5, 7), torch.empty(5).int()
    custom = custom_op_of(normed, out=True)
    named = {f"out{index}": out for index, out in enumerate(outs)}
    results = torch.library.opcheck(custom, (x, gain), named)
    assert set(results.values()) == {"SUCCESS"}
    assert normed(x, gain, out=outs) is outs
    assert same(outs, normed(x, gain))


@pytest.mark.parametrize("grad", [False, True])
def test_the_backend_calls_an_op_without_the_dispatcher(
    grad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    called = type(linear)._called

    def noting(op: Any, values: Any, out: Any, device: Any) -> Any:
        frame = sys._getframe(2)
        calls.append(frame.f_code.co_filename.rpartition("/")[2])
        return called(op, values, out, device)

    monkeypatch.setattr(type(linear), "_called", noting)
    run = torch.compile(lambda x, w: linear(x, w), backend="cklang", fullgraph=True)
    args = half(5, 7), half(6, 7)
    with torch.set_grad_enabled(grad):
        assert same(run(*args), linear(*args)), "torch still traces when it calls first"
        calls.clear()
        assert same(run(*args), linear(*args))
    assert calls[0] == "run.py" != calls[1]


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"numbers"}))
def test_one_graph_serves_all_sizes(name: str) -> None:
    op, values = CASES[name]
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda *args: op(*args), backend=counter, fullgraph=True, dynamic=True)
    for size in (5, 7, 8):
        args = values(size)
        assert same(compiled(*args), op(*args))
    assert counter.frame_count == 1


def test_a_marked_axis_does_not_recompile() -> None:
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(linear, backend=counter, fullgraph=True)
    w = half(6, 9)
    for rows in (5, 7, 2):
        x = half(rows, 9)
        torch._dynamo.mark_dynamic(x, 0)
        assert same(compiled(x, w), linear(x, w))
    assert counter.frame_count == 1


def test_an_integer_is_symbolic_and_a_float_is_compiled_in() -> None:
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(scaled, backend=counter, fullgraph=True)
    x, w = half(5, 9), half(6, 9)
    for shift in (3, 4, 5, 6):
        assert same(compiled(x, w, 0.5, shift), scaled(x, w, 0.5, shift))
    assert counter.frame_count == 2, "the first integer is compiled in, as torch does"


def test_the_graph_has_one_node_for_each_call() -> None:
    nodes: list[Any] = []

    def note(module: Any, _: Any) -> Any:
        nodes.extend(node.target for node in module.graph.nodes if node.op == "call_function")
        return module

    def twice(x: Any, w: Any, op: Any) -> Any:
        return op(op(x, w), w, cap=2.0)

    compiled = torch.compile(twice, backend=note, fullgraph=True)
    x, w = half(5, 6), half(6, 6)
    other = linear.using(strategy="first_fit")
    assert same(compiled(x, w, linear), twice(x, w, linear))
    assert nodes == [custom_op_of(linear)] * 2
    # Another op takes another graph, though it has the same type.
    assert same(compiled(x, w, other), twice(x, w, other))
    assert nodes[2:] == [custom_op_of(other)] * 2
    assert custom_op_of(other) is not custom_op_of(linear)


def test_calls_that_would_share_launches_are_nodes_of_their_own() -> None:
    pairs = [(half(rows, 4), half(6, 4)) for rows in (5, 7)]
    compiled = torch.compile(linear.grouped, backend="eager", fullgraph=True)
    args = [(x, w, None) for x, w in pairs]
    assert same(tuple(compiled(args)), tuple(linear(*each) for each in pairs))


def test_out_is_written_inside_a_graph() -> None:
    def step(x: Any, w: Any, out: Any) -> Any:
        linear(x, w, out=out)
        return out + 1

    x, w, out = half(5, 4), half(6, 4), half(5, 6)
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    assert same(compiled(x, w, out), linear(x, w) + 1)
    assert same(out, linear(x, w))


def test_fake_tensors_inside_and_outside_of_their_mode() -> None:
    mode = FakeTensorMode()
    x, w = mode.from_tensor(half(5, 4)), mode.from_tensor(half(6, 4))
    with mode:
        inside = linear(x, w)
    for result in (inside, linear(x, w)):
        assert type(result) is type(x)
        assert (tuple(result.shape), result.dtype) == ((5, 6), torch.float16)


def test_a_fake_call_with_the_same_symbols_is_not_bound_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes = ShapeEnv()
    mode = FakeTensorMode(shape_env=shapes)

    def symbolic(*sizes: int) -> Any:
        context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(sizes))
        return mode.from_tensor(half(*sizes), symbolic_context=context)

    bound: list[Any] = []
    plain = fake._bound_layouts

    def counted(op: Any, values: Sequence[Any]) -> Any:
        bound.append(op)
        return plain(op, values)

    monkeypatch.setattr(fake, "_bound_layouts", counted)
    x, w, other = symbolic(5, 4), symbolic(6, 4), symbolic(9, 4)
    with mode:
        first, second, third = linear(x, w), linear(x, w), linear(other, w)
    assert len(bound) == 2
    assert len(shapes.guards) >= 1, "both K are one"
    assert str(first.shape) == str(second.shape) != str(third.shape)


def test_fake_tensors_that_do_not_fit_are_the_error_of_a_call() -> None:
    mode = FakeTensorMode()
    with mode, expect_error("A025", match="K is 4 in axis 1 of w"):
        linear(torch.empty(5, 3).half(), torch.empty(6, 4).half())


class Layer(torch.nn.Module):
    """A plain op in a forward, with parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(half(6, 4))

    def forward(self, x: Any) -> Any:
        return linear(x, self.w)


@pytest.fixture
def _no_gradients() -> Iterator[None]:
    before = set_backward_of(None)
    yield
    set_backward_of(before)


@pytest.mark.usefixtures("_no_gradients")
def test_a_module_with_parameters_computes_where_no_gradient_is_asked_for() -> None:
    layer, x = Layer(), half(5, 4)
    with expect_error("A005", "the op is linear"):
        layer(x)
    with torch.no_grad():
        expected = linear(x, layer.w.detach())
        assert same(layer(x), expected)
        assert same(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), expected)
    with torch.inference_mode():
        assert same(layer(x), expected)
    assert same(layer.requires_grad_(False)(x), expected)


@pytest.mark.usefixtures("_no_gradients")
def test_a_compiled_module_whose_gradient_is_missing_is_an_error() -> None:
    compiled = torch.compile(Layer(), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match=r"A005.*w requires a gradient"):
        compiled(half(5, 4))


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_calls_the_custom_op(strict: bool) -> None:
    layer, x = Layer().requires_grad_(False), half(5, 4)
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: rows},), strict=strict)
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert custom_op_of(linear) in called
    for size in (5, 3):
        x = half(size, 4)
        assert same(program.module()(x), layer(x))


def test_other_tracers_see_the_custom_op() -> None:
    w = half(6, 4)
    graph = make_fx(lambda x: linear(x, w))(half(5, 4)).graph
    assert custom_op_of(linear) in [node.target for node in graph.nodes]
    functional = torch.func.functionalize(lambda x: linear(x, w))
    x = half(5, 4)
    assert same(functional(x), linear(x, w))


@pytest.mark.parametrize("size", [3, 0])
def test_vmap_is_one_call_for_each_element_or_for_all(size: int) -> None:
    xs, w, gain = half(7, size, 5).transpose(0, 1), half(6, 5), torch.ones(5)
    result = torch.vmap(linear, in_dims=(0, None))(xs, w)
    assert result.shape == (size, 7, 6)
    assert all(same(result[index], linear(xs[index], w)) for index in range(size))
    results = torch.vmap(normed, in_dims=(0, None))(xs, gain)
    assert [tuple(each.shape) for each in results] == [(size, 7, 5), (size, 7, 5), (size, 7)]


B, H, S = ck.dims("B H S")


@ck.op
def attended(q: ck.f16[B, H, S, 8], k: ck.f16[B, H, S, 8]) -> ck.f16[B, H, S, 8]:
    return ck.attention(q, k, k)


def test_vmap_runs_one_op_over_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    xs, w = half(4, 7, 5), half(6, 5)
    looped: list[object] = []
    monkeypatch.setattr("cklang.torch.batching._looped", lambda *args: looped.append(args))
    mapped = torch.vmap(torch.vmap(linear, in_dims=(0, None)), in_dims=(0, None))
    assert same(mapped(torch.stack([xs, -xs]), w)[1], torch.vmap(linear, (0, None))(-xs, w))
    torch.vmap(normed, in_dims=(1, None))(half(7, 3, 5), torch.ones(5))
    assert not looped


def test_vmap_of_what_has_no_batch_is_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from cklang.torch import batching

    calls: list[object] = []
    looped = batching._looped

    def counted(*args: Any) -> Any:
        calls.append(args)
        return looped(*args)

    monkeypatch.setattr(batching, "_looped", counted)
    q, k = half(3, 1, 2, 5, 8), half(1, 2, 5, 8)
    result = torch.vmap(attended, in_dims=(0, None))(q, k)
    assert all(same(result[index], attended(q[index], k)) for index in range(3))
    assert len(calls) == 1


def test_vmap_inside_a_graph() -> None:
    xs, w = half(3, 5, 4), half(6, 4)
    mapped = torch.vmap(linear, in_dims=(0, None))
    assert same(torch.compile(mapped, backend="aot_eager", fullgraph=True)(xs, w), mapped(xs, w))


def test_autocast_changes_nothing() -> None:
    x, w = half(5, 4), half(6, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, w).dtype == torch.float16
        with pytest.raises(CkError) as caught:
            linear(x.float(), w)
    assert caught.value.code == "A020"


def test_an_array_of_numpy_is_refused_while_torch_traces() -> None:
    with FakeTensorMode(), expect_error("A081", match=r"linear, and x is ndarray"):
        linear(np.ones((2, 3), np.float16), torch.empty(4, 3).half())


def test_a_tensor_that_is_written_has_a_new_version() -> None:
    out = half(5, 6)
    before = out._version
    linear(half(5, 4), half(6, 4), out=out)
    custom_op_of(linear, out=True)(half(5, 4), half(6, 4), None, 4.0, out=out)
    assert out._version >= before + 1


def test_out_takes_no_gradient() -> None:
    w = half(6, 4).requires_grad_()
    with expect_error("A087", match="linear writes its arguments, and w requires"):
        linear(half(5, 4), w, out=half(5, 6))


def test_the_name_of_a_custom_op_is_the_same_in_every_process() -> None:
    text = (
        "from tests.support.torch_ops import linear\n"
        "from cklang.torch import custom_op_of\n"
        "print(custom_op_of(linear))"
    )
    assert run_python("-c", text).stdout.split()[-1] == str(custom_op_of(linear))


def test_cklang_imports_no_torch() -> None:
    text = "import sys, cklang; print('torch' in sys.modules, 'cklang.torch' in sys.modules)"
    assert run_python("-c", text).stdout.split() == ["False", "False"]


def test_an_op_decorated_before_torch_is_imported_is_traced() -> None:
    text = (
        "import cklang as ck\n"
        "from tests.support.torch_ops import linear\n"
        "import torch\n"
        "nodes = []\n"
        "def note(module, _):\n"
        "    nodes.extend(str(n.target) for n in module.graph.nodes if n.op == 'call_function')\n"
        "    return lambda *args: (torch.empty(2, 4),)\n"
        "x, w = torch.ones(2, 3).half(), torch.ones(4, 3).half()\n"
        "torch.compile(linear, backend=note, fullgraph=True)(x, w)\n"
        "print(nodes[0].rpartition('_')[0])"
    )
    assert run_python("-c", text).stdout.split() == ["cklang.linear"]


def test_scales_of_a_cache_are_numbers_or_tensors_of_the_custom_op() -> None:
    def append(cache: Any, k: Any, lengths: Any, v_scale: Any) -> Any:
        ck.append_kv(cache[0], cache[1], k, k, seqlens_k=lengths, k_scale=2.0, v_scale=v_scale)
        return cache

    narrow = torch.float8_e4m3fnuz
    with FakeTensorMode():
        arguments = (
            torch.empty(2, 2, 2, 16, 64, dtype=narrow),
            torch.empty(2, 2, 1, 64).half(),
            torch.empty(2, dtype=torch.int32),
            torch.empty(2),
        )
        graph = make_fx(append)(*arguments).graph
    (call,) = [node for node in graph.nodes if node.target is torch.ops.cklang.append_kv.default]
    k_scale, v_scale, k_number, v_number = call.args[8:12]
    assert (k_scale, k_number, v_number) == (None, 2.0, None)
    assert v_scale in graph.nodes
