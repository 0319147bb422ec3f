# SPDX-License-Identifier: MIT
"""The program behind ``cklang debug file.py:op M=64``, profile and check: one call of an op."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cklang import knobs
from cklang.cli.target import add_target, filled_arguments, load_op, named_values, parsed
from cklang.emulator.debugger.expressions import format_name_of
from cklang.emulator.debugger.session import tensors_of
from cklang.errors import CkError


def main() -> int:
    """Call the op, after its tensors are named for the debugger."""
    parser = argparse.ArgumentParser()
    add_target(parser)
    options = parsed(parser, None)
    try:
        op = load_op(options.op)
        arguments = filled_arguments(op, named_values(options))
        results = [
            np.empty(result.shape, result.dtype.numpy)
            for result in op._bound((), arguments).results
        ]
        names = ["out"] if len(results) == 1 else [f"out{n}" for n in range(len(results))]
        tensors = {**arguments, **dict(zip(names, results, strict=True))}
        socket = knobs.DEBUGGER.get()
        if socket is not None:
            _name_tensors(tensors_of(socket), tensors)
        out = results[0] if len(results) == 1 else tuple(results)
        op(**arguments, out=out, device=options.device)
    except CkError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


def _name_tensors(path: Path, tensors: Mapping[str, Any]) -> None:
    arrays = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, np.ndarray)}
    rows = {
        name: (
            array.ctypes.data,
            format_name_of(array.dtype),
            array.shape,
            [step // array.itemsize for step in array.strides],
        )
        for name, array in arrays.items()
    }
    path.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
