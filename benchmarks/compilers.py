# SPDX-License-Identifier: MIT
"""What each clang that pip gives makes of cklang's kernels, as the page ``docs/compilers.md``.

Installs releases of the ziglang wheel below a folder, compiles the kernels of the essential calls
with each, runs them on the emulator, predicts their times, tries code that some clangs get wrong,
and looks for the pass of LLVM where results are wrong:

    python benchmarks/compilers.py folder --gpus gfx942 gfx1201 --kernels 'linear gemm_f16|rowwise'

What was measured is kept in the folder; ``--page`` alone writes the page from it again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compiler_cases import Verdict
from compiler_kernels import Measurement, watched

from cklang.emulator.build import copy_library, library_path
from cklang.toolchain.prebuilt import EMULATOR

__all__ = ["Compiler", "differences", "kernel_rows", "page"]

RELEASES = ("0.15.2", "0.16.0", "0.17.0")
"""Of the ziglang wheel, the oldest first."""

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "docs" / "compilers.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A release of the wheel, and what its clang makes."""

    release: str
    clang: str
    """The version of its clang: ``22.1.8``."""
    kernels: tuple[Measurement, ...]
    cases: tuple[Verdict, ...]


def installed(release: str, folder: Path) -> Path:
    """Return the zig of a release, which is installed below ``folder`` if it is not there."""
    target = folder / f"ziglang-{release}"
    if not target.exists():
        wanted = ("install", "--quiet", "--no-deps", "--target", str(target))
        subprocess.run([sys.executable, "-m", "pip", *wanted, f"ziglang=={release}"], check=True)
    return target / "ziglang" / "zig"


def clang_version(zig: Path) -> str:
    """Return the version of the clang inside a zig."""
    said = subprocess.run([zig, "clang", "--version"], capture_output=True, text=True, check=True)
    match = re.search(r"clang version (\S+)", said.stdout)
    return match.group(1) if match else "unknown"


