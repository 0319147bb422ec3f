# SPDX-License-Identifier: MIT
"""CK Tile's own units for attention, as its example generates, compiles and launches them.

The example's generator writes a unit for each kernel. A function behind it launches that kernel on
the example's default layout (batch, head, position, column), gradients with the kernels before and
after the main one, which the example times together. Flags are those of CK Tile's build files.
``CKLANG_CLANG`` names another compiler. Prints what a wave of each kernel for heads of 128 executes
on an MI355X:

    python benchmarks/upstream_attention.py folder
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hip_programs import hip_module, ok

from cklang.device.device import open_device
from cklang.emulator.clock.listing import listing_of
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.hipcc import driver
from cklang.toolchain.compilers import find_ck_tree

_FLAGS = (
    *("-std=c++20", "-DNDEBUG", "-w", "-O3", "-fPIC", "-shared", "-fno-offload-uniform-block"),
    *("-mllvm", "-enable-post-misched=0", "-mllvm", "--lsr-drop-solution=1"),
    *("-fgpu-flush-denormals-to-zero", "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"),
    *(f"-DCK_TILE_FMHA_FWD_{api}_API=0" for api in ("SPLITKV", "APPENDKV", "PAGEDKV")),
)
"""Of CK Tile's release build, but for flags that AMD's compiler alone knows, or that only inline
what is inlined anyway."""
_ROUNDED = "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3"
"""Of gradients."""
_TAGS = {"gfx942": "ck_tile::gfx9_t", "gfx950": "ck_tile::gfx950_t"}

_FORWARD = {
    ("gfx942", 128): "d128_fp16_batch_b128x128x*_qr_async_vr_psddv",
    ("gfx950", 64): "d64_bf16_batch_b128x64x*_qr_async_vr_psddv",
    ("gfx950", 128): "d128_bf16_batch_b128x64x*_qr_async_trload_vr_npad",
}
"""The kernel that the example takes for long sequences, by GPU and columns."""
_BACKWARD = {("gfx950", 128): "d128_bf16_batch_b16x192x*_npad"}

_BEGIN = """
extern "C" void run(const int* extents, const float scale, void* const* memory)
{{
    const auto [batch, heads, heads_k, rows, width, causal] =
        reinterpret_cast<const std::array<int, 6>&>(*extents);
    fmha_{direction}_args a{{}};
    a.q_ptr = memory[0], a.k_ptr = memory[1], a.v_ptr = memory[2], a.o_ptr = memory[3];
    a.seqlen_q = a.seqlen_k = a.max_seqlen_q = rows;
    a.batch = batch, a.nhead_q = heads, a.nhead_k = heads_k;
    a.hdim_q = a.hdim_v = width;
    a.stride_q = a.stride_k = a.stride_v = a.stride_o = width;
    a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v = a.nhead_stride_o = rows * width;
    a.batch_stride_q = a.batch_stride_o = heads * rows * width;
    a.batch_stride_k = a.batch_stride_v = heads_k * rows * width;
    a.window_size_left = -1, a.window_size_right = causal ? 0 : -1, a.mask_type = causal;
    a.drop_seed_offset = std::make_pair(uint64_t{{1}}, uint64_t{{0}});
    const ck_tile::stream_config stream{{nullptr, false}};
"""
_RUN_FORWARD = """
    a.scale_s = scale, a.scale_p = a.scale_o = 1;
    fmha_fwd_<trait_0, {tag}>(stream, a);
}}
"""
_RUN_BACKWARD = """
    a.do_ptr = memory[4], a.lse_ptr = memory[5], a.d_ptr = memory[6], a.dq_ptr = memory[7];
    a.dk_ptr = memory[8], a.dv_ptr = memory[9], a.dq_acc_ptr = memory[10];
    a.max_seqlen_k = rows, a.scale = scale, a.p_undrop = 1;
    a.stride_do = a.stride_dq_acc = a.stride_dq = a.stride_dk = a.stride_dv = width;
    a.nhead_stride_do = a.nhead_stride_dq_acc = a.nhead_stride_dq = rows * width;
    a.nhead_stride_dk = a.nhead_stride_dv = rows * width;
    a.nhead_stride_lsed = rows, a.batch_stride_lsed = heads * rows;
    a.batch_stride_do = a.batch_stride_dq_acc = a.batch_stride_dq = heads * rows * width;
    a.batch_stride_dk = a.batch_stride_dv = heads * rows * width;
    a.split_stride_dq_acc = batch * heads * rows * width;
    fmha_bwd_dot_do_o_<dot_do_o_trait_0, {tag}>(stream, a);
    fmha_bwd_dq_dk_dv_<dq_dk_dv_trait_0, {tag}>(stream, a);
    fmha_bwd_convert_dq_<convert_dq_trait_0, {tag}>(stream, a);
}}
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """Extents of a call in 16 bits."""

    batch: int
    heads: int
    heads_kv: int
    length: int
    width: int

    def sizes(self, *, backward: bool) -> list[int]:
        """Return the bytes of each array that a unit takes.

        The gradients of keys and values are of each head of queries, as the example has them.
        """
        rows = self.batch * self.heads * self.length
        q, kv = 2 * rows * self.width, 2 * self.batch * self.heads_kv * self.length * self.width
        forward = [q, kv, kv, q]
        return [*forward, q, 4 * rows, 4 * rows, q, q, q, 2 * q] if backward else forward


