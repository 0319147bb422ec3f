# SPDX-License-Identifier: MIT
"""Kernels that transpose in this process: loaded on a device, asked how to launch for a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cklang.build.record import Artifact
from cklang.device.device import Device, Function
from cklang.device.module_cache import resident
from cklang.errors import error
from cklang.families.gemm.launch import Prepared, mark, words_of
from cklang.families.layout_copy.lower import TransposeFace
from cklang.families.layout_copy.plan import Transposition

__all__ = ["LoadedTranspose", "loaded_transpose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTranspose:
    """A kernel on a device, and its host face."""

    artifact: Artifact
    function: Function
    face: TransposeFace

    def prepare(self, copy: Transposition) -> Prepared:
        """Ask how to launch it for ``copy``.

        Raises:
            CkUnsupportedError: D007, the kernel's own check refuses the copy.
        """
        question = copy.question
        marks = [mark(0), mark(1)]
        shape = self.face.describe(
            replace(
                question,
                source=replace(question.source, pointer=marks[0]),
                target=replace(question.target, pointer=marks[1]),
            )
        )
        label = self.artifact.key.label
        if isinstance(shape, str):
            raise error("D007", label=label, problem=copy, verdict=shape)
        return Prepared(
            grid=shape.grid,
            block=shape.block,
            kernarg=shape.kernarg,
            pointers=tuple(
                words_of(shape.kernarg, each, label, place) for place, each in enumerate(marks)
            ),
            workspace=(),
            workspace_bytes=0,
            zeroed_bytes=0,
        )


def loaded_transpose(device: Device, artifact: Artifact) -> LoadedTranspose:
    """Return a kernel loaded on ``device``; each is loaded once a process."""
    kernel = resident(device, artifact, TransposeFace)
    return LoadedTranspose(artifact=artifact, function=kernel.function, face=kernel.face)
