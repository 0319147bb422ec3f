# SPDX-License-Identifier: MIT
"""Where compile time goes: each build step, beside upstream's own unit for one kernel.

    python benchmarks/compile_time.py [--rows | --fills | --parts]

Everything is compiled by the same clang with the same HIP headers, in one run on this machine.
Wall seconds and processor seconds are both printed: on a busy machine compare the latter.
``--rows`` measures kernels of rows alone: RMSNorm, LayerNorm and softmax of 4096 x 4096 in f16.
``--fills`` compiles the product's epilogue eight times with branches and without in turn
(:func:`cklang.build.steps.fill_flags`) and prints medians of processor seconds, with the range.
``--parts`` takes fills of a product, of softmax and of attention apart: processor milliseconds of
each process, the least of five runs; what its kernel's process does (``-ftime-report``); and the
instructions of the kernel.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import attention_compile_time
import upstream_unit

import cklang as ck
from cklang import emulator
from cklang.build.builder import Wanted, shared_builder, source_of
from cklang.build.steps import compile_headers, compile_host, compile_stencil, fill_flags, link_fill
from cklang.families.gemm.key import DKind, DOperand, GemmKey, Layout, Signature
from cklang.families.gemm.lower import lower
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.prebuilding.essentials import EssentialCall, layer_normalised, normalised, probabilities
from cklang.selection.rules import candidates
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from cklang.types import f16, f32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cklang.lowering.source import KernelSource

ARCH = "gfx942"

EPILOGUE = Functions(
    epilogue=parse_function("""
func @epilogue(%acc: f32[], %d0: f32[], %d1: f32[]) -> f32[] {
  %0: f32[] = add(%acc, %d0)
  %1: f32[] = gelu(%0)
  %2: f32[] = add(%1, %d1)
  return %2
}
""")
)


def _key() -> GemmKey:
    signature = Signature(
        dtype_a=f16,
        dtype_b=f16,
        dtype_acc=f32,
        dtype_e=f16,
        layout_a=Layout.ROW,
        layout_b=Layout.COL,
        d=(DOperand(dtype=f16, kind=DKind.ROW), DOperand(dtype=f16, kind=DKind.FULL)),
        functions=EPILOGUE.digest,
    )
    return GemmKey(signature, candidates(signature, ARCH)[0], ARCH)


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Run ``step``; return wall seconds and the processor seconds of its child processes."""
    before, start = os.times(), time.perf_counter()
    step()
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def compare_fills() -> None:
    """Print what a new epilogue takes with branches and without."""
    toolchain, source = find_toolchain(), lower(_key(), EPILOGUE)
    stencil = shared_builder().stencil_files((_key(), EPILOGUE)).bitcode

    def fill(folder: str) -> None:
        link_fill(stencil, source.fill, ARCH, Path(folder), toolchain)

    ways = {"with branches": lambda text: (), "without": fill_flags}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(8):
        for way, flags in ways.items():
            with (
                tempfile.TemporaryDirectory() as folder,
                mock.patch("cklang.build.steps.fill_flags", flags),
            ):
                spent[way].append(timed(partial(fill, folder))[1])
    for way, seconds in spent.items():
        middle = statistics.median(seconds)
        print(f"{way:16}{middle:6.2f} ({min(seconds):.2f}-{max(seconds):.2f})")


def fills_in_parts() -> None:
    """Print where the time of some fills goes."""
    call = EssentialCall(op=probabilities, names={"M": 4096, "K": 4096, "X": ck.f16})
    (softmax,) = probabilities.kernels(**call.arguments(), device=f"emu:{ARCH}")
    attended = Functions(score=attention_compile_time.SCORE, mask=attention_compile_time.MASK)
    cases: dict[str, Wanted] = {
        "product": (_key(), EPILOGUE),
        "softmax": softmax,
        "attention, 128": (attention_compile_time.key(128), attended),
    }
    names = ("functions", "kernel", "linker")
    print("| fill | instructions | " + " | ".join(names) + " | of the kernel's |")
    print("|---|---|---|---|---|---|")
    for what, wanted in cases.items():
        stencil = shared_builder().stencil_files(wanted).bitcode
        with tempfile.TemporaryDirectory() as name:
            filled = link_fill(stencil, source_of(*wanted).fill, ARCH, Path(name), find_toolchain())
            code = emulator.disassemble(ARCH, filled.file.read_bytes())
            log = filled.log.read_text("utf-8")
            commands = [line[2:].split() for line in log.splitlines() if line.startswith("$ ")]
            times = [f"{1000 * min(map(processor, [command] * 5)):.0f}" for command in commands]
            shares = ", ".join(f"{part}: {share} %" for part, share in reported(commands[1]))
        count = len(re.findall(r"^ *[0-9a-f]+: (?!s_nop)", code, re.MULTILINE))
        print(f"| {what} | {count:,} | {' | '.join(times)} | {shares} |", flush=True)


