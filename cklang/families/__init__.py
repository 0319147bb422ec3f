# SPDX-License-Identifier: MIT
"""The families of kernels: one folder each, one instance each, in one table.

What a family is stands in :mod:`cklang.families.protocol`. Code outside a family's folder finds it
here, by the name in a signature or a kernel, and knows its protocol alone. A family is imported
when it is asked for: a program of products loads nothing of attention.

:data:`PASSES` is the order in which programs become kernels of these families.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cklang.codec import decode, expect_fields, unknown, with_defaults
from cklang.errors import error
from cklang.keys import SCHEMA_VERSION, AnyKey, KernelSignature, Key

if TYPE_CHECKING:
    from cklang.families.protocol import Family
    from cklang.fusion.alternatives import Alternative
    from cklang.fusion.kernel import Maker
    from cklang.fusion.passes import Pass
    from cklang.fusion.plan import Plan
    from cklang.ir.nodes import Function

__all__ = [
    "FAMILIES",
    "PASSES",
    "AnyFamily",
    "add_family",
    "alternatives_of",
    "family_of",
    "key_from_json",
    "key_of",
    "makers_of",
    "passes_of",
    "plan_of",
    "stand_ins",
    "with_named",
]

AnyFamily: TypeAlias = "Family[Any, Any, Any, Any]"


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """Where a family is, and what must be known of it before it is imported."""

    instance: str
    """Its name in ``family.py`` of the family's folder, or in ``module``."""
    signature: str
    """The class of its signatures, in one of the families' folders."""
    algorithm: str = ""
    """The class of its algorithms; empty if it has none."""
    anchors: tuple[str, ...] = ()
    """The ops of the IR that it computes: those of its makers."""
    module: str = ""
    """Where a family without a folder of its own is: in that of another one."""


ROWS: Mapping[str, FamilyRow] = MappingProxyType(
    {
        "gemm": FamilyRow(
            "GEMM",
            "gemm.key.Signature",
            "gemm.key.Algorithm",
            anchors=(
                *("gemm", "contract", "gemm24", "scaled_gemm"),
                *("grouped_gemm", "scaled_grouped_gemm", "grouped_gemm_k"),
            ),
        ),
        "conv": FamilyRow(
            "CONV",
            "gemm.key.Signature",
            "gemm.key.Algorithm",
            anchors=("conv", "conv_grad_input", "conv_grad_weight"),
        ),
        "windows": FamilyRow(
            "WINDOWS",
            "windows.key.WindowSignature",
            "windows.key.WindowAlgorithm",
            anchors=("max_pool", "avg_pool"),
        ),
        "attention": FamilyRow(
            "ATTENTION",
            "attention.key.AttentionSignature",
            "attention.key.AttentionAlgorithm",
            anchors=("attention", "attention_lse"),
        ),
        "attention_backward": FamilyRow(
            "ATTENTION_BACKWARD",
            "attention_backward.key.AttentionGradSignature",
            "attention_backward.key.AttentionGradAlgorithm",
            anchors=("attention_dq", "attention_dk", "attention_dv", "attention_ds"),
        ),
        "rowwise": FamilyRow(
            "ROWWISE",
            "rowwise.key.RowwiseSignature",
            "rowwise.key.RowwiseAlgorithm",
            anchors=("rowwise",),
        ),
        "ck_rows": FamilyRow(
            "CK_ROWS",
            "ck_rows.key.CkTileRowsSignature",
            "ck_rows.key.CkTileRows",
        ),
        "scatter": FamilyRow(
            "SCATTER",
            "scatter.key.ScatterSignature",
            anchors=("scatter", "scatter_add"),
        ),
        "scan": FamilyRow("SCAN", "scan.key.ScanSignature", anchors=("cumsum", "cumprod")),
        "sort": FamilyRow("SORT", "sort.key.SortSignature", anchors=("sort", "argsort")),
        "moe_gate": FamilyRow(
            "MOE_GATE",
            "moe_gate.key.MoeGateSignature",
            anchors=("moe_weights", "moe_indices"),
        ),
        "group_ids": FamilyRow(
            "GROUP_IDS",
            "group_ids.key.GroupIdsSignature",
            anchors=("group_order", "group_ends"),
        ),
        "sample": FamilyRow("SAMPLE", "sample.key.SampleSignature", anchors=("sample",)),
        "layout_copy": FamilyRow("LAYOUT_COPY", "layout_copy.key.LayoutCopySignature"),
        "combine": FamilyRow(
            "COMBINE", "attention.helper_keys.CombineSignature", module="attention.helpers"
        ),
        "append": FamilyRow(
            "APPEND", "attention.helper_keys.AppendSignature", module="attention.helpers"
        ),
        "reduce": FamilyRow(
            "REDUCE", "attention.helper_keys.ReduceSignature", module="attention.helpers"
        ),
    }
)
"""The families by name. A new family is a line here."""


