# SPDX-License-Identifier: MIT
"""Kernel families around one product: which C++ runs its tiles, and which describes a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from cklang.keys import Algorithm, Family, Signature

__all__ = ["FAMILIES", "FamilyRow", "family_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRow:
    """One family: headers of ours, and C++ types in terms of the template's names.

    ``{d_names}`` stands for the D operands, each after a comma.
    """

    header: str = "gemm.hpp"
    describe_header: str = "describe.hpp"
    kernel_class: str = "Gemm"
    describe: str = "Single"


FAMILIES: Mapping[Family, FamilyRow] = MappingProxyType(
    {
        Family.GEMM: FamilyRow(),
        Family.BATCHED: FamilyRow(
            header="batched.hpp",
            describe_header="describe_batched.hpp",
            kernel_class="cklang::BatchedKernel<Gemm{d_names}>",
            describe="cklang::DescribeBatched<Single>",
        ),
        Family.GROUPED: FamilyRow(
            header="grouped.hpp",
            describe_header="describe_grouped.hpp",
            kernel_class="cklang::GroupedKernel<Gemm, {persistent}>",
            describe="cklang::DescribeGrouped<Single, {persistent}>",
        ),
    }
)


def family_names(signature: Signature, algorithm: Algorithm) -> dict[str, str]:
    """Return the row of the signature's family by field, with its names filled in."""
    row = FAMILIES[signature.family]
    words = {
        "d_names": "".join(f", D{i}" for i in range(len(signature.d))),
        "persistent": str(algorithm.persistent).lower(),
    }
    return {field.name: getattr(row, field.name).format(**words) for field in fields(row)}
