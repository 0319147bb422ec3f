# SPDX-License-Identifier: MIT
"""The families of kernels that are chosen: what is asked, what is chosen, and the key of both.

=============  ==========================  ==========================  ========================
family         signature                   algorithm                   key
=============  ==========================  ==========================  ========================
product        Signature                   Algorithm                   KernelKey
convolution    Signature (spatial)         Algorithm                   KernelKey
attention      AttentionSignature          AttentionAlgorithm          AttentionKey
its gradient   AttentionGradSignature      AttentionGradAlgorithm      AttentionGradKey
=============  ==========================  ==========================  ========================

Other kernels of attention (that combine, append, sum) are never chosen: there is one of each.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from cklang.attention_keys import (
    AnyKey,
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionGradKey,
    AttentionGradSignature,
    AttentionKey,
    AttentionSignature,
    GradPipeline,
)
from cklang.errors import error
from cklang.families.attention.plan import AttentionFunctions, region_hash
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.conv.problem import AnyProblem
from cklang.fusion.plan import epilogue_hash, epilogue_text
from cklang.ir.nodes import Function
from cklang.ir.printer import print_function
from cklang.keys import Algorithm, KernelKey, Signature

__all__ = [
    "NOTHING",
    "AnyAlgorithm",
    "AnySignature",
    "Asked",
    "ChosenKey",
    "Filling",
    "blank",
    "computes",
    "expect_filling",
    "filled",
    "key_of",
    "opened",
    "signature_of",
    "texts_of",
]

AnySignature = Signature | AttentionSignature | AttentionGradSignature
"""What is computed."""

AnyAlgorithm = Algorithm | AttentionAlgorithm | AttentionGradAlgorithm
"""How."""

ChosenKey = KernelKey | AttentionKey | AttentionGradKey
"""The identity of a kernel that selection chooses."""

Asked = AnyProblem | AttentionCase | AttentionGradCase
"""A problem that a kernel is chosen for."""

Filling = Function | AttentionFunctions
"""What fills a stencil: an epilogue, or the functions of an attention."""

NOTHING = AttentionFunctions(score=None, mask=None)
"""What fills a stencil of attention that has nothing open."""

A = TypeVar("A", bound=AnyAlgorithm)
S = TypeVar("S", bound=AnySignature)

_BLANKS: dict[type[AnyAlgorithm], AnyAlgorithm] = {
    Algorithm: Algorithm(
        tile=(1, 1, 1), warps=(1, 1, 1), warp_tile=(1, 1, 1), vector_a=1, vector_b=1, vector_e=1
    ),
    AttentionAlgorithm: AttentionAlgorithm(
        tile=(1, 1, 1, 1, 1, 1), warps=(1, 1, 1), warp_tile=(1, 1, 1), vector=1
    ),
    AttentionGradAlgorithm: AttentionGradAlgorithm(
        tile=(1, 1, 1, 1, 1, 1, 1, 1, 1),
        warps=((1, 1, 1), (1, 1, 1), (1, 1, 1)),
        warp_tiles=((1, 1, 1), (1, 1, 1), (1, 1, 1)),
        pipeline=GradPipeline.KR_KTR_VR_IGLP,
        vector=1,
    ),
}


def blank(of: type[A]) -> A:
    """Return an algorithm that stands for one of which nothing is known."""
    return cast(A, _BLANKS[cast(Any, of)])


def key_of(signature: AnySignature, algorithm: AnyAlgorithm, gpu: str) -> ChosenKey:
    """Return the key of the kernel that computes ``signature`` by ``algorithm`` on ``gpu``.

    Raises:
        CkValueError: K002, the algorithm is one of another family.
    """
    match signature, algorithm:
        case Signature(), Algorithm():
            return KernelKey(signature, algorithm, gpu)
        case AttentionSignature(), AttentionAlgorithm():
            return AttentionKey(signature, algorithm, gpu)
        case AttentionGradSignature(), AttentionGradAlgorithm():
            return AttentionGradKey(
                signature.forward, signature.bias_grad, signature.deterministic, algorithm, gpu
            )
    raise error("K002", what="the algorithm", want=_WANTED[type(signature)], got=algorithm)


_WANTED: dict[type[AnySignature], str] = {
    Signature: "a cklang.Algorithm for an op without attention",
    AttentionSignature: "a cklang.AttentionAlgorithm for an op with an attention",
    AttentionGradSignature: "a cklang.AttentionGradAlgorithm for the gradient of an attention",
}


def signature_of(key: ChosenKey) -> AnySignature:
    """Return what a kernel computes."""
    if isinstance(key, AttentionGradKey):
        return AttentionGradSignature(
            forward=key.signature, bias_grad=key.bias_grad, deterministic=key.deterministic
        )
    return key.signature


def computes(key: AnyKey, signature: AnySignature) -> bool:
    """Whether ``key`` is that of a kernel that is chosen for ``signature``."""
    return isinstance(key, ChosenKey) and signature_of(key) == signature


def opened(signature: S) -> S:
    """Return the signature of a kernel's stencil: the same with its functions open."""
    match signature:
        case Signature():
            found: AnySignature = replace(signature, epilogue="")
        case AttentionSignature():
            found = signature.stencil
        case _:
            found = replace(signature, forward=signature.forward.stencil)
    return cast(S, found)


def expect_filling(key: AnyKey, filling: Filling) -> None:
    """Check that a filling is the one that a key names.

    Raises:
        CkValueError: K007, it is not.
    """
    want, got = _named(key), _hashes(filling)
    if want != got:
        raise error("K007", label=key.label, want=_shown(want), got=_shown(got))


_PLACES = tuple(each.name for each in fields(AttentionFunctions))
"""The functions that an attention may have; a key names each by its hash."""


def _named(key: AnyKey) -> tuple[str, ...]:
    if isinstance(key, KernelKey):
        return (key.signature.epilogue,)
    record = key.signature if isinstance(key, AttentionKey | AttentionGradKey) else key
    return tuple(getattr(record, f"{place}_function", "") for place in _PLACES)


def _hashes(filling: Filling) -> tuple[str, ...]:
    if isinstance(filling, Function):
        return (epilogue_hash(filling),)
    return tuple(region_hash(getattr(filling, place)) for place in _PLACES)


def _shown(hashes: tuple[str, ...]) -> str:
    return " and ".join(each or "none" for each in hashes)


def texts_of(filling: Filling) -> tuple[str, ...]:
    """Return a filling as IR text, one for each place; empty for a place without a function."""
    if isinstance(filling, Function):
        return (epilogue_text(filling),)
    functions = [getattr(filling, place) for place in _PLACES]
    return tuple("" if each is None else print_function(each) for each in functions)


def filled(texts: tuple[str, ...]) -> Filling:
    """Return the filling that :func:`texts_of` wrote.

    Raises:
        CkSyntaxError: I rows, a text is no IR.
    """
    from cklang.ir.parser import parse_function

    functions = [parse_function(text) if text else None for text in texts]
    if len(functions) == 1 and functions[0] is not None:
        return functions[0]
    return AttentionFunctions(**dict(zip(_PLACES, functions, strict=True)))
