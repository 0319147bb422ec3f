# SPDX-License-Identifier: MIT
"""``cklang build``: build the kernels of a call, or a bundle of stencils, without running them.

A bundle holds a preset's stencils of each signature for each GPU. Signatures are those of an op's
call, or are spelled (:mod:`cklang.families.gemm.spelling`). ``--profile`` takes the kernels of an
attention profile.
"""

import argparse
import sys
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from cklang.arch import all_archs
from cklang.build import bundle
from cklang.build.builder import shared_builder
from cklang.build.parallel import built
from cklang.cli.target import add_scheduler, add_target, arguments_of, asked_workers, load_op
from cklang.errors import error
from cklang.families import FAMILIES, family_of
from cklang.selection.registry import Kernel, Registry


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
        "--signature",
        action="append",
        default=[],
        metavar="f16:rcr:row,b.full=i8",
        help="without an op",
    )
    group.add_argument(
        "--gradient", action="store_true", help="of an op that is an attention, its gradients too"
    )
    group.add_argument(
        "--bias", action="store_true", help="and its gradients with that of its bias"
    )
    group.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="flash",
        help="the attention kernels that one kind of user needs: flash, pytorch, aiter, fp32, fp8, "
        "ck_default",
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
        raise error("K040", instead="give --bundle with --signature")
    op = load_op(options.op)
    arguments = arguments_of(op, options)
    for artifact in op.build(**arguments, device=options.device, executor=executor):
        how = "cached" if artifact.cached else f"built in {artifact.seconds:.2f} s"
        sys.stdout.write(f"{artifact.key.label}: {how}\n  {artifact.code_object}\n")
        sys.stdout.write(f"  {artifact.resources}\n")
    return 0


def _bundle(options: argparse.Namespace, executor: Executor | None) -> int:
    registry = Registry(str(options.bundle))
    for gpu in options.arch or [all_archs()[0].name]:
        for name in options.profile:
            registry.declare_profile(name, gpu, dtypes=options.element, heads=options.head)
        if options.op is not None:
            op = load_op(options.op)
            arguments = arguments_of(op, options)
            where: dict[str, Any] = {"device": f"emu:{gpu}", "registry": registry}
            op.declare(**arguments, among=options.preset, **where)
            if options.gradient:
                op.declare(**arguments, among=options.preset, gradient=True, **where)
            if options.bias:
                op.declare(**arguments, among=options.preset, gradient="bias", **where)
        for text in options.signature:
            _declare(registry, text, gpu, options.preset)
    kernels = list(registry) if options.all_widths else _extremes(registry)
    if not kernels:
        raise error("K041")
    builder = shared_builder()
    built([(kernel.key, kernel.functions) for kernel in kernels], executor)
    count = bundle.write(
        options.bundle,
        (builder.stencil_files((kernel.key, kernel.functions)) for kernel in kernels),
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
        tiling = family_of(kernel.key.signature).spelling.tiling(kernel.key)
        tilings.setdefault(tiling, []).append(kernel)
    return [kernel for some in tilings.values() for kernel in dict.fromkeys((some[0], some[-1]))]


def _declare(registry: Registry, text: str, gpu: str, preset: str) -> None:
    """Declare the kernels of a spelled signature."""
    problem, functions = FAMILIES["gemm"].spelling.problem(text, (1, 1, 1))
    registry.declare(problem.signature, functions, gpu, preset)
