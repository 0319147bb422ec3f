# SPDX-License-Identifier: MIT
"""Index arrays of ``take`` and ``take_along`` in host memory, checked before each launch.

Those in a GPU's memory are not read here, and neither are computed indices: kernels limit each
index to its axis.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cklang.device.arrays import Array
from cklang.families.index_arrays import HostIndices, HostList
from cklang.ir.indices import GATHER_AXES
from cklang.ir.nodes import Function, Value
from cklang.ir.ops import OPS, Kind


def host_indices(
    body: Function, arrays: Mapping[str, Array], dims: Mapping[str, int]
) -> HostIndices | None:
    """Return the index arrays that a kernel reads; None if it reads none."""
    slots = {name: slot for slot, name in enumerate(arrays)}
    lists = {
        (name, extent): HostList.of("", name, slots[name], arrays[name])
        for name, extent in _indices(body, dims)
        if name in arrays
    }
    if not lists:
        return None
    return HostIndices(lists=tuple((indices, extent) for (_, extent), indices in lists.items()))


def _indices(body: Function, dims: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the name of each tensor of indices, and the extent of the axis that it indexes."""
    definitions = body.definitions()
    for operation in body.body:
        if operation.op in GATHER_AXES:
            table, indices = operation.operands
            axis = int(str(operation.attr("axis")))
            yield _source(indices, definitions).name, table.type.extents(dims)[axis]


def _source(value: Value, definitions: Mapping[str, Any]) -> Value:
    """Return the value that another one transposes or repeats."""
    operation = definitions.get(value.name)
    while operation is not None and OPS[operation.op].kind is Kind.SHAPE:
        (value,) = operation.operands
        operation = definitions.get(value.name)
    return value
