# SPDX-License-Identifier: MIT
"""The families of kernels: one folder each, one instance each, in one table.

What a family is stands in :mod:`cklang.families.protocol`. Code outside a family's folder finds it
here, by the name in a signature or a kernel, and knows its protocol alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from cklang.codec import decode, expect_fields, unknown, with_defaults
from cklang.errors import error
from cklang.families.append.key import AppendSignature
from cklang.families.append.lower import lower_append
from cklang.families.attention.family import ATTENTION
from cklang.families.attention_backward.family import ATTENTION_BACKWARD
from cklang.families.combine.key import CombineSignature
from cklang.families.combine.lower import lower_combine
from cklang.families.conv.family import CONV
from cklang.families.gemm.family import GEMM
from cklang.families.layout_copy.key import LayoutCopySignature
from cklang.families.layout_copy.lower import lower_transpose
from cklang.families.protocol import Family, HelperFamily
from cklang.families.reduce.key import ReduceSignature
from cklang.families.reduce.lower import lower_reduce
from cklang.families.rowwise.family import ROWWISE
from cklang.families.scan.family import SCAN
from cklang.families.scatter.family import SCATTER
from cklang.families.sort.family import SORT
from cklang.fusion.plan import Plan
from cklang.ir.nodes import Function
from cklang.keys import SCHEMA_VERSION, AnyKey, KernelSignature, Key

__all__ = ["FAMILIES", "AnyFamily", "family_of", "key_from_json", "key_of", "plan_of"]

AnyFamily = Family[Any, Any, Any]

_ALL: tuple[AnyFamily, ...] = (
    GEMM,
    CONV,
    ATTENTION,
    ATTENTION_BACKWARD,
    ROWWISE,
    SCATTER,
    SCAN,
    SORT,
    HelperFamily("layout_copy", LayoutCopySignature, lower_transpose),
    HelperFamily("combine", CombineSignature, lower_combine),
    HelperFamily("append", AppendSignature, lower_append),
    HelperFamily("reduce", ReduceSignature, lower_reduce),
)

FAMILIES: Mapping[str, AnyFamily] = MappingProxyType({family.name: family for family in _ALL})
"""The families by name. One of each is all there is: a new family is a line here."""


def plan_of(function: Function) -> Plan:
    """Return the kernels that compute a function, of any families, and the decisions behind them.

    Raises:
        CkError: As :func:`cklang.fusion.partition.plan`; X rows of the families.
    """
    from cklang.fusion.partition import plan

    return plan(function, _MAKERS, _outlined)


def _outlined(function: Function, strict: Collection[str]) -> Function:
    for family in _ALL:
        function = family.outline(function, _MAKERS, strict)
    return function


_MAKERS = {op: maker for family in _ALL for op, maker in family.makers.items()}


def family_of(signature: KernelSignature) -> AnyFamily:
    """Return the family of a signature."""
    return FAMILIES[signature.family]


def key_of(signature: KernelSignature, algorithm: Any, gpu: str) -> AnyKey:
    """Return the key of the kernel that computes ``signature`` by ``algorithm`` on ``gpu``.

    Raises:
        CkValueError: K022, the algorithm is one of another family.
    """
    family = family_of(signature)
    if family.algorithm is not None and not isinstance(algorithm, family.algorithm):
        raise error("K022", want=family.algorithm_text, got=algorithm)
    return Key(signature, algorithm, gpu)


def key_from_json(data: Mapping[str, Any]) -> AnyKey:
    """Read the JSON form of a key of any family.

    Raises:
        CkValueError: K003 for another schema version, K001 for unknown families, fields or values.
    """
    if data.get("version") != SCHEMA_VERSION:
        raise error("K003", what="kernel key", got=data.get("version"), want=SCHEMA_VERSION)
    expect_fields("kernel key", dict(data), _PARTS)
    name = data["family"]
    if name not in FAMILIES:
        raise unknown("kernel family", name, list(FAMILIES))
    family = FAMILIES[name]
    signature = decode(family.signature, data["signature"], "signature")
    algorithm = None
    if family.algorithm is not None:
        algorithm = decode(family.algorithm, data["algorithm"], "algorithm")
    return Key(signature, algorithm, decode(str, data["arch"], "arch"))


_PARTS = ("version", "family", "arch", "signature", "algorithm")


def completed_key(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a key with the fields that were left out, as far as they have one.

    What is left out is the present version, the family ``gemm``, and the defaults of the records
    of its signature and algorithm. Unknown fields stay, for :func:`key_from_json` to refuse.
    """
    complete: dict[str, Any] = {"version": SCHEMA_VERSION, "family": "gemm", **data}
    family = FAMILIES.get(str(complete["family"]))
    if family is None:
        return complete
    if isinstance(complete.get("signature"), dict):
        complete["signature"] = family.completed_signature(complete["signature"])
    if family.algorithm is None:
        complete.setdefault("algorithm", None)
    elif isinstance(complete.get("algorithm"), dict):
        complete["algorithm"] = with_defaults(family.algorithm, complete["algorithm"])
    return complete
