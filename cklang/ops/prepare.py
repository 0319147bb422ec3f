# SPDX-License-Identifier: MIT
"""``ck.prepare``: a weight put once into the order in which a kernel's lanes take it.

The kernels of CK Tile's preshuffle pipeline read such a B from memory straight into registers. The
result of :func:`prepare` stands where the op's weight stands, and knows its order; a kernel that
takes another order is refused by the rule ``prepared-b``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cklang.arch import arch as arch_named
from cklang.codec import dtype_of
from cklang.device import arrays
from cklang.device.arrays import HOST, Array, Library
from cklang.device.preshuffle import Arrangement, arrangement_of
from cklang.errors import error
from cklang.families import plan_of
from cklang.families.gemm.key import Layout, Signature, accumulator
from cklang.families.gemm.pairs import products_of
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.plan import View
from cklang.selection.context import current, device_of
from cklang.selection.rules import candidates
from cklang.types import DType, TensorVarType

if TYPE_CHECKING:
    from cklang.runtime.op import Op

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedWeight:
    """A weight in the order of one warp tile; made by :func:`prepare`, given to the op.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> w = np.ones((64, 128), np.float16)
        >>> prepared = ck.prepare(w, linear, device="emu:gfx942")
        >>> prepared.shape, prepared.dtype, prepared.arch
        ((64, 128), ck.f16, 'gfx942')
    """

    data: NDArray[Any] = field(repr=False)
    """[tiles along N, elements]: see :class:`cklang.device.preshuffle.Arrangement`."""
    shape: tuple[int, int]
    """As the op's parameter has it."""
    dtype: DType
    k_axis: int
    """Which axis of ``shape`` the product sums over."""
    arrangement: Arrangement
    arch: str
    """The GPU that it was prepared for; others may have kernels of the same order."""

    def unpack(self) -> NDArray[Any]:
        """Return the weight in its original order.

        Example:
            >>> bool((prepared.unpack() == w).all())
            True
        """
        k, n = self.shape[self.k_axis], self.shape[1 - self.k_axis]
        b = self.arrangement.restore(self.data, n, k)
        return b if self.k_axis == 0 else np.ascontiguousarray(b.T)

    def save(self, path: str | Path) -> None:
        """Write it as a NumPy archive (``.npz``) that :meth:`load` reads.

        Example:
            >>> prepared.save("w.npz")
        """
        order = self.arrangement
        numbers = (_VERSION, self.k_axis, order.n, order.k, order.lanes, *self.shape)
        with Path(path).open("wb") as file:
            np.savez(
                file,
                data=self.data.view(np.uint8),
                numbers=np.array(numbers, np.int64),
                names=np.array([self.dtype.name, self.arch]),
            )

    @staticmethod
    def load(path: str | Path) -> PreparedWeight:
        """Read what :meth:`save` wrote.

        Example:
            >>> prepared.save("w.npz")
            >>> ck.PreparedWeight.load("w.npz").arrangement == prepared.arrangement
            True

        Raises:
            CkValueError: K003, another version wrote it; K001, it names no dtype of the language.
        """
        with np.load(Path(path), allow_pickle=False) as file:
            version, k_axis, n, k, lanes, *shape = (int(x) for x in file["numbers"])
            if version != _VERSION:
                raise error("K003", what="prepared weight", got=version, want=_VERSION)
            name, gpu = (str(x) for x in file["names"])
            dtype = dtype_of(name)
            return PreparedWeight(
                data=file["data"].view(dtype.numpy),
                shape=(shape[0], shape[1]),
                dtype=dtype,
                k_axis=k_axis,
                arrangement=Arrangement(n=n, k=k, lanes=lanes),
                arch=gpu,
            )

    def __ck_array__(self, name: str) -> Array:
        """Return what a call reads."""
        strides = [0, 0]
        strides[self.k_axis], strides[1 - self.k_axis] = 1, self.shape[self.k_axis]
        return Array(
            pointer=self.data.ctypes.data,
            dtype=self.dtype,
            shape=self.shape,
            strides=tuple(strides),
            writeable=False,
            place=HOST,
            library=Library.NUMPY,
            owner=self.data,
            prepared=self.arrangement,
            k_axis=self.k_axis,
        )


