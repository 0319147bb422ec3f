# SPDX-License-Identifier: MIT
"""What ``cklang judge`` says of submissions that are right, wrong, racy or cheat.

python benchmarks/judge.py [--gpu gfx942] [--only relu]
"""

import argparse
import tempfile
from pathlib import Path

from judge_programs import PROGRAMS, TASKS, Program

from cklang.judge import Verdict, judge


def judged(program: Program, gpu: str, folder: Path, shrink: int = 0) -> Verdict:
    """Return the verdict of one submission."""
    task, submission = folder / "task.py", folder / "submission.py"
    task.write_text(TASKS[program.task], encoding="utf-8")
    submission.write_text(program.text, encoding="utf-8")
    sizes = {"size": 700} if program.task == "sums" else {}
    return judge(task, submission, gpu=gpu, sizes=sizes, shrink=shrink)


def errors_of(verdict: Verdict) -> tuple[str, ...]:
    """Return the rules of the errors, each once."""
    return tuple(sorted({f.rule for f in verdict.findings if f.level == "error"}))


def main() -> None:
    """Print a table of verdicts, and how many were as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--only", default="", help="submissions with this in their names")
    options = parser.parse_args()
    chosen = {name: each for name, each in PROGRAMS.items() if options.only in name}
    right = 0
    print("| submission | verdict | because of | µs by the clock | s to judge |")
    print("|---|---|---|---|---|")
    for name, program in chosen.items():
        with tempfile.TemporaryDirectory() as folder:
            verdict = judged(program, options.gpu, Path(folder))
        rules = errors_of(verdict)
        right += rules == tuple(sorted(program.finds))
        mark = "" if rules == tuple(sorted(program.finds)) else f" (not {program.finds})"
        word = "accepted" if verdict.accepted else "refused"
        us = "" if verdict.us is None else f"{verdict.us:.2f}"
        row = (name, word, f"{', '.join(rules)}{mark}", us, f"{verdict.seconds:.0f}")
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"{right} of {len(chosen)} verdicts are what they should be")


if __name__ == "__main__":
    main()
