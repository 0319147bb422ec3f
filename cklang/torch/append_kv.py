# SPDX-License-Identifier: MIT
"""``ck.append_kv`` as custom ops of torch, which declare that they write the caches."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import torch

from cklang.errors import error
from cklang.runtime.tracing import FUNCTIONS
from cklang.torch.library import DEVICES, LIBRARY, NAMESPACE, TAGS, refuse_gradients

_TENSORS = ("k_cache", "v_cache", "k", "v", "seqlens_k", "block_table", "cos", "sin")
_SCALES = ("k_scale", "v_scale")
"""Each is a tensor or a number."""
_ARGUMENTS = (
    "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor seqlens_k, "
    "Tensor? block_table, Tensor? cos, Tensor? sin, Tensor? k_scale, Tensor? v_scale, "
    "float? k_number, float? v_number, str rotary, bool causal"
)
_SCHEMAS = {
    "append_kv": f"({_ARGUMENTS}, *, str? device=None) -> ()",
    "append_kv.rotated": f"({_ARGUMENTS}, Tensor q, *, str? device=None) -> Tensor",
}
"""Without queries, and with queries that are returned turned."""


def call(arguments: Mapping[str, Any], rotary: str, causal: bool, device: str | None) -> Any:
    """Append as the custom op does; arguments of :func:`cklang.append_kv`.

    Raises:
        CkTypeError: A081, an argument is no tensor.
    """
    numbers = [_number(arguments[name]) for name in _SCALES]
    scales = [
        arguments[name] if number is None else None
        for name, number in zip(_SCALES, numbers, strict=True)
    ]
    tensors = [arguments[name] for name in _TENSORS] + scales
    for name, value in zip((*_TENSORS, *_SCALES, "q"), (*tensors, arguments["q"]), strict=True):
        if value is not None and not isinstance(value, torch.Tensor):
            raise error("A081", op="append_kv", name=name, got=type(value).__name__)
    values = [*tensors, *numbers]
    if arguments["q"] is None:
        return torch.ops.cklang.append_kv.default(*values, rotary, causal, device=device)
    return torch.ops.cklang.append_kv.rotated(
        *values, rotary, causal, arguments["q"], device=device
    )


def _number(scale: Any) -> float | None:
    return float(scale) if isinstance(scale, Real) else None


_OPERANDS = len(_TENSORS) + 2 * len(_SCALES) + 2
"""Operands of the custom op, without the queries."""


def _run(*values: Any, device: str | None = None) -> Any:
    tensors, rest = values[: len(_TENSORS)], values[len(_TENSORS) : _OPERANDS]
    k_scale, v_scale, k_number, v_number, rotary, causal = rest
    queries = values[_OPERANDS:]
    arguments = {
        **dict(zip(_TENSORS, tensors, strict=True)),
        "q": queries[0] if queries else None,
        "k_scale": k_scale if k_number is None else k_number,
        "v_scale": v_scale if v_number is None else v_number,
    }
    with torch.no_grad():
        return FUNCTIONS["append_kv"](arguments, rotary, causal, device)


def _fake(*values: Any, device: str | None = None) -> Any:
    del device
    queries = values[_OPERANDS:]
    return torch.empty_like(queries[0], memory_format=torch.contiguous_format) if queries else None


def _register() -> None:
    for name, schema in _SCHEMAS.items():
        LIBRARY.define(name + schema, tags=TAGS)
        for device in DEVICES:
            LIBRARY.impl(name, _run, device)
        torch.library.register_fake(f"{NAMESPACE}::{name}", _fake, lib=LIBRARY)
        overload = getattr(torch.ops.cklang.append_kv, name.partition(".")[2] or "default")
        refuse_gradients("append_kv", overload, name)


_register()
