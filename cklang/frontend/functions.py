# SPDX-License-Identifier: MIT
"""The functions of the language: names that mean an op of the IR inside ``@ck.op`` and ``@ck.fn``.

Inside a program they become ops. Called anywhere else they compute the same op on NumPy arrays (or
numbers) with its NumPy meaning, so the undecorated Python function of a program that uses them is
runnable NumPy.
"""

from cklang.frontend.ops import (
    attention as attention_functions,
)
from cklang.frontend.ops import (
    convolution,
    experts,
    movement,
    order,
    pointwise,
    pooling,
    reduction,
    sampling,
    scaled,
)
from cklang.frontend.ops import (
    einsum as einsum_functions,
)
from cklang.frontend.ops import (
    scatter as scatter_functions,
)
from cklang.frontend.ops.attention import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.convolution import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.einsum import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.experts import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.movement import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.order import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.pointwise import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.pooling import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.reduction import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.sampling import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.scaled import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.scatter import *  # noqa: F403 - the names of its __all__

__all__ = [
    *attention_functions.__all__,
    *convolution.__all__,
    *einsum_functions.__all__,
    *experts.__all__,
    *movement.__all__,
    *order.__all__,
    *pointwise.__all__,
    *pooling.__all__,
    *reduction.__all__,
    *sampling.__all__,
    *scaled.__all__,
    *scatter_functions.__all__,
]
