# SPDX-License-Identifier: MIT
"""Profiles: the attention kernels that one kind of user needs, by GPU and element type.

A profile in ``presets.json`` is rows. A row crosses the values of the signature's fields that it
names with the tilings of the GPU and some paddings of them; what is legal is the rules' business.
``essential`` is what calls take when nobody names anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from cklang.arch import ArchSpec
from cklang.codec import dtype_of, encode
from cklang.families.attention.helper_keys import append_key, combine_key, reduce_key
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionSignature,
    MaskKind,
    ScoreKind,
)
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS, PIPELINE_FACTS
from cklang.families.attention.rules import RULES
from cklang.families.attention.space import attention_algorithms
from cklang.families.attention_backward import rules as backward_rules
from cklang.families.attention_backward.key import AttentionGradAlgorithm, AttentionGradSignature
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.families.presets import ProfileRow, Taken, profile
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.ir.attention import region_params
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function
from cklang.keys import AnyKey, Key
from cklang.types import DType, f32

AnyAttentionSignature = AttentionSignature | AttentionGradSignature
AnyAttentionAlgorithm = AttentionAlgorithm | AttentionGradAlgorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileKernel:
    """One kernel of a profile; where a function is open, it is one that changes nothing."""

    key: AnyKey
    functions: Functions


def profile_algorithms(
    name: str, signature: AnyAttentionSignature, spec: ArchSpec
) -> tuple[Any, ...]:
    """Return the legal algorithms of a profile for a signature, in order of preference.

    Empty if the profile is not for such a signature, or the GPU has none.
    """
    rows = (row for row in profile(name) if _covers(row, signature, spec))
    algorithms = (algorithm for row in rows for algorithm in _algorithms(row, signature, spec))
    return tuple(dict.fromkeys(algorithms))


def profile_kernels(
    name: str,
    spec: ArchSpec,
    dtypes: Sequence[str] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[ProfileKernel]:
    """Yield every legal kernel of a profile for a GPU, those that combine, append and sum too.

    ``dtypes`` are element types of q, k and v, ``heads`` head sizes of q; all of the profile's if
    left out.
    """
    for row in profile(name):
        if row.archs and spec.name not in row.archs:
            continue
        for dtype in row.dtypes:
            if dtypes is None or dtype in dtypes:
                yield from _row_kernels(row, _dtype(dtype, spec), spec, heads)


def _row_kernels(
    row: ProfileRow, dtype: DType, spec: ArchSpec, heads: Sequence[int] | None
) -> Iterator[ProfileKernel]:
    any_ = False
    for signature in _signatures(row, dtype, spec):
        functions = _functions(_forward(signature))
        for algorithm in _algorithms(row, signature, spec):
            if heads is None or _heads(algorithm)[0] in heads:
                any_ = True
                yield ProfileKernel(key=Key(signature, algorithm, spec.name), functions=functions)
    if any_:
        for key in _helpers(row, dtype, spec):
            yield ProfileKernel(key=key, functions=NO_FUNCTIONS)


def _functions(forward: AttentionSignature) -> Functions:
    """Return functions that change nothing, for the holes that a signature has."""
    holes = {
        "score": forward.score is ScoreKind.FUNCTION,
        "mask": forward.mask is MaskKind.FUNCTION,
        "output": forward.output,
    }
    return Functions(**{hole: _identity(hole) for hole, is_open in holes.items() if is_open})


def _dtype(name: str, spec: ArchSpec) -> DType:
    """Return an element type; ``fp8`` is that of the GPU's encoding."""
    return dtype_of("fp8_fnuz" if name == "fp8" and spec.fp8 == "fnuz" else name)


def _forward(signature: AnyAttentionSignature) -> AttentionSignature:
    return signature.forward if isinstance(signature, AttentionGradSignature) else signature


def _signatures(row: ProfileRow, dtype: DType, spec: ArchSpec) -> Iterator[AnyAttentionSignature]:
    """Yield every combination of the values that a row names."""
    for values in product(*row.fields.values()):
        named: dict[str, Any] = dict(zip(row.fields, values, strict=True))
        gradient = {name: named.pop(name, False) for name in ("bias_grad", "deterministic")}
        named["dtype_o"] = f32 if row.gradient else _dtype(named.get("dtype_o", dtype.name), spec)
        forward = AttentionSignature(dtype=dtype, dtype_bias=dtype, **named)
        functions = _functions(forward).digest
        if row.gradient:
            yield AttentionGradSignature(forward=forward, functions=functions, **gradient)
        else:
            yield replace(forward, functions=functions)


@cache
def _identity(name: str) -> Function:
    """Return the function that changes no score and no output, or hides no key."""
    builder = Builder(name)
    params = {
        param.name: builder.param(param.name, param.type) for param in region_params(name, [])
    }
    if name == "mask":
        return builder.finish(builder.append("le", params["j"], params["j"]))
    return builder.finish(next(iter(params.values())))


