# SPDX-License-Identifier: MIT
"""AMD's own test programs of ROCm's libraries, as Debian builds them, run on emulated GPUs.

The programs come from Debian packages, with the C library and everything else they depend on.
apt downloads them from a suite into a folder of cklang's cache, and nothing is installed; a folder
of ``.deb`` files works too. The programs' own loader starts them, with the emulator's
``libamdhip64.so`` before AMD's; with ``--runtime amd`` AMD's own runtime is left, and the GPUs are
emulated below it (``cklang rocm``). Prints a Markdown table, and below it the tests that did not
pass.

    python benchmarks/rocm_libraries.py [library ...] [--arch gfx90a] [--jobs 2] [--limit 120]
        [--suite unstable | --packages folder] [--program pattern] [--filter pattern] [--budget s]
        [--runtime cklang | amd]

A test that does not end in ``--limit`` seconds is stopped with its program, which then goes on with
the tests behind it. ``--budget`` ends each program after so many seconds; tests that it has not
begun by then are counted as such.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from signal import SIGKILL
from threading import Timer

from debian_packages import amds_loader, download, loader, unpack

from cklang.emulator.rocm.start import settings
from cklang.toolchain.paths import cache_root

LIBRARIES = {
    "rocrand": "librocrand1-tests",
    "rocprim": "librocprim-tests",
    "hipcub": "libhipcub-tests",
    "rocthrust": "librocthrust-tests",
    "rocfft": "librocfft0-tests",
    "rocblas": "librocblas4-tests",
    "hipblaslt": "libhipblaslt1-tests",
    "rccl": "librccl1-tests",
}
"""The package of each library's test programs."""
OPTIONS = {"rocblas": "--data {root}/usr/share/librocblas4-tests/data/rocblas_gtest.data"}
"""What a library's programs are given besides."""
HEADERS = "libamdhip64-dev"
"""AMD's headers, which a test compares with ours."""