def prepare(
    w: Any,
    op: Op,
    name: str | None = None,
    *,
    device: str | None = None,
    warp_tile: tuple[int, int] | None = None,
    **consts: Any,
) -> PreparedWeight:
    """Reorder the weight ``w`` of ``op`` for the kernel that would be selected for it.

    Args:
        w: A host matrix with the dtype of the op's parameter.
        op: An op that multiplies something with it: it is the second operand of a product.
        name: The parameter that ``w`` is for; may be left out if only one is such an operand.
        device: As in a call; only its GPU matters.
        warp_tile: (n, k) of the warp tile; the one of the first candidate if left out.
        **consts: Values of the op's ``ck.const`` parameters that have no default.

    Returns:
        The prepared weight, for any number of calls.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> w = ck.prepare(np.ones((64, 128), np.float16), linear, device="emu:gfx942")
        >>> linear.problems(np.ones((32, 128), np.float16), w)[0].b.layout.value
        'p'

    Raises:
        CkTypeError: A020, A021, ``w`` has another dtype or rank than the parameter.
        CkValueError: A051, the op has no such operand, or several; K028, the warp tile is none of
            the GPU's for these types.
        CkUnsupportedError: K102, the GPU has no kernel that reads such a weight.
    """
    from cklang.device.device import target_of

    weight = arrays.read("w" if name is None else name, w)
    kernel = _kernel(op, name, weight.dtype, consts)
    parameter = kernel.b.value
    if weight.dtype != parameter.type.dtype:
        type_ = parameter.type
        fix = f"ck.prepare({parameter.name}.astype(...), op)"
        raise error(
            "A020", name=parameter.name, got=weight.dtype, want=type_.dtype, type=type_, fix=fix
        )
    if len(weight.shape) != 2:
        got, type_ = len(weight.shape), parameter.type
        raise error("A021", name=parameter.name, got=got, shape=weight.shape, type=type_)
    defaults = current()
    if device is None and defaults.arch is not None:
        device = device_of(arch_named(defaults.arch))
    spec = target_of(device).spec
    algorithms = candidates(_signature(kernel), spec)
    if not algorithms:
        raise error("K102", signature=_signature(kernel).words, arch=spec.name)
    known = {
        (a.warp_tile[1], a.warp_tile[2]): arrangement_of(a.warp_tile, spec)
        for a in reversed(algorithms)
    }
    first = algorithms[0].warp_tile[1:]
    chosen = first if warp_tile is None else tuple(warp_tile)
    if chosen not in known:
        legal = ", ".join(map(str, known))
        raise error("K028", arch=spec.name, got=warp_tile, known=legal)
    k_axis = kernel.b.reads[0].axes[-2]
    matrix = arrays.to_numpy(parameter.name, w)
    return PreparedWeight(
        data=known[chosen].arrange(matrix if k_axis == 0 else matrix.T),
        shape=weight.shape,
        dtype=weight.dtype,
        k_axis=k_axis or 0,
        arrangement=known[chosen],
        arch=spec.name,
    )


def _kernel(op: Op, name: str | None, dtype: DType, consts: dict[str, Any]) -> FusedGemm:
    """Return the kernel whose second operand the parameter is."""
    parameters = op.program.parameters
    variables = [p.type.var for p in reversed(parameters) if isinstance(p.type, TensorVarType)]
    dtypes = {v.name: dtype if dtype in v.choices else v.choices[0] for v in variables}
    values = {p.name: p.default for p in parameters if p.is_const and p.has_default} | consts
    fused = plan_of(op.program.specialise(dtypes, values)).kernels
    products = chain(*(products_of(kernel) for kernel in fused if isinstance(kernel, FusedGemm)))
    weights = {p.name for p in parameters if name in (None, p.name)}
    kernels = [kernel for kernel in products if _reads_weight(kernel, weights)]
    if len({kernel.b.value.name for kernel in kernels}) != 1:
        names = ", ".join(kernel.b.value.name for kernel in kernels) or "none"
        raise error("A051", op=op.program.name, name=name or "w", found=names)
    return kernels[0]


def _reads_weight(kernel: FusedGemm, weights: Collection[str]) -> bool:
    b = kernel.b
    is_weight = isinstance(b, View) and b.value.name in weights and b.value.type.rank == 2
    return is_weight and not kernel.transposed


def _signature(kernel: FusedGemm) -> Signature:
    """Return what kernels with such a prepared B compute, whatever stands around the product."""
    a, b = kernel.a.value.type.dtype, kernel.b.value.type.dtype
    return Signature(
        dtype_a=a,
        dtype_b=b,
        dtype_acc=accumulator(a),
        dtype_e=kernel.result.type.dtype,
        layout_a=Layout.ROW,
        layout_b=Layout.PREPARED,
    )
