# SPDX-License-Identifier: MIT
# needs: emulator

# %% [markdown]
# # Your own kernel family
#
# A kernel that no op expresses, written in HIP C++: its identity, its source, its launch on the emulated GPU, and what is missing until ops use it.
#
# A *family* is one way of computing. Each is a folder of `cklang/families`. The smallest ones have a kernel for each *signature* and nothing to choose. Here is such a family in forty lines. It
# reverses the elements of each line of a tensor.
#
# ## The signature
#
# A signature says what a kernel computes: everything that is compiled in. It is a frozen record, with a name of the family and a sentence for messages.

# %%
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import cklang as ck
from cklang.keys import Key
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipSignature:
    dtype: DType

    family: ClassVar[str] = "flip"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        return f"lines of {self.dtype} in reverse order"

    def label(self, algorithm: None) -> Sequence[str]:
        return [self.family, self.dtype.name]


key = Key(FlipSignature(dtype=ck.f32), None, "gfx942")
print(key.label)
#: flip_f32_gfx942_8b3de6a5ba6f

# %% [markdown]
# A `Key` is a signature, an algorithm (none here) and a GPU. Its digest is the address of the kernel in the cache.
#
# ## The source
#
# `lower` turns a key into C++: the kernel for the GPU, and a *host shim*, a C function that says how many workgroups a problem needs and writes the kernel's arguments. Extents and strides are arguments
# of the kernel, so that one kernel serves all shapes. The headers that describe lines of tensors are shared with `sort`, `scan` and `scatter`.

# %%
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.source import KernelSource

SOURCE = """
#if !defined(__HIP_DEVICE_COMPILE__)

#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(.threads = 256, .lines = 1, .part = 0, .longest = 0)

#else

#include "cklang/lines.hpp"

// A workgroup has a line: tensors[0] is read, tensors[1] is written.
extern "C" __global__ __launch_bounds__(256) void ck_flip(ck_lines_problem args)
{
    using namespace cklang;
    using T = TYPE;
    const ck_lines_tensor &from = args.tensors[0], &to = args.tensors[1];
    const uint32_t length = line_count(args.inner);
    const T* source = static_cast<const T*>(from.data) + line_place(args.outer, from.outer, blockIdx.x);
    T* result = static_cast<T*>(const_cast<void*>(to.data)) + line_place(args.outer, to.outer, blockIdx.x);
    const int64_t step = from.inner[CK_LINES_AXES - 1], stride = to.inner[CK_LINES_AXES - 1];
    for(uint32_t at = threadIdx.x; at < length; at += blockDim.x)
        result[(length - 1 - at) * stride] = source[at * step];
}

#endif
"""


def lower_flip(key, functions):
    text = SOURCE.replace("TYPE", {"f32": "float", "i32": "int"}[key.signature.dtype.name])
    return KernelSource(
        stencil=text,
        fill="",
        hole="",
        kernel="ck_flip",
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )

# %% [markdown]
# ## The family
#
# `HelperFamily` is the base class of families with one kernel for each signature. `add_family` lets the builder find it by the name in a key.

# %%
from cklang.build.builder import shared_builder
from cklang.families import add_family
from cklang.families.protocol import HelperFamily
from cklang.fusion.functions import NO_FUNCTIONS

add_family(HelperFamily("flip", FlipSignature, lower_flip))
(artifact,) = shared_builder().build_all([(key, NO_FUNCTIONS)])
print(artifact.key.label, "is built:", artifact.code_object.stat().st_size > 0)
#: flip_f32_gfx942_8b3de6a5ba6f is built: True

# %% [markdown]
# The builder compiled the text for gfx942 and the shim for this machine, and keeps both in the cache. The second run of this script compiles nothing.
#
# ## A launch
#
# A `Stage` is one launch before there are addresses: which kernel, which values it reads and writes, and the request to its host shim. `Lines` describes the tensors: extents of the axes that count lines,
# the length of a line, and strides in elements. Here the source is transposed in memory, so its lines are strided.

# %%
from cklang.device.device import open_device
from cklang.families.lines import Lines, LinesShim, LineTensor
from cklang.families.stage import Stage
from cklang.runtime.standalone_launch import standalone_launch

x = np.arange(12, dtype=np.float32).reshape(4, 3).T  # [3, 4], strides (1, 3)
y = np.zeros((3, 4), np.float32)
lines = Lines(
    outer=(3,),
    length=4,
    tensors=(LineTensor(outer=(1,), inner=(3,)), LineTensor(outer=(4,), inner=(1,))),
)
stage = Stage(
    key=key,
    problem=lines,
    shim=LinesShim,
    values=("x", "y"),
    written=frozenset({"y"}),
    request=lines.request,
)
addresses = {"x": x.ctypes.data, "y": y.ctypes.data}
with standalone_launch(open_device("emu:gfx942"), [stage], [artifact], addresses) as launch:
    launch()
print(y)
print((y == x[:, ::-1]).all())
#: [[ 9.  6.  3.  0.]
#:  [10.  7.  4.  1.]
#:  [11.  8.  5.  2.]]
#: True

# %% [markdown]
# The emulated GPU reads host memory, so the arrays are used in place.
#
# ## Until ops use it
#
# A family of cklang itself has three more parts. `cklang/families/sort` is a short example of each:
#
# 1. An op of the IR with its shape rule and its meaning in NumPy (`cklang/ir/ops.py`, `cklang/reference`), and a function of the language (`cklang/frontend/ops`). From the meaning come the reference and
#    the bound of every test.
# 2. `fusion`: its `makers`, how fusion makes a kernel of the op, and what may join it (`fuse.py`).
# 3. `problem` and `plan`: from the layouts of a call to launches (`family.py`). A family with several algorithms has rules, a search space and a cost model as well.
#
# [Internals](../internals.md#the-family-protocol) lists all members of the protocol.