def _covers(row: ProfileRow, signature: AnyAttentionSignature, spec: ArchSpec) -> bool:
    """Whether a row is for a signature on a GPU."""
    forward = _forward(signature)
    family = forward.dtype.family
    if (row.archs and spec.name not in row.archs) or (row.dtypes and family not in row.dtypes):
        return False
    if row.gradient != isinstance(signature, AttentionGradSignature):
        return False
    if not row.fields:
        return True
    known = _described(signature)
    free = _described_default(signature)
    # A gradient's o is the parts of it in f32.
    skipped = {"dtype", "dtype_bias", *(("dtype_o",) if row.gradient else ())}
    return all(
        value in row.fields.get(name, (free.get(name),))
        for name, value in known.items()
        if name not in skipped and name != "functions"
    )


def _described(signature: AnyAttentionSignature) -> dict[str, Any]:
    forward: dict[str, Any] = encode(_forward(signature))
    forward["dtype_o"] = _forward(signature).dtype_o.family
    if isinstance(signature, AttentionGradSignature):
        forward |= {"deterministic": signature.deterministic, "bias_grad": signature.bias_grad}
    return forward


def _described_default(signature: AnyAttentionSignature) -> dict[str, Any]:
    dtype = _forward(signature).dtype
    plain = AttentionSignature(dtype=dtype, dtype_o=dtype, dtype_bias=dtype)
    return {**_described(plain), "deterministic": False, "bias_grad": False}


def _heads(algorithm: AnyAttentionAlgorithm) -> tuple[int, int]:
    """Return the head sizes that a tiling holds."""
    if isinstance(algorithm, AttentionGradAlgorithm):
        return algorithm.tile[7], algorithm.tile[8]
    return algorithm.tile[5], algorithm.tile[3]


def _algorithms(
    row: ProfileRow, signature: AnyAttentionSignature, spec: ArchSpec
) -> Iterator[AnyAttentionAlgorithm]:
    """Yield the legal algorithms of a row, the smallest tiling and the least padding first."""
    backward = isinstance(signature, AttentionGradSignature)
    rules = backward_rules.RULES if backward else RULES
    takes_all = row.pipelines is Taken.ALL
    tilings: dict[object, list[AnyAttentionAlgorithm]] = {}
    for tile in _known(signature, spec):
        is_taken = _heads(tile) in row.heads if row.heads else _is_whole(tile) or takes_all
        if is_taken:
            tilings.setdefault(tile.tile, []).append(tile)
    for pipelines in tilings.values():
        for pads in row.pads:
            padded = (_padded(pipeline, pads) for pipeline in pipelines)
            legal = (a for a in padded if rules.accepts(a, signature, spec))
            some = tuple(legal)
            yield from some if takes_all else some[:1]


def _is_whole(algorithm: AnyAttentionAlgorithm) -> bool:
    """Whether a tile holds a whole head, as the heads of most models are held."""
    if isinstance(algorithm, AttentionGradAlgorithm):
        return not GRAD_PIPELINE_FACTS[algorithm.pipeline].any_head
    return not PIPELINE_FACTS[algorithm.pipeline].any_head


def _known(signature: AnyAttentionSignature, spec: ArchSpec) -> Sequence[AnyAttentionAlgorithm]:
    if isinstance(signature, AttentionGradSignature):
        return attention_grad_algorithms(spec, signature.forward)
    return attention_algorithms(spec, signature)


def _padded(algorithm: AnyAttentionAlgorithm, pads: str) -> AnyAttentionAlgorithm:
    if not isinstance(algorithm, AttentionAlgorithm):
        return algorithm
    pad_q, pad_k, pad_d, pad_dv = (flag == "t" for flag in pads)
    return replace(algorithm, pad_q=pad_q, pad_k=pad_k, pad_d=pad_d, pad_dv=pad_dv)


def _helpers(row: ProfileRow, dtype: DType, spec: ArchSpec) -> Iterator[AnyKey]:
    """Yield the kernels around those of a row: that sum, combine and append."""
    gpu = spec.name
    if row.gradient:
        yield from (reduce_key(gpu, dtype, dot=dot) for dot in (True, False))
    if True in row.fields.get("split", ()):
        results = [_dtype(name, spec) for name in row.fields.get("dtype_o", (dtype.name,))]
        for dtype_o, lse in product(results, row.fields.get("lse", (False,))):
            yield combine_key(gpu, dtype_o, lse=lse)
    for rotary in row.append:
        for paged in row.fields.get("paged", (False,)):
            yield append_key(gpu, dtype, rotary, paged=paged)
