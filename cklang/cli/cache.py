# SPDX-License-Identifier: MIT
"""``cklang cache``: list, check, locate, shrink or empty the kernel cache."""

import argparse
import sys

from cklang.build.store import Store

DEFAULT_GIGABYTES = 20


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "action",
        choices=["ls", "clear", "path", "trim", "verify"],
        help="ls: list entries; clear: remove all; path: print the folder; trim: remove what was "
        "used least recently; verify: check each byte",
    )
    parser.add_argument(
        "--most",
        type=float,
        default=DEFAULT_GIGABYTES,
        metavar="GB",
        help=f"trim: how much may stay, in gigabytes (default: {DEFAULT_GIGABYTES})",
    )


def run(options: argparse.Namespace) -> int:
    """Do the action; verify returns 1 if an entry is damaged."""
    if options.action == "trim":
        return _trim(Store(), options.most)
    status: int = {"ls": _list, "clear": _clear, "path": _path, "verify": _verify}[options.action](
        Store()
    )
    return status


def _list(store: Store) -> int:
    total = count = 0
    for entry in store.entries():
        name = entry.record["inputs"].get("arch", "")
        line = f"{entry.kind:8} {entry.digest[:12]} {entry.bytes:10,d} B {entry.seconds:7.2f} s"
        sys.stdout.write(f"{line}  {entry.record['created']}  {name}\n")
        total, count = total + entry.bytes, count + 1
    sys.stdout.write(f"{count} entries, {total:,d} bytes in {store.root}\n")
    return 0


def _clear(store: Store) -> int:
    store.clear()
    sys.stdout.write(f"cleared {store.root}\n")
    return 0


def _trim(store: Store, gigabytes: float) -> int:
    count, removed = store.trim(int(gigabytes * 1e9))
    sys.stdout.write(f"removed {count} entries, {removed:,d} bytes, from {store.root}\n")
    return 0


def _path(store: Store) -> int:
    sys.stdout.write(f"{store.root}\n")
    return 0


def _verify(store: Store) -> int:
    intact, damaged = store.verify()
    for damage in damaged:
        sys.stdout.write(f"damaged: {damage.folder}: {damage.problem}\n")
    sys.stdout.write(f"{intact} entries are whole, {len(damaged)} damaged\n")
    return 1 if damaged else 0
