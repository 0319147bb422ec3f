# SPDX-License-Identifier: MIT
"""What each clang that pip gives makes of cklang's kernels, as the page ``docs/compilers.md``.

Installs releases of the ziglang wheel below a folder, compiles the kernels of the essential calls
with each, runs them on the emulator, predicts their times, tries code that some clangs get wrong,
and looks for the pass of LLVM where results are wrong:

    python benchmarks/compilers.py folder --gpus gfx942 gfx1201 --kernels 'linear gemm_f16|rowwise'

What was measured is kept in the folder, kernel by kernel. A run that was interrupted, or that ends
after ``--minutes``, is taken up by the next one; what other headers gave is measured again.
``--page`` alone writes the page from what is there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from compiler_cases import Verdict
from compiler_kernels import Measurement, watched

from cklang.emulator.engine.build import copy_library, library_path
from cklang.lowering.headers import identity_of_all
from cklang.toolchain.prebuilt import EMULATOR

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


def run(
    script: str,
    words: Sequence[str],
    zig: Path,
    folder: Path,
    *,
    known: Iterable[str] = (),
    until: float | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield what a script prints that runs with another compiler, and with the same emulator.

    Args:
        script: A file beside this one.
        words: Its arguments.
        zig: The compiler.
        folder: Where the emulator is.
        known: Lines that it reads.
        until: When it is stopped, by ``time.monotonic``.
    """
    environment = {
        **os.environ,
        "CKLANG_CLANG": str(zig),
        "CKLANG_PREBUILT": str(folder / "prebuilt"),
        "CKLANG_PLANS": "0",
        "PYTHONPATH": os.pathsep.join([str(_HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, str(_HERE / script), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("\n".join(known))
        child.stdin.close()
        stop = None if until is None else threading.Timer(until - time.monotonic(), child.terminate)
        if stop is not None:
            stop.start()
        yield from map(json.loads, filter(lambda line: line.startswith("{"), child.stdout))
        if stop is not None:
            stop.cancel()
    stopped = until is not None and time.monotonic() >= until
    if child.returncode and not stopped:
        raise subprocess.CalledProcessError(child.returncode, command)


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
                f"| {schedule} | {each.ratio:.2f} | {each.digest or 'not run'} | {each.us:.2f} |"
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


def summary_rows(compilers: Sequence[Compiler], totals: Mapping[str, int]) -> Iterator[str]:
    """Yield the rows of the first table: of each GPU, what each compiler made of its kernels.

    Args:
        compilers: What was measured; times are compared with those of the last one.
        totals: How many kernels there are for each GPU.
    """
    for gpu, total in totals.items():
        newest = {each.kernel: each for each in compilers[-1].kernels if each.gpu == gpu}
        for compiler in compilers:
            tried = [each for each in compiler.kernels if each.gpu == gpu]
            made = [each for each in tried if not each.problem]
            ratios = [
                each.us / newest[each.kernel].us
                for each in made
                if each.kernel in newest and newest[each.kernel].us
            ]
            times = (
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
                if ratios
                else ""
            )
            cells = (
                *(gpu, compiler.clang, f"{len(tried)} of {total}", f"{len(tried) - len(made)}"),
                f"{sum(each.ratio > 1 for each in made)}",
                f"{sum(not each.digest for each in made)}",
                f"{sum(each.vgpr_spills > 0 for each in made)}",
                times,
            )
            yield f"| {' | '.join(cells)} |"


_SUMMARY_COLUMNS = (
    *("GPU", "clang", "kernels tried", "not compiled", "wrong", "not run", "with VGPR spills"),
    "time, median and range, newest clang = 1",
)
_SUMMARY = f"| {' | '.join(_SUMMARY_COLUMNS)} |\n|{'---|' * len(_SUMMARY_COLUMNS)}"


def page(compilers: Sequence[Compiler], totals: Mapping[str, int]) -> str:
    """Return the page; ``totals`` says how many essential kernels there are for each GPU."""
    names = ", ".join(f"{each.clang} (ziglang {each.release})" for each in compilers)
    parts: list[Iterable[str]] = [
        _HEAD.format(names=names).splitlines(),
        ["", *_SUMMARY.splitlines(), *summary_rows(compilers, totals), "", "## Differences", ""],
        list(differences(compilers)) or [_NO_DIFFERENCE],
        ["", *refusals(compilers), "", *_CASES.splitlines(), *case_rows(compilers)],
        ["", *_REST.splitlines()],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


_HEAD = """# Compilers

`python benchmarks/compilers.py` writes this page: what each clang that pip gives makes of kernels
that cklang compiles. Here: {names}.

Each kernel is the default one of an essential call (`cklang/prebuilding/essentials.py`). The script
runs it on a small call with random operands, on the same emulator for all compilers, and counts it
as wrong if an element exceeds the reference's bound. Times are those of the essential call by the
clock (`docs/clock.md`). `--table` prints registers, spills, instructions, error, digest of the
result and time of every kernel."""

_COLUMNS = (
    *("kernel", "clang", "VGPRs", "AGPRs", "SGPRs", "spills", "instructions", "schedule", "error"),
    *("bits", "µs"),
)
_TABLE = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"

_NO_DIFFERENCE = "Every kernel that was compiled is right, with equal bits under all compilers."

_CASES = """## Code that clangs get wrong

`lost_store` is attention of gfx950 whose mask is computed with branches, as cklang does not do any
more (`docs/emulator_fidelity.md`, *A store that clang loses*). `missing_wait` is the scan of
`tests/emulator/programs/sorting.hip` with the check `races`. Where a result is wrong, the script
looks for the pass in two ways. Optional passes are left out from the n-th on until it is right;
*none* says that it is wrong without them too. And code generation is handed over to a clang that
makes right code of the same source: *generated by* are the passes between the last IR that this
clang compiles correctly and the first that it does not.

| case | clang | result | optional pass | generated by |
|---|---|---|---|---|"""

_REST = """## What was not measured

Essential kernels beyond those counted as tried, other GPUs, and the kernels of the tests' catalogue
that no essential call takes. Kernels that no small call takes were compiled and timed, not run.
Times on hardware were not measured. Wrong results are bisected; differences of registers and
instructions are not."""


def kept(folder: Path, release: str) -> Compiler:
    """Return what was measured with a release; nothing of it if that was with other headers."""
    file = folder / f"{release}.json"
    if not file.exists():
        return Compiler(release=release, clang="", kernels=(), cases=())
    values = json.loads(file.read_text("utf-8"))
    if values.get("headers") != identity_of_all():
        return Compiler(release=release, clang=values["clang"], kernels=(), cases=())
    return Compiler(
        release=release,
        clang=values["clang"],
        kernels=tuple(Measurement(**each) for each in values["kernels"]),
        cases=tuple(Verdict(**each) for each in values["cases"]),
    )


def keep(folder: Path, compiler: Compiler) -> None:
    """Write what was measured with a release to ``<release>.json``."""
    values = {"headers": identity_of_all(), **asdict(compiler)}
    (folder / f"{compiler.release}.json").write_text(json.dumps(values, indent=1), "utf-8")


def measure(
    folder: Path,
    releases: Sequence[str],
    gpus: Sequence[str],
    words: Sequence[str],
    until: float | None,
) -> None:
    """Measure what is not kept, of each GPU with each release, and keep it."""
    zigs = {release: installed(release, folder) for release in releases}
    shutil.rmtree(folder / "prebuilt", ignore_errors=True)
    copy_library(library_path(), folder / "prebuilt" / EMULATOR)
    compilers = {release: kept(folder, release) for release in releases}
    if not all(each.cases for each in compilers.values()):
        cases = tried(zigs, folder)
        for release, zig in zigs.items():
            clang = clang_version(zig)
            compilers[release] = replace(compilers[release], clang=clang, cases=cases[release])
            keep(folder, compilers[release])
    for gpu, release in itertools.product(gpus, releases):
        known = [each.kernel for each in compilers[release].kernels]
        asked = (gpu, *words)
        zig = zigs[release]
        script = "compiler_kernels.py"
        for each in run(script, asked, zig, folder, known=known, until=until):
            compiler = compilers[release]
            kernels = (*compiler.kernels, Measurement(**each))
            compilers[release] = replace(compiler, kernels=kernels)
            keep(folder, compilers[release])


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the wheels and what was measured")
    parser.add_argument("--releases", nargs="+", default=RELEASES, help="of the ziglang wheel")
    parser.add_argument("--gpus", nargs="+", default=["gfx942", "gfx950", "gfx1201"])
    parser.add_argument("--kernels", default="", help="an expression that names must match")
    parser.add_argument("--count", type=int, help="of kernels of each GPU, at most")
    parser.add_argument("--minutes", type=float, help="after which it stops")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--table", action="store_true", help="print every kernel, write no page")
    asked = parser.parse_args()
    count = () if asked.count is None else (f"--count={asked.count}",)
    if not asked.page:
        words = (f"--kernels={asked.kernels}", *count)
        until = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
        measure(asked.folder, asked.releases, asked.gpus, words, until)
    compilers = [kept(asked.folder, release) for release in asked.releases]
    total = {gpu: len(watched(gpu)) for gpu in asked.gpus}
    if asked.table:
        print("\n".join((_TABLE, *kernel_rows(compilers))))
        return
    _PAGE.write_text(page(compilers, total), "utf-8")


if __name__ == "__main__":
    main()
