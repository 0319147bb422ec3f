# SPDX-License-Identifier: MIT
"""Compare the clock's times of attention with times on an MI300X and an MI355X.

Reads ``silicon/ck_tile_attention_mi300.csv`` (f16, batch 2, 16 heads, 8192 queries and keys of 128)
and, of ``silicon/kernel_times.csv``, CK Tile's example and AITER on an MI355X (bf16, batch 16),
both of ``CKLANG_DATA_DIR``. CK Tile's kernels are cklang's own with the tile and the pipeline that
CK Tile's example takes for these shapes, or with ``--units`` those of the example itself
(``upstream_attention.py``), gradients with the kernels before and after the main one, as the
example times them. ``CKLANG_CLANG`` names the compiler of these units, which are kept in the
folder; ROCm 7's, which built the timed ones, is made of clang 20. AITER's kernels are the code
objects of its package. Prints Markdown.

Times are at the highest clock and at that which power leaves (``cklang/emulator/clock/power.py``).
AITER was timed through PyTorch: to its times under load the clock adds what such a call took beside
the kernel, from products in the same table, and to gradients the bytes of the kernels before and
after the main one at the rate of memory.

python benchmarks/clock_attention.py [--only "CK Tile forward"] [--points] [--units folder]
    [--workgroups 17] [--what-if transposed]
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from aiter_binary import Binary, binaries
from data.silicon import folder
from hip_programs import hip_module, ok
from upstream_attention import Shape, Unit

import cklang as ck
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.emulator.clock.constants import ClockConstants, constants_of
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.clock.power import board_of, us_under_load
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.families.attention.key import AttentionAlgorithm, AttentionPipeline

_MOST_BYTES = 1 << 30
"""Of q, k, v and the result: longer calls run as quickly, and take long to time."""
_WORKGROUPS = 17
"""Recorded of a causal launch, whose workgroups differ, if no other number is asked for: a prime
number, which divides no extent of the grid over which they are evenly spaced."""
_FORWARD, _BACKWARD = "CK Tile forward", "CK Tile backward"
_ASSEMBLY, _ASSEMBLY_BACKWARD = "AITER forward", "AITER backward"

_OPERANDS = 5
_QUERIES = 256
"""Of a workgroup of AITER's; causal ones take two such tiles."""
_THREADS = 512
_ARGUMENTS = 512
"""Bytes."""
_BACKWARD_THREADS = 256
_BACKWARD_ARGUMENTS = 704
_KEYS = 256
"""Of a workgroup of AITER's gradients; causal ones take two such tiles."""
_STREAMED = 7
"""Times the bytes of q that AITER's gradients read and write beside the main kernel: the result and
its gradient for the sums before it, a gradient of q in f32 that is cleared and read, and the one in
bf16."""
_LOG2_E = 1.4426950408889634
_TUNING = 5
"""What AITER passes for up to 16384 queries of a multiple of 8 heads."""

Tile = tuple[int, int, int, int, int, int]
B, H, G, S, D = ck.dims("B H G S D")
T: Any = ck.dtype_var("T")


@ck.op
def attention(q: T[B, H, S, D], k: T[B, G, S, D], v: T[B, G, S, D]) -> T[B, H, S, D]:
    """Compute dense attention."""
    return ck.attention(q, k, v)


@ck.op
def causal(q: T[B, H, S, D], k: T[B, G, S, D], v: T[B, G, S, D]) -> T[B, H, S, D]:
    """Compute causal attention."""
    return ck.attention(q, k, v, mask=ck.causal())


def _algorithm(tile: Tile, pipeline: AttentionPipeline, *, pads: bool) -> AttentionAlgorithm:
    return AttentionAlgorithm(
        tile=tile,
        warps=(4, 1, 1),
        warp_tile=(32, 32, 16),
        pipeline=pipeline,
        pad_q=pads,
        pad_k=False,
        pad_d=pads,
        pad_dv=pads,
        vector=8,
        block_per_cu=2,
    )


_ALGORITHMS = {
    # Of the example's kernels the first whose conditions hold.
    ("gfx942", 128): _algorithm(
        (128, 128, 32, 128, 32, 128), AttentionPipeline.QR_ASYNC, pads=True
    ),
    ("gfx950", 64): _algorithm((128, 64, 32, 64, 32, 64), AttentionPipeline.QR_ASYNC, pads=True),
    ("gfx950", 128): _algorithm(
        (128, 64, 32, 128, 16, 128), AttentionPipeline.QR_ASYNC_TRLOAD, pads=False
    ),
}
"""By GPU and size of heads. Of gradients cklang chooses the example's kernel by itself."""


