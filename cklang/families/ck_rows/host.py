# SPDX-License-Identifier: MIT
"""The host shim of CK Tile's kernels of rows that have more tensors than lines do, from Python.

The C side is ``include/cklang/wide_lines.h``; the struct layouts here mirror it.
"""

import ctypes
from dataclasses import replace

from cklang.device.host_shim import HostShim
from cklang.families.lines import MAX_TENSORS, LinesRequest, LinesShim

MORE_TENSORS = 2
"""CK_LINES_MORE_TENSORS."""


class _Wide(ctypes.Structure):
    _fields_ = (
        ("lines", type(LinesShim.to_c(LinesRequest(outer=(), inner=(), tensors=())))),
        ("more", ctypes.c_void_p * MORE_TENSORS),
    )


def _to_c(request: LinesRequest) -> _Wide:
    first, more = request.tensors[:MAX_TENSORS], request.tensors[MAX_TENSORS:]
    wide = _Wide(lines=LinesShim.to_c(replace(request, tensors=first)))
    for place, tensor in enumerate(more):
        wide.more[place] = tensor.pointer
    return wide


class WideLinesShim(HostShim[LinesRequest]):
    """A loaded ``host.so`` of a kernel of lines of up to six tensors."""

    symbol = LinesShim.symbol
    version_symbol = LinesShim.version_symbol
    version = LinesShim.version
    to_c = staticmethod(_to_c)