class PassRow(NamedTuple):
    """When a pass runs; what it does stands with its owner."""

    name: str
    owner: str = "fusion"
    """The family that contributes it, if it takes part in a program; ``fusion``: it is common."""
    makes: tuple[str, ...] = ()
    """The anchors that it puts into programs."""
    instead_of: str = ""
    """Runs only where somebody names an algorithm of its owner: a family whose kernels it makes
    kernels of the owner."""


PASSES: tuple[PassRow, ...] = (
    PassRow("picked", "gemm"),
    PassRow("log_sums", "gemm"),
    PassRow("stored_reads", "attention"),
    PassRow("stored_reads", "attention_backward"),
    PassRow("taken_first", "rowwise"),
    PassRow("placement"),
    PassRow("halves", "gemm"),
    PassRow("extremes", "rowwise"),
    PassRow("rows", "rowwise", makes=("rowwise",)),
    PassRow("pairs", "gemm"),
    PassRow("partition"),
    PassRow("scattering", "gemm"),
    PassRow("gating", "ck_rows", instead_of="rowwise"),
    PassRow("sliding", "windows", instead_of="conv"),
)
"""The passes of fusion in their order; a family with one of its own has a line here."""

_MOST_ALTERNATIVES = 6
"""How many of one program are planned."""