@dataclass(frozen=True, slots=True)
class Call:
    """An attention."""

    gpu: str
    dtype: Any
    causal: bool
    batch: int
    heads: int
    heads_kv: int
    length: int
    width: int

    @property
    def shapes(self) -> list[tuple[int, int, int, int]]:
        """Of q, k and v."""
        heads = (self.heads, self.heads_kv, self.heads_kv)
        return [(self.batch, each, self.length, self.width) for each in heads]

    @property
    def bytes(self) -> int:
        """Of q, k, v and the result."""
        return 2 * 2 * self.batch * self.length * self.width * (self.heads + self.heads_kv)


@dataclass(frozen=True, slots=True)
class Point:
    """A call that was timed."""

    kind: str
    call: Call
    us: float

    @property
    def group(self) -> str:
        """What shares a kernel, in words."""
        words = "causal" if self.call.causal else "not causal"
        return f"{self.call.gpu}, {self.kind}, {self.call.width}, {words}"


def of_mi300(path: Path) -> list[Point]:
    """Return the point of dense attention, with the median µs of its runs."""
    with (path / "ck_tile_attention_mi300.csv").open(newline="") as file:
        (row,) = (row for row in csv.DictReader(file) if row["curve"] == "fmha_dense")
    us = float(np.median([float(us) for name, us in row.items() if name.startswith("us_")]))
    return [Point(_FORWARD, Call("gfx942", np.float16, False, 2, 16, 16, 8192, 128), us)]


def of_mi355(path: Path) -> list[Point]:
    """Return the points of CK Tile's example and of AITER's kernels of 128."""
    points: dict[tuple[str, Call], Point] = {}
    with (path / "kernel_times.csv").open(newline="") as file:
        # Of several runs the last one stands.
        for row in sorted(csv.DictReader(file), key=lambda row: row["date"]):
            kind = (row["implementation"], row["op"])
            if (row["gpu"], row["latest"]) != ("MI355X", "1") or kind not in _KINDS:
                continue
            call = Call(
                gpu="gfx950",
                dtype=ml_dtypes.bfloat16,
                causal=row["causal"] == "1",
                batch=int(row["batch"]),
                heads=int(row["heads_q"]),
                heads_kv=int(row["heads_kv"]),
                length=int(row["seqlen"]),
                width=int(row["head_dim"]),
            )
            point = Point(_KINDS[kind], call, float(row["us"]))
            if call.bytes <= _MOST_BYTES and _is_one_kernel(point):
                points[point.kind, call] = point
    return sorted(points.values(), key=lambda point: point.kind)


def _is_one_kernel(point: Point) -> bool:
    """Whether the clock has the kernel that most of the time goes to.

    AITER's code objects are of one width. Where heads share keys, its gradients of keys and values
    are of each head, and further kernels that add them take most of the time.
    """
    call = point.call
    if point.kind not in (_ASSEMBLY, _ASSEMBLY_BACKWARD):
        return True
    return call.width == _WIDTH and (point.kind == _ASSEMBLY or call.heads == call.heads_kv)


_WIDTH = 128
"""Of heads, of AITER's code objects."""
_KINDS = {
    ("CK Tile", "attention_fwd"): _FORWARD,
    ("CK Tile", "attention_bwd"): _BACKWARD,
    ("AITER", "attention_fwd"): _ASSEMBLY,
    ("AITER", "attention_bwd"): _ASSEMBLY_BACKWARD,
}


