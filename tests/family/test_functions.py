# SPDX-License-Identifier: MIT
"""Functions that are computed in double precision, and their relatives, in kernels."""

import numpy as np
import pytest

from tests.support.checks import check
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("compiler")

ONE = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("cbrt", "erfc", "log10", "logsigmoid", "selu", "sinc", "nan_to_num"),
)
TWO = ("atan2", "hypot", "fmod", "copysign", "logaddexp", "fmax", "xlogy")
FLAGS = ("isfinite", "isinf", "signbit")


@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("name", [*ONE, *TWO, *FLAGS])
def test_a_function_in_a_kernel_is_within_its_bound(name: str, gpu: str) -> None:
    rng = np.random.default_rng(9)
    ordinary = np.concatenate([rng.uniform(-1, 1, 40), rng.normal(0, 30, 40)])
    far = rng.choice([-1, 1], 30) * 10.0 ** rng.uniform(-30, 30, 30)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1.5, 3.0, 2.0]
    x = np.concatenate([ordinary, far, special]).astype(np.float32).reshape(4, 30)
    call = f"ck.{name}(x, y)" if name in TWO else f"ck.{name}(x)"
    words = f"ck.where({call}, 1.0, 0.0) + y" if name in FLAGS else call
    words = words if "y" in words else f"{words} + 0.0 * y"
    op = expression_op("x: ck.f32[M, N], y: ck.f32[M, N]", "ck.f32[M, N]", words)
    y = rng.permutation(x.ravel()).reshape(x.shape) if name in TWO else np.ones_like(x)
    # The sine of a product whose last bit is more than a period may be anything.
    check(op, (x, y), gpu, unchecked=0.1 if name == "sinc" else 0.05)
