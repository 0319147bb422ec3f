# SPDX-License-Identifier: MIT
"""GEMM: a kernel key and an epilogue function become CK Tile C++ and the C that fills it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from cklang.errors import error
from cklang.ir.nodes import Function
from cklang.keys import Algorithm, DKind, KernelKey, Layout, Signature
from cklang.lowering.pipelines import PIPELINES
from cklang.lowering.pointwise import c_function, c_type
from cklang.types import DType, bf16, bool_, f16, f32

if TYPE_CHECKING:
    import jinja2

__all__ = ["HOLE", "KernelSource", "default_algorithms", "lower"]

HOLE = "ck_epilogue"
"""The symbol that a stencil leaves open."""

_LAYOUTS = {Layout.ROW: "Row", Layout.COL: "Column"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """The texts of one kernel."""

    stencil: str
    """HIP C++ with two faces: device pass, the kernel with its epilogue open; host pass, the host
    face. Equal for all kernels whose keys differ in the epilogue only."""
    fill: str
    """Plain C that defines the epilogue."""
    hole: str
    """Symbol of the epilogue function."""
    kernel: str
    """Symbol of the kernel."""

    @property
    def inline(self) -> str:
        """The kernel as one text: what a stencil and its fill are together."""
        return f"{self.stencil}\n{self.fill}"


def lower(key: KernelKey, epilogue: Function, source_lines: Sequence[str] = ()) -> KernelSource:
    """Return the source of the kernel ``key`` whose epilogue is ``epilogue``.

    Args:
        key: What to compute, how, and for which GPU.
        epilogue: A region (acc, d0, d1, ...) to one f32, with a parameter for each D operand.
        source_lines: The user's Python, written as comments above the function.

    Raises:
        CkInternalError: L002, region and signature disagree; L003, the algorithm has a choice for
            which there is no CK Tile spelling here.
    """
    _check(key, epilogue)
    kernel = _kernel_name(key)
    text = _template().render(_context(key, epilogue, kernel))
    return KernelSource(
        stencil=text,
        fill=c_function(epilogue, HOLE, source_lines),
        hole=HOLE,
        kernel=kernel,
    )


def _check(key: KernelKey, epilogue: Function) -> None:
    s, a = key.signature, key.algorithm
    want = ["float", *(c_type(d.dtype) for d in s.d)]
    got = [c_type(p.type.dtype) for p in epilogue.params]
    if want != got or len(a.vector_d) != len(s.d):
        raise error("L002", want=", ".join(want), got=", ".join(got), vectors=a.vector_d)
    row = PIPELINES[a.pipeline]
    rows_and_columns = (Layout.ROW, Layout.COL)
    legal: dict[str, tuple[object, tuple[object, ...]]] = {
        "layout_e": (s.layout_e, (Layout.ROW,)),
        "dtype_acc": (s.dtype_acc, (f32,)),
        "split_k": (a.split_k, (1,)),
        "scheduler": (a.scheduler, row.schedulers),
        "double_buffer": (a.double_buffer, (row.buffers == 2,)),
        "num_wave_groups": (a.num_wave_groups, (row.wave_groups,)),
        "transpose_c": (a.transpose_c, (False, True) if row.transposed else (False,)),
        "persistent": (a.persistent, (False,) if row.wave_groups > 1 else (False, True)),
        "layout_a": (s.layout_a, rows_and_columns if row.any_layout else (Layout.ROW,)),
        "layout_b": (s.layout_b, rows_and_columns if row.any_layout else (Layout.COL,)),
    }
    for name, (value, choices) in legal.items():
        if value not in choices:
            raise error("L003", name=name, got=value, want=" or ".join(map(str, choices)))


def _kernel_name(key: KernelKey) -> str:
    s, a = key.signature, key.algorithm
    tile = "x".join(map(str, a.tile))
    return f"ck_gemm_{s.dtype_a}_{s.dtype_b}_{s.dtype_e}_{s.layouts}_{tile}"


def _context(key: KernelKey, epilogue: Function, kernel: str) -> dict[str, object]:
    s, a = key.signature, key.algorithm
    flags = ("pad_m", "pad_n", "pad_k", "double_buffer", "transpose_c", "persistent")
    types = [c_type(p.type.dtype) for p in epilogue.params]
    names = ["acc", *(f"d{i}" for i in range(len(s.d)))]
    count = range(len(s.d))
    return {
        "wide": s.dtype_a.bytes > 2,
        "key_json": json.dumps(key.stencil.to_json(), sort_keys=True),
        "a": s.dtype_a,
        "b": s.dtype_b,
        "acc": s.dtype_acc,
        "e": s.dtype_e,
        "layout_a": _LAYOUTS[s.layout_a],
        "layout_b": _LAYOUTS[s.layout_b],
        "layout_e": _LAYOUTS[s.layout_e],
        "operands": [
            {"type": _stored(d.dtype), "kind": d.kind.value, "vector": vector}
            for d, vector in zip(s.d, a.vector_d, strict=True)
        ],
        "tile": _list(a.tile),
        "warps": _list(a.warps),
        "warp_tile": _list(a.warp_tile),
        "warps_m": a.warps[0],
        "warps_n": a.warps[1],
        "warp_tile_m": a.warp_tile[0],
        "warp_tile_n": a.warp_tile[1],
        "warp_tile_k": a.warp_tile[2],
        **{name: str(getattr(a, name)).lower() for name in flags},
        **_pipeline(a),
        "epilogue": a.epilogue.value,
        "num_wave_groups": a.num_wave_groups,
        "vector_a": a.vector_a,
        "vector_b": a.vector_b,
        "vector_e": a.vector_e,
        "block_per_cu": a.block_per_cu,
        "d_types": _list(f"D{i}::DataType" for i in count),
        "d_layouts": _list("Row" for _ in count),
        "d_names": "".join(f", D{i}" for i in count),
        "hole": HOLE,
        "hole_result": c_type(epilogue.results[0].type.dtype),
        "hole_types": _list(types),
        "hole_params": _list(f"{t} {n}" for t, n in zip(types, names, strict=True)),
        "hole_args": _list(names),
        "kernel": kernel,
        "gfx_major": key.arch.removeprefix("gfx")[:-2],
    }


def _pipeline(algorithm: Algorithm) -> dict[str, object]:
    row = PIPELINES[algorithm.pipeline]
    lds = "cklang::mainloop_lds<Shape, A, B>"
    if row.buffers > 1:
        lds = f"{row.buffers} * {lds}"
    if row.acc_in_lds:
        lds = f"ck_tile::max({lds}, cklang::acc_lds<Shape, AccType>)"
    return {
        "headers": row.headers,
        "pipeline": row.ck,
        "policy": row.policy,
        "scheduler": algorithm.scheduler.value.capitalize(),
        "tail": row.tail,
        "step": row.step or 1,
        "loop_lds": lds,
    }


def _stored(dtype: DType) -> str:
    """Return the C++ type that an operand is loaded as; buffer loads know bytes but no bool."""
    return "ck_tile::int8_t" if dtype is bool_ else dtype.ck


def _list(items: object) -> str:
    return ", ".join(map(str, items))  # type: ignore[call-overload]


@cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (C++, not HTML)
    )
    return environment.get_template("gemm.hip.j2")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tiling:
    tile: tuple[int, int, int]
    warps: tuple[int, int, int]
    warp_tile: tuple[int, int, int]


# Per element type: first the tile for large problems, then one of a quarter of its size, which
# gives small problems four times as many workgroups. All run without spills on every GPU below.
_SIXTEEN_BITS = (
    _Tiling(tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16)),
    _Tiling(tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32)),
)
_THIRTY_TWO_BITS = (
    _Tiling(tile=(128, 128, 16), warps=(2, 2, 1), warp_tile=(16, 16, 16)),
    _Tiling(tile=(64, 64, 16), warps=(2, 2, 1), warp_tile=(16, 16, 16)),
)
_TILINGS = {(f16, f16): _SIXTEEN_BITS, (bf16, bf16): _SIXTEEN_BITS, (f32, f32): _THIRTY_TWO_BITS}
_ARCHS = ("gfx90a", "gfx942", "gfx950")

_WIDTHS = (16, 4, 1)
"""Bytes of a vector access, best first; 1 stands for one element."""


def default_algorithms(signature: Signature, arch: str) -> tuple[Algorithm, ...]:
    """Return the algorithms to try for ``signature``, best first; empty if none is known.

    For each tile: all widths of vector accesses along the axes that are contiguous in some
    operand, widest first. The last one of each tile moves single elements and so fits any
    extent, stride and alignment.
    """
    tilings = _TILINGS.get((signature.dtype_a, signature.dtype_b), ())
    if arch not in _ARCHS or signature.layout_e is not Layout.ROW:
        return ()
    return tuple(
        _algorithm(signature, tiling, widths) for tiling in tilings for widths in _widths(signature)
    )


def _axes(signature: Signature) -> tuple[str, str]:
    """The contiguous axes of A and of B."""
    a = "k" if signature.layout_a is Layout.ROW else "m"
    b = "n" if signature.layout_b is Layout.ROW else "k"
    return a, b


def _widths(signature: Signature) -> list[dict[str, int]]:
    """Every choice of a width for each contiguous axis, those that move most bytes first."""
    axes = sorted({*_axes(signature), "n"})
    choices = [
        dict(zip(axes, widths, strict=True)) for widths in product(_WIDTHS, repeat=len(axes))
    ]
    distinct = {_vectors(signature, choice): choice for choice in reversed(choices)}
    return sorted(distinct.values(), key=lambda c: [-sum(c.values()), -c.get("k", 0)])


def _algorithm(signature: Signature, tiling: _Tiling, widths: dict[str, int]) -> Algorithm:
    vector_a, vector_b, vector_e, *vector_d = _vectors(signature, widths)
    return Algorithm(
        tile=tiling.tile,
        warps=tiling.warps,
        warp_tile=tiling.warp_tile,
        vector_a=vector_a,
        vector_b=vector_b,
        vector_e=vector_e,
        vector_d=tuple(vector_d),
    )


def _vectors(signature: Signature, widths: dict[str, int]) -> tuple[int, ...]:
    axis_a, axis_b = _axes(signature)
    e = _elements(signature.dtype_e, widths["n"])
    ds = [
        # A thread owns vector_e neighbours of E, so wider loads of D would not be used.
        min(e, _elements(d.dtype, widths["n"])) if d.kind in (DKind.FULL, DKind.ROW) else 1
        for d in signature.d
    ]
    a = _elements(signature.dtype_a, widths[axis_a])
    b = _elements(signature.dtype_b, widths[axis_b])
    return (a, b, e, *ds)


def _elements(dtype: DType, width: int) -> int:
    return max(1, width // dtype.bytes)
