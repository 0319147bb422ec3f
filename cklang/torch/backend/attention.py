# SPDX-License-Identifier: MIT
"""``scaled_dot_product_attention`` as one op, so that it becomes one kernel.

torch takes it apart into products and a softmax, or into an op of one of its own kernels, before a
backend sees it. :func:`kept` therefore replaces it in the graph that Dynamo traces by an op of
cklang, whose gradient is the formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.attention import region_params
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Tensor
from cklang.torch.backend.refusal import Unsupported
from cklang.types import bf16, bool_, f16, f32

__all__ = ["ATTENTION", "kept"]

_NAME = "cklang_backend::attention"
_RANK = 4


@torch.library.custom_op(_NAME, mutates_args=())
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float,
) -> torch.Tensor:
    """Return attention of q [B, H, S, D], k [B, G, T, D] and v [B, G, T, E], by the formula.

    It computes where a kernel cannot: the backend replaces it by one.
    """
    weights = torch.softmax(_scores(q, k, mask, is_causal, scale), -1)
    return torch.nan_to_num(weights).matmul(_per_head(q, v).float()).to(q.dtype)


@attention.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float,
) -> torch.Tensor:
    del k, mask, is_causal, scale
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _per_head(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return keys or values with a head for each head of q."""
    return k.repeat_interleave(q.shape[1] // k.shape[1], 1) if q.shape[1] != k.shape[1] else k


def _scores(
    q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, scale: float
) -> torch.Tensor:
    scores = q.float().matmul(_per_head(q, k).float().transpose(-1, -2)) * scale
    if is_causal:
        rows, keys = scores.shape[-2:]
        later = torch.arange(keys, device=q.device) > torch.arange(rows, device=q.device)[:, None]
        scores = scores.masked_fill(later, -math.inf)
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -math.inf)
    return scores + mask


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    q, k, v, mask, ctx.is_causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, mask)


def _backward(ctx: Any, do: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients by q, k, v and a mask of floats."""
    q, k, v, mask = ctx.saved_tensors
    weights = torch.softmax(_scores(q, k, mask, ctx.is_causal, ctx.scale), -1)
    do = do.float()
    dv = weights.transpose(-1, -2).matmul(do)
    dp = do.matmul(_per_head(q, v).float().transpose(-1, -2))
    ds = weights * (dp - (dp * weights).sum(-1, keepdim=True))
    dq = ds.matmul(_per_head(q, k).float()) * ctx.scale
    dk = ds.transpose(-1, -2).matmul(q.float()) * ctx.scale
    dmask = None
    if mask is not None and ctx.needs_input_grad[3]:
        dmask = ds.sum_to_size(mask.shape).to(mask.dtype)
    return (
        dq.to(q.dtype),
        _joined(dk, k).to(k.dtype),
        _joined(dv, v).to(v.dtype),
        dmask,
        None,
        None,
    )


def _joined(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Add up the gradients of the heads that share a head of keys."""
    if gradient.shape[1] == like.shape[1]:
        return gradient
    b, g, t, d = like.shape
    return gradient.reshape(b, g, -1, t, d).sum(2)


attention.register_autograd(_backward, setup_context=_setup)


# --- in the graph that Dynamo traces


def kept(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace calls of ``scaled_dot_product_attention`` that a kernel may compute, in place.

    Others stay, and torch takes them apart: those with dropout or of another rank than 4.
    """
    for node in graph.graph.find_nodes(
        op="call_function", target=torch.nn.functional.scaled_dot_product_attention
    ):
        arguments = _arguments(*node.args, **node.kwargs)
        if arguments is not None:
            with graph.graph.inserting_before(node):
                replacement = graph.graph.call_function(
                    torch.ops.cklang_backend.attention.default, arguments
                )
            replacement.meta = dict(node.meta)
            node.replace_all_uses_with(replacement)
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _arguments(
    query: torch.fx.Node,
    key: torch.fx.Node,
    value: torch.fx.Node,
    attn_mask: torch.fx.Node | None = None,
    dropout_p: float = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> tuple[Any, ...] | None:
    """Return the arguments of our op for those of torch's; None if it does not compute them."""
    examples = [node.meta["example_value"] for node in (query, key, value)]
    q, k, v = examples
    heads = (q.shape[1], k.shape[1]) if q.dim() == k.dim() == v.dim() == _RANK else ()
    if not heads or dropout_p != 0.0 or (heads[0] != heads[1] and not enable_gqa):
        return None
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]:
        return None
    if attn_mask is not None and attn_mask.meta["example_value"].dim() > _RANK:
        return None
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if not isinstance(scale, int | float) or not isinstance(is_causal, bool):
        return None
    return (query, key, value, attn_mask, is_causal, float(scale))


# --- as a kernel


def _attend(
    call: Call,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
) -> Tensor:
    if len({each.dtype for each in (q, k, v)}) > 1 or q.dtype not in (f16, bf16, f32):
        raise Unsupported(f"attention takes f16, bf16 or f32, not {q.dtype}, {k.dtype}, {v.dtype}")
    operands = [call.emitter.plain(each) for each in (q, k, v)]
    reads = [] if mask is None else [_with_rank(call, mask)]
    is_bool = mask is not None and mask.dtype == bool_
    value = call.emitter.append(
        "attention",
        *operands,
        *reads,
        dropout=0.0,
        mask=_mask(reads, is_causal, is_bool),
        roles=("q", "k", "v", *("read" for _ in reads)),
        scale=scale,
        score=_score(reads, is_added=bool(reads) and not is_bool),
    )
    return call.rounded(Tensor(value, call.shape))


def _with_rank(call: Call, mask: Tensor) -> Value:
    """Return a mask with all axes: batch, head, row, key."""
    shape = (1,) * (_RANK - len(mask.shape)) + mask.shape
    return call.emitter.reshaped(mask.value, shape)


def _region(name: str, reads: list[Value]) -> tuple[Builder, dict[str, Value]]:
    """Return the builder of a function of attention, with its parameters by name."""
    builder = Builder(name)
    for each in region_params(name, [read.type for read in reads]):
        builder.param(each.name, each.type)
    return builder, {value.name: value for value in builder.values}


def _element(builder: Builder, params: Mapping[str, Value]) -> Value:
    """Return the element of the mask that belongs to a score."""
    read = params["d0"]
    axes = zip(read.type.shape, "bhij", strict=True)
    indices = [builder.constant(0) if extent == 1 else params[name] for extent, name in axes]
    return builder.append("element", read, *indices)


def _mask(reads: list[Value], is_causal: bool, is_bool: bool) -> Function:
    builder, params = _region("mask", reads)
    visible = builder.append("le", params["j"], params["i"]) if is_causal else None
    if is_bool:
        element = _element(builder, params)
        visible = element if visible is None else builder.append("logical_and", visible, element)
    return builder.finish(builder.constant(True) if visible is None else visible)


def _score(reads: list[Value], *, is_added: bool) -> Function:
    builder, params = _region("score", reads)
    score = params["s"]
    if is_added:
        element = builder.cast(_element(builder, params), f32)
        score = builder.append("add", score, element)
    return builder.finish(score)


ATTENTION: Mapping[Any, Emission] = MappingProxyType(
    {torch.ops.cklang_backend.attention.default: _attend}
)
"""The emission of attention."""
