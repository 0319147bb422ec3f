# SPDX-License-Identifier: MIT
"""``ck.attention_grad``: the gradients of an op that is an attention."""

from typing import Any

from cklang.errors import CkUnsupportedError
from cklang.gradients.api import vjp
from cklang.ops.attention_backward import GradientKind, Gradients, gradients, read_as_bias
from cklang.runtime.op import Op


def attention_grad(
    op: Op,
    *args: Any,
    grad: Any,
    deterministic: bool = False,
    bias: bool = False,
    device: str | None = None,
    **kwargs: Any,
) -> Gradients:
    """Return the gradients of ``sum(grad * o)`` by q, k and v, for an op that is an attention.

    Args:
        op: Made by ``@ck.op`` from one ``ck.attention``, with any score and mask.
        *args: As in a call of the op.
        grad: The gradient of o: an array of its shape and dtype.
        deterministic: Whether dq is the same each time: each tile of keys then gives a part of its
            own, and they are added in one order.
        bias: Whether to give the gradient of the bias too, for a score that is
            ``s + bias[b, h, i, j]`` with a bias of the dtype of q. Of b, h and i some may be left
            out, or their extents be 1: what several scores share has the sum of their gradients,
            each rounded to that dtype before. Of a score that does more with it, such as a soft
            cap, :func:`cklang.vjp` gives all four, unless they are to be ``deterministic``.
        device: As in a call of the op.
        **kwargs: As in a call of the op.

    Returns:
        (dq, dk, dv, dbias), of the shapes and dtypes of q, k, v and the bias; dbias is None unless
        it is asked for. Weights and their gradients are rounded to that dtype before the products
        that sum over queries or keys.

    Example:
        >>> heads = ck.f16["B", "H", "S", 64]
        >>> @ck.op
        ... def attend(q: heads, k: heads, v: heads) -> heads:
        ...     return ck.attention(q, k, v, mask=ck.causal())
        >>> q, k, v, do = np.ones((4, 1, 2, 8, 64), np.float16)
        >>> gradients = ck.attention_grad(attend, q, k, v, grad=do)
        >>> gradients.v[0, 0, :, 0]  # key 0 is seen by all rows, key 7 by the last one
        array([2.719 , 1.718 , 1.218 , 0.885 , 0.635 , 0.4346, 0.2678, 0.125 ],
              dtype=float16)

    Raises:
        CkUnsupportedError: G007, the op is no attention or has more to it; G008, its score has no
            bias whose gradient a kernel gives; K102, the GPU has no kernel for it.
        CkError: What a call raises.
    """
    kind = GradientKind(deterministic=deterministic, bias=bias)
    try:
        return gradients(op, args, kwargs, grad=grad, kind=kind, device=device)
    except CkUnsupportedError as refusal:
        has_other_bias = refusal.code == "G008" and not deterministic
        names = read_as_bias(op, args, kwargs) if has_other_bias else ()
        if not names:
            raise
    backward = vjp(op, wrt=names)
    upstream = {backward.program.parameters[-1].name: grad}
    return Gradients(*backward(*args, **kwargs, **upstream, device=device))
