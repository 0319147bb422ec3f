# SPDX-License-Identifier: MIT
"""``cklang generate``: write the C++ of kernels into a folder, with a manifest.

Nothing is compiled. The kernels are those of a registry's file, of spelled signatures, or of
attention profiles.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from cklang.build.builder import source_of
from cklang.cli import registry as files
from cklang.errors import error

MANIFEST = "manifest.json"
"""The file that names the others: for each kernel its key, functions, file and SHA-256."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder")
    parser.add_argument("--registry", type=Path, metavar="FILE", help="a registry as JSON")
    files.add_declarations(parser)


def run(options: argparse.Namespace) -> int:
    """Write a file and print a line for each kernel."""
    registry = files.declared(options, str(options.out))
    if options.registry is not None:
        registry.merge(files.read(options.registry))
    if not len(registry):
        raise error("K041")
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number, kernel in enumerate(registry, start=1):
        path = options.out / f"{kernel.key.label}.hip"
        text = source_of(kernel.key, kernel.functions).inline
        path.write_text(text)
        rows.append(
            {
                "file": path.name,
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
                "key": kernel.key.to_json(),
                "functions": dict(kernel.functions.texts),
            }
        )
        sys.stdout.write(f"{number} of {len(registry)}: {path}\n")
    manifest = {"version": 1, "kernels": rows}
    (options.out / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return 0
