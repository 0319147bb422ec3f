# SPDX-License-Identifier: MIT
"""An example of each function of the language, as ``help(ck.gelu)`` shows it."""

from __future__ import annotations

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, str] = {
    "abs": """
>>> ck.abs(np.array([-1.5, 0.0, 2.0]))
array([1.5, 0. , 2. ])
""",
    "amax": """
>>> ck.amax(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=0)
array([1., 4., 2.])
""",
    "arange": """
>>> ck.arange(4)
array([0, 1, 2, 3], dtype=int32)
""",
    "argmax": """
>>> ck.argmax(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
array([1, 1])
""",
    "argmin": """
>>> ck.argmin(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
array([0, 0])
""",
    "attention": """
>>> q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 4, 8))
>>> o, lse = ck.attention(q, k, v, mask=ck.causal(), return_lse=True)
>>> o.shape, lse.shape  # [batch, heads, rows, head size]
((1, 2, 4, 8), (1, 2, 4))
>>> bool(np.allclose(o[:, :, 0], v[:, :, 0]))  # row 0 sees key 0 alone
True
""",
    "broadcast_to": """
>>> ck.broadcast_to(np.array([1.0, 2.0]), (2, 2))
array([[1., 2.],
       [1., 2.]])
""",
    "cast": """
>>> ck.cast(np.array([2.9, -2.9]), ck.i32)
array([ 2, -2], dtype=int32)
>>> ck.cast(np.array([1 / 3, 70000.0]), ck.f16)
array([0.3333,    inf], dtype=float16)
""",
    "causal": """
>>> q, k, v = np.zeros((1, 1, 2, 8)), np.zeros((1, 1, 2, 8)), np.eye(2)[None, None]
>>> ck.attention(q, k, v, mask=ck.causal())[0, 0]
array([[1. , 0. ],
       [0.5, 0.5]])
""",
    "ceil": """
>>> ck.ceil(np.array([-1.5, 0.2, 2.0]))
array([-1.,  1.,  2.])
""",
    "clamp": """
>>> ck.clamp(np.array([-3.0, 0.5, 3.0]), -1.0, 1.0)
array([-1. ,  0.5,  1. ])
""",
    "concat": """
>>> ck.concat([np.array([1.0, 2.0]), np.array([3.0])])
array([1., 2., 3.])
""",
    "conv": """
>>> x, w = np.ones((1, 5, 5, 3)), np.ones((2, 3, 3, 3))
>>> y = ck.conv(x, w, stride=2, padding=1)
>>> y.shape
(1, 3, 3, 2)
>>> y[0, :, :, 0]
array([[12., 18., 12.],
       [18., 27., 18.],
       [12., 18., 12.]])
""",
    "conv_grad_input": """
>>> dy, w = np.ones((1, 4, 4, 2)), np.ones((2, 3, 3, 8))
>>> ck.conv_grad_input(dy, w, padding=1).shape
(1, 4, 4, 8)
""",
    "conv_grad_weight": """
>>> x, dy = np.ones((1, 4, 4, 8)), np.ones((1, 4, 4, 2))
>>> ck.conv_grad_weight(x, dy, padding=1).shape
(2, 3, 3, 8)
""",
    "conv_transpose": """
>>> x, w = np.ones((1, 4, 4, 2)), np.ones((2, 3, 3, 8))
>>> ck.conv_transpose(x, w, stride=2, padding=1, output_padding=1).shape
(1, 8, 8, 8)
""",
    "einsum": """
>>> ck.einsum("mk,nk->mn", np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
array([[11., 17.]])
""",
    "elu": """
>>> ck.elu(np.array([-1.0, 0.0, 2.0]), alpha=0.5).round(3)
array([-0.316,  0.   ,  2.   ])
""",
    "erf": """
>>> ck.erf(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.843,  0.   ,  0.843])
""",
    "exp": """
>>> ck.exp(np.array([-1.0, 0.0, 1.0])).round(3)
array([0.368, 1.   , 2.718])
""",
    "exp2": """
>>> ck.exp2(np.array([-1.0, 0.0, 3.0]))
array([0.5, 1. , 8. ])
""",
    "expm1": """
>>> bool(ck.expm1(np.float64(1e-20)) == 1e-20)  # exp(x) - 1 would be 0
True
""",
    "floor": """
>>> ck.floor(np.array([-1.5, 0.2, 2.0]))
array([-2.,  0.,  2.])
""",
    "gelu": """
>>> ck.gelu(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.159,  0.   ,  0.841])
""",
    "gelu_tanh": """
>>> ck.gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(5)
array([-0.15881,  0.     ,  0.84119])
""",
    "gemm": """
>>> a, b = np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((4, 2))
>>> ck.gemm(a, b)
array([[10., 10.]])
>>> ck.gemm(ck.sparse24.prune(a), b, sparse="a")  # 3 + 4
array([[7., 7.]])
""",
    "hardsigmoid": """
>>> ck.hardsigmoid(np.array([-4.0, 0.0, 1.5, 4.0]))
array([0.  , 0.5 , 0.75, 1.  ])
""",
    "hardswish": """
>>> ck.hardswish(np.array([-4.0, 0.0, 1.5, 4.0]))
array([-0.   ,  0.   ,  1.125,  4.   ])
""",
    "isnan": """
>>> ck.isnan(np.array([0.0, np.inf, np.nan]))
array([False, False,  True])
""",
    "leaky_relu": """
>>> ck.leaky_relu(np.array([-2.0, 0.0, 2.0]), slope=0.1)
array([-0.2,  0. ,  2. ])
""",
    "log": """
>>> ck.log(np.array([0.0, 1.0, 10.0])).round(3)
array([ -inf, 0.   , 2.303])
""",
    "log1p": """
>>> bool(ck.log1p(np.float64(1e-20)) == 1e-20)  # log(1 + x) would be 0
True
""",
    "log2": """
>>> ck.log2(np.array([0.5, 1.0, 8.0]))
array([-1.,  0.,  3.])
""",
    "logical_and": """
>>> x = np.array([-1.0, 0.5, 3.0])
>>> ck.logical_and(x > 0, x < 1)
array([False,  True, False])
""",
    "logical_not": """
>>> ck.logical_not(np.array([True, False]))
array([False,  True])
""",
    "logical_or": """
>>> x = np.array([-1.0, 0.5, 3.0])
>>> ck.logical_or(x < 0, x > 1)
array([ True, False,  True])
""",
    "max": """
>>> ck.max(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
array([ 4., -1.])
""",
    "maximum": """
>>> ck.maximum(np.array([-1.0, 2.0, np.nan]), 0.0)
array([ 0.,  2., nan])
""",
    "mean": """
>>> ck.mean(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=(0, 1))
array(0.16666667)
""",
    "min": """
>>> ck.min(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
array([ 1., -3.])
""",
    "minimum": """
>>> ck.minimum(np.array([-1.0, 2.0, np.nan]), 0.0)
array([-1.,  0., nan])
""",
    "mish": """
>>> ck.mish(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.303,  0.   ,  0.865])
""",
    "neg": """
>>> ck.neg(np.array([-1.0, 2.0]))
array([ 1., -2.])
""",
    "permute": """
>>> ck.permute(np.zeros((2, 3, 4)), (2, 0, 1)).shape
(4, 2, 3)
""",
    "pow": """
>>> ck.pow(np.array([1.0, 2.0, 3.0]), 2.0)
array([1., 4., 9.])
""",
    "prod": """
>>> ck.prod(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=1)
array([ 8., -6.])
""",
    "reciprocal": """
>>> ck.reciprocal(np.array([0.5, 2.0, -4.0]))
array([ 2.  ,  0.5 , -0.25])
""",
    "relu": """
>>> ck.relu(np.array([-1.0, 0.0, 2.0, np.nan]))
array([ 0.,  0.,  2., nan])
""",
    "reshape": """
>>> ck.reshape(np.arange(6.0), (2, -1))
array([[0., 1., 2.],
       [3., 4., 5.]])
""",
    "round": """
>>> ck.round(np.array([0.5, 1.5, 2.4]))
array([0., 2., 2.])
""",
    "rsqrt": """
>>> ck.rsqrt(np.array([1.0, 4.0, 16.0]))
array([1.  , 0.5 , 0.25])
""",
    "sigmoid": """
>>> ck.sigmoid(np.array([-1.0, 0.0, 1.0])).round(3)
array([0.269, 0.5  , 0.731])
""",
    "sign": """
>>> ck.sign(np.array([-2.5, 0.0, 7.0, np.nan]))
array([-1.,  0.,  1., nan])
""",
    "silu": """
>>> ck.silu(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.269,  0.   ,  0.731])
""",
    "sliding_window": """
>>> q, k, v = np.zeros((1, 1, 3, 8)), np.zeros((1, 1, 3, 8)), np.eye(3)[None, None]
>>> ck.attention(q, k, v, mask=ck.sliding_window(left=1))[0, 0]
array([[1. , 0. , 0. ],
       [0.5, 0.5, 0. ],
       [0. , 0.5, 0.5]])
""",
    "softplus": """
>>> ck.softplus(np.array([-1.0, 0.0, 100.0])).round(3)
array([  0.313,   0.693, 100.   ])
""",
    "sin": """
>>> ck.sin(np.array([0.0, np.pi / 6, np.pi / 2])).round(3)
array([0. , 0.5, 1. ])
""",
    "cos": """
>>> ck.cos(np.array([0.0, np.pi / 3, np.pi])).round(3)
array([ 1. ,  0.5, -1. ])
""",
    "tan": """
>>> ck.tan(np.array([0.0, np.pi / 4])).round(3)
array([0., 1.])
""",
    "asin": """
>>> ck.asin(np.array([0.0, 0.5, 1.0])).round(3)
array([0.   , 0.524, 1.571])
""",
    "acos": """
>>> ck.acos(np.array([0.0, 0.5, 1.0])).round(3)
array([1.571, 1.047, 0.   ])
""",
    "atan": """
>>> ck.atan(np.array([-np.inf, 0.0, 1.0])).round(3)
array([-1.571,  0.   ,  0.785])
""",
    "atan2": """
>>> ck.atan2(np.array([1.0, 1.0]), np.array([1.0, -1.0])).round(3)
array([0.785, 2.356])
""",
    "sinh": """
>>> ck.sinh(np.array([-1.0, 0.0, 1.0])).round(3)
array([-1.175,  0.   ,  1.175])
""",
    "cosh": """
>>> ck.cosh(np.array([-1.0, 0.0, 1.0])).round(3)
array([1.543, 1.   , 1.543])
""",
    "asinh": """
>>> ck.asinh(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.881,  0.   ,  0.881])
""",
    "acosh": """
>>> ck.acosh(np.array([1.0, 2.0, 10.0])).round(3)
array([0.   , 1.317, 2.993])
""",
    "atanh": """
>>> ck.atanh(np.array([-0.5, 0.0, 1.0])).round(3)
array([-0.549,  0.   ,    inf])
""",
    "cbrt": """
>>> ck.cbrt(np.array([-8.0, 0.0, 27.0]))
array([-2.,  0.,  3.])
""",
    "erfc": """
>>> ck.erfc(np.array([-1.0, 0.0, 2.0])).round(4)
array([1.8427, 1.    , 0.0047])
""",
    "hypot": """
>>> ck.hypot(np.array([3.0, 0.0]), np.array([4.0, 2.0]))
array([5., 2.])
""",
    "fmod": """
>>> ck.fmod(np.array([-5.0, 5.5]), 3.0)
array([-2. ,  2.5])
""",
    "copysign": """
>>> ck.copysign(np.array([3.0, -3.0]), np.array([-1.0, 0.0]))
array([-3.,  3.])
""",
    "log10": """
>>> ck.log10(np.array([1.0, 1000.0]))
array([0., 3.])
""",
    "isfinite": """
>>> ck.isfinite(np.array([0.0, np.inf, np.nan]))
array([ True, False, False])
""",
    "isinf": """
>>> ck.isinf(np.array([0.0, -np.inf, np.nan]))
array([False,  True, False])
""",
    "signbit": """
>>> ck.signbit(np.array([1.0, -0.0, -2.0]))
array([False,  True,  True])
""",
    "logical_xor": """
>>> ck.logical_xor(np.array([True, True]), np.array([False, True]))
array([ True, False])
""",
    "softsign": """
>>> ck.softsign(np.array([-3.0, 0.0, 1.0]))
array([-0.75,  0.  ,  0.5 ])
""",
    "split": """
>>> ck.split(np.arange(6.0), 2)
(array([0., 1., 2.]), array([3., 4., 5.]))
>>> ck.split(np.arange(6.0), (1, 5))
(array([0.]), array([1., 2., 3., 4., 5.]))
""",
    "sqrt": """
>>> ck.sqrt(np.array([1.0, 4.0, 9.0]))
array([1., 2., 3.])
""",
    "square": """
>>> ck.square(np.array([-3.0, 0.5]))
array([9.  , 0.25])
""",
    "stack": """
>>> ck.stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])], axis=-1)
array([[1., 3.],
       [2., 4.]])
""",
    "sum": """
>>> ck.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=-1)
array([3., 7.])
>>> ck.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=-1, keepdims=True)
array([[3.],
       [7.]])
""",
    "swapaxes": """
>>> ck.swapaxes(np.zeros((2, 3, 4)), 0, -1).shape
(4, 3, 2)
""",
    "argsort": """
>>> ck.argsort(np.array([3.0, 1.0, 2.0, 1.0]))
array([1, 3, 2, 0], dtype=int32)
""",
    "cumprod": """
>>> ck.cumprod(np.array([[2.0, 3.0, 0.5]]), axis=1)
array([[2., 6., 3.]])
""",
    "cumsum": """
>>> ck.cumsum(np.array([[1.0, 2.0, 3.0]]), axis=1)
array([[1., 3., 6.]])
""",
    "sort": """
>>> ck.sort(np.array([3.0, 1.0, 2.0]), descending=True)
array([3., 2., 1.])
""",
    "topk": """
>>> ck.topk(np.array([3.0, 1.0, 4.0, 4.0]), 2)
(array([4., 4.]), array([2, 3], dtype=int32))
""",
    "max_pool": """
>>> x = np.arange(6.0).reshape(1, 6, 1)
>>> ck.max_pool(x, 3, stride=2, padding=1)[0, :, 0]
array([1., 3., 5.])
""",
    "mean_pool": """
>>> x = np.arange(6.0).reshape(1, 6, 1)
>>> ck.mean_pool(x, 3, stride=2, padding=1, count_include_pad=False)[0, :, 0]
array([0.5, 2. , 4. ])
""",
    "scatter": """
>>> ck.scatter(np.zeros((3, 2)), np.array([2, 0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
array([[3., 4.],
       [0., 0.],
       [1., 2.]])
""",
    "scatter_add": """
>>> ck.scatter_add(np.ones(3), np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
array([3., 1., 5.])
""",
    "segment_sum": """
>>> ck.segment_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]), 3)
array([[0., 0.],
       [4., 6.],
       [0., 0.]])
""",
    "take": """
>>> ck.take(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([2, 0]))
array([[5., 6.],
       [1., 2.]])
""",
    "tanh": """
>>> ck.tanh(np.array([-1.0, 0.0, 1.0])).round(3)
array([-0.762,  0.   ,  0.762])
""",
    "trunc": """
>>> ck.trunc(np.array([-1.5, 0.2, 2.7]))
array([-1.,  0.,  2.])
""",
    "where": """
>>> x = np.array([-1.0, 2.0])
>>> ck.where(x > 0, x, 0.5 * x)
array([-0.5,  2. ])
""",
}
"""Text for :mod:`doctest` by the function's name; ``ck`` and ``np`` are known to it."""

__test__ = EXAMPLES
"""Where :mod:`doctest` looks for examples beside docstrings."""
