# SPDX-License-Identifier: MIT
"""From the graph that Dynamo traces to graphs of aten ops: functional, with few kinds of ops.

AOTAutograd traces forward and backward. What has an emission is not decomposed; other ops are, as
far as torch knows how.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._guards import TracingContext
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from cklang.torch.backend.aten import EMISSIONS
from cklang.torch.backend.attention import kept

aten = torch.ops.aten

_ON_REQUEST = (
    aten.native_layer_norm_backward, aten.native_group_norm_backward, aten.gelu_backward,
    aten.silu_backward, aten.threshold_backward, aten.tanh_backward, aten.sigmoid_backward,
    aten._log_softmax_backward_data, aten.native_dropout_backward, aten.nll_loss_backward,
    aten.nll_loss_forward, aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit,
    aten.native_batch_norm_backward, aten.linalg_vector_norm,
)  # fmt: skip
"""Ops that torch takes apart into others on request, most of them around gradients."""


@cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return how torch takes apart the ops that have no emission."""
    table = {**core_aten_decompositions(), **get_decompositions(_ON_REQUEST)}
    return {op: function for op, function in table.items() if op not in EMISSIONS}


def captured(
    graph: torch.fx.GraphModule,
    examples: Sequence[Any],
    compile_graph: Callable[[torch.fx.GraphModule, str], Callable[..., Any]],
    divide: Callable[..., Any],
) -> Any:
    """Return what runs a graph of Dynamo; ``compile_graph`` compiles its graphs of aten ops.

    Args:
        graph: As Dynamo traced it.
        examples: Its arguments.
        compile_graph: Takes a graph and "inference", "forward" or "backward".
        divide: Divides a joint graph into these two.
    """
    alone: list[Callable[..., Any]] = []

    def compiler(what: str) -> Callable[..., Any]:
        def compile_part(part: torch.fx.GraphModule, _examples: Sequence[Any]) -> Any:
            run = compile_graph(part, what)
            if what == "inference" and _is_all(part, examples):
                alone.append(run)
            return make_boxed_func(run)

        return compile_part

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=dict(decompositions()),
        partition_fn=divide,
    )
    wrapped = backend(kept(graph), examples)
    return _without_wrapper(alone[0], wrapped) if len(alone) == 1 else wrapped


def _without_wrapper(run: Callable[..., Any], wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a compiled graph itself, where AOTAutograd would only turn gradients off.

    Its wrapper and two of Dynamo's take three microseconds, more where caches are cold.
    """

    def call(*args: Any) -> Any:
        return wrapped(*args) if torch.is_grad_enabled() else run(*args)

    return call


_AROUND = (
    "num_mutated_inp_runtime_indices",
    "num_outputs_aliased",
    "num_intermediate_bases",
    "num_graphsafe_rng_states",
    "is_rng_op_functionalized",
    "tokens",
    "dynamic_outputs",
)
"""What AOTAutograd notes of a graph around which it has something to do."""


def _is_all(part: torch.fx.GraphModule, examples: Sequence[Any]) -> bool:
    """Whether a graph of aten ops is all that a call of Dynamo's graph does."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    return (
        metadata is not None
        and metadata.grad_enabled_mutation is None
        and not any(getattr(metadata, name, True) for name in _AROUND)
        and len(part.graph.find_nodes(op="placeholder")) == len(examples)
        and not any(map(is_traceable_wrapper_subclass, examples))
        and not torch._C._is_any_autocast_enabled()
    )


def parameters_of(graph: torch.fx.GraphModule) -> frozenset[str]:
    """Return the inputs of a graph of aten ops that are parameters or buffers of the model."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    places = set() if metadata is None else set(metadata.static_input_indices)
    inputs = graph.graph.find_nodes(op="placeholder")
    return frozenset(node.name for place, node in enumerate(inputs) if place in places)
