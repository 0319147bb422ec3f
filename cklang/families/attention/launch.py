# SPDX-License-Identifier: MIT
"""Attention kernels in this process: loaded on a device, asked how to launch for a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cklang.build.record import Artifact
from cklang.device.device import Device, Function
from cklang.device.module_cache import resident
from cklang.errors import error
from cklang.families.attention.host import AttentionFace, AttentionProblem
from cklang.families.attention.problem import TENSORS, AttentionCase
from cklang.families.gemm.launch import mark, words_of

__all__ = ["AttentionLaunch", "LoadedAttention", "loaded_attention"]

_SCALARS = (
    *("seed", "offset", "min_seqlen_q", "starts_q", "starts_k", "lengths_k", "pages"),
    "page_starts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLaunch:
    """How to launch a kernel for one problem."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    kernarg: bytes
    pointers: Mapping[str, tuple[int, ...]]
    """For each value: the 64-bit words of ``kernarg`` that hold its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAttention:
    """A kernel on a device, and its host face."""

    artifact: Artifact
    function: Function
    face: AttentionFace

    def prepare(self, case: AttentionCase) -> AttentionLaunch:
        """Ask how to launch it for ``case``.

        Raises:
            CkUnsupportedError: D007, the kernel's own check refuses the problem.
            CkInternalError: D008, a tensor's address is in no argument.
        """
        marks = {value: mark(place) for place, value in enumerate(_values(case))}
        shape = self.face.describe(_marked(case, marks))
        label = self.artifact.key.label
        if isinstance(shape, str):
            raise error("D007", label=label, problem=case, verdict=shape)
        return AttentionLaunch(
            grid=shape.grid,
            block=shape.block,
            kernarg=shape.kernarg,
            pointers={
                value: words_of(shape.kernarg, found, label, place)
                for place, (value, found) in enumerate(marks.items())
            },
        )


def _values(case: AttentionCase) -> list[str]:
    return list(dict.fromkeys([*case.values.values(), *case.reads]))


def _marked(case: AttentionCase, marks: Mapping[str, int]) -> AttentionProblem:
    """Return the problem with a mark for each address."""
    changed: dict[str, Any] = {
        name: marks[value]
        if name in _SCALARS
        else replace(getattr(case.problem, name), pointer=marks[value])
        for name, value in case.values.items()
        if name in (*TENSORS, *_SCALARS)
    }
    operands = zip(case.problem.operands, case.reads, strict=True)
    changed["operands"] = tuple(
        replace(operand, pointer=marks[value]) for operand, value in operands
    )
    return replace(case.problem, **changed)


def loaded_attention(device: Device, artifact: Artifact) -> LoadedAttention:
    """Return a kernel loaded on ``device``; each is loaded once a process."""
    kernel = resident(device, artifact, AttentionFace)
    return LoadedAttention(artifact=artifact, function=kernel.function, face=kernel.face)
