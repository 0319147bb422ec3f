# SPDX-License-Identifier: MIT
"""Built kernels in this process: loaded on a device, asked through their host face how to launch.

Only the host face knows how a kernel's arguments are laid out. Where it puts addresses is found
by giving it marks that no argument is likely to hold.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cklang.build.record import Artifact
from cklang.device.device import Device, Function
from cklang.device.host_shim import LaunchShape
from cklang.device.module_cache import Resident, resident
from cklang.errors import error
from cklang.families.conv.host import ConvFace, ConvQuestion
from cklang.families.conv.problem import AnyProblem, ConvProblem
from cklang.families.gemm.host import GemmOperand, GemmProblem, HostFace
from cklang.families.gemm.problem import ComputedMatrix, Matrix, Problem, ReadAccess, ScaleAccess
from cklang.ir.windows import Role

__all__ = ["Loaded", "Prepared", "loaded", "mark", "words_of"]

_WORD = 8
# Multiples of a page far above any address that a process has, and with no bit pattern of a size.
_MARK, _MARK_STEP = 0x5EED_C0DE_0000_0000, 0x0000_0001_0000_1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How to launch a kernel for one problem."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    kernarg: bytes
    pointers: tuple[tuple[int, ...], ...]
    """For each input of the problem: the 64-bit words of ``kernarg`` that hold its address."""
    workspace: tuple[int, ...]
    """The same for the workspace; empty if it needs none."""
    workspace_bytes: int
    zeroed_bytes: int
    """How many bytes of the workspace, from the first on, must be 0 before each launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A kernel on a device, and its host face."""

    artifact: Artifact
    function: Function
    face: HostFace | ConvFace
    blocks: int
    """Workgroups of it that the device runs at once."""

    def prepare(self, problem: AnyProblem) -> Prepared:
        """Ask how to launch it for ``problem``.

        Raises:
            CkUnsupportedError: D007, CK Tile's own check or ours refuses the problem.
            CkInternalError: D008, an operand's address is in no argument.
        """
        *marks, own = [mark(i) for i in range(1 + len(problem.inputs))]
        split_k = self.artifact.gemm.algorithm.split_k
        question: GemmProblem | ConvQuestion
        if isinstance(problem, ConvProblem):
            question = replace(_conv_question(problem, marks), split_k=split_k)
        else:
            question = replace(_question(problem, marks), k_batch=split_k)
        shape = self._asked(problem, replace(question, workspace=own, blocks=self.blocks))
        return self._launch(shape, marks, own)

    def row(self, problem: Problem, first_tile: int) -> Prepared:
        """Return the row of ``problem`` in the table of a grouped kernel.

        Args:
            problem: One product of the group.
            first_tile: How many tiles the rows before it have.

        Raises:
            CkUnsupportedError: D007, the problem is refused.
        """
        marks = [mark(i) for i in range(len(problem.inputs))]
        question = replace(_question(problem, marks), first_tile=first_tile)
        return self._launch(self._asked(problem, question), marks)

    def table(self, problem: Problem, count: int, tiles: int) -> Prepared:
        """Return the launch of a grouped kernel, whose one pointer is to its table.

        ``problem`` is any of its products; rows and tiles are counted by ``count`` and ``tiles``.
        """
        *marks, own = [mark(i) for i in range(1 + len(problem.inputs))]
        question = replace(
            _question(problem, marks),
            blocks=self.blocks,
            groups=own,
            group_count=count,
            first_tile=tiles,
        )
        return self._launch(self._asked(problem, question), [own])

    def _asked(self, problem: AnyProblem, question: GemmProblem | ConvQuestion) -> LaunchShape:
        # The face is that of the key's family, as the problem and its question are.
        shape = self.face.describe(question)  # type: ignore[arg-type]
        if isinstance(shape, str):
            label = self.artifact.key.label
            raise error("D007", label=label, problem=problem, verdict=shape)
        return shape

    def _launch(self, shape: LaunchShape, marks: list[int], own: int = 0) -> Prepared:
        """Return a launch with the places of its pointers; ``own`` marks that of its workspace."""
        return Prepared(
            grid=shape.grid,
            block=shape.block,
            kernarg=shape.kernarg,
            pointers=tuple(self._words(shape, index, mark) for index, mark in enumerate(marks)),
            workspace=self._words(shape, len(marks), own) if shape.workspace_bytes else (),
            workspace_bytes=shape.workspace_bytes,
            zeroed_bytes=shape.zeroed_bytes,
        )

    def _words(self, shape: LaunchShape, index: int, mark: int) -> tuple[int, ...]:
        return words_of(shape.kernarg, mark, self.artifact.key.label, index)


def mark(index: int) -> int:
    """Return a number that stands for address ``index`` in a question to a host face."""
    return _MARK + index * _MARK_STEP


def words_of(kernarg: bytes, mark: int, label: str, index: int) -> tuple[int, ...]:
    """Return the 64-bit words of a kernel's arguments that hold ``mark``.

    Raises:
        CkInternalError: D008, none does.
    """
    text = struct.pack("<Q", mark)
    places = range(0, len(kernarg) - _WORD + 1, _WORD)
    found = tuple(at // _WORD for at in places if kernarg[at : at + _WORD] == text)
    if not found:
        raise error("D008", label=label, index=index)
    return found


def _question(problem: Problem, marks: list[int]) -> GemmProblem:
    rest = iter(marks)
    a, b, e = _side(problem.a, rest), _side(problem.b, rest), _matrix(problem.e, next(rest))
    d = tuple(_read(each, next(rest)) for each in problem.d)
    return GemmProblem(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        a=(*a, *_scale(problem.scale_a, rest)),
        b=(*b, *_scale(problem.scale_b, rest)),
        e=e,
        batch=problem.batch,
        d=d,
    )


def _side(side: Matrix | ComputedMatrix, pointers: Iterator[int]) -> tuple[GemmOperand, ...]:
    if isinstance(side, Matrix):
        return (_matrix(side, next(pointers)),)
    return tuple(_read(read, next(pointers)) for read in side.reads)


def _conv_question(problem: ConvProblem, marks: list[int]) -> ConvQuestion:
    p = problem
    a, b, e, *ds = marks
    return ConvQuestion(
        n=p.images,
        g=p.groups,
        k=p.features,
        c=p.channels,
        in_=p.input,
        out=p.output,
        window=p.window,
        stride=p.stride,
        dilation=p.dilation,
        pad_before=p.before,
        pad_after=p.after,
        a=a,
        b=b,
        e=e,
        input_strides=p.tensors[Role.INPUT].strides,
        weight_strides=p.tensors[Role.WEIGHT].strides,
        output_strides=p.tensors[Role.OUTPUT].strides,
        d=tuple(ds),
        d_strides=tuple(d.strides for d in p.d),
    )


def _matrix(matrix: Matrix, pointer: int) -> GemmOperand:
    return GemmOperand(pointer=pointer, outer=matrix.stride, inner=1, batch=matrix.batch)


def _read(read: ReadAccess, pointer: int) -> GemmOperand:
    return GemmOperand(pointer=pointer, outer=read.stride_m, inner=read.stride_n, batch=read.batch)


def _scale(scale: ScaleAccess | None, pointers: Iterator[int]) -> Iterator[GemmOperand]:
    if scale is not None:
        yield GemmOperand(
            pointer=next(pointers), outer=scale.stride, inner=scale.stride_k, batch=scale.batch
        )


def loaded(device: Device, artifact: Artifact) -> Loaded:
    """Return a kernel loaded on ``device``; each is loaded once a process."""
    kernel: Resident[HostFace] | Resident[ConvFace]
    if artifact.gemm.signature.spatial:
        kernel = resident(device, artifact, ConvFace)
    else:
        kernel = resident(device, artifact, HostFace)
    return Loaded(
        artifact=artifact,
        function=kernel.function,
        face=kernel.face,
        blocks=device.spec.compute_units * artifact.gemm.algorithm.block_per_cu,
    )