def run(script: str, words: Sequence[str], zig: Path, folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield what a script prints that runs with another compiler, and with the same emulator."""
    environment = {
        **os.environ,
        "CKLANG_CLANG": str(zig),
        "CKLANG_PREBUILT": str(folder / "prebuilt"),
        "CKLANG_PLANS": "0",
        "PYTHONPATH": os.pathsep.join([str(_HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, str(_HERE / script), *words]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))


def tried(zigs: Mapping[str, Path], folder: Path) -> dict[str, tuple[Verdict, ...]]:
    """Try the cases with each compiler, and bisect with the first that gets a case right."""
    verdicts = {release: _cases(zig, folder) for release, zig in zigs.items()}
    right = next((zigs[release] for release, cases in verdicts.items() if cases[0].right), None)
    if right is None:
        return verdicts
    return {
        release: cases if cases[0].right else _cases(zigs[release], folder, "--finish", str(right))
        for release, cases in verdicts.items()
    }


def _cases(zig: Path, folder: Path, *words: str) -> tuple[Verdict, ...]:
    return tuple(Verdict(**each) for each in run("compiler_cases.py", words, zig, folder))


def kernel_rows(compilers: Sequence[Compiler]) -> Iterator[str]:
    """Yield the rows of the table: of each kernel, one for each compiler that makes it."""
    for kernel, by_clang in _by_kernel(compilers).items():
        compiled = {clang: each for clang, each in by_clang.items() if not each.problem}
        name = f"`{kernel}`"
        for clang, each in compiled.items():
            schedule = _SCHEDULES.get(each.schedule, each.schedule)
            yield (
                f"| {name} | {clang} | {each.vgprs} | {each.agprs} | {each.sgprs} "
                f"| {each.vgpr_spills + each.sgpr_spills} | {each.instructions:,} "
                f"| {schedule} | {each.ratio:.2f} | {each.digest} | {each.us:.2f} |"
            )
            name = ""


_SCHEDULES = {"as CK Tile asks": "CK Tile's", "without CK Tile's scheduling barriers": "free"}
"""Short names of schedules for the table."""


def _by_kernel(compilers: Sequence[Compiler]) -> dict[str, dict[str, Measurement]]:
    together: dict[str, dict[str, Measurement]] = {}
    for compiler in compilers:
        for each in compiler.kernels:
            together.setdefault(each.kernel, {})[compiler.clang] = each
    return together


def differences(compilers: Sequence[Compiler]) -> Iterator[str]:
    """Yield a line for each kernel that is wrong, or whose result differs in bits."""
    for kernel, by_clang in _by_kernel(compilers).items():
        for clang, each in by_clang.items():
            if each.ratio > 1:
                cause = f", from the pass {each.optional} on" if each.optional else ""
                yield f"- `{kernel}` is wrong with clang {clang}: {each.ratio:.4g} bounds{cause}."
        digests = {clang: each.digest for clang, each in by_clang.items() if each.digest}
        if len(set(digests.values())) > 1:
            yield f"- `{kernel}` has other bits with each of: {', '.join(digests)}."


def refusals(compilers: Sequence[Compiler]) -> Iterator[str]:
    """Yield a line for each reason for which a compiler makes no kernel."""
    for compiler in compilers:
        reasons: dict[str, int] = {}
        for each in compiler.kernels:
            if each.problem:
                reason = _reason(each.problem)
                reasons[reason] = reasons.get(reason, 0) + 1
        for reason, count in reasons.items():
            total = len(compiler.kernels)
            yield f"- clang {compiler.clang} cannot compile {count} of {total} kernels: {reason}."


def _reason(problem: str) -> str:
    """Return the file and the error of a compiler's words, without folders."""
    match = re.search(r"([\w.]+):\d+:\d+: error: (.*?)(?:  |\n|$)", problem)
    return f"`{match.group(1)}`: {match.group(2)}" if match else problem.splitlines()[0]


def case_rows(compilers: Sequence[Compiler]) -> Iterator[str]:
    """Yield the rows of the table of cases."""
    for compiler in compilers:
        for each in compiler.cases:
            words = "right" if each.right else _case_words(each)
            cells = (each.case, compiler.clang, words, each.optional, each.passes)
            yield f"| {' | '.join(cells)} |"


def _case_words(verdict: Verdict) -> str:
    if verdict.said.startswith("not compiled"):
        return f"not compiled: {_reason(verdict.said)}"
    return f"wrong: {verdict.said.removeprefix('CK-T001 ')}"


def page(compilers: Sequence[Compiler], left: Mapping[str, tuple[int, int]]) -> str:
    """Return the page; ``left`` are the kernels measured and in all of each GPU."""
    names = ", ".join(f"{each.clang} (ziglang {each.release})" for each in compilers)
    measured = ", ".join(f"{some} of {total} for {gpu}" for gpu, (some, total) in left.items())
    parts: list[Iterable[str]] = [
        _HEAD.format(names=names).splitlines(),
        ["", *_TABLE.splitlines(), *kernel_rows(compilers), "", "## Differences", ""],
        list(differences(compilers)) or [_NO_DIFFERENCE],
        ["", *refusals(compilers), "", *_CASES.splitlines(), *case_rows(compilers)],
        ["", *_REST.format(measured=measured).splitlines()],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


_HEAD = """# Compilers

`python benchmarks/compilers.py` writes this page: what each clang that pip gives makes of kernels
that cklang compiles. Here: {names}.

Each kernel is the default one of an essential call (`cklang/prebuilding/essentials.py`). Registers,
spills and the number of instructions are those of its code object, the schedule is the one
of `cklang/build/schedules.py` that was kept. Its result for a small call with random operands is
compared with the reference; the error is the largest one in units of its bound, so at most 1 if all
is right. *Bits* is a digest of the result: equal ones are equal bit for bit.
The time is that of the essential call by the clock (`docs/clock.md`). The emulator is the
same for all.

## Kernels"""

_COLUMNS = (
    *("kernel", "clang", "VGPRs", "AGPRs", "SGPRs", "spills", "instructions", "schedule", "error"),
    *("bits", "µs"),
)
_TABLE = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"

_NO_DIFFERENCE = "Every kernel that was compiled is right, with equal bits under all compilers."

_CASES = """## Code that clangs get wrong

`lost_store` is attention of gfx950 whose mask is computed with branches, as cklang does not do any
more (`docs/emulator.md`, *A store that clang loses*). `missing_wait` is the scan of
`tests/emulator/programs/sorting.hip` with the check `races`. Where a result is wrong, the script
looks for the pass in two ways. Optional passes are left out from the n-th on until it is right;
*none* says that it is wrong without them too. And code generation is handed over to a clang that
makes right code of the same source: *generated by* are the passes between the last IR of which that
clang makes right code and the first of which it does not.

| case | clang | result | optional pass | generated by |
|---|---|---|---|---|"""

_REST = """## What was not measured

Of the kernels of essential calls, {measured} are in the table; other GPUs, and the kernels of the
catalogue that no essential call takes, are not. Nor are times on
hardware. Wrong results are bisected; differences of registers and instructions are not."""


def kept(folder: Path, release: str) -> Compiler:
    """Return what was measured with a release."""
    values = json.loads((folder / f"{release}.json").read_text("utf-8"))
    return Compiler(
        release=release,
        clang=values["clang"],
        kernels=tuple(Measurement(**each) for each in values["kernels"]),
        cases=tuple(Verdict(**each) for each in values["cases"]),
    )


def measure(folder: Path, releases: Sequence[str], words: Sequence[str]) -> None:
    """Measure with each release, and keep it in ``<release>.json``."""
    zigs = {release: installed(release, folder) for release in releases}
    shutil.rmtree(folder / "prebuilt", ignore_errors=True)
    copy_library(library_path(), folder / "prebuilt" / EMULATOR)
    cases = tried(zigs, folder)
    for release, zig in zigs.items():
        kernels = list(run("compiler_kernels.py", words, zig, folder))
        values = {"clang": clang_version(zig), "kernels": kernels}
        values["cases"] = [asdict(each) for each in cases[release]]
        (folder / f"{release}.json").write_text(json.dumps(values, indent=1), "utf-8")


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the wheels and what was measured")
    parser.add_argument("--releases", nargs="+", default=RELEASES, help="of the ziglang wheel")
    parser.add_argument("--gpus", nargs="+", default=["gfx942", "gfx1201"])
    parser.add_argument("--kernels", default="", help="an expression that names must match")
    parser.add_argument("--count", type=int, help="of kernels of each GPU, at most")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    asked = parser.parse_args()
    count = () if asked.count is None else (f"--count={asked.count}",)
    if not asked.page:
        words = (*asked.gpus, f"--kernels={asked.kernels}", *count)
        measure(asked.folder, asked.releases, words)
    compilers = [kept(asked.folder, release) for release in asked.releases]
    measured = [each.gpu for each in compilers[-1].kernels]
    left = {gpu: (measured.count(gpu), len(watched(gpu))) for gpu in dict.fromkeys(measured)}
    _PAGE.write_text(page(compilers, left), "utf-8")


if __name__ == "__main__":
    main()