class Verdict(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ENDLESS = "not ended"
    UNTRIED = "not begun"


VERDICTS = {
    "OK": Verdict.PASSED, "FAILED": Verdict.FAILED, "SKIPPED": Verdict.SKIPPED,
    "PASS": Verdict.PASSED, "FAILURE": Verdict.FAILED, "ERROR": Verdict.FAILED,
    "KNOWN FAILURE": Verdict.SKIPPED,
}  # fmt: skip
"""What programs print behind a test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How test programs name their tests and say how they went."""

    list_option: str
    parse: Callable[[str], list[str]]
    select: Callable[[Sequence[str], Path], list[str]]
    """The options that run some tests; a file to write to."""
    event: re.Pattern[str]
    """What is printed of a test, and its name."""


def parse_suites(text: str) -> list[str]:
    r"""Return the tests that ``--gtest_list_tests`` prints, without those that are disabled.

    Example:
        >>> parse_suites("main()\nscan.\n  one\n  DISABLED_two\n  three  # Get()\n")
        ['scan.one', 'scan.three']
    """
    tests, suite = [], ""
    for line in text.splitlines():
        name = line.partition("  # ")[0].rstrip()
        if name.startswith("  "):
            tests.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return [test for test in tests if "DISABLED_" not in test]


def _flag_file(tests: Sequence[str], file: Path) -> list[str]:
    file.write_text(f"--gtest_filter={':'.join(tests)}\n")
    return [f"--gtest_flagfile={file}"]


GTEST = Framework(
    list_option="--gtest_list_tests",
    parse=parse_suites,
    select=_flag_file,
    event=re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w/.-]*[\w/-])"),
)
THRUST = Framework(
    list_option="--list",
    parse=str.split,
    select=lambda tests, _: ["--verbose", *tests],
    event=re.compile(
        r"^\[?(Running|PASS|(?:KNOWN )?FAILURE|ERROR)\]? +(?:[\d.]+ ms +)?([^\W\d].*?)(?:\.\.\.)?$"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How programs run."""

    command: tuple[str, ...]
    """The loader and its options, before the program."""
    environment: Mapping[str, str]
    limit: float
    budget: float
    framework: Framework
    pattern: str
    """Which tests."""
    options: tuple[str, ...] = ()
    """What the program is started with."""
    logs: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tests of one program, or of several, did."""

    name: str
    verdicts: Mapping[str, Verdict]
    seconds: float

    @property
    def row(self) -> str:
        """The line of the table."""
        counts = Counter(self.verdicts.values())
        numbers = (len(self.verdicts), *(counts[verdict] for verdict in Verdict))
        cells = (self.name, *(f"{number:,}" for number in numbers), f"{self.seconds:,.0f}")
        return f"| {' | '.join(cells)} |"


HEADER = f"| program | tests | {' | '.join(verdict.value for verdict in Verdict)} | seconds |"


def programs(root: Path, package: str, pattern: str) -> list[Path]:
    """Return the test programs of a package."""
    files = sorted((root / "usr/libexec/rocm" / package).glob("*"))
    return [path for path in files if fnmatchcase(path.name, pattern) and _is_program(path)]


def _is_program(path: Path) -> bool:
    if not path.is_file() or not os.access(path, os.X_OK) or ".so" in path.name:
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def run_program(program: Path, run: Run) -> Outcome:
    """Run all tests of a program, again without those that end it or do not end."""
    start, log = time.perf_counter(), run.logs / program.name
    log.unlink(missing_ok=True)
    verdicts: dict[str, Verdict] = {}
    text = ""
    try:
        text = subprocess.run(
            [*run.command, str(program), *run.options, run.framework.list_option],
            capture_output=True, text=True, env=run.environment, check=True, errors="replace",
            cwd=program.parent, timeout=run.limit,
        ).stdout  # fmt: skip
    except subprocess.CalledProcessError as problem:
        log.write_text(problem.stdout + problem.stderr)
        verdicts = {"(does not start)": Verdict.FAILED}
    except subprocess.TimeoutExpired:
        verdicts = {"(lists no tests)": Verdict.ENDLESS}
    tests = run.framework.parse(text)
    tests = [test for test in tests if fnmatchcase(test, run.pattern)]
    while rest := [test for test in tests if test not in verdicts]:
        left = run.budget - (time.perf_counter() - start)
        if left <= 0:
            verdicts |= dict.fromkeys(rest, Verdict.UNTRIED)
            break
        before = len(verdicts)
        verdicts |= dict(_run_once(program, rest, replace(run, budget=left)))
        if len(verdicts) == before:  # it has none of them: rocFFT draws some anew each time
            verdicts |= dict.fromkeys(rest, Verdict.UNTRIED)
    return Outcome(name=program.name, verdicts=verdicts, seconds=time.perf_counter() - start)


def _run_once(program: Path, tests: Sequence[str], run: Run) -> Iterator[tuple[str, Verdict]]:
    """Run tests in one process; yield how each one ended that began."""
    options = run.framework.select(tests, run.logs / f"{program.name}.flags")
    start = time.perf_counter()
    with subprocess.Popen(
        [*run.command, str(program), *run.options, *options], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", env=run.environment,
        cwd=program.parent,
    ) as process, (run.logs / program.name).open("a") as log:  # fmt: skip
        end, late, current = Timer(run.budget, process.kill), Timer(run.limit, process.kill), ""
        end.start()
        late.start()
        for line in process.stdout or ():
            print(line, end="", file=log, flush=True)
            for kind, name in run.framework.event.findall(line):
                late.cancel()
                late = Timer(run.limit, process.kill)
                late.start()
                if kind in VERDICTS and name == current:
                    yield name, VERDICTS[kind]
                current = name if kind not in VERDICTS else ""
        late.cancel()
        end.cancel()
        stopped = process.wait() == -SIGKILL
    over = time.perf_counter() - start >= run.budget
    if current:
        yield current, _unended(stopped=stopped, over=over)


def _unended(*, stopped: bool, over: bool) -> Verdict:
    """Say of a test that began and did not end: its program died, or it was stopped."""
    if not stopped:
        return Verdict.FAILED
    return Verdict.UNTRIED if over else Verdict.ENDLESS


def total(name: str, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the sum of the outcomes of programs."""
    verdicts = {
        f"{outcome.name}: {test}": verdict
        for outcome in outcomes
        for test, verdict in outcome.verdicts.items()
    }
    return Outcome(name=name, verdicts=verdicts, seconds=sum(each.seconds for each in outcomes))


def main() -> None:
    """Get the packages, run the programs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="library", help=", ".join(LIBRARIES))
    parser.add_argument("--arch", default="gfx90a", help="the emulated GPU")
    parser.add_argument("--suite", default="unstable", help="Debian's suite")
    parser.add_argument("--packages", type=Path, help="a folder of .deb files; nothing is loaded")
    parser.add_argument("--runtime", choices=("cklang", "amd"), default="cklang", help="whose HIP")
    parser.add_argument("--program", default="*", help="which programs")
    parser.add_argument("--filter", default="*", help="which tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a test")
    parser.add_argument("--budget", type=float, default=86400, help="seconds for a program")
    options = parser.parse_args()
    names = options.libraries or list(LIBRARIES)
    folder = cache_root() / "rocm_libraries" / (options.suite if not options.packages else "local")
    debs = options.packages or folder
    folder.mkdir(parents=True, exist_ok=True)
    if not options.packages:
        download([HEADERS, *(LIBRARIES[name] for name in names)], options.suite, folder)
    root = folder / "root"
    root.mkdir(exist_ok=True)
    unpack(debs, root)
    amds = options.runtime == "amd"
    chosen = settings(options.arch) if amds else {"CKLANG_GPUS": options.arch}
    logs = folder / "logs" / (f"{options.arch}-amd" if amds else options.arch)
    logs.mkdir(parents=True, exist_ok=True)
    run = Run(
        command=(amds_loader if amds else loader)(root), limit=options.limit,
        budget=options.budget, framework=GTEST,
        environment={**os.environ, "CKLANG_PYTHON": sys.executable, **chosen},
        pattern=options.filter, logs=logs,
    )  # fmt: skip
    print(f"{HEADER}\n|{'---|' * HEADER.count(' | ')}---|")
    bad: list[str] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for name in names:
            named = programs(root, LIBRARIES[name], options.program)
            framework = THRUST if name == "rocthrust" else GTEST
            more = tuple(OPTIONS.get(name, "").format(root=root).split())
            start = partial(run_program, run=replace(run, framework=framework, options=more))
            outcomes = []
            for outcome in pool.map(start, named):
                outcomes.append(outcome)
                print(outcome.row, flush=True)
            print(total(f"**{name}**", outcomes).row, flush=True)
            ended = total(name, outcomes).verdicts.items()
            bad += [f"{verdict.value}: {test}" for test, verdict in ended
                    if verdict in (Verdict.FAILED, Verdict.ENDLESS)]  # fmt: skip
    print(*bad, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