def call_overhead(path: Path) -> float:
    """Return the µs by which a call through PyTorch takes longer than its kernel.

    They are what AITER's product of 1024 takes in such a call beyond hipBLASLt's in its own
    benchmark.
    """
    us = {}
    with (path / "kernel_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            named = (row["gpu"], row["dtype"], row["M"], row["latest"])
            if named == ("MI355X", "bf16", "1024", "1"):
                us[row["implementation"]] = float(row["us"])
    return us["AITER"] - us["hipBLASLt"]


def assembly(call: Call, workgroups: int) -> tuple[RecordedLaunch, ...]:
    """Run some workgroups of AITER's kernel; return what they executed."""
    hip = hip_module()
    ok(hip.hipSetDevice(open_device(f"emu:{call.gpu}").index))
    memory = [int(ok(hip.hipMalloc(call.bytes))) for _ in range(_OPERANDS)]
    name = "fmha_fwd_hd128_bf16" + ("_causal" if call.causal else "")
    file = binaries(call.gpu) / "fmha_v3_fwd" / f"{name.removeprefix('fmha_')}.co"
    kernel = Binary(file, f"_ZN5aiter{len(name)}{name}E")
    out, q, k, v, sums = memory
    row, row_kv = (2 * heads * call.width for heads in (call.heads, call.heads_kv))
    head, length = 2 * call.width, call.length
    values: list[int | float] = [out, q, k, v, sums, call.width**-0.5, length]
    values += [row, _QUERIES * row, head, length * row, call.heads // call.heads_kv]
    values += [row_kv, head, length * row_kv, _TUNING, 0, length, call.width, call.width]
    values += [call.heads, row_kv, head, length * row_kv, row, head, length * row]
    values += [0, 0, 4 * length, 0, 0]
    tiles = -(-length // _QUERIES)
    groups = (-(-tiles // 2) if call.causal else tiles, call.heads, call.batch)
    launch = kernel.record(groups, _THREADS, values, size=_ARGUMENTS, workgroups=workgroups)
    for each in memory:
        ok(hip.hipFree(each))
    return (launch,)


def assembly_backward(call: Call, workgroups: int) -> tuple[RecordedLaunch, ...]:
    """Run some workgroups of AITER's main kernel of gradients, which adds to those of q in f32."""
    hip = hip_module()
    ok(hip.hipSetDevice(open_device(f"emu:{call.gpu}").index))
    head, length = 2 * call.width, call.length
    row, row_kv = (head * heads for heads in (call.heads, call.heads_kv))
    tensor, sums = call.batch * length * row, 4 * call.batch * length * call.heads
    memory = [int(ok(hip.hipMalloc(size))) for size in (2 * tensor, *6 * (tensor,), sums, sums)]
    name = "fmha_bwd_hd128_bf16" + ("_causal" if call.causal else "") + "_a32_psskddv"
    file = binaries(call.gpu) / "fmha_v3_bwd" / f"{name.removeprefix('fmha_')}.co"
    kernel = Binary(file, f"_ZN5aiter{len(name)}{name}E")
    # Strides of heads, batches and positions.
    of_q, of_kv = (head, length * row, row), (head, length * row_kv, row_kv)
    values: list[int | float] = [*memory, call.width**-0.5, _LOG2_E, length, _KEYS * row_kv]
    values += [*of_q, call.heads // call.heads_kv, *of_kv, row]
    values += [length, call.width, call.width, call.heads, *of_kv, *of_q]
    values += [*of_q[:2], *of_q, 4 * length, 0, 0, 0, 0, length, 0, 0]
    tiles = -(-length // _KEYS)
    groups = (-(-tiles // 2) if call.causal else tiles, call.heads, call.batch)
    launch = kernel.record(
        groups, _BACKWARD_THREADS, values, size=_BACKWARD_ARGUMENTS, workgroups=workgroups
    )
    for each in memory:
        ok(hip.hipFree(each))
    return (launch,)


def ck_tile(call: Call, workgroups: int) -> tuple[RecordedLaunch, ...]:
    """Run some workgroups of the kernel that CK Tile's example takes."""
    args = [np.zeros(shape, call.dtype) for shape in call.shapes]
    op = (causal if call.causal else attention).using(_ALGORITHMS[call.gpu, call.width])
    with timing(workgroups, alone=True) as recording:
        op(*args, device=f"emu:{call.gpu}")
    return recording.launches


def ck_tile_backward(call: Call, workgroups: int) -> tuple[RecordedLaunch, ...]:
    """Run some workgroups of the kernel of gradients.

    The forward kernel is no part of the times; what sums before and after the gradients is
    cklang's own.
    """
    args = [np.zeros(shape, call.dtype) for shape in call.shapes]
    op, grad = causal if call.causal else attention, np.zeros(call.shapes[0], call.dtype)
    with timing(workgroups, alone=True) as recording:
        ck.attention_grad(op, *args, grad=grad, device=f"emu:{call.gpu}")
    return tuple(each for each in recording.launches if each.kernel.startswith(_OF_GRADIENTS))


_OF_GRADIENTS = "ck_attention_grad"
"""How the name of the kernel begins."""


def upstream(where: Path, *, backward: bool) -> Run:
    """Return what runs some workgroups of the kernels of CK Tile's example itself."""

    @cache
    def unit(gpu: str, width: int, *, causal: bool) -> Unit:
        return Unit(gpu, width, where, causal=causal, backward=backward)

    def run(call: Call, workgroups: int) -> tuple[RecordedLaunch, ...]:
        ok(hip_module().hipSetDevice(open_device(f"emu:{call.gpu}").index))
        shape = Shape(call.batch, call.heads, call.heads_kv, call.length, call.width)
        return unit(call.gpu, call.width, causal=call.causal).record(shape, workgroups)

    return run


Run = Callable[[Call, int], tuple[RecordedLaunch, ...]]
_RUNS: dict[str, Run] = {
    _ASSEMBLY: assembly,
    _ASSEMBLY_BACKWARD: assembly_backward,
    _FORWARD: ck_tile,
    _BACKWARD: ck_tile_backward,
}
_BOARDS = {"gfx942": "MI300X", "gfx950": "MI355X"}


def clock_us(
    point: Point,
    overhead: float,
    what_if: str | None = None,
    runs: Mapping[str, Run] = _RUNS,
    workgroups: int = _WORKGROUPS,
) -> tuple[float, float]:
    """Return the µs by the clock at the highest frequency, and those under load.

    Args:
        point: What was timed.
        overhead: Of a call through PyTorch, in µs.
        what_if: A question of ``WHAT_IF``.
        runs: Of each kind, what runs its kernels.
        workgroups: That are recorded of a causal launch.
    """
    call, count = point.call, workgroups if point.call.causal else 1
    spec, constants = arch(call.gpu), altered(constants_of(call.gpu), what_if)
    board = board_of(constants, _BOARDS[call.gpu])
    highest = load = 0.0
    for launch in runs[point.kind](call, count):
        detail = launch_detail(launch, spec, constants, call.bytes)
        slower = None if board is None else us_under_load(detail, board)
        us = detail.cycles / spec.clock_hz * 1e6
        highest += us
        load += us if slower is None else slower
    if point.kind in (_ASSEMBLY, _ASSEMBLY_BACKWARD):
        load += overhead
    if point.kind == _ASSEMBLY_BACKWARD:
        streamed = _STREAMED * 2 * call.batch * call.length * call.heads * call.width
        rate = constants.rates["memory"].read * spec.chiplets * spec.clock_hz
        load += streamed / rate * 1e6
    return highest, load


def altered(constants: ClockConstants, what_if: str | None) -> ClockConstants:
    """Return the constants of the clock as a question of ``WHAT_IF`` has them."""
    if what_if == "transposed":
        row = constants.operation(_TRANSPOSED)
        assert row is not None
        slower = replace(row, pattern=_TRANSPOSED, busy=2 * row.busy)
        return replace(constants, operations=(slower, *constants.operations))
    return constants


WHAT_IF = {"transposed": "reads of the LDS that transpose took twice as long"}
_TRANSPOSED = "ds_read_b64_tr_b16"

Floats = npt.NDArray[np.float64]


def rows_of(points: Sequence[Point], clock: Floats) -> list[str]:
    """Return a row of Markdown for each group, kind and GPU."""
    us = np.array([point.us for point in points])
    error = clock / us[:, None] - 1
    groups = [{"group": p.group, "kind": f"{p.call.gpu}, {p.kind}, all"} for p in points]
    lines = [
        "| attention | points | highest clock: median error, median of sizes | under load |",
        "|---|---|---|---|",
    ]
    for key in ("group", "kind"):
        for name in dict.fromkeys(each[key] for each in groups):
            of = np.array([each[key] == name for each in groups])
            cells = " | ".join(_cell(column) for column in error[of].T)
            lines.append(f"| {name} | {of.sum()} | {cells} |")
    return lines


def _cell(error: Floats) -> str:
    return f"{np.median(error):+.0%}, {np.median(np.abs(error)):.0%}"


def print_points(points: Sequence[Point], clock: Floats) -> None:
    """Print each point."""
    print("| group | batch | heads | length | GPU, µs | clock, µs | under load | GPU, TFLOP/s |")
    print("|---|---|---|---|---|---|---|---|")
    for point, (us, load) in zip(points, clock.tolist(), strict=True):
        call = point.call
        flops = (
            (10.0 if point.kind.endswith("backward") else 4.0)
            * call.batch
            * call.heads
            * call.length**2
        )
        flops *= call.width / (2.0 if call.causal else 1.0)
        words = (point.group, call.batch, f"{call.heads} / {call.heads_kv}", call.length)
        numbers = " | ".join(
            [
                f"{point.us:.0f}",
                *(f"{each:.0f} ({each / point.us - 1:+.0%})" for each in (us, load)),
            ]
        )
        rate = f"{flops / point.us * 1e-6:.0f}"
        print("| " + " | ".join(map(str, words)) + f" | {numbers} | {rate} |")
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="kinds, separated by commas")
    parser.add_argument("--points", action="store_true", help="print each point")
    parser.add_argument(
        "--units", type=Path, help="keep the example's own units here, and time them"
    )
    parser.add_argument("--workgroups", type=int, default=_WORKGROUPS, help="of causal launches")
    parser.add_argument("--what-if", choices=WHAT_IF, help="instead of the clock as it is")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    points = [*of_mi300(path), *of_mi355(path)]
    if options.only is not None:
        points = [point for point in points if point.kind in options.only.split(",")]
    if options.what_if is not None:
        print(f"If {WHAT_IF[options.what_if]}:\n")
    runs = dict(_RUNS)
    if options.units is not None:
        runs[_FORWARD] = upstream(options.units, backward=False)
        runs[_BACKWARD] = upstream(options.units, backward=True)
    overhead = call_overhead(path)
    asked = (overhead, options.what_if, runs, options.workgroups)
    clock = np.array([clock_us(point, *asked) for point in points])
    if options.points:
        print_points(points, clock)
    print("\n".join(rows_of(points, clock)))


if __name__ == "__main__":
    main()
