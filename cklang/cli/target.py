# SPDX-License-Identifier: MIT
"""An op named on the command line, and arguments for it made from extents alone."""

import argparse
import csv
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cklang import knobs
from cklang.build.dask_executor import workers_of
from cklang.errors import error
from cklang.runtime.ir_text import SUFFIX, read_op
from cklang.runtime.op import Op
from cklang.runtime.placeholder_arguments import packed_arguments

_OP = re.compile(r".+\.py:[A-Za-z_]\w*|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""
_NAMES = f"file.py:name, package.module:name or file{SUFFIX} (text of the IR)"


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the options that name an op and its problem."""
    several = {"nargs": "?"} if optional else {}
    parser.add_argument("op", help=_NAMES, **several)  # type: ignore[arg-type]
    parser.add_argument(
        "sizes", nargs="*", metavar="M=384", help="the extent of each dim of the op"
    )
    parser.add_argument(
        "--shapes", nargs="+", default=[], metavar="M=384", help="the same, as an option"
    )
    parser.add_argument(
        "--dtype", action="append", default=[], metavar="T=f16", help="what a dtype variable is"
    )
    parser.add_argument("--device", help="emu:gfx942, hip:0 (default: as in a call)")


def parsed(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options in a command line, in which sizes may stand anywhere.

    argparse takes all words that are no options from one place alone.
    """
    options, rest = parser.parse_known_args(words)
    sizes = [word for word in rest if "=" in word and not word.startswith("-")]
    unknown = [word for word in rest if word not in sizes or not hasattr(options, "sizes")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if sizes:
        options.sizes += sizes
    return options


def words_of(program: Sequence[str]) -> list[str]:
    """Return the command line of a program, or of one call of an op.

    Example:
        >>> words_of(["./saxpy", "9"])
        ['./saxpy', '9']
        >>> words_of(["model.py:linear", "M=64"])[1:]
        ['-m', 'cklang.cli.call_op', 'model.py:linear', 'M=64']
    """
    if _OP.fullmatch(program[0]) or program[0].endswith(SUFFIX):
        return [sys.executable, "-m", f"{__package__}.call_op", *program]
    return list(program)


def status_of(program: Sequence[str], **settings: str) -> int:
    """Run a program, or one call of an op; return its exit status as a shell gives it."""
    sys.stdout.flush()
    try:
        done = subprocess.run(words_of(program), env=knobs.tool_environment(**settings))
    except OSError as problem:
        raise error("Z010", name=program[0], problem=str(problem)) from problem
    return done.returncode if done.returncode >= 0 else _BY_SIGNAL - done.returncode


def add_scheduler(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that names a Dask cluster, which does ``what``."""
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help=f"{what} on the workers of this Dask scheduler"
    )


def asked_workers(options: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """Give the workers that were asked for, or None."""
    return workers_of(options.scheduler) if options.scheduler else nullcontext()


def load_op(name: str) -> Op:
    """Return the op called ``name``."""
    if name.endswith(SUFFIX):
        return read_op(Path(name))
    place, _, attribute = name.rpartition(":")
    if not place:
        raise error("Z010", name=name, problem=f"it must be {_NAMES}")
    op = getattr(_module(name, place), attribute, None)
    if not isinstance(op, Op):
        raise error("Z010", name=name, problem=f"{place} has no op called {attribute!r}")
    return op


def _module(name: str, place: str) -> ModuleType:
    path = Path(place)
    if path.suffix != ".py":
        try:
            return importlib.import_module(place)
        except ImportError as problem:
            raise error("Z010", name=name, problem=str(problem)) from problem
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise error("Z010", name=name, problem=f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    # What stands beside the file can be imported, as if Python ran it.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _pairs(words: list[str], what: str) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise error("K047", what=what, got=word)
        pairs[name] = value
    return pairs


def arguments_of(op: Op, options: argparse.Namespace) -> dict[str, Any]:
    """Return empty arrays of the sizes that were named; nothing of them is ever touched.

    ``bias=none`` leaves out an optional tensor.
    """
    return packed_arguments(op.program.signature, named_values(options))


def named_values(options: argparse.Namespace) -> dict[str, Any]:
    """Return the extents and dtypes that were named."""
    sizes = {
        name: None if text == "none" else _extent(text)
        for name, text in _pairs([*options.sizes, *options.shapes], "a size").items()
    }
    return sizes | _pairs(options.dtype, "a dtype")


def pairs_of(words: Sequence[str]) -> dict[str, int]:
    """Return extents that were named, such as ``M=64``.

    Example:
        >>> pairs_of(["M=64"])
        {'M': 64}
    """
    return {name: _extent(text) for name, text in _pairs(list(words), "a size").items()}


def calls_named(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the problems of ``sizes`` and of the rows of ``--problems``, as names and values."""
    dtypes = _pairs(options.dtype, "a dtype")
    words = [*options.sizes, *options.shapes]
    sizes = {name: _extent(text) for name, text in _pairs(words, "a size").items()}
    if options.problems is None:
        return [sizes | dtypes]
    return [sizes | row | dtypes for row in _rows(options.problems)]


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as problem:
        raise error("N009", path=path, problem=str(problem)) from problem
    calls: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            fault = f"line {number} has not as many cells as the first"
            raise error("N009", path=path, problem=fault)
        calls.append({name.strip(): _cell(text.strip()) for name, text in row.items()})
    return calls


def _cell(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _extent(text: str) -> int:
    if not text.isdigit():
        raise error("K011", name="a size", least=0, got=text)
    return int(text)


def filled_arguments(op: Op, named: dict[str, Any]) -> dict[str, Any]:
    """Return arguments for a call: random floats, and zeros, which are legal places too."""
    rng = np.random.default_rng(0)
    arguments = packed_arguments(op.program.signature, named)
    for array in arguments.values():
        if not isinstance(array, np.ndarray):
            continue
        if array.dtype.kind in "iub":
            array[...] = 0
        else:
            array[...] = np.asarray(rng.standard_normal(array.shape)).astype(array.dtype)
    return arguments
