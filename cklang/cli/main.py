# SPDX-License-Identifier: MIT
"""``cklang``: one subcommand a module, each with ``add(parser)`` and ``run(options) -> status``."""

import argparse
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from cklang.cli import (
    bench,
    build,
    cache,
    check,
    completion,
    debug,
    disasm,
    doctor,
    explain,
    generate,
    hipcc,
    inspect,
    judge,
    new,
    predict,
    profile,
    registry,
    rocm,
    run,
    tune,
    warm,
)
from cklang.cli.target import parsed
from cklang.errors import CkError

GROUPS: Mapping[str, Mapping[str, ModuleType]] = {
    "Write ops": {"new": new, "explain": explain, "inspect": inspect},
    "Build and choose kernels": {
        "build": build,
        "warm": warm,
        "registry": registry,
        "generate": generate,
        "cache": cache,
    },
    "Measure": {"tune": tune, "bench": bench},
    "Run programs without a GPU": {
        "hipcc": hipcc,
        "rocm": rocm,
        "run": run,
        "judge": judge,
        "check": check,
        "debug": debug,
        "profile": profile,
        "predict": predict,
        "disasm": disasm,
    },
    "This machine": {"doctor": doctor, "completion": completion},
}
_COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}

_USAGE = """\
A Python language for AMD's CK Tile kernels, with an emulated AMD GPU to run them on.

{groups}
examples:
  cklang new op linear_relu                       a file with an op and its test
  cklang explain model.py:linear M=384 N=512 K=64 which kernels run, and why
  cklang hipcc saxpy.cpp -o saxpy && ./saxpy      a HIP program without ROCm
  cklang doctor                                   what is installed, what is missing

`cklang COMMAND --help` describes a command. Documentation: docs/index.md, `python -m mkdocs serve`.
"""


_INTERRUPTED = 128 + signal.SIGINT
"""What shells take for a program that Ctrl-C ended."""


def sentences(module: ModuleType) -> tuple[str, str]:
    """Return what a command does, from the docstring of its module, and the rest of that."""
    doc = re.sub(r":\w+:`~?([^`]+)`", r"\1", module.__doc__ or "").replace("``", "`")
    text, _, rest = doc.partition("\n\n")
    return " ".join(text.partition(": ")[2].split()).rstrip("."), rest.rstrip()


def _groups() -> str:
    """Return the commands by group, a line each."""
    return "\n".join(
        f"{title}:\n"
        + "".join(f"  {name:11} {sentences(module)[0]}\n" for name, module in group.items())
        for title, group in GROUPS.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cklang",
        usage="cklang COMMAND ...",
        description=_USAGE.format(groups=_groups()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", help="one of the above", prog="cklang"
    )
    for name, module in _COMMANDS.items():
        summary, details = sentences(module)
        if hasattr(module, "WORDS"):
            # All its words are its own: no character begins an option.
            sub = commands.add_parser(name, prefix_chars="\0", add_help=False)
        else:
            sub = commands.add_parser(
                name,
                description=f"{summary[:1].upper()}{summary[1:]}.",
                epilog=details,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        module.add(sub)
    parser.set_defaults(words_of_commands=words_of_commands)  # for completion
    return parser


def words_of_commands() -> dict[str, list[str]]:
    """Return the options and fixed words of each command, for completion in shells."""
    (commands,) = (
        entry for entry in _parser()._actions if hasattr(entry, "choices") and entry.choices
    )
    return {
        name: sorted(
            word
            for action in sub._actions
            for word in (*action.option_strings, *map(str, action.choices or ()))
        )
        for name, sub in dict(commands.choices or {}).items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parsed(_parser(), arguments)
    try:
        status: int = _COMMANDS[options.command].run(options)
    except CkError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; what was built stays in the kernel cache\n")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader, for instance head, has seen enough.
        sys.stderr.close()
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
