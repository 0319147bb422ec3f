# SPDX-License-Identifier: MIT
"""What calls and selections assume when they are not told: registry, GPU, strategy.

``with ck.using(registry=mine, strategy="autotune"): ...`` sets them for a block, in this thread of
control only; blocks nest, and what an inner one leaves out stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from cklang import knobs
from cklang.errors import error
from cklang.selection.registry import Registry
from cklang.selection.strategy import Heuristic, RankFunction, Strategy, strategy_of

if TYPE_CHECKING:
    from cklang.arch import ArchSpec

DEFAULT_REGISTRY = Registry("default")
"""The registry of calls that name none."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Defaults:
    """What is assumed; compared by identity."""

    registry: Registry
    arch: str | None
    """A GPU's name; None: that of the device a call would run on."""
    strategy: Strategy
    preset: str | None = None
    """The candidates where nobody declared a kernel; None: those that CKLANG_PRESET names."""
    serial: int = field(default_factory=count().__next__, init=False)
    """Tells it from all others, for keys that must not keep the registry alive."""

    @property
    def preset_name(self) -> str:
        """The preset, or that of the environment."""
        return knobs.PRESET.get() if self.preset is None else self.preset


_current: ContextVar[Defaults] = ContextVar(
    "cklang_defaults",
    default=Defaults(registry=DEFAULT_REGISTRY, arch=None, strategy=Heuristic()),  # noqa: B039
)


current: Callable[[], Defaults] = _current.get
"""Returns what is assumed here."""


@contextmanager
def using(
    *,
    registry: Registry | None = None,
    arch: str | None = None,
    strategy: str | Strategy | RankFunction | None = None,
    preset: str | None = None,
    compiler: str | None = None,
) -> Iterator[Defaults]:
    """Set the default registry, GPU, strategy, preset or compiler of kernels for a block.

    Args:
        registry: Where kernels are looked for.
        arch: The GPU that calls run on (an emulated one where there is no such GPU) and that
            selections are for: ``gfx950``.
        strategy: ``first_fit``, ``heuristic``, ``tiered``, ``compiled_first``, ``autotune``,
            ``clock``, ``tuned``, a function from a problem to ranked keys, or an object with a
            method ``choose``.
        preset: Which products and convolutions are tried where nobody declared a kernel:
            ``catalogue``, or ``essential`` to compile few kernels.
        compiler: What compiles kernels: the path of a clang or zig, or ``rocm7``, the clang 20 that
            ROCm 7's compiler is made from. By default as ``CKLANG_CLANG`` says.

    Example:
        >>> with ck.using(arch="gfx950", strategy="first_fit"):
        ...     print(ck.dispatch.select(ck.dispatch.problem(256, 512, 64)).key.arch)
        gfx950

    Raises:
        CkValueError: K001, K004, a strategy, a preset or a GPU that does not exist.
        CkBuildError: B002, a compiler that cannot be used; B007, there is no clang 20.
    """
    before = _current.get()
    if preset is not None:
        from cklang.families.presets import parts

        parts(preset)  # refuses an unknown one
    if arch is not None:
        from cklang.arch import arch as arch_of

        arch = arch_of(arch).name
    changed = replace(
        before,
        registry=before.registry if registry is None else registry,
        arch=before.arch if arch is None else arch,
        strategy=before.strategy if strategy is None else strategy_of(strategy),
        preset=before.preset if preset is None else preset,
    )
    with _kernels_by(compiler):
        token = _current.set(changed)
        try:
            yield changed
        finally:
            _current.reset(token)


def _kernels_by(compiler: str | None) -> AbstractContextManager[None]:
    if compiler is None:
        return nullcontext()
    from cklang.toolchain.compilers import kernels_by

    return kernels_by(compiler)


def device_named(named: str | None, defaults: Defaults) -> str | None:
    """Return the name of the device of a call: the one named, else one with the assumed GPU."""
    if named is not None or defaults.arch is None:
        return named
    from cklang.arch import arch as arch_of

    return device_of(arch_of(defaults.arch))


def device_of(spec: ArchSpec) -> str:
    """Return the name of a device with the GPU ``spec``: a real one if there is one."""
    from cklang.device.device import devices, target_of

    target = target_of(knobs.DEVICE.get())
    if target.emulated:
        return f"emu:{spec.name}"
    for device in devices():
        if device.spec.name == spec.name:
            return device.name
    known = ", ".join(f"{device.name} ({device.spec.name})" for device in devices())
    raise error("D001", got=spec.name, known=known)
