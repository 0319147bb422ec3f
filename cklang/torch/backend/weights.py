# SPDX-License-Identifier: MIT
"""Parameters of a model in the form that kernels read: made once, and again when they change.

torch counts the changes of a tensor. A step of an optimiser, ``copy_`` and ``load_state_dict`` are
counted; changes through ``weight.data`` are not, and neither are those of tensors that were made in
inference mode, which are therefore never kept.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils.weak import WeakIdKeyDictionary

from cklang.torch.backend.emitter import channels_last, inverse

_FORMS: Any = WeakIdKeyDictionary()
"""For each weight its state and its forms: version, address and shape, and a dictionary."""


def prepared(weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution's weight with its channels innermost in memory.

    Example:
        >>> import torch
        >>> from cklang.torch.backend.weights import prepared
        >>> weight = torch.ones(4, 3, 2, 2)
        >>> prepared(weight).stride(), prepared(weight) is prepared(weight)
        ((12, 1, 6, 3), True)
    """
    if weight.is_inference():
        return weight
    last = channels_last(weight.dim())
    return _kept(
        weight, "channels last", lambda x: x.permute(last).contiguous().permute(inverse(last))
    )


def converted(weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a weight in another dtype.

    Example:
        >>> import torch
        >>> from cklang.torch.backend.weights import converted
        >>> weight = torch.ones(4)
        >>> half = converted(weight, torch.float16)
        >>> half is converted(weight, torch.float16)
        True
        >>> converted(weight.mul_(2), torch.float16)
        tensor([2., 2., 2., 2.], dtype=torch.float16)
    """
    if weight.is_inference():
        return weight.to(dtype)
    return _kept(weight, dtype, lambda x: x.to(dtype))


def _kept(
    weight: torch.Tensor, form: Hashable, make: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    state = weight._version, weight.data_ptr(), weight.shape
    known = _FORMS.get(weight)
    if known is None or known[0] != state:
        known = _FORMS[weight] = state, {}
    forms: dict[Hashable, torch.Tensor] = known[1]
    if form not in forms:
        forms[form] = make(weight.detach())
    return forms[form]


_CONVERSIONS = (torch.ops.aten._to_copy.default, torch.ops.prims.convert_element_type.default)


def with_converted(graph: GraphModule, parameters: frozenset[str]) -> frozenset[str]:
    """Replace conversions of parameters by ones that are kept; return these nodes' names too.

    The graph is changed. ``parameters`` are the names of its inputs that are parameters or buffers.
    """
    names = set(parameters)
    for node in list(graph.graph.nodes):
        dtype = _dtype(node)
        source = node.all_input_nodes[0] if dtype is not None else None
        if source is None or source.name not in parameters:
            continue
        with graph.graph.inserting_before(node):
            kept = graph.graph.call_function(converted, (source, dtype))
        kept.meta = dict(node.meta)
        node.replace_all_uses_with(kept)
        graph.graph.erase_node(node)
        names.add(kept.name)
    return frozenset(names)


def _dtype(node: Node) -> torch.dtype | None:
    """Return to which dtype a node converts a tensor, and does nothing else; None if it does."""
    if node.op != "call_function" or node.target not in _CONVERSIONS:
        return None
    if len(node.args) == 2 and isinstance(node.args[1], torch.dtype):
        return node.args[1]
    dtype = node.kwargs.get("dtype")
    return dtype if set(node.kwargs) == {"dtype"} and isinstance(dtype, torch.dtype) else None
