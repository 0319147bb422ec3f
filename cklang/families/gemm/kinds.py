# SPDX-License-Identifier: MIT
"""Kinds of kernels around one product: which C++ runs its tiles, and which describes a launch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from cklang.families.gemm.key import Algorithm, ConvSpecial, ProductKind, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """One kind: headers of ours, and C++ types in terms of the template's names.

    ``{d_names}`` stands for the D operands, each after a comma.
    """

    template: str = "gemm.hip.j2"
    header: str = "gemm.hpp"
    describe_header: str = "describe.hpp"
    kernel_class: str = "Gemm"
    describe: str = "Single"
    layouts: str = ""
    """The layouts of A, B and E, if the kind has only one set."""
    shares: bool = False
    """Whether workgroups may share the K of a tile."""
    specials: tuple[ConvSpecial, ...] = (ConvSpecial.DEFAULT,)
    title: str = ""
    direction: str = ""
    """The direction of a convolution."""


def _conv(direction: str, title: str, layouts: str, **more: object) -> KindRow:
    row = KindRow(
        template="conv.hip.j2",
        header="conv.hpp",
        describe_header="describe_conv.hpp",
        layouts=layouts,
        specials=tuple(ConvSpecial),
        title=title,
        direction=direction,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def _segmented(name: str) -> KindRow:
    return KindRow(
        header=f"{name}.hpp",
        describe_header=f"describe_{name}.hpp",
        kernel_class="cklang::SegmentedKernel<Gemm, {persistent}{d_names}>",
        describe="cklang::DescribeSegmented<Single, Partitioner, {persistent}>",
    )


KINDS: Mapping[ProductKind, KindRow] = MappingProxyType(
    {
        ProductKind.GEMM: KindRow(shares=True),
        ProductKind.BATCHED: KindRow(
            header="batched.hpp",
            describe_header="describe_batched.hpp",
            kernel_class="cklang::BatchedKernel<Gemm{d_names}>",
            describe="cklang::DescribeBatched<Single>",
        ),
        ProductKind.PAIR: KindRow(header="pair.hpp", describe_header="describe_pair.hpp"),
        ProductKind.GROUPED: KindRow(
            header="grouped.hpp",
            describe_header="describe_grouped.hpp",
            kernel_class="cklang::GroupedKernel<Gemm, {persistent}>",
            describe="cklang::DescribeGrouped<Single, {persistent}>",
        ),
        ProductKind.GROUPED_PAIR: KindRow(
            header="grouped_pair.hpp",
            describe_header="describe_grouped_pair.hpp",
            kernel_class="cklang::GroupedKernel<Gemm, {persistent}>",
            describe="cklang::DescribeGrouped<Single, {persistent}>",
        ),
        ProductKind.SEGMENTED: _segmented("segmented"),
        ProductKind.SEGMENTED_PAIR: _segmented("segmented_pair"),
        ProductKind.SEGMENTED_K: KindRow(
            header="segmented_k.hpp",
            describe_header="describe_segmented.hpp",
            kernel_class="cklang::SegmentedKKernel<Gemm, {persistent}{d_names}>",
            describe="cklang::DescribeSegmented<Single, Partitioner, {persistent}, true>",
        ),
        ProductKind.CONV: _conv("Forward", "convolution", "rcr", shares=True),
        ProductKind.CONV_GRAD_INPUT: _conv(
            "GradInput",
            "gradient of a convolution's input",
            "rrr",
            specials=(ConvSpecial.DEFAULT, ConvSpecial.POINTWISE, ConvSpecial.POINTWISE_PACKED),
        ),
        ProductKind.CONV_GRAD_WEIGHT: _conv(
            "GradWeight", "gradient of a convolution's weights", "crr", shares=True
        ),
    }
)


def kind_names(signature: Signature, algorithm: Algorithm) -> dict[str, str]:
    """Return the row of the signature's kind by field, with its names filled in."""
    row = KINDS[signature.kind]
    words = {
        "d_names": "".join(f", D{i}" for i in range(signature.operands)),
        "persistent": str(algorithm.persistent).lower(),
    }
    return {
        field.name: str(getattr(row, field.name)).format(**words)
        for field in fields(row)
        if field.type is str
    }
