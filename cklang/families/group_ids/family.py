# SPDX-License-Identifier: MIT
"""The family of ids in the order of their groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklang.families.closed_source import closed_source, flag
from cklang.families.group_ids.fuse import MAKERS, FusedGroupIds
from cklang.families.group_ids.key import GroupIdsKey, GroupIdsSignature
from cklang.families.lines import LinesRequest, LinesShim, LineTensor, optional_operands
from cklang.families.protocol import HelperFamily
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.ir.nodes import Value
from cklang.lowering.source import KernelSource
from cklang.types import extents_of

_THREADS = 256


def lower_group_ids(key: GroupIdsKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that puts places of ids into the order of their groups."""
    s = key.signature
    return closed_source(
        key,
        "group_ids.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        ids=s.ids.ck,
        order=flag(s.order),
        ends=flag(s.ends),
    )


_WORD = 4
"""Bytes of an index that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIdsProblem:
    """Ids, and how many groups they are of."""

    signature: GroupIdsSignature
    ids: int
    groups: int
    steps: tuple[int, int, int]
    """From one id, one place and one end to the next, in elements."""

    @property
    def bytes(self) -> int:
        """What the kernel moves: ids are read once, if caches hold them."""
        s = self.signature
        written = self.ids * s.order + self.groups * s.ends
        return self.ids * s.ids.bytes + _WORD * written

    def __str__(self) -> str:
        return f"{self.ids} ids of {self.groups} groups"


class _GroupIdsFamily(HelperFamily[FusedGroupIds, GroupIdsSignature, GroupIdsProblem]):
    """Ids in the order of their groups."""

    fusion = Fusion(makers=MAKERS)
    why = "the one kernel that groups ids"

    def problem(
        self, kernel: FusedGroupIds, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> GroupIdsProblem | None:
        """Return the problem of a kernel; None if its results have no element.

        Raises:
            CkValueError: A045, two elements of a result are one in memory.
        """
        stored, (axis,) = layouts[kernel.ids.value.name], kernel.ids.axes
        for result in kernel.results:
            refuse_overlap(layouts[result.name])
        (groups,) = extents_of((kernel.count,), dims)
        count = 1 if axis is None else stored.shape[axis]
        if kernel.order is not None:
            (count,) = layouts[kernel.order.name].shape
        if not (count if kernel.ends is None else count + groups):
            return None

        def step(value: Value | None) -> int:
            return 0 if value is None else layouts[value.name].strides[0]

        return GroupIdsProblem(
            signature=GroupIdsSignature(
                ids=stored.dtype, order=kernel.order is not None, ends=kernel.ends is not None
            ),
            ids=count,
            groups=groups,
            steps=(
                0 if axis is None else stored.strides[axis],
                step(kernel.order),
                step(kernel.ends),
            ),
        )

    def stage(self, kernel: FusedGroupIds, problem: GroupIdsProblem, key: GroupIdsKey) -> Stage:
        """Return the launch of a kernel."""
        values = (kernel.ids.value, kernel.order, kernel.ends)
        names, addresses = optional_operands(values)

        def request(at: Sequence[int]) -> LinesRequest:
            tensors = tuple(
                LineTensor(pointer=address, outer=(step,), inner=(step,))
                for address, step in zip(addresses(at), problem.steps, strict=True)
            )
            # One workgroup more is for ids of no group. A grid has an element at least.
            return LinesRequest(
                outer=(problem.groups + 1,),
                inner=(max(problem.ids, 1),),
                tensors=tensors,
                extent=problem.groups,
                step=problem.ids,
            )

        return Stage(
            key=key,
            problem=problem,
            shim=LinesShim,
            values=names,
            written=frozenset(value.name for value in kernel.results),
            request=request,
        )


GROUP_IDS = _GroupIdsFamily("group_ids", GroupIdsSignature, lower_group_ids)
