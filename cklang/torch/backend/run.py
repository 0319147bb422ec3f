# SPDX-License-Identifier: MIT
"""A divided graph as a function of torch: programs are calls, the rest are torch's own ops."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.autograd import forward_ad
from torch.fx import Graph, GraphModule, Node
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from cklang.device.arrays import is_plain_class, to_numpy, torch_dtype
from cklang.ir.nodes import Value
from cklang.reference.evaluate import evaluate
from cklang.runtime.tracing import is_traced
from cklang.torch.backend.partition import Parts, is_free
from cklang.torch.backend.program import Output, Program
from cklang.torch.backend.weights import converted, prepared
from cklang.torch.library import kernel_of
from cklang.torch.schema import MOST_PARAMETERS
from cklang.types import Dim, bf16, extent_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``torch.compile(..., options={...})`` may say."""

    device: str | None = None
    """As in a call of an op: ``"emu:gfx942"`` or ``"hip:0"``."""
    reference: bool = False
    """Whether programs are computed by their NumPy reference, which builds and launches nothing."""
    saved: str = "auto"
    """What a forward graph saves for its backward graph: a key of ``saved.SAVED``."""


class _Runner:
    """Runs one program: a plain function, since each module on the way costs a microsecond."""

    def __init__(self, program: Program, parameters: frozenset[str], options: Options) -> None:
        self.op = program.op
        self.options = options
        function = program.function
        names = [node.name for node in program.inputs]
        self._weights = tuple(
            place
            for place, name in enumerate(names)
            if name in program.weights and name in parameters
        )
        self._dims = _axes_of_dims(function.params)
        self._finish = tuple(
            (index, finish)
            for index, (value, output) in enumerate(
                zip(function.results, program.outputs, strict=True)
            )
            if (finish := _finish(value, output)) is not None
        )

    def run(self, *args: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the results, in torch's shapes and dtypes."""
        # Kernels read what is in memory; torch negates some views only when it reads them.
        tensors = [arg.resolve_neg() if arg.is_neg() else arg for arg in args]
        for place in self._weights:
            tensors[place] = prepared(args[place])
        results = self._reference(tensors) if self.options.reference else self._launch(tensors)
        if not self._finish:
            return results
        finished = list(results)
        dims = {name: args[place].shape[axis] for name, (place, axis) in self._dims.items()}
        for index, finish in self._finish:
            finished[index] = finish(finished[index], dims)
        return finished

    def _launch(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        device = self.options.device
        is_beyond_schemas = len(tensors) > MOST_PARAMETERS and _is_only_watched(tensors)
        if (is_traced() or torch.is_grad_enabled()) and not is_beyond_schemas:
            with torch.no_grad():
                result = self.op(*tensors, device=device)
        else:
            # What a call does when nobody traces it.
            result = self.op._called(tensors, None, device)
        return result if isinstance(result, tuple) else (result,)

    def _reference(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        function = self.op.program.specialise()
        names = (param.name for param in function.params)
        arrays = [to_numpy(*pair) for pair in zip(names, tensors, strict=True)]
        return [_from_numpy(array) for array in evaluate(function, arrays)]


def _is_only_watched(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether tensors are memory, though a dispatch mode sees what torch computes.

    AOTAutograd watches the first call of each graph so, for results that share memory with
    arguments. A mode of torch's own, such as the fake one, computes in other ways instead.
    """
    modes = _get_current_dispatch_mode_stack()
    is_plain = forward_ad._current_level < 0 and all(map(is_plain_class, tensors))
    return is_plain and not any(mode.is_infra_mode() for mode in modes)


def _from_numpy(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return an array as a tensor; NumPy's own bfloat16 is not torch's."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype == bf16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _axes_of_dims(params: Sequence[Value]) -> Mapping[str, tuple[int, int]]:
    """Return for each dim a parameter, and the axis of it that has the extent."""
    return {
        extent.name: (place, axis)
        for place, param in enumerate(params)
        for axis, extent in enumerate(param.type.shape)
        if type(extent) is Dim
    }


_Finish: TypeAlias = Callable[[torch.Tensor, Mapping[str, int]], torch.Tensor]
"""Takes a result and the extents of dims."""


def _finish(value: Value, output: Output) -> _Finish | None:
    """Return what gives a result of a program the shape and the dtype that torch expects.

    None: it has them.
    """
    is_reshaped = value.type.shape != output.shape
    dtype = output.fake.dtype
    if not is_reshaped and not output.order and torch_dtype(value.type.dtype) == dtype:
        return None

    def finish(result: torch.Tensor, dims: Mapping[str, int]) -> torch.Tensor:
        if is_reshaped:
            result = result.reshape(tuple(extent_value(extent, dims) for extent in output.shape))
        if output.order:
            result = result.permute(output.order)
        return result.to(dtype)

    return finish


def assembled(
    graph: GraphModule,
    parts: Parts,
    programs: Sequence[Program],
    parameters: frozenset[str],
    options: Options,
) -> Callable[..., Any]:
    """Return the graph with a call for each program, as a function.

    Args:
        graph: Of aten ops.
        parts: How it is divided.
        programs: Of its parts, in order.
        parameters: The names of inputs that are the model's parameters, and of conversions of
            these.
        options: How programs run.
    """
    result = Graph()
    root = torch.nn.Module()
    copies: dict[Node, Node] = {}
    places = {node: at for at, node in enumerate(graph.graph.nodes)}
    steps: list[tuple[int, int, Node | Program]] = [
        (stage, places[node], node) for node, stage in parts.eager.items()
    ]
    steps += [(program.part.stage, 0, program) for program in programs]
    # Sizes and parameters in another dtype depend on inputs alone.
    first = [
        node
        for node in graph.graph.nodes
        if node.op in ("placeholder", "get_attr")
        or node.target is converted
        or _is_size(node, parts)
    ]
    for node in first:
        copies[node] = result.node_copy(node, lambda source: _copied(result, copies, source))
        if node.op == "get_attr":
            setattr(root, str(node.target), getattr(graph, str(node.target)))
    for _, _, step in sorted(steps, key=lambda step: step[:2]):
        if isinstance(step, Node):
            copies[step] = result.node_copy(step, lambda source: _copied(result, copies, source))
            copies[step].target = _direct(step.target)
        else:
            _add_program(result, copies, step, _Runner(step, parameters, options))
    (output,) = graph.graph.find_nodes(op="output")
    result.node_copy(output, lambda source: _copied(result, copies, source))
    result.lint()
    # The method itself: called as a module, it is five functions away.
    return GraphModule(root, result).forward


def _direct(target: Any) -> Any:
    """Return what computes a custom op of cklang without torch's dispatcher; others as they are.

    The nodes of a compiled graph are below autograd.
    """
    kernel = kernel_of(target)
    if kernel is None:
        return target

    def run(*values: Any, **options: Any) -> Any:
        return (target if is_traced() else kernel)(*values, **options)

    run.__name__ = target._opname
    return run


def _is_size(node: Node, parts: Parts) -> bool:
    value = node.meta.get("val")
    is_number = isinstance(value, int | float | bool | torch.SymInt | torch.SymFloat)
    return node.op == "call_function" and is_number and node not in parts.eager


def _copied(result: Graph, copies: dict[Node, Node], node: Node) -> Node:
    """Return a node of the new graph for one of the old; a view is made where it is first used."""
    if node not in copies:
        copy = result.node_copy(node, lambda source: _copied(result, copies, source))
        if copy.target is torch.ops.aten.view.default:
            # Results of kernels may have other strides than those of torch's, as in channels_last.
            copy.target = torch.ops.aten.reshape.default
        copies[node] = copy
    return copies[node]


def _add_program(
    result: Graph, copies: dict[Node, Node], program: Program, runner: _Runner
) -> None:
    """Add the call of a program, and a node for each of its results."""
    name = program.op.program.name
    inputs = tuple(_copied(result, copies, node) for node in program.inputs)
    call = result.create_node("call_function", runner.run, inputs, name=name)
    several: dict[Node, dict[int, Node]] = {}
    for place, output in enumerate(program.outputs):
        item = result.call_function(operator.getitem, (call, place))
        item.meta = {"val": output.fake}
        if output.place is None:
            copies[output.node] = item
        else:
            several.setdefault(output.node, {})[output.place] = item
    for node, items in several.items():
        for user in node.users:
            if is_free(user) and user.args[1] in items:
                copies[user] = items[user.args[1]]  # type: ignore[index]
