# SPDX-License-Identifier: MIT
"""Windows over images: a key and the function that follows become C++."""

from __future__ import annotations

import math

from cklang.arch import arch
from cklang.families.closed_source import flag
from cklang.families.windows.key import WindowKey, most_of_block
from cklang.fusion.functions import Functions
from cklang.lowering.pointwise import c_functions, c_result, c_type
from cklang.lowering.render import key_json, listed, template
from cklang.lowering.source import KernelSource
from cklang.types import bool_

_HOLE = "ck_epilogue"


def lower_windows(key: WindowKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel.

    Raises:
        CkUnsupportedError: L001, an op has no C.
    """
    s, a = key.signature, key.algorithm
    kernel = "ck_" + "_".join(s.label(a))
    function = functions["epilogue"]
    types = [c_type(param.type.dtype) for param in function.params]
    names = ["sum", *(f"d{place}" for place in range(len(s.d)))]
    stored = ["ck_tile::int8_t" if d.dtype is bool_ else d.dtype.ck for d in s.d]
    sizes = [math.ceil(d.dtype.bits / 8) for d in s.d]
    text = template("windows.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        words=s.words,
        a=s.dtype_a,
        b=s.dtype_b,
        e=s.dtype_e,
        window=listed(s.window),
        stride=listed(s.stride),
        dilation=listed(s.dilation),
        channels=s.channels,
        features=s.features,
        vector=a.vector,
        columns=a.columns,
        rows=a.rows,
        threads=a.threads,
        neighbours=flag(s.neighbours),
        chiplets=arch(key.arch).chiplets,
        block=most_of_block(s, a) if s.neighbours else 0,
        d_bytes=listed([*sizes, 0]),
        how=s.how.value,
        operands=[
            f"{type_}, {flag(d.contiguous)}, {flag(d.common)}"
            for type_, d in zip(stored, s.d, strict=True)
        ],
        hole={
            "hole": _HOLE,
            "result": c_result(_HOLE, function),
            "types": listed(types),
            "params": listed(f"{t} {n}" for t, n in zip(types, names, strict=True)),
            "args": listed(names),
        },
    )
    return KernelSource(
        stencil=text,
        fill=c_functions({_HOLE: function}),
        hole=_HOLE,
        kernel=kernel,
        host_headers=False,
    )