class _Families(Mapping[str, "AnyFamily"]):
    """The instances of the families, each imported at its first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, AnyFamily] = {}

    def __getitem__(self, name: str) -> AnyFamily:
        family = self._loaded.get(name)
        if family is None:
            row = ROWS[name]
            family = _named(f"{row.module or f'{name}.family'}.{row.instance}")
            self._loaded[name] = family
        return family

    def __contains__(self, name: object) -> bool:
        return name in ROWS or name in self._loaded  # imports nothing

    def add(self, family: AnyFamily) -> None:
        """See :func:`add_family`."""
        if family.name in ROWS:
            raise error("A143", name=family.name, known=", ".join(ROWS))
        self._loaded[family.name] = family

    def __iter__(self) -> Iterator[str]:
        return iter(ROWS)

    def __len__(self) -> int:
        return len(ROWS)


_FAMILIES = _Families()
FAMILIES: Mapping[str, AnyFamily] = _FAMILIES
"""The families by name."""


def add_family(family: AnyFamily) -> None:
    """Let the builder and stages know a family that is defined outside of cklang, in this process.

    Its kernels are built, cached and launched. A family that was added before under the same name
    is replaced. Programs do not use it: for that a family needs
    makers and a line in :data:`ROWS` (``docs/tutorials/kernel_family.py``).

    Raises:
        CkValueError: A143, a family of cklang has this name.
    """
    _FAMILIES.add(family)


def plan_of(function: Function) -> Plan:
    """Return the kernels of any families that compute a function, and the decisions."""
    from cklang.fusion.passes import fused

    return fused(function, makers_of(function), passes_of(function))


def passes_of(function: Function) -> tuple[Pass, ...]:
    """Return the passes that a program goes through, whatever algorithms somebody names."""
    from cklang.fusion.partition import COMMON
    from cklang.fusion.passes import Pass

    names = _families(function)
    return tuple(
        Pass(row.name, row.owner, FAMILIES[row.owner].fusion.passes[row.name])
        if row.owner in names
        else COMMON[row.name]
        for row in PASSES
        if row.owner in (*names, "fusion") and not row.instead_of
    )


def makers_of(function: Function) -> dict[str, Maker]:
    """Return the makers of the anchors in a program, and of those that passes put there."""
    names = _families(function)
    return {op: maker for name in names for op, maker in FAMILIES[name].fusion.makers.items()}


def _families(function: Function) -> tuple[str, ...]:
    """Return the families of the anchors in a program, and of those that passes put there."""
    ops = {operation.op for operation in function.body}
    ops.update(*(row.makes for row in PASSES))
    return tuple(name for name, row in ROWS.items() if ops.intersection(row.anchors))


def alternatives_of(function: Function, plan: Plan) -> tuple[Alternative, ...]:
    """Return the alternatives to the plan of a program, as its families know them."""
    families = (FAMILIES[name] for name in _families(function))
    options = (own for family in families for own in family.fusion.alternatives(function, plan))
    return tuple(dict.fromkeys(options))[:_MOST_ALTERNATIVES]


def with_named(plan: Plan, names: Collection[str]) -> Plan:
    """Return a plan with kernels of the families whose algorithms somebody named."""
    from cklang.fusion.passes import Draft

    draft = Draft(function=plan.function, makers={}, plan=plan)
    for row in PASSES:
        if row.instead_of and row.owner in names:
            draft = FAMILIES[row.owner].fusion.passes[row.name](draft)
    return draft.plan or plan


def stand_ins(name: str) -> Iterator[AnyFamily]:
    """Yield the families that compute kernels of a family where somebody names an algorithm."""
    yield from (FAMILIES[row.owner] for row in PASSES if row.instead_of == name)


def family_of(signature: KernelSignature) -> AnyFamily:
    """Return the family of a signature."""
    return FAMILIES[signature.family]


def key_of(signature: KernelSignature, algorithm: Any, gpu: str) -> AnyKey:
    """Return the key of the kernel that computes ``signature`` by ``algorithm`` on ``gpu``."""
    family = family_of(signature)
    if family.algorithm is not None and not isinstance(algorithm, family.algorithm):
        raise error("K022", want=family.algorithm_text, got=algorithm)
    return Key(signature, algorithm, gpu)


def key_from_json(data: Mapping[str, Any]) -> AnyKey:
    """Read the JSON form of a key of any family."""
    if data.get("version") != SCHEMA_VERSION:
        raise error("K003", what="kernel key", got=data.get("version"), want=SCHEMA_VERSION)
    expect_fields("kernel key", dict(data), _PARTS)
    name = data["family"]
    if name not in FAMILIES:
        raise unknown("kernel family", name, list(FAMILIES))
    signature_class, algorithm_class = _classes(name)
    signature = decode(signature_class, data["signature"], "signature")
    algorithm = None
    if algorithm_class is not None:
        algorithm = decode(algorithm_class, data["algorithm"], "algorithm")
    return Key(signature, algorithm, decode(str, data["arch"], "arch"))


def _classes(family: str) -> tuple[type[Any], type[Any] | None]:
    """Return the classes of a family's signatures and algorithms, without importing the family."""
    row = ROWS.get(family)
    if row is None:  # it was added
        return FAMILIES[family].signature, FAMILIES[family].algorithm
    return _named(row.signature), _named(row.algorithm) if row.algorithm else None


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"cklang.families.{module}"), name)


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
        usual = family.spelling.usual(complete["signature"])
        complete["signature"] = with_defaults(family.signature, usual)
    if family.algorithm is None:
        complete.setdefault("algorithm", None)
    elif isinstance(complete.get("algorithm"), dict):
        complete["algorithm"] = with_defaults(family.algorithm, complete["algorithm"])
    return complete
