# SPDX-License-Identifier: MIT
"""New keys and values written behind those of a cache, keys and queries turned by their positions.

With p the position of a row, R the turned width and (x, y) a pair of elements that turn together,
neighbours or R / 2 apart, rotary embedding is::

    x' = x cos[p, n] - y sin[p, n]
    y' = y cos[p, n] + x sin[p, n]        n = 0 ... R / 2 - 1, the pair
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from cklang.codec import enum_of
from cklang.device import arrays, device_array
from cklang.device.arrays import HOST, Array
from cklang.device.device import Device
from cklang.errors import error
from cklang.families.attention.helper_keys import AppendKey, AppendSignature, Rotary
from cklang.families.attention.host import AppendProblem, AppendShim, AttentionTensor
from cklang.families.bounds import encoded_for
from cklang.families.stage import Stage
from cklang.ir.attention import LENGTHS
from cklang.ir.attention_lists import check_block_table, check_range
from cklang.memo import BoundedMemo
from cklang.runtime import call_key
from cklang.runtime.bind import common_place, library_of
from cklang.runtime.call_plan import CallPlan, access_range
from cklang.runtime.planner import call_plan
from cklang.runtime.tracing import FUNCTIONS, is_traced
from cklang.selection.context import current, device_named
from cklang.types import DType, bf8, bf8_fnuz, bf16, f16, f32, fp8, fp8_fnuz, i32

_DTYPES = (f16, bf16, f32)
_NARROW = (fp8, bf8, fp8_fnuz, bf8_fnuz)
"""What caches may be beside the dtype of the new rows."""
_RESULT = "turned q"
_CACHES = ("k_cache", "v_cache")
_SCALES = {"k": "k_scale", "v": "v_scale"}
"""The scale of each kind of rows."""


def append_kv(
    k_cache: Any,
    v_cache: Any,
    k: Any,
    v: Any,
    *,
    seqlens_k: Any,
    block_table: Any = None,
    q: Any = None,
    cos: Any = None,
    sin: Any = None,
    rotary: str = "half",
    causal: bool = True,
    k_scale: Any = None,
    v_scale: Any = None,
    device: str | None = None,
) -> Any:
    """Write new rows of keys and values after those that a cache holds, in place.

    Row i of sequence b has position ``seqlens_k[b] + i`` and goes there. Lengths and pages in host
    memory are checked at each call; those on a GPU are trusted, and there a row at a position that
    the caches do not have is not written.

    Args:
        k_cache: [B, G, T, D], or [pages, G, rows of a page, D] with ``block_table``, of f16, bf16
            or f32, or of 8-bit floats, its last axis contiguous; it is written.
        v_cache: The same with a head size of its own.
        k: [B, G, N, D]: N new keys of each sequence, of f16, bf16 or f32; caches that are not of
            8-bit floats have the same dtype.
        v: [B, G, N, E].
        seqlens_k: i32[B]: how many keys each sequence has in the cache. Not changed.
        block_table: i32[B, P]: the pages of each sequence.
        q: [B, H, S, D]: queries to turn too, into a new array.
        cos: [positions, R / 2], contiguous and of the dtype of k: keys (and queries) are turned in
            their first R elements. None: nothing is turned.
        sin: The same.
        rotary: Which elements turn together: ``"interleaved"``, neighbours; ``"half"``, those R / 2
            apart.
        k_scale: What keys are divided by on their way into a cache of 8-bit floats: a number above
            0, or an array f32[1] or f32[G], one for each head. 1 if left out. The cache holds
            values rounded to nearest; those beyond its type's range become the largest.
        v_scale: The same for values.
        causal: Whether row i of q has position ``seqlens_k[b] + i``; else all have that of row 0.
        device: As in a call of an op.

    Returns:
        The turned queries, or None without ``q``.

    Example:
        >>> k_cache, v_cache = np.zeros((2, 1, 1, 8, 64), np.float16)
        >>> k, v = np.ones((2, 1, 1, 2, 64), np.float16)
        >>> held = np.array([3], np.int32)
        >>> ck.append_kv(k_cache, v_cache, k, v, seqlens_k=held)  # doctest: +SKIP
        >>> k_cache[0, 0, :, 0]  # doctest: +SKIP
        array([0., 0., 0., 1., 1., 0., 0., 0.], dtype=float16)

    Raises:
        CkValueError: A062-A070, an argument does not fit the others; A092, a scale; A026, places;
            A056, an element of ``seqlens_k`` or ``block_table`` in host memory would write outside
            of the caches.
        CkUnsupportedError: A093, the GPU has another encoding of 8-bit floats than the caches;
            D007, the kernel's own check refuses the problem.
        CkError: What reading an array and building a kernel raise.
    """
    arguments = {
        "k_cache": k_cache,
        "v_cache": v_cache,
        "k": k,
        "v": v,
        "seqlens_k": seqlens_k,
        "block_table": block_table,
        "q": q,
        "cos": cos,
        "sin": sin,
        "k_scale": k_scale,
        "v_scale": v_scale,
    }
    if is_traced():
        return _traced(arguments, rotary, causal, device)
    return _append(arguments, rotary, causal, device)


def _traced(arguments: Mapping[str, Any], rotary: str, causal: bool, device: str | None) -> Any:
    from cklang.torch.append_kv import call

    return call(arguments, rotary, causal, device)


def _append(arguments: Mapping[str, Any], rotary: str, causal: bool, device: str | None) -> Any:
    """Append, whoever traces."""
    from cklang.device.device import open_device

    scales = {name: arguments[name] for name in _SCALES.values()}
    numbers = {
        name: _positive(name, scale) for name, scale in scales.items() if isinstance(scale, Real)
    }
    arrays_of_call = {
        name: value
        for name, value in arguments.items()
        if value is not None and name not in numbers
    }
    operands = {name: arrays.read(name, value) for name, value in arrays_of_call.items()}
    turns = enum_of(Rotary, rotary) if "cos" in operands or "sin" in operands else Rotary.NONE
    _check(operands, turns, causal=causal)
    for name in numbers.keys() | (operands.keys() & _SCALES.values()):
        _check_scale(name, operands)
    place = common_place(operands)
    result = None
    if "q" in operands:
        like = operands["q"]
        result = device_array.maker(like.shape, like.dtype, like.library, place)()
        operands[_RESULT] = arrays.read(_RESULT, result)
    target_device = open_device(device_named(device, current()), place)
    moves = _moves(turns, numbers, advance=causal)
    call = _planned(operands, moves, target_device, place)
    call.run(
        [array.pointer for array in operands.values()],
        arrays.current_stream(library_of(operands), place),
    )
    arrays.note_written((arguments["k_cache"], arguments["v_cache"]))
    return result


FUNCTIONS["append_kv"] = _append


_plans: BoundedMemo[object, CallPlan] = BoundedMemo(256)


def _planned(
    operands: Mapping[str, Array], moves: tuple[_Move, ...], device: Device, place: str
) -> CallPlan:
    """Return the launches of a call, planned once for arrays of these shapes and strides."""
    key = (
        moves,
        device.name,
        *((name, call_key.face_of(array)) for name, array in operands.items()),
    )
    call = _plans.get(key)
    if call is None:
        call = _plan(operands, moves, device, place)
        _plans.put(key, call)
    return call


def _plan(
    operands: Mapping[str, Array], moves: tuple[_Move, ...], device: Device, place: str
) -> CallPlan:
    from cklang.build.builder import shared_builder

    encoded = encoded_for(device.spec, {name: operands[name].dtype for name in _CACHES})
    if encoded is not None:
        raise error("A093", what=encoded.what, value=encoded.value, bound=encoded.bound)
    stages = [
        turned.stage(operands, device.spec.name)
        for turned in moves
        if turned.source in operands and operands[turned.source].size
    ]
    written = ("k_cache", "v_cache", _RESULT)
    pieces = [access_range(array, written=name in written) for name, array in operands.items()]
    return call_plan(stages, list(operands), pieces, {}, device, shared_builder(), place, outs=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """What one kernel does: rows of ``source`` go to ``target``."""

    source: str
    target: str
    rotary: Rotary
    behind: bool = True
    """Whether they go behind the rows that the target holds."""
    advance: bool = True
    """Whether the position of a row grows with its number."""
    scale: float = 1.0
    """What rows are divided by where the target has another dtype, and there is no array."""

    def scales(self, operands: Mapping[str, Array]) -> Array | None:
        """Return the array of what rows are divided by, if there is one."""
        return operands.get(_SCALES.get(self.source, ""))

    def paged(self, operands: Mapping[str, Array]) -> Array | None:
        """Return the table of the pages that the target lies in, if it does."""
        return operands.get("block_table") if self.behind else None

    def values(self, operands: Mapping[str, Array]) -> tuple[str, ...]:
        """Return the names of the values whose addresses the kernel takes."""
        table = ("block_table",) if self.paged(operands) is not None else ()
        angles = ("cos", "sin") if self.rotary is not Rotary.NONE else ()
        scales = () if self.scales(operands) is None else (_SCALES[self.source],)
        return (self.source, self.target, "seqlens_k", *table, *angles, *scales)

    def stage(self, operands: Mapping[str, Array], gpu: str) -> Stage:
        """Return the launch."""
        values, request = self.values(operands), self.request(operands)
        signature = AppendSignature(
            dtype=operands["k"].dtype,
            dtype_cache=operands[self.target].dtype,
            rotary=self.rotary,
            paged=self.paged(operands) is not None,
        )
        return Stage(
            key=AppendKey(signature, None, gpu),
            problem=f"rows {self.source} behind a cache",
            shim=AppendShim,
            values=values,
            written=frozenset((self.target,)),
            request=lambda addresses: request(dict(zip(values, addresses, strict=False))),
        )

    def request(
        self, operands: Mapping[str, Array]
    ) -> Callable[[Mapping[str, int]], AppendProblem]:
        """Return a function from addresses to the host shim's request."""
        source, target, table = operands[self.source], operands[self.target], self.paged(operands)
        batch, heads, rows, width = source.shape
        angles = operands.get("cos") if self.rotary is not Rotary.NONE else None
        scales = self.scales(operands)
        page = target.shape[2] if table is not None else 0
        capacity = target.shape[2] * (1 if table is None else table.shape[1])

        def request(at: Mapping[str, int]) -> AppendProblem:
            return AppendProblem(
                batch=batch,
                heads=heads,
                rows=rows,
                width=width,
                source=replace(AttentionTensor.of(source.strides), pointer=at[self.source]),
                target=replace(AttentionTensor.of(target.strides), pointer=at[self.target]),
                starts=at["seqlens_k"],
                pages=at.get("block_table", 0),
                pages_stride=0 if table is None else table.shape[1],
                page_size=page,
                cosine=at.get("cos", 0),
                sine=at.get("sin", 0),
                rotary_width=0 if angles is None else 2 * angles.shape[1],
                advance=self.advance,
                behind=self.behind,
                capacity=capacity if self.behind else rows,
                positions=1 if angles is None else angles.shape[0],
                scales=0 if scales is None else at[_SCALES[self.source]],
                stride_scale=0 if scales is None or scales.shape[0] == 1 else scales.strides[0],
                scale=self.scale,
            )

        return request