class Unit:
    """The unit of a kernel, on the current device.

    Args:
        gpu: The GPU.
        width: Columns of a head.
        causal: Whether the kernel has a causal mask.
        backward: Whether it gives gradients.
        where: A folder in which units are kept.
    """

    def __init__(self, gpu: str, width: int, where: Path, *, causal: bool, backward: bool) -> None:
        self._causal, self._backward = causal, backward
        mask = "mask" if causal else "nmask"
        direction = "bwd" if backward else "fwd"
        folder = where / f"{gpu}_{direction}_{width}_{mask}"
        library = folder / "unit.so"
        if not library.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            example = find_ck_tree().include.parent / "example" / "ck_tile" / "01_fmha"
            words = ["--targets", gpu, "--api", direction, "--output_dir", str(folder)]
            if backward:
                name = f"*{_BACKWARD[gpu, width]}_nbias_ndbias_{mask}_ndropout_*"
                around = f"*_d{width}_bf16_*batch*_npad*"
                words += ["--receipt", "3", "--filter", f"{around}@{around}@{name}"]
            else:
                name = f"*{_FORWARD[gpu, width]}_nlogits_nbias_{mask}_nlse_ndropout_nskip_nsquant_*"
                words += ["--filter", name]
            subprocess.run([sys.executable, str(example / "generate.py"), *words], check=True)
            units = sorted(each.name for each in folder.glob("fmha_*d[0-9]*.cpp"))
            head = ["#include <array>", *(f'#include "{each}"' for each in units)]
            run = _RUN_BACKWARD if backward else _RUN_FORWARD
            body = (_BEGIN + run).format(direction=direction, tag=_TAGS[gpu])
            source = folder / "unit.hip"
            source.write_text("\n".join([*head, body]), "utf-8")
            flags = [*_FLAGS, *([_ROUNDED] if backward else []), f"--offload-arch={gpu}"]
            paths = ["-I", str(folder), "-I", str(example), str(source), "-o", str(library)]
            driver.build([*flags, *paths], print)
        self._run = ctypes.CDLL(str(library)).run

    def record(self, shape: Shape, workgroups: int) -> tuple[RecordedLaunch, ...]:
        """Run some workgroups of each kernel; return what they executed."""
        hip = hip_module()
        memory = [int(ok(hip.hipMalloc(size))) for size in shape.sizes(backward=self._backward)]
        extents = (shape.batch, shape.heads, shape.heads_kv, shape.length, shape.width)
        with timing(workgroups, alone=True) as recording:
            self._run(
                (ctypes.c_int * 6)(*extents, self._causal),
                ctypes.c_float(shape.width**-0.5),
                _addresses(memory),
            )
            ok(hip.hipDeviceSynchronize())
        for each in memory:
            ok(hip.hipFree(each))
        return tuple(recording.launches)


def _addresses(memory: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(memory))(*memory)


def row(launch: RecordedLaunch, name: str) -> str:
    """Return a row of Markdown: what the first recorded wave of a launch executed."""
    listing = listing_of(launch, "gfx950")
    lines = listing.line_of[next(iter(launch.waves)).line].tolist()
    waits = sum(listing.instructions[line].op == "s_waitcnt" for line in lines)
    return f"| {name} | {launch.vgprs} | {launch.scratch_bytes} | {len(lines)} | {waits} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="in which units are kept")
    folder = parser.parse_args().folder
    ok(hip_module().hipSetDevice(open_device("emu:gfx950").index))
    print("| kernel | VGPRs | bytes of scratch | instructions of a wave | of which waits |")
    print("|---|---|---|---|---|")
    for name, backward, main_one in (("forward", False, 0), ("gradients", True, 1)):
        unit = Unit("gfx950", 128, folder, causal=False, backward=backward)
        print(row(unit.record(_SHAPE, 1)[main_one], name))


_SHAPE = Shape(batch=16, heads=16, heads_kv=16, length=2048, width=128)

if __name__ == "__main__":
    main()
