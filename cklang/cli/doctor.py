# SPDX-License-Identifier: MIT
"""``cklang doctor``: print what was found on this machine, what was not, and what would get it."""

import argparse
import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterator

from cklang import knobs
from cklang.build.store import Store
from cklang.errors import CkError
from cklang.toolchain.paths import cache_root

_PACKAGES = ("cklang", "hip-python", "numpy", "ml_dtypes", "ziglang", "amd-aiter", "torch")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--specs", action="store_true", help="check arch_specs against the CK Tile headers instead"
    )
    parser.add_argument(
        "--compile", action="store_true", help="with --specs: compile every warp tile too"
    )


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if kernels can be neither built nor run."""
    if options.specs:
        from cklang.cli import specs

        return specs.run(options.compile)
    sound = True
    for title, look in _LOOKS.items():
        try:
            lines = list(look())
        except CkError as problem:
            lines, sound = str(problem).splitlines(), False
        sys.stdout.write(f"{title}\n")
        for line in lines:
            sys.stdout.write(f"  {line}\n")
    return 0 if sound else 1


def _packages() -> Iterator[str]:
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} is not installed"


def _compiler() -> Iterator[str]:
    from cklang.toolchain.compilers import find_toolchain

    toolchain = find_toolchain()
    yield f"{toolchain.version} ({toolchain.kind.value})"
    yield str(toolchain.program)


def _headers() -> Iterator[str]:
    from cklang.toolchain.compilers import find_ck_tree

    tree = find_ck_tree()
    yield tree.source
    yield str(tree.include)


def _devices() -> Iterator[str]:
    from cklang.device.device import target_of

    yield f"calls run on: {target_of()}"
    from cklang.arch import all_archs

    emulated = ", ".join(f"emu:{spec.name} ({spec.product})" for spec in all_archs())
    yield f"emulated devices: {emulated}"


def _cache() -> Iterator[str]:
    entries = list(Store().entries())
    size = sum(entry.bytes for entry in entries)
    yield f"{cache_root()}: {len(entries)} entries, {size:,d} bytes"


def _knobs() -> Iterator[str]:
    for knob in knobs.ALL:
        yield f"{knob.name} = {knob.get()}  ({knob.doc})"


_LOOKS: dict[str, Callable[[], Iterator[str]]] = {
    "packages": _packages,
    "compiler": _compiler,
    "CK Tile headers": _headers,
    "devices": _devices,
    "kernel cache": _cache,
    "environment": _knobs,
}
