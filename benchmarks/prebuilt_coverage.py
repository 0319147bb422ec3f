# SPDX-License-Identifier: MIT
"""For how many calls the stencils that are compiled before anybody asks are enough.

``python benchmarks/prebuilt_coverage.py gfx942`` plans calls of a grid of extents, f16 and the
GPU's 8-bit float, and prints for each op the share whose kernels all have their stencil among the
essential ones (``cklang warm``): such a call compiles its functions and nothing else. ``--pick N``
prints the N calls of the grid that would serve most others besides, for
``cklang/prebuilding/essentials.py``. Nothing is built.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import cklang as ck
from cklang.arch import ArchSpec, arch
from cklang.prebuilding import essentials
from cklang.prebuilding.essentials import FP8, EssentialCall, essential_calls

_WIDTHS = (256, 512, 768, 1024, 2048, 3072, 4096, 8192)
_HEIGHTS = (1, 8, 16, 64, 200, 256, 384, 512, 1024, 2048, 4096)
_PRODUCTS = {"M": _HEIGHTS, "N": _WIDTHS, "K": _WIDTHS}
_ROWS = {"M": (1, 64, 200, 1024, 4096), "K": (64, 256, 512, 768, 1024, 2048, 3072, 4096, 8192)}
_IMAGES = {"B": (1, 2, 8), "S": (7, 8, 14, 28, 32, 56), "C": _WIDTHS[:2], "E": (64, 128, 256, 512)}
_HEADS = {"B": (1, 4), "H": (8, 32), "S": (1, 77, 128, 256, 1024, 4096), "D": (64, 128)}

GRIDS: Mapping[ck.Op, Mapping[str, Sequence[int]]] = {
    essentials.linear: _PRODUCTS,
    essentials.linear_gelu: _PRODUCTS,
    essentials.linear_of_8_bits: _PRODUCTS,
    essentials.convolution: {**_IMAGES, "C": (64, 128, 256, 512)},
    essentials.causal_attention: _HEADS,
    essentials.full_attention: _HEADS,
    essentials.biased_attention: _HEADS,
    essentials.biased_causal_attention: _HEADS,
    essentials.normalised: _ROWS,
    essentials.layer_normalised: _ROWS,
    essentials.probabilities: _ROWS,
    essentials.activated: _ROWS,
    essentials.transposed: _ROWS,
    essentials.summed: _ROWS,
}

Stencils = frozenset[str]


def grid_calls(op: ck.Op, spec: ArchSpec) -> Iterator[EssentialCall]:
    """Yield the calls of an op's grid; none of 8-bit floats where the GPU has no such products."""
    if op is essentials.linear_of_8_bits:
        names = {"F8": FP8[spec.fp8]} if spec.fp8 in FP8 else None
    else:
        names = {"X": ck.f16}
    grid = GRIDS[op]
    for extents in product(*grid.values()) if names is not None else ():
        some = dict(zip(grid, extents, strict=True))
        if op is essentials.convolution:
            some["W"] = some["S"]
        yield EssentialCall(op=op, names={**some, **(names or {})})


def stencils_of(call: EssentialCall, gpu: str) -> Stencils:
    """Return the stencils of the kernels that a call takes."""
    kernels = call.op.kernels(**call.arguments(), device=f"emu:{gpu}")
    return frozenset(key.stencil.digest for key, _ in kernels)


def picked(
    wanted: Mapping[str, Stencils], known: Stencils, count: int
) -> Iterator[tuple[str, float]]:
    """Yield the calls that serve most others together with ``known``, and the share served then."""
    have = set(known)
    for _ in range(count):
        left = Counter(stencils - have for stencils in wanted.values())
        gain = {name: left[stencils - have] for name, stencils in wanted.items() if stencils - have}
        if not gain:
            return
        best = max(gain, key=gain.__getitem__)
        have |= wanted[best]
        yield best, share(wanted.values(), have)


def share(wanted: Iterable[Stencils], have: Iterable[str]) -> float:
    """Return the part of calls all of whose stencils are there."""
    there = frozenset(have)
    answers = [stencils <= there for stencils in wanted]
    return sum(answers) / len(answers)


def main(gpu: str, count: int) -> None:
    """Print a line for each op, and the calls that would serve most others."""
    known: Stencils = frozenset().union(
        *(stencils_of(call, gpu) for call in essential_calls(arch(gpu)))
    )
    print(f"{gpu}: {len(known)} essential stencils")
    for op in GRIDS:
        wanted = {
            " ".join(f"{name}={value}" for name, value in call.names.items()): stencils_of(
                call, gpu
            )
            for call in grid_calls(op, arch(gpu))
        }
        if not wanted:
            continue
        served = share(wanted.values(), known)
        print(f"{op.program.name}: {served:.0%} of {len(wanted)} calls", flush=True)
        for name, then in picked(wanted, known, count):
            print(f"  with {name}: {then:.0%}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    pick = arguments.index("--pick") if "--pick" in arguments else len(arguments)
    number = int(arguments[pick + 1]) if pick < len(arguments) else 0
    for each in arguments[:pick] or ["gfx942"]:
        main(each, number)
