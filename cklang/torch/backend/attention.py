# SPDX-License-Identifier: MIT
"""``scaled_dot_product_attention`` and its gradient as ops, so that each becomes one kernel.

torch takes attention apart into products and a softmax, or into an op of one of its own kernels,
before a backend sees it. :func:`kept` therefore replaces it in the graph that Dynamo traces by an
op of cklang, whose gradient is another one; what kernels do not take of gradients is the formula.
"""

import math
import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.attention import region_params
from cklang.ir.attention_gradients import DERIVATIVE, GRADIENTS, MOST_HEADS
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.score_derivative import constant_derivative
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import DTYPES, Tensor
from cklang.torch.backend.extents import Unsupported, shape_of
from cklang.types import bf16, bool_, f16, f32


def per_head(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return keys or values with a head for each head of q."""
    return k.repeat_interleave(q.shape[1] // k.shape[1], 1) if q.shape[1] != k.shape[1] else k


def scores(
    q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, scale: float
) -> torch.Tensor:
    """Return the scores in f32, -inf where they are masked."""
    products = q.float().matmul(per_head(q, k).float().transpose(-1, -2)) * scale
    if is_causal:
        rows, keys = products.shape[-2:]
        later = torch.arange(keys, device=q.device) > torch.arange(rows, device=q.device)[:, None]
        products = products.masked_fill(later, -math.inf)
    if mask is None:
        return products
    if mask.dtype == torch.bool:
        return products.masked_fill(~mask, -math.inf)
    return products + mask


def attended(q: torch.Tensor, v: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Return attention for its scores."""
    weights = torch.nan_to_num(torch.softmax(logits, -1))
    return weights.matmul(per_head(q, v).float()).to(q.dtype)


def log_sums(logits: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp of each row of scores."""
    return torch.logsumexp(logits, -1)


def gradients(
    do: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    logits: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients by q, k, v and the scores; the last in f32."""
    weights = torch.nan_to_num(torch.softmax(logits, -1))
    do = do.float()
    dv = weights.transpose(-1, -2).matmul(do)
    dp = do.matmul(per_head(q, v).float().transpose(-1, -2))
    ds = weights * (dp - (dp * weights).sum(-1, keepdim=True))
    dq = ds.matmul(per_head(q, k).float()) * scale
    dk = ds.transpose(-1, -2).matmul(q.float()) * scale
    return dq.to(q.dtype), joined(dk, k).to(k.dtype), joined(dv, v).to(v.dtype), ds


def joined(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Add up the gradients of the heads that share a head of keys."""
    if gradient.shape[1] == like.shape[1]:
        return gradient
    b, g, t, d = like.shape
    return gradient.reshape(b, g, -1, t, d).sum(2)


_RANK = 4


@torch.library.custom_op("cklang_backend::attention", mutates_args=())
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention of q [B, H, S, D], k [B, G, T, D] and v [B, G, T, E], and log-sum-exps.

    It computes where a kernel cannot: the backend replaces it by one.
    """
    logits = scores(q, k, mask, is_causal, scale)
    return attended(q, v, logits), log_sums(logits)


@attention.register_fake
def _(
    q: torch.Tensor, _k: torch.Tensor, v: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("cklang_backend::attention_gradient", mutates_args=())
def attention_gradient(
    do: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients by q, k, v and, in the dtype of q, by the scores."""
    del o, lse
    logits = scores(q, k, mask, is_causal, scale)
    dq, dk, dv, ds = gradients(do, q, k, v, logits, scale)
    return dq, dk, dv, ds.to(q.dtype)


@attention_gradient.register_fake
def _(
    _do: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    squares = q.new_empty((*q.shape[:-1], k.shape[-2]))
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), squares


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, mask, ctx.is_causal, ctx.scale = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, mask, *output)


def _backward(ctx: Any, do: torch.Tensor, _: None) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients by q, k, v and a mask of floats."""
    q, k, v, mask, o, lse = ctx.saved_tensors
    of_mask = mask is not None and ctx.needs_input_grad[3]
    if _is_taken(q, k, v, mask if of_mask else None):
        dq, dk, dv, ds = torch.ops.cklang_backend.attention_gradient(
            do, q, k, v, o, lse, mask, ctx.is_causal, ctx.scale
        )
    else:
        logits = scores(q, k, mask, ctx.is_causal, ctx.scale)
        dq, dk, dv, ds = gradients(do, q, k, v, logits, ctx.scale)
    dmask = ds.float().sum_to_size(mask.shape).to(mask.dtype) if of_mask else None
    return dq, dk, dv, dmask, None, None


def _is_taken(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Tell whether a kernel gives the gradients by q, k, v, and by a bias if it is needed."""
    dtype = DTYPES.get(q.dtype)
    if dtype is None or dtype not in MOST_HEADS:
        return False
    most = MOST_HEADS[dtype]
    if most is not None and max(q.shape[-1], v.shape[-1]) > most:
        return False
    if bias is None:
        return True
    full = (*q.shape[:3], k.shape[2])[_RANK - bias.dim() :]
    pairs = list(zip(bias.shape, full, strict=True))
    return bias.dtype == q.dtype and all(n in (1, m) for n, m in pairs) and pairs[-1][0] == full[-1]


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
                both = graph.graph.call_function(
                    torch.ops.cklang_backend.attention.default, arguments
                )
                replacement = graph.graph.call_function(operator.getitem, (both, 0))
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
    call: Call, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> list[Tensor]:
    operands, attrs = _call(call, (q, k, v), mask, is_causal, scale)
    o, lse = (call.emitter.append(op, *operands, **attrs) for op in ("attention", "attention_lse"))
    return [call.rounded(Tensor(o, call.shape)), Tensor(lse, shape_of(call.outputs[1]))]


def _differentiate(
    call: Call,
    do: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
) -> list[Tensor]:
    emitter = call.emitter
    operands, attrs = _call(call, (q, k, v), mask, is_causal, scale)
    g, output, sums = (emitter.plain(tensor) for tensor in (do, o, lse))
    products = emitter.append("mul", emitter.cast(g, f32), emitter.cast(output, f32))
    inner = emitter.append("reduce_sum", products, axes=(_RANK - 1,))
    # A mask of floats is added to the product.
    attrs[DERIVATIVE] = constant_derivative(1.0, [operand.type for operand in operands[3:]])
    values = [emitter.append(op, *operands, g, sums, inner, **attrs) for op in GRADIENTS]
    return [
        call.rounded(Tensor(value, shape_of(fake)), place)
        for place, (value, fake) in enumerate(zip(values, call.outputs, strict=True))
    ]


def _call(
    call: Call, sides: tuple[Tensor, ...], mask: Tensor | None, is_causal: bool, scale: float
) -> tuple[list[Value], dict[str, Any]]:
    """Return the operands of an attention, and its attributes."""
    dtypes = [side.dtype for side in sides]
    if len(set(dtypes)) > 1 or dtypes[0] not in (f16, bf16, f32):
        raise Unsupported(f"attention takes f16, bf16 or f32, not {', '.join(map(str, dtypes))}")
    operands = [call.emitter.plain(side) for side in sides]
    axes = "" if mask is None else _axes(mask)
    reads = [] if mask is None else [_squeezed(call, mask, axes)]
    is_bool = mask is not None and mask.dtype == bool_
    attrs: dict[str, Any] = {
        "dropout": 0.0,
        "mask": _mask(reads, axes, is_causal, is_bool),
        "roles": ("q", "k", "v", *("read" for _ in reads)),
        "scale": scale,
        "score": _score(reads, axes, is_added=bool(reads) and not is_bool),
    }
    return [*operands, *reads], attrs


def _axes(mask: Tensor) -> str:
    """Return along which of batch, head, row and key a mask runs; the last one is always there."""
    pairs = zip(mask.shape, "bhij"[_RANK - len(mask.shape) :], strict=True)
    return "".join(name for extent, name in pairs if extent != 1 or name == "j")


def _squeezed(call: Call, mask: Tensor, axes: str) -> Value:
    """Return a mask with some of its axes; the others have one element."""
    pairs = zip(mask.shape, "bhij"[_RANK - len(mask.shape) :], strict=True)
    return call.emitter.reshaped(mask.value, tuple(n for n, name in pairs if name in axes))


def _region(name: str, reads: list[Value]) -> tuple[Builder, dict[str, Value]]:
    """Return the builder of a function of attention, with its parameters by name."""
    builder = Builder(name)
    for region_param in region_params(name, [read.type for read in reads]):
        builder.param(region_param.name, region_param.type)
    return builder, {value.name: value for value in builder.values}


def _element(builder: Builder, params: Mapping[str, Value], axes: str) -> Value:
    """Return the element of the mask that belongs to a score."""
    read = params["d0"]
    pairs = zip(read.type.shape, axes, strict=True)
    indices = [builder.constant(0) if extent == 1 else params[name] for extent, name in pairs]
    return builder.append("element", read, *indices)


def _mask(reads: list[Value], axes: str, is_causal: bool, is_bool: bool) -> Function:
    builder, params = _region("mask", reads)
    visible = builder.append("le", params["j"], params["i"]) if is_causal else None
    if is_bool:
        element = _element(builder, params, axes)
        visible = element if visible is None else builder.append("logical_and", visible, element)
    return builder.finish(builder.constant(True) if visible is None else visible)


def _score(reads: list[Value], axes: str, *, is_added: bool) -> Function:
    builder, params = _region("score", reads)
    score = params["s"]
    if is_added:
        element = builder.cast(_element(builder, params, axes), f32)
        score = builder.append("add", score, element)
    return builder.finish(score)


ATTENTION: Mapping[Any, Emission] = MappingProxyType(
    {
        torch.ops.cklang_backend.attention.default: _attend,
        torch.ops.cklang_backend.attention_gradient.default: _differentiate,
    }
)
"""The emissions of attention and its gradient."""