def _moves(turns: Rotary, scales: Mapping[str, float], *, advance: bool) -> tuple[_Move, ...]:
    of_k, of_v = (scales.get(_SCALES[name], 1.0) for name in ("k", "v"))
    return (
        _Move(source="k", target="k_cache", rotary=turns, scale=of_k),
        _Move(source="v", target="v_cache", rotary=Rotary.NONE, scale=of_v),
        _Move(source="q", target=_RESULT, rotary=turns, behind=False, advance=advance),
    )


def _check(operands: Mapping[str, Array], turns: Rotary, *, causal: bool) -> None:
    """Raise the error of the first argument that does not fit the others."""
    k = operands["k"]
    if k.dtype not in _DTYPES or len(k.shape) != 4:
        known = ", ".join(map(str, _DTYPES))
        raise error("A063", dtype=k.dtype, shape=list(k.shape), known=known)
    batch, heads, rows, _ = k.shape
    paged = "block_table" in operands
    _expect(operands, "v", k.dtype, (batch, heads, rows, None))
    _expect(operands, "seqlens_k", i32, (batch,))
    _expect(operands, "block_table", i32, (batch, None))
    for name in ("k", "v"):
        cache = operands[f"{name}_cache"]
        shape = (None if paged else batch, heads, None, operands[name].shape[3])
        narrow = cache.dtype in _NARROW
        _expect(operands, f"{name}_cache", cache.dtype if narrow else k.dtype, shape)
        if not cache.writeable:
            raise error("A065", name=f"{name}_cache")
    if paged and operands["v_cache"].shape[:3] != operands["k_cache"].shape[:3]:
        raise error("A064", shape=operands["v_cache"].shape, keys=operands["k_cache"].shape)
    _expect(operands, "q", k.dtype, (batch, None, None, k.shape[3]))
    if turns is not Rotary.NONE:
        _check_angles(operands, k)
    for name, array in operands.items():
        _check_strides(name, array)
    rows = operands["q"].shape[2] if "q" in operands else 0
    _check_positions(operands, rows if causal else min(rows, 1))


