# SPDX-License-Identifier: MIT
"""The family of attention."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from cklang.arch import ArchSpec
from cklang.codec import encode
from cklang.device.arrays import HOST, Array
from cklang.device.resources import Resources
from cklang.errors import CkUnsupportedError
from cklang.families.attention import long_head_rules, transposed_v_rules, trload_rules
from cklang.families.attention.copies import Placement, placements
from cklang.families.attention.cost import attention_estimate
from cklang.families.attention.folded_heads import fold_heads
from cklang.families.attention.fuse import MAKERS
from cklang.families.attention.helper_keys import combine_key
from cklang.families.attention.host import AttentionProblem, AttentionShim
from cklang.families.attention.index_arrays import HostLists, host_lists
from cklang.families.attention.key import AttentionAlgorithm, AttentionKey, AttentionSignature
from cklang.families.attention.lower import lower_attention
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import PARTS, TENSORS, AttentionCase
from cklang.families.attention.profiles import profile_algorithms, profile_kernels
from cklang.families.attention.ranking import (
    MIN_SPLIT_GAIN,
    AttentionCost,
    clamp_splits,
    split_counts,
    splits_without_model,
)
from cklang.families.attention.rules import RULES
from cklang.families.attention.space import GRID, narrowed
from cklang.families.attention.standalone import contents_of
from cklang.families.attention.stored_reads import with_stored_reads
from cklang.families.attention.synthetic import legal_lists, part_of
from cklang.families.protocol import Family, Launches, Operands, Planning, Sel
from cklang.families.records import AxisOrders, Spelling, Supply, Tuning, Variants
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion, on_program
from cklang.keys import AnyKey

_SCALARS = (
    *("seed", "offset", "min_seqlen_q", "starts_q", "starts_k", "lengths_k", "pages"),
    "page_starts",
)


def values_of(case: AttentionCase) -> tuple[str, ...]:
    """Return the values whose addresses a kernel takes, each once."""
    return tuple(dict.fromkeys([*case.values.values(), *case.reads]))


def request_of(case: AttentionCase, at: Mapping[str, int]) -> AttentionProblem:
    """Return what the host shim is asked of a problem, for the addresses of its values."""
    changed: dict[str, Any] = {
        name: at[value]
        if name in _SCALARS
        else replace(getattr(case.problem, name), pointer=at[value])
        for name, value in case.values.items()
        if name in (*TENSORS, *_SCALARS)
    }
    operands = zip(case.problem.operands, case.reads, strict=True)
    changed["operands"] = tuple(replace(operand, pointer=at[value]) for operand, value in operands)
    return replace(case.problem, **changed)


# Importing them fills the rule set.
_RULES_OF = (trload_rules, long_head_rules, transposed_v_rules)

_NAMES = ("values", "reads", "functions", "folded")
"""What a problem says of names and functions, whose digest stands in its signature, and of heads
that are rows, which its extents and strides say."""


_TRANSPOSED = "v          read as it lies, with its keys contiguous"
_WHY = "so that the elements of a head are contiguous"


def problem_facts(problem: AttentionCase) -> dict[str, Any]:
    """Return a forward problem as plain data, without the names of values."""
    facts: dict[str, Any] = encode(replace(problem, functions=()))  # type: ignore[arg-type]
    return {name: value for name, value in facts.items() if name not in _NAMES}


def _folded(case: AttentionCase) -> str:
    return f"the {case.folded} heads of each key head as rows of one"


def _variants(case: AttentionCase, splits: int | None) -> tuple[AttentionCase, ...]:
    """Return the problem with its keys in the numbers of splits that are worth comparing.

    Those with heads as rows follow, if heads can be.
    """
    if case.signature.split:
        return (case,)
    counts = split_counts(case) if splits is None else (splits,)
    folded = fold_heads(case)
    ways = (case,) if folded is None else (case, folded)
    return tuple(way if count == 1 else way.split(count) for way in ways for count in counts)


def _variant_words(case: AttentionCase) -> str:
    """Return in how many splits the keys are, and how many heads of a group are rows."""
    splits = case.problem.splits
    words = f"in {splits} splits" if splits > 1 else "in one"
    return words + (f" with {_folded(case)}" if case.folded > 1 else "")


def _clamped(case: AttentionCase, algorithm: AttentionAlgorithm) -> AttentionCase:
    """Return the problem with no more splits than there are tiles of keys."""
    splits = case.problem.splits
    count = clamp_splits(splits, case, algorithm)
    return case if count == splits else case.in_splits(count)


def _unmodelled(
    case: AttentionCase, algorithm: AttentionAlgorithm, spec: ArchSpec
) -> AttentionCase:
    """Return the problem in so many splits that the GPU is busy."""
    count = splits_without_model(case, spec, algorithm)
    return case.split(count) if count > 1 else case


def _profile(
    name: str, spec: ArchSpec, dtypes: Sequence[str] | None, heads: Sequence[int] | None
) -> Iterator[tuple[AnyKey, Functions]]:
    """Yield the kernels of a profile; those that combine, append and sum too."""
    for kernel in profile_kernels(name, spec, dtypes, heads):
        yield kernel.key, kernel.functions


class Attention(Family[FusedAttention, AttentionSignature, AttentionAlgorithm, AttentionCase]):
    """Attention forwards; its variants share the keys of a tile of queries among workgroups."""

    name = "attention"
    compile_seconds = 10.0
    signature = AttentionSignature
    algorithm = AttentionAlgorithm
    algorithm_text: ClassVar[str] = "a cklang.dispatch.AttentionAlgorithm for an attention"
    fusion = Fusion(makers=MAKERS, passes={"stored_reads": on_program(with_stored_reads)})
    rules: RuleSet = RULES
    grid = GRID
    supply = Supply(narrowed=lambda candidates, signature: narrowed(candidates, signature.dtype))
    variants = Variants(
        gain=MIN_SPLIT_GAIN,
        of=_variants,
        words=_variant_words,
        clamped=_clamped,
        unmodelled=_unmodelled,
        # What follows o is computed by the kernel that combines splits.
        functions=lambda case, functions: (
            functions.without("output") if case.signature.split else functions
        ),
        splits=lambda case: case.problem.splits,
    )
    orders = AxisOrders(
        matrices=lambda kernel: (kernel.q.value, kernel.k.value, kernel.v.value),
        # The elements of a head stay side by side; o alone has strides.
        can_write=lambda kernel, value, order: (
            value == kernel.o and order[-1] == value.type.rank - 1
        ),
    )
    tuning = Tuning(
        own_layouts=lambda kernel, layouts, _: placements(kernel, layouts)[0].placed.places,
        facts=problem_facts,
        part=part_of,
        lists=lambda kernel, case, sizes: legal_lists(kernel, case.problem, sizes),
    )
    spelling = Spelling(profile=_profile)

    def candidates(
        self, signature: AttentionSignature, spec: ArchSpec, preset: str
    ) -> tuple[AttentionAlgorithm, ...]:
        """Return the legal algorithms of a profile."""
        return profile_algorithms(preset, signature, spec)

    def cost(
        self, keys: Sequence[AttentionKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> AttentionCost:
        """Return the model of attention, which does not ask for built kernels."""
        return AttentionCost(keys, spec, attention_estimate)

    lower = staticmethod(lower_attention)

    def problem(
        self, kernel: FusedAttention, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> AttentionCase | None:
        """Return the attention of a kernel, not split; None if its results have no element."""
        case = placements(kernel, layouts)[0].case(dims)
        return None if case.is_empty else case

    def plan(self, kernel: FusedAttention, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launch of an attention, and of the kernel that combines its splits."""
        ways = placements(kernel, planning.layouts)
        if ways[0].case(planning.dims).is_empty:
            return
        if kernel.soft_cap:
            # A bundle may have no kernel of it: expressions fill those of any function.
            ways = tuple(form for way in ways for form in (way, way.as_written))
        way, selection = _selected(ways, planning)
        placed = way.placed
        constants = constants_of(kernel, planning)
        case = selection.problem
        stage = attention_stage(case, selection.key, selection.functions, constants)
        is_split = case.signature.split
        split_note = f"keys       in {case.problem.splits} splits" if is_split else ""
        notes = (
            _TRANSPOSED if way.transposed_v else "",
            f"heads      {_folded(case)}" if case.folded > 1 else "",
            split_note,
        )
        note = "\n  ".join(filter(None, notes))
        before = tuple(
            stage for copy in placed.before for stage in copy.stages(planning.spec, _WHY)
        )
        yield Launches(selection=selection, main=stage, before=before, note=note)
        if is_split:
            functions = case.functions.only("output")
            key = combine_key(
                planning.spec.name,
                case.signature.dtype_o,
                lse=case.signature.lse,
                output=bool(functions),
                functions=functions.digest,
            )
            reason = f"it combines {case.problem.splits} splits of the keys"
            combined = case.combined
            yield Launches(
                selection=planning.fixed(key, combined, functions, reason),
                main=attention_stage(combined, key, functions, constants),
                note=split_note,
            )

    def host_check(
        self,
        kernel: FusedAttention,
        arrays: Mapping[str, Array],
        dims: Mapping[str, int],
        place: str,
    ) -> HostLists | None:
        """Return the index arrays of a kernel that are in host memory."""
        return host_lists(kernel, arrays, dims) if place == HOST else None

    def algorithm_words(self, algorithm: AttentionAlgorithm) -> str:
        """Return an algorithm as one line of text."""
        a = algorithm
        tile, warps, warp_tile = ("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        words = f"tile {tile}, warps {warps}, warp tile {warp_tile}, {a.pipeline.value}"
        return f"{words}, vectors of {a.vector}"

    def candidate_words(self, algorithm: AttentionAlgorithm) -> str:
        """Return tile, pipeline and pads."""
        a = algorithm
        pads = "".join("t" if pad else "f" for pad in (a.pad_q, a.pad_k, a.pad_d, a.pad_dv))
        return f"{'x'.join(map(str, a.tile))} {a.pipeline.value} {pads}"

    def operands(self, problem: AttentionCase, key: AttentionKey, functions: Functions) -> Operands:
        """Return tensors of small numbers, whole sequences, the first page."""
        stage = attention_stage(problem, key, functions, {})
        return Operands(contents=contents_of(problem), stages=(stage,))


def _selected(ways: Sequence[Placement], planning: Planning[Sel]) -> tuple[Placement, Sel]:
    """Return the first way that a kernel serves, and that kernel."""
    for way in ways[:-1]:
        case = way.case(planning.dims)
        try:
            return way, planning.select(case, case.functions)
        except CkUnsupportedError:
            continue
    case = ways[-1].case(planning.dims)
    return ways[-1], planning.select(case, case.functions)


def attention_stage(
    case: AttentionCase, key: AnyKey, functions: Functions, constants: Mapping[str, int]
) -> Stage:
    """Return the launch of a kernel for ``case``.

    ``key`` is a kernel of attention, or one that combines splits.
    """
    values = values_of(case)
    used = {name: number for name, number in constants.items() if name in values}
    splits = key.family == "attention" and case.signature.split
    written = (*PARTS, "random") if splits else ("o", "lse", "random")
    return Stage(
        key=key,
        functions=functions,
        problem=case,
        shim=AttentionShim,
        values=values,
        written=frozenset(case.values[name] for name in written if name in case.values),
        request=partial(_request, case, values),
        temporaries=case.part_bytes,
        constants=used,
    )


def _request(
    case: AttentionCase, values: Sequence[str], addresses: Sequence[int]
) -> AttentionProblem:
    return request_of(case, dict(zip(values, addresses, strict=False)))


def constants_of(kernel: FusedAttention, planning: Planning[Any]) -> dict[str, int]:
    """Return the values that are numbers: constants, and a zero for each tensor without element."""
    numbers = dict(kernel.constants)
    for value in kernel.reads:
        if 0 in planning.layouts[value.name].shape:
            numbers[value.name] = 0
    return numbers


ATTENTION = Attention()