def processor(command: Sequence[str]) -> float:
    """Run a command; return its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reported(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a clang's time by its own report, with their shares in percent."""
    said = subprocess.run([*command, "-ftime-report"], capture_output=True, text=True, check=True)
    report = said.stderr[said.stderr.rindex("Clang time report") :]
    for line in report.splitlines():
        # User, system, both, wall: the third.
        found = re.findall(r"\( *([\d.]+)%\)", line)
        part = line.rpartition(")")[2].strip()
        if len(found) == len(("user", "system", "both", "wall")) and part != "Total":
            yield part.lower(), f"{float(found[2]):.0f}"


def row_steps(folder: Path, precompiled: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what compiles the stencil of each kernel of rows, and what fills it."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    for op in (normalised, layer_normalised, probabilities):
        call = EssentialCall(op=op, names={"M": 4096, "K": 4096, "X": ck.f16})
        ((key, functions),) = op.kernels(**call.arguments(), device=f"emu:{ARCH}")
        source = source_of(key, functions)
        place = folder / op.program.name
        place.mkdir()

        def stencil(source: KernelSource = source, place: Path = place) -> None:
            compile_stencil(
                source.stencil,
                ARCH,
                place,
                toolchain,
                tree,
                precompiled=precompiled,
            )

        def fill(source: KernelSource = source, place: Path = place) -> None:
            link_fill(place / "stencil.bc", source.fill, ARCH, place, toolchain)

        yield f"stencil of {op.program.name}", stencil
        yield "its functions", fill


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", action="store_true", help="kernels of rows alone")
    parser.add_argument("--fills", action="store_true", help="an epilogue in two ways")
    parser.add_argument("--parts", action="store_true", help="where the time of fills goes")
    asked = parser.parse_args()
    if asked.parts:
        fills_in_parts()
        return
    if asked.fills:
        compare_fills()
        return
    print(f"{'what':34}{'wall s':>9}{'cpu s':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not asked.rows:
            measure_products(folder)
        place = folder / "rows"
        place.mkdir()
        compile_headers(ARCH, place, find_toolchain(), find_ck_tree())
        for label, step in row_steps(folder, place / "headers.pch"):
            show(label, step)


def show(label: str, step: Callable[[], object]) -> None:
    """Print the row of a step."""
    wall, used = timed(step)
    print(f"{label:34}{wall:9.2f}{used:9.2f}", flush=True)


def measure_products(folder: Path) -> None:
    """Print the rows of a product, and of upstream's unit."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    source = lower(_key(), EPILOGUE)
    device, host = folder / "device", folder / "host"
    for place in (device, host):
        place.mkdir()

    def headers(place: Path) -> None:
        compile_headers(ARCH, place, toolchain, tree, host=place is host)

    def face(*, precompiled: bool) -> None:
        header = host / "headers.pch" if precompiled else None
        compile_host(source.stencil, ARCH, folder, toolchain, tree, precompiled=header)

    def first(*, precompiled: bool) -> None:
        header = device / "headers.pch" if precompiled else None
        with ThreadPoolExecutor(2) as pool:
            beside = pool.submit(face, precompiled=precompiled)
            compile_stencil(source.stencil, ARCH, folder, toolchain, tree, precompiled=header)
            beside.result()
        fill()

    def fill() -> None:
        link_fill(folder / "stencil.bc", source.fill, ARCH, folder, toolchain)

    rows = {
        "headers, once per GPU": lambda: headers(device),
        "headers, once for the host": lambda: headers(host),
        "first kernel of a tile": lambda: first(precompiled=False),
        "the same, headers precompiled": lambda: first(precompiled=True),
        "host shim alone": lambda: face(precompiled=True),
        "new epilogue on a stencil": fill,
        "upstream's unit for one kernel": upstream_unit.measure,
    }
    for label, step in rows.items():
        show(label, step)


if __name__ == "__main__":
    main()
