# SPDX-License-Identifier: MIT
"""The functions of the language: names that mean an op of the IR inside ``@ck.op`` and ``@ck.fn``.

Inside a program they become ops. Called anywhere else they compute the same op on NumPy arrays (or
numbers) with its NumPy meaning, so the undecorated Python function of a program that uses them is
runnable NumPy.
"""

from cklang.frontend.ops.attention import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.convolution import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.einsum import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.experts import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.mask_values import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.movement import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.order import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.pointwise import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.pooling import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.reduction import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.sampling import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.scaled import *  # noqa: F403 - the names of its __all__
from cklang.frontend.ops.scatter import *  # noqa: F403 - the names of its __all__
