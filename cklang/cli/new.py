# SPDX-License-Identifier: MIT
"""``cklang new``: write a file to start from: an op, what it should compute, and a test.

cklang new op linear_relu
"""

import argparse
import keyword
import sys
from pathlib import Path

from cklang.errors import error

TEMPLATE = '''\
"""{name}: an op, what it should compute, and a property test.

    python {file}          # run it
    pytest {file}          # test it on drawn shapes, strides and numbers
    cklang explain {file}:{name} M=384 N=512 K=256
"""

import numpy as np

import cklang as ck
from cklang.testing import check

M, N, K = ck.dims("M N K")


@ck.op
def {name}(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T + bias)


def expected(x, w, bias):
    """Say in NumPy what the op should compute; arrays of floats are float64 here."""
    return np.maximum(x @ w.T + bias, 0)


def test_{name}():
    check({name}, expected, dims={{"K": [32, 64, 200]}}, examples=10)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    shapes = ((384, 256), (512, 256), (512,))
    x, w, bias = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
    print({name}(x, w, bias))
'''


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("what", choices=["op"], help="what to begin with")
    parser.add_argument("name", help="the name of the function")
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="where to (default: test_NAME.py, for pytest)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the file.

    Raises:
        CkValueError: A144, the name is no Python identifier; A145, the file exists.
    """
    name = options.name
    if not name.isidentifier() or keyword.iskeyword(name):
        raise error("A144", name=name)
    path = options.file or Path(f"test_{name}.py")
    if path.exists():
        raise error("A145", path=path)
    path.write_text(TEMPLATE.format(name=name, file=path.name), encoding="utf-8")
    sys.stdout.write(f"{path}: run it with python, test it with pytest\n")
    return 0
