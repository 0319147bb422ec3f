# SPDX-License-Identifier: MIT
"""``cklang inspect``: show the program of a call, its C++ or its instructions.

cklang inspect model.py:linear M=384 N=512 K=256                   # its kernels, and why
cklang inspect model.py:linear M=384 N=512 K=256 --lines           # each line with its IR and C
cklang inspect model.py:linear M=384 N=512 K=256 --isa             # instructions, C++ and Python
cklang inspect model.py:linear M=384 N=512 K=256 --html page.html  # all of it, in a browser
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cklang.cli.inspection import inspection_page
from cklang.cli.target import add_target, arguments_of, load_op
from cklang.emulator.profiler.listing import KernelListing, lines_of, listing_of
from cklang.ir.nodes import Function, print_operation
from cklang.runtime.op import Op

_PLACE = re.compile(r'#line (\d+) "(.*)"')
_WIDTH = 44
"""Width of the columns for the source and the IR, in letters."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--lines", action="store_true", help="source, IR and C of each line, side by side"
    )
    instead.add_argument("--cpp", action="store_true", help="print the generated C++ instead")
    instead.add_argument(
        "--ir", action="store_true", help="print the program instead, as a .ckir file has it"
    )
    instead.add_argument(
        "--isa",
        action="store_true",
        help="build the kernels, and print their instructions beside the lines of C++ and Python",
    )
    instead.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="build the kernels, and write a page with Python, IR, C++ and instructions",
    )


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    op = load_op(options.op)
    arguments = arguments_of(op, options)
    if options.ir:
        text = f"{op.ir(**arguments)}\n"
    elif options.isa:
        listings = _listings(op, arguments, options.device)
        text = "\n".join("".join(f"{line}\n" for line in lines_of(listing)) for listing in listings)
    elif options.html:
        page = inspection_page(op.ir(**arguments), _listings(op, arguments, options.device))
        options.html.write_text(page, encoding="utf-8")
        text = f"wrote {options.html}\n"
    elif options.lines:
        cpp = op.inspect(**arguments, device=options.device)
        text = "".join(f"{line}\n" for line in side_by_side(op.ir(**arguments), cpp))
    else:
        show = op.inspect if options.cpp else op.explain
        text = str(show(**arguments, device=options.device))
    sys.stdout.write(text)
    return 0


def _listings(op: Op, arguments: Mapping[str, Any], device: str | None) -> list[KernelListing]:
    """Return the instructions of each kernel of a call."""
    artifacts = {artifact.key: artifact for artifact in op.build(**arguments, device=device)}
    return [listing_of(artifact) for artifact in artifacts.values()]


def side_by_side(function: Function, cpp: str) -> Iterator[str]:
    """Yield each line of an op that computes something, with its IR and the C that kernels run.

    ``cpp`` is the C++ of its kernels, whose functions name the lines of the op.
    """
    operations, statements = defaultdict(list), _statements(cpp)
    for operation in function.body:
        if operation.span is not None:
            place = f"{operation.span.source.name}:{operation.span.line}"
            operations[place].append(print_operation(operation).strip())
    spans = [operation.span for operation in function.body if operation.span is not None]
    texts = {f"{s.source.name}:{s.line}": (s.source.line(s.line) or "").strip() for s in spans}
    yield f"{'source':{_WIDTH}}  {'IR':{_WIDTH}}  C"
    for place in dict.fromkeys([*operations, *statements]):
        name, _, line = place.rpartition(":")
        source = f"{Path(name).name}:{line}: {texts.get(place, '')}"
        yield from _rows(source, operations.get(place, []), statements.get(place, []))


def _rows(source: str, operations: list[str], statements: list[str]) -> Iterator[str]:
    columns = [
        _wrapped(source),
        [w for operation in operations for w in _wrapped(operation)],
        statements,
    ]
    for number in range(max(map(len, columns))):
        left, middle, right = (col[number] if number < len(col) else "" for col in columns)
        yield f"{left:{_WIDTH}}  {middle:{_WIDTH}}  {right}".rstrip()


def _wrapped(text: str) -> list[str]:
    return [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]


def _statements(cpp: str) -> dict[str, list[str]]:
    """Return the statements of the functions in a C++ text by the user's place."""
    by_place: dict[str, list[str]] = {}
    place = ""
    for line in cpp.splitlines():
        directive = _PLACE.fullmatch(line)
        if directive is not None:
            place = f"{directive[2]}:{directive[1]}"
        elif line == "}":
            place = ""
        elif place:
            by_place.setdefault(place, []).append(line.strip())
    return by_place
