# SPDX-License-Identifier: MIT
"""An op named on the command line, and arguments for it made from extents alone."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cklang.codec import dtype_of
from cklang.errors import error
from cklang.runtime.op import Op
from cklang.types import Blocks, Dim, TensorType, TensorVarType

__all__ = ["add_target", "arguments_of", "load_op"]


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the options that name an op and its problem."""
    several = {"nargs": "?"} if optional else {}
    parser.add_argument("op", help="file.py:name or package.module:name", **several)  # type: ignore[arg-type]
    parser.add_argument(
        "sizes", nargs="*", metavar="M=384", help="the extent of each dim of the op"
    )
    parser.add_argument(
        "--dtype", action="append", default=[], metavar="T=f16", help="what a dtype variable is"
    )
    parser.add_argument("--device", help="emu:gfx942, hip:0 (default: as in a call)")


def load_op(name: str) -> Op:
    """Return the op called ``name``.

    Raises:
        CkValueError: Z010, there is no such module or op.
    """
    place, _, attribute = name.rpartition(":")
    if not place:
        raise error("Z010", name=name, problem="it must be file.py:name or package.module:name")
    found = getattr(_module(name, place), attribute, None)
    if not isinstance(found, Op):
        raise error("Z010", name=name, problem=f"{place} has no op called {attribute!r}")
    return found


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
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _pairs(words: list[str], what: str) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise error("K002", what=what, want="NAME=VALUE", got=word)
        pairs[name] = value
    return pairs


def arguments_of(op: Op, options: argparse.Namespace) -> dict[str, Any]:
    """Return empty arrays of the sizes that were named; nothing of them is ever touched.

    Raises:
        CkValueError: K002, a dim or a dtype variable is missing or unknown.
    """
    sizes = {name: _extent(text) for name, text in _pairs(options.sizes, "a size").items()}
    dtypes = _pairs(options.dtype, "a dtype")
    made: dict[str, Any] = {}
    for parameter in op.program.signature.tensors:
        type_ = parameter.type
        if not isinstance(type_, TensorType | TensorVarType):
            continue
        shape = tuple(_size(extent, sizes) for extent in type_.shape)
        if isinstance(type_, TensorVarType):
            dtype = dtype_of(_named(dtypes, type_.var.name, "a dtype"))
        else:
            dtype = type_.dtype
        made[parameter.name] = np.empty(shape, dtype.numpy)
    _expect_used(op, sizes, dtypes)
    return made


def _size(extent: Dim | int, sizes: dict[str, int]) -> int:
    if isinstance(extent, Blocks):
        return extent.count(_size(extent.of, sizes))
    return int(_named(sizes, extent.name, "a size")) if isinstance(extent, Dim) else extent


def _expect_used(op: Op, sizes: dict[str, int], dtypes: dict[str, str]) -> None:
    signature = op.program.signature
    known = set(signature.variables)
    for parameter in signature.tensors:
        if isinstance(parameter.type, TensorType | TensorVarType):
            known |= {
                extent.name
                for extent in parameter.type.shape
                if isinstance(extent, Dim) and not isinstance(extent, Blocks)
            }
    for name in (*sizes, *dtypes):
        if name not in known:
            raise error("K002", what="a name", want=f"one of {', '.join(sorted(known))}", got=name)


def _extent(text: str) -> int:
    if not text.isdigit():
        raise error("K002", what="a size", want="an integer of 0 or more", got=text)
    return int(text)


def _named(values: dict[str, Any], name: str, what: str) -> Any:
    if name not in values:
        raise error("K002", what=f"{what} for {name}", want=f"given as {name}=...", got="nothing")
    return values[name]