def _positive(name: str, scale: Any) -> float:
    """Return a scale; A092 unless it is a number above 0."""
    if not 0 < scale < math.inf:
        raise error("A092", name=name, why=f"it is {scale!r}")
    return float(scale)


def _check_scale(name: str, operands: Mapping[str, Array]) -> None:
    """Raise A092 unless the caches of a scale are of 8-bit floats, and it is one for each head."""
    cache = operands[f"{name[0]}_cache"]
    if cache.dtype not in _NARROW:
        raise error("A092", name=name, why=f"{name[0]}_cache is {cache.dtype}, no 8-bit float")
    scales = operands.get(name)
    if scales is None:
        return
    heads = cache.shape[1]
    if scales.dtype != f32 or scales.shape not in ((1,), (heads,)):
        raise error("A092", name=name, why=f"it is {scales.dtype} {list(scales.shape)}")


def _check_angles(operands: Mapping[str, Array], k: Array) -> None:
    for name in ("cos", "sin"):
        if name not in operands:
            raise error("A066", name=name)
        _expect(operands, name, k.dtype, (None, None))
    cos, sin = operands["cos"], operands["sin"]
    if cos.shape != sin.shape or 2 * cos.shape[1] > k.shape[3] or 0 in cos.shape:
        raise error("A067", limit=k.shape[3] // 2, cos=cos.shape, sin=sin.shape)


def _expect(
    operands: Mapping[str, Array], name: str, dtype: DType, shape: tuple[int | None, ...]
) -> None:
    """Raise A062 unless an array, if it is given, has this dtype and shape; None is any extent."""
    array = operands.get(name)
    if array is None:
        return
    pairs = zip(array.shape, shape, strict=False)
    fits = len(array.shape) == len(shape) and all(
        required in (None, extent) for extent, required in pairs
    )
    if not fits or array.dtype != dtype:
        extents = ", ".join("any" if n is None else str(n) for n in shape)
        raise error(
            "A062",
            name=name,
            want=dtype,
            extents=extents,
            dtype=array.dtype,
            shape=list(array.shape),
        )


def _check_strides(name: str, array: Array) -> None:
    """Raise A068 or A069 unless rows, lists and tables lie as kernels take them."""
    must_be_packed = name in ("block_table", "cos", "sin")
    if must_be_packed and array.shape[0] > 1 and array.strides[0] != array.shape[1]:
        raise error("A068", name=name, shape=array.shape, strides=array.strides)
    if array.shape[-1] > 1 and array.strides[-1] != 1:
        raise error("A069", name=name, shape=array.shape, strides=array.strides)


def _check_positions(operands: Mapping[str, Array], queries: int) -> None:
    """Check lengths and pages in host memory; those on a GPU are trusted.

    The positions of queries take ``queries`` more from that of the first new row on.
    """
    if operands["seqlens_k"].place != HOST:
        return
    lengths = _host(operands["seqlens_k"])
    new, page = operands["k"].shape[2], operands["k_cache"].shape[2]
    table = None if "block_table" not in operands else _host(operands["block_table"])
    room = min(page, operands["v_cache"].shape[2]) if table is None else page * table.shape[1]
    place = "the caches have" if table is None else "the pages of a sequence have"
    needs = [(new, room, f"{place} {room} rows, and k adds {new}")]
    if "cos" in operands:
        angles, turned = operands["cos"].shape[0], max(new, queries)
        needs.append((turned, angles, f"cos and sin have {angles}, and this call takes {turned}"))
    for need, limit, why in needs:
        if need > limit:
            raise error("A070", need=need, limit=limit, why=why)
        check_range("seqlens_k", LENGTHS[0], lengths, 0, limit - need, why)
    if table is not None and new:
        first, last = (lengths.astype(np.int64) + row for row in (0, new - 1))
        pages = operands["k_cache"].shape[0]
        check_block_table("block_table", table, pages, first // page, last // page + 1)


def _host(array: Array) -> np.ndarray[Any, Any]:
    return arrays.view(array.pointer, array.dtype, array.shape, array.strides)
