# SPDX-License-Identifier: MIT
"""``cklang build``: build the kernels of a call, or a bundle of stencils, without running them.

A bundle holds a preset's stencils of each signature for each GPU. Signatures are those of an op's
call, or are spelled: ``f16:rcr:row=f16,full=f16`` is f16 operands, layouts rcr, and two epilogue
operands. ``--profile`` takes the kernels of an attention profile.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import Executor
from pathlib import Path

from cklang.attention_keys import AnyKey
from cklang.cli.target import (
    add_scheduler,
    add_target,
    arguments_of,
    asked_workers,
    load_op,
)
from cklang.codec import dtype_of, enum_of
from cklang.errors import error
from cklang.fusion.plan import epilogue_hash
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.keys import DKind, KernelKey
from cklang.runtime import bundle
from cklang.runtime.arrayless import problem
from cklang.runtime.build import shared_builder
from cklang.runtime.parallel import built
from cklang.runtime.registry import Kernel, Registry
from cklang.types import DType, Kind

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser, optional=True)
    add_scheduler(parser, "build")
    group = parser.add_argument_group("bundles")
    group.add_argument("--bundle", type=Path, metavar="FILE", help="write stencils to this file")
    group.add_argument(
        "--arch", action="append", default=[], metavar="gfx942", help="a GPU; may be repeated"
    )
    group.add_argument("--preset", default="essential", help="which tilings (default: essential)")
    group.add_argument(
        "--signature", action="append", default=[], metavar="f16:rcr", help="without an op"
    )
    group.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="flash",
        help="the attention kernels that one kind of user needs: flash, pytorch, aiter, fp32, fp8",
    )
    group.add_argument(
        "--element", action="append", metavar="f16", help="of a profile only; may be repeated"
    )
    group.add_argument(
        "--head",
        action="append",
        type=int,
        metavar="64",
        help="of a profile only: a head size of its tilings; may be repeated",
    )
    group.add_argument(
        "--all-widths",
        action="store_true",
        help="every width of vector accesses, not only the widest and the narrowest",
    )


def run(options: argparse.Namespace) -> int:
    """Build and print one line a kernel."""
    with asked_workers(options) as executor:
        if options.bundle is not None:
            return _bundle(options, executor)
        return _call(options, executor)


def _call(options: argparse.Namespace, executor: Executor | None) -> int:
    if options.op is None:
        raise error("K002", what="an op", want="named, or --bundle with --signature", got="none")
    op = load_op(options.op)
    arguments = arguments_of(op, options)
    for artifact in op.build(**arguments, device=options.device, executor=executor):
        how = "cached" if artifact.cached else f"built in {artifact.seconds:.2f} s"
        sys.stdout.write(f"{artifact.key.label}: {how}\n  {artifact.code_object}\n")
        sys.stdout.write(f"  {artifact.resources}\n")
    return 0


def _bundle(options: argparse.Namespace, executor: Executor | None) -> int:
    registry = Registry(str(options.bundle))
    for gpu in options.arch or ["gfx942"]:
        for name in options.profile:
            registry.declare_profile(name, gpu, dtypes=options.element, heads=options.head)
        if options.op is not None:
            op = load_op(options.op)
            arguments = arguments_of(op, options)
            op.declare(**arguments, among=options.preset, device=f"emu:{gpu}", registry=registry)
        for text in options.signature:
            _declare(registry, text, gpu, options.preset)
    kernels = list(registry) if options.all_widths else _extremes(registry)
    if not kernels:
        raise error("K002", what="a bundle", want="an op, --signature or --profile", got="neither")
    builder = shared_builder()
    built(kernels, executor)
    count = bundle.write(
        options.bundle,
        (builder.stencil_files((kernel.key, kernel.filling)) for kernel in kernels),
        compiler=builder.toolchain.identity,
        headers=builder.tree.identity,
    )
    size = options.bundle.stat().st_size
    sys.stdout.write(f"{options.bundle}: {count} stencils, {size:,d} bytes\n")
    return 0


def _extremes(registry: Registry) -> list[Kernel]:
    """The kernels of each tiling with the widest and with the narrowest accesses."""
    tilings: dict[object, list[Kernel]] = {}
    for kernel in registry:
        tilings.setdefault(_tiling(kernel.key), []).append(kernel)
    return [kernel for some in tilings.values() for kernel in dict.fromkeys((some[0], some[-1]))]


def _tiling(key: AnyKey) -> object:
    """What kernels have in common that differ in nothing but the width of accesses."""
    if not isinstance(key, KernelKey):
        return key
    a = key.algorithm
    return (key.arch, key.signature, a.tile, a.warps, a.warp_tile, a.pipeline)


def _declare(registry: Registry, text: str, gpu: str, preset: str) -> None:
    """Declare the kernels of a spelled signature."""
    dtype, layouts, operands = _spelled(text)
    region = _sum_of(len(operands))
    made = problem(1, 1, 1, a=dtype, layouts=layouts, d=operands, epilogue=epilogue_hash(region))
    registry.declare(made.signature, region, gpu, preset)


def _spelled(text: str) -> tuple[DType, str, list[tuple[DType, DKind]]]:
    """Read ``f16:rcr:row=f16,full``; an operand without a dtype has that of A."""
    parts = text.split(":")
    if len(parts) not in (2, 3):
        want = "as in f16:rcr or f16:rcr:row=f16,full=f32"
        raise error("K002", what="--signature", want=want, got=text)
    dtype = dtype_of(parts[0])
    words = [word.partition("=") for word in parts[2].split(",")] if len(parts) == 3 else []
    operands = [(dtype_of(name or dtype), enum_of(DKind, kind)) for kind, _, name in words]
    for operand, _ in operands:
        if operand.kind is not Kind.FLOAT:
            raise error("K002", what="an operand of --signature", want="a float", got=operand)
    return dtype, parts[1], operands


def _sum_of(operands: int) -> Function:
    """An epilogue that reads every operand; a stencil leaves it open."""
    names = ["%acc", *(f"%d{i}" for i in range(operands))]
    lines = [f"func @epilogue({', '.join(f'{name}: f32[]' for name in names)}) -> f32[] {{"]
    total = names[0]
    for index, name in enumerate(names[1:]):
        lines.append(f"  %{index}: f32[] = add({total}, {name})")
        total = f"%{index}"
    return parse_function("\n".join([*lines, f"  return {total}", "}"]))
