# SPDX-License-Identifier: MIT
"""``ck.append_kv`` as custom ops of torch, which declare that they write the caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from cklang.errors import error
from cklang.runtime.tracing import FUNCTIONS
from cklang.torch.library import DEVICES, LIBRARY, NAMESPACE, TAGS, refuse_gradients

__all__ = ["call"]

_NAMES = ("k_cache", "v_cache", "k", "v", "seqlens_k", "block_table", "cos", "sin")
_ARGUMENTS = (
    "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor seqlens_k, "
    "Tensor? block_table, Tensor? cos, Tensor? sin, str rotary, bool causal"
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
    for name, value in arguments.items():
        if value is not None and not isinstance(value, torch.Tensor):
            raise error("A081", op="append_kv", name=name, got=type(value).__name__)
    values = [arguments[name] for name in _NAMES]
    if arguments["q"] is None:
        return torch.ops.cklang.append_kv.default(*values, rotary, causal, device=device)
    return torch.ops.cklang.append_kv.rotated(
        *values, rotary, causal, arguments["q"], device=device
    )


def _run(*values: Any, device: str | None = None) -> Any:
    *tensors, rotary, causal = values[: len(_NAMES) + 2]
    queries = values[len(_NAMES) + 2 :]
    arguments = {**dict(zip(_NAMES, tensors, strict=True)), "q": queries[0] if queries else None}
    with torch.no_grad():
        return FUNCTIONS["append_kv"](arguments, rotary, causal, device)


def _fake(*values: Any, device: str | None = None) -> Any:
    del device
    queries = values[len(_NAMES) + 2 :]
    return (
        torch.empty(queries[0].shape, dtype=queries[0].dtype, device=queries[0].device)
        if (queries)
        else None
    )


def _register() -> None:
    for name, schema in _SCHEMAS.items():
        LIBRARY.define(name + schema, tags=TAGS)
        for device in DEVICES:
            LIBRARY.impl(name, _run, device)
        torch.library.register_fake(f"{NAMESPACE}::{name}", _fake, lib=LIBRARY)
        overload = getattr(torch.ops.cklang.append_kv, name.partition(".")[2] or "default")
        refuse_gradients("append_kv", overload, name)


_register()
