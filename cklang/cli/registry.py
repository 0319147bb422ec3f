# SPDX-License-Identifier: MIT
"""``cklang registry``: show, build, export, merge or ask files of declared kernels.

A file is the JSON form of a registry, written by ``export``, ``Registry.to_json`` or by hand
(``docs/dispatch.md``, *Registries*).
"""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cklang.arch import all_archs, arch
from cklang.cli.target import add_scheduler, asked_workers
from cklang.codec import encode
from cklang.errors import CkError, error
from cklang.families import FAMILIES, family_of
from cklang.selection.registry import Kernel, Registry
from cklang.selection.select import select

_KEY_COLUMNS = ("family", "arch", "label", "priority")
_SHOWN = ("tile", "warps", "warp_tile", "pipeline", "vector_a", "vector_b", "vector_e")
"""The fields of an algorithm in a table for people, of families that have them."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")

    def action(name: str, summary: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=summary, description=summary)

    file = {"type": Path, "metavar": "FILE", "help": "a registry as JSON"}
    show = action("show", "print the kernels of a registry as a table")
    show.add_argument("file", **file)  # type: ignore[arg-type]
    show.add_argument("--csv", action="store_true", help="every field, as comma-separated values")
    build = action("build", "build the kernels of a registry")
    build.add_argument("file", **file)  # type: ignore[arg-type]
    add_scheduler(build, "build")
    export = action("export", "write the kernels of signatures and profiles")
    export.add_argument("file", **file)  # type: ignore[arg-type]
    add_declarations(export)
    merge = action("merge", "write the kernels of several registries as one")
    merge.add_argument("file", **file)  # type: ignore[arg-type]
    merge.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    choose = action("select", "print the kernel that serves a product, and the others' times")
    choose.add_argument("file", **file)  # type: ignore[arg-type]
    choose.add_argument("--signature", required=True, metavar="f16:rcr:row")
    choose.add_argument("--arch", default=all_archs()[0].name, metavar="gfx942")
    choose.add_argument("--strategy", default="heuristic")
    choose.add_argument("extents", nargs=3, type=int, metavar="EXTENT", help="M, N and K")


def add_declarations(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`declared` reads."""
    parser.add_argument("--signature", action="append", default=[], metavar="f16:rcr:row")
    parser.add_argument("--profile", action="append", default=[], metavar="flash")
    parser.add_argument("--element", action="append", metavar="f16", help="of a profile")
    parser.add_argument("--head", action="append", type=int, metavar="64", help="of a profile")
    parser.add_argument("--preset", default="essential", help="of signatures: which tilings")
    parser.add_argument("--arch", action="append", default=[], metavar="gfx942")


def declared(options: argparse.Namespace, name: str) -> Registry:
    """Return the kernels of the signatures and profiles that were named."""
    registry = Registry(name)
    for gpu in options.arch or [all_archs()[0].name]:
        for profile in options.profile:
            registry.declare_profile(profile, gpu, dtypes=options.element, heads=options.head)
        for text in options.signature:
            problem, functions = FAMILIES["gemm"].spelling.problem(text, (1, 1, 1))
            registry.declare(problem.signature, functions, gpu, options.preset)
    return registry


def run(options: argparse.Namespace) -> int:
    """Do the action; the status of ``build`` is 1 if a kernel was not built."""
    return _ACTIONS[options.action](options)


def read(path: Path) -> Registry:
    """Return the registry of a file."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise error("K049", path=path, problem=str(problem)) from problem
    registry = Registry.from_json(data)
    for kernel in registry:
        key = kernel.key
        rules = family_of(key.signature).rules
        for rejection in rules.rejections(key.algorithm, key.signature, arch(key.arch)):
            raise error("K103", label=key.label, path=path, rejection=rejection)
    return registry


def _write(path: Path, registry: Registry) -> int:
    path.write_text(json.dumps(registry.to_json(), indent=1) + "\n")
    sys.stdout.write(f"{path}: {len(registry)} kernels\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    kernels = list(read(options.file))
    if options.csv:
        rows = [_every_field(kernel) for kernel in kernels]
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(sys.stdout, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return 0
    rows = [_row(kernel) for kernel in kernels]
    _table(rows, ("label", "arch", "priority", *_SHOWN))
    return 0


def _row(kernel: Kernel) -> dict[str, str]:
    algorithm = {name: getattr(kernel.key.algorithm, name, None) for name in _SHOWN}
    cells = {name: _cell(encode(value)) for name, value in algorithm.items()}
    key = kernel.key
    return {"label": key.label, "arch": key.arch, "priority": str(kernel.priority), **cells}


def _every_field(kernel: Kernel) -> dict[str, str]:
    """Return all that the JSON form says of a kernel, by ``signature.dtype_a`` and the like."""
    key = kernel.key
    about = (key.family, key.arch, key.label, str(kernel.priority))
    row = dict(zip(_KEY_COLUMNS, about, strict=True))
    for part in ("signature", "algorithm"):
        record: Mapping[str, Any] = encode(getattr(key, part)) or {}
        row |= {f"{part}.{name}": _cell(value) for name, value in record.items()}
    return row


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return "x".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _table(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> None:
    lines = [dict(zip(names, names, strict=True)), *rows]
    widths = {name: max(len(line[name]) for line in lines) for name in names}
    for line in lines:
        text = "  ".join(line[name].ljust(widths[name]) for name in names)
        sys.stdout.write(f"{text.rstrip()}\n")


def _build(options: argparse.Namespace) -> int:
    with asked_workers(options) as executor:
        summary = read(options.file).build(executor=executor)
    sys.stdout.write(f"{summary}\n")
    return 1 if summary.failures else 0


def _export(options: argparse.Namespace) -> int:
    registry = declared(options, options.file.stem)
    if not len(registry):
        raise error("K041")
    return _write(options.file, registry)


def _merge(options: argparse.Namespace) -> int:
    registry = Registry(options.file.stem)
    for source in options.sources:
        registry.merge(read(source))
    return _write(options.file, registry)


def _select(options: argparse.Namespace) -> int:
    problem, functions = FAMILIES["gemm"].spelling.problem(
        options.signature, tuple(options.extents)
    )
    chosen = select(
        problem,
        registry=read(options.file),
        arch=options.arch,
        strategy=options.strategy,
        functions=functions,
    )
    sys.stdout.write(f"{chosen}\n")
    legal = chosen.pool.legal(chosen.problem)
    try:
        times = [f"{us:.2f}" for us in chosen.pool.times_of(chosen.problem)]
    except CkError:
        times = [""] * len(chosen.pool)
    rows = [
        {
            "": "*" if place == chosen.position else "",
            "kernel": key.label,
            "predicted µs": times[place] if legal[place] else "not legal",
        }
        for place, key in enumerate(chosen.pool.keys)
    ]
    _table(rows, ("", "kernel", "predicted µs"))
    return 0


_ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "show": _show,
    "build": _build,
    "export": _export,
    "merge": _merge,
    "select": _select,
}
