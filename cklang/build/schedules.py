# SPDX-License-Identifier: MIT
"""In which orders the compiler may put the instructions of a kernel.

CK Tile asks for an order: scheduling barriers in its main loops keep loads, LDS accesses and matrix
instructions interleaved as its authors timed them. Where a tile nearly fills the registers of a
lane, the compiler can keep that order only by spilling, and a spill in the main loop costs more
than the order gains (docs/benchmarks.md, *Spills and masked loads*). So a kernel that spills is
scheduled again, more freely.

The pipeline *mem* asks for no order. Its loads are masked, and clang 22 leaves each mask behind its
load, so that each load is waited for before the next one is issued. clang 20 issues them together
by itself, clang 22 where it is told to overlap instructions (``benchmarks/schedules.py``).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A way to order the instructions of a kernel."""

    name: str
    """As it stands in ``explain``: the kernel is scheduled ...

    Kernels are found in the cache by these names: other flags need another name.
    """
    keeps_barriers: bool
    """Whether CK Tile's scheduling barriers hold."""
    why: str = ""
    """What ``explain`` says after the name."""
    flags: tuple[str, ...] = ()
    """What the compiler is told beside what it is always told."""
    spills_scalars: bool = True
    """Whether it may spill scalar registers, into lanes of vector registers."""


_SPILLS = ", with which it spills more"
_FEW_REGISTERS = "-amdgpu-sched-strategy=iterative-minreg"
_MANY_WAVES = ("-mllvm", "-amdgpu-sched-strategy=iterative-maxocc")

SCHEDULES: tuple[Schedule, ...] = (
    Schedule(name="as CK Tile asks", keeps_barriers=True),
    Schedule(name="without CK Tile's scheduling barriers", keeps_barriers=False, why=_SPILLS),
    Schedule(name="without CK Tile's scheduling barriers, for few registers", keeps_barriers=False,
             why=_SPILLS, flags=("-mllvm", _FEW_REGISTERS)),
    Schedule(name="without CK Tile's scheduling barriers, for many waves", keeps_barriers=False,
             why=_SPILLS, flags=_MANY_WAVES),
    # An address for each access, instead of variables of the loop that hold sums of others.
    Schedule(name="without CK Tile's scheduling barriers, for many waves, with few loop variables",
             keeps_barriers=False, why=_SPILLS, flags=(*_MANY_WAVES, "-mllvm", "-disable-lsr")),
)  # fmt: skip
"""What is tried in order until nothing spills; else the one with the fewest spills is taken."""

MOST_CURED = 1024
"""Registers that a kernel may spill in one order for others to be tried: beyond, each takes up to a
minute and cures nothing."""

OVERLAPPED = Schedule(
    name="for instruction-level parallelism",
    keeps_barriers=True,
    why=", so that masked loads are waited for together",
    flags=("-mllvm", "-amdgpu-sched-strategy=max-ilp"),
    spills_scalars=False,
)

INLINED = Schedule(
    name="for few registers",
    keeps_barriers=True,
    why=", so that its long epilogue can be inlined",
    flags=(
        *("-mllvm", "-inline-threshold=1000000", "-mllvm", _FEW_REGISTERS),
        # Calls in a loop have a threshold of their own.
        *("-mllvm", "-locally-hot-callsite-threshold=1000000"),
    ),
)
"""What is tried alone where the compiler finds a function too long to inline, the epilogue of tiles
with hundreds of elements a lane: in other orders it takes minutes to find registers for them."""


def schedules(*, overlapped: bool) -> tuple[Schedule, ...]:
    """Return what is tried in order, for kernels whose instructions shall overlap or not.

    Example:
        >>> schedules(overlapped=True)[0].name
        'for instruction-level parallelism'
    """
    return (OVERLAPPED, *SCHEDULES) if overlapped else SCHEDULES


_BARRIER = re.compile(r"^.*call void @llvm\.amdgcn\.sched\.(?:group\.)?barrier\(.*\n", re.MULTILINE)


def without_barriers(ir: str) -> str:
    r"""Return LLVM IR as text without its scheduling barriers, which compute nothing.

    Example:
        >>> without_barriers("  tail call void @llvm.amdgcn.sched.barrier(i32 0)\n  ret void\n")
        '  ret void\n'
    """
    return _BARRIER.sub("", ir)
