# SPDX-License-Identifier: MIT
"""Names of NumPy, torch and Triton for what cklang calls otherwise."""

from collections.abc import Iterable, Mapping

_NO_64 = "ck.f32: kernels compute in f32, and have no floats of 64 bits"

DTYPES: Mapping[str, str] = {
    "float16": "ck.f16", "half": "ck.f16", "bfloat16": "ck.bf16", "float32": "ck.f32",
    "float": "ck.f32", "f64": _NO_64, "float64": _NO_64, "double": _NO_64, "int8": "ck.i8",
    "int32": "ck.i32", "int": "ck.i32", "int64": "ck.i64", "long": "ck.i64", "int4": "ck.i4",
    "bool": "ck.bool_", "float8_e4m3fn": "ck.fp8", "float8_e5m2": "ck.bf8",
    "float8_e4m3fnuz": "ck.fp8_fnuz", "float8_e5m2fnuz": "ck.bf8_fnuz", "float4_e2m1fn": "ck.fp4",
    "float8_e8m0fnu": "ck.e8m0",
}  # fmt: skip
"""What to write for a dtype of another library."""

FUNCTIONS: Mapping[str, str] = {
    "matmul": "a @ b", "mm": "a @ b", "bmm": "a @ b", "dot": "a @ b", "linear": "x @ w.T + bias",
    "scaled_dot_product_attention": "ck.attention(q, k, v)",
    "conv2d": "ck.conv(x, w), with channels last", "mean_pool": "ck.avg_pool(x, window)",
    "amax": "ck.max(x, axis)",
    "amin": "ck.min(x, axis)", "absolute": "ck.abs", "fabs": "ck.abs", "arcsin": "ck.asin",
    "arccos": "ck.acos", "arctan": "ck.atan", "arctan2": "ck.atan2", "arcsinh": "ck.asinh",
    "arccosh": "ck.acosh", "arctanh": "ck.atanh", "radians": "ck.deg2rad", "degrees": "ck.rad2deg",
    "clip": "ck.clamp(x, lo, hi)", "clamp_min": "ck.maximum(x, lo)",
    "clamp_max": "ck.minimum(x, hi)", "rint": "ck.round", "fix": "ck.trunc",
    "log_sigmoid": "ck.logsigmoid", "expit": "ck.sigmoid", "positive": "x", "power": "x ** y",
    "float_power": "x ** y",
    "add": "x + y", "subtract": "x - y", "sub": "x - y", "multiply": "x * y", "mul": "x * y",
    "divide": "x / y", "div": "x / y", "true_divide": "x / y", "floor_divide": "x // y",
    "remainder": "x % y", "mod": "x % y", "negative": "-x", "invert": "~x", "bitwise_not": "~x",
    "bitwise_invert": "~x", "bitwise_and": "x & y", "bitwise_or": "x | y", "bitwise_xor": "x ^ y",
    "left_shift": "x << y", "right_shift": "x >> y", "bitwise_left_shift": "x << y",
    "bitwise_right_shift": "x >> y", "equal": "x == y", "not_equal": "x != y", "less": "x < y",
    "less_equal": "x <= y", "greater": "x > y", "greater_equal": "x >= y",
    "isposinf": "x == math.inf", "isneginf": "x == -math.inf", "addcmul": "x + value * a * b",
    "addcdiv": "x + value * a / b", "multinomial": "ck.sample(logits, seed)",
    "ldexp": "x * 2.0 ** n", "exp10": "ck.exp(x * math.log(10))",
    "divmod": "x // y and x % y", "modf": "ck.frac(x) and ck.trunc(x)",
    "permute": "x.permute(axes)", "unsqueeze": "x[..., None]", "jit": "@ck.op", "kernel": "@ck.op",
    "constexpr": "ck.const[int]",
}  # fmt: skip
"""What to write for a function of another library that has another name here."""


_MASK = "mask=, a function of indices such as lambda b, h, i, j: keep[b, j],"
KEYWORDS: Mapping[str, str] = {
    "causal": "mask=ck.causal()", "is_causal": "mask=ck.causal()", "attn_mask": _MASK,
    "attention_mask": _MASK, "window_size": "mask=ck.sliding_window(left, right)",
    "softmax_scale": "scale=", "sm_scale": "scale=", "dropout_p": "dropout=",
    "enable_gqa": "nothing: heads of k and v are shared where there are fewer", "dim": "axis=",
    "dims": "axis=", "keepdim": "keepdims=", "min": "lo=", "max": "hi=", "a_min": "lo=",
    "a_max": "hi=", "negative_slope": "slope=", "approximate": "ck.gelu_tanh for the tanh form",
    "stable": "nothing: sorting is stable", "sorted": "nothing: values are in order",
    "ddof": "correction=", "unbiased": "correction=1", "normalized_shape": "axis=",
    "kernel_size": "window=", "num_groups": "groups=",
}  # fmt: skip
"""What to write for a keyword argument of another library."""


SCORE_PARAMETERS: Mapping[str, str] = {"score": "s", "q_idx": "i", "kv_idx": "j"}
"""FlexAttention's names of the parameters of score and mask functions, which are legal too."""


def advice_for(name: str, known: Iterable[str], prefix: str = "ck.") -> str:
    """Say what to write instead of a name of another library.

    ``prefix`` stands before a name that is proposed.

    Example:
        >>> advice_for("float16", ())
        'write ck.f16'
        >>> advice_for("sumx", ("sum", "max"))
        'did you mean ck.sum?'
    """
    names = set(known)
    if name not in names and (other := DTYPES.get(name) or FUNCTIONS.get(name)):
        return f"write {other}"
    return nearest(name, names, prefix)


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return an advice that names what is spelled most like ``name``, or what there is."""
    import difflib

    public = sorted({word for word in known if not word.startswith("_")})
    if name in public:
        return f"write {prefix}{name}"
    close = difflib.get_close_matches(name, public, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(prefix + word for word in close) + "?"
    if not public or len(public) > 12:
        return "nothing of a like name is known"
    return "known: " + ", ".join(prefix + word for word in public)
