# SPDX-License-Identifier: MIT
"""``cklang``: one subcommand a module, each with ``add(parser)`` and ``run(options) -> status``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cklang.cli import (
    bench,
    build,
    cache,
    check,
    disasm,
    doctor,
    generate,
    hipcc,
    inspect,
    profile,
    registry,
    tune,
)
from cklang.errors import CkError

__all__ = ["main"]

_COMMANDS = {
    "doctor": doctor,
    "inspect": inspect,
    "build": build,
    "tune": tune,
    "bench": bench,
    "cache": cache,
    "registry": registry,
    "generate": generate,
    "check": check,
    "profile": profile,
    "disasm": disasm,
    "hipcc": hipcc,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cklang", description="A Python language for AMD's CK Tile kernels."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, module in _COMMANDS.items():
        summary = (module.__doc__ or "").partition(": ")[2].partition("\n")[0].rstrip(".")
        if hasattr(module, "WORDS"):
            # All its words are its own: no character begins an option.
            sub = commands.add_parser(name, help=summary, prefix_chars="\0", add_help=False)
        else:
            sub = commands.add_parser(name, help=summary, description=summary)
        module.add(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = _COMMANDS[options.command].run(options)
    except CkError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except BrokenPipeError:
        # The reader, for instance head, has seen enough.
        sys.stderr.close()
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
