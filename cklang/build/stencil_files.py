# SPDX-License-Identifier: MIT
"""The files of a stencil."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.build.artifacts import HOST
from cklang.build.store import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cklang.build.store import Store
    from cklang.device.artifact import Artifact
    from cklang.keys import AnyKey

BITCODE = "stencil.bc"

COMPILED_FROM = ("source", "arch", "tools", "headers")
"""The inputs of a stencil that is compiled here; its kernels have them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StencilFiles:
    """What a stencil is made of on disk."""

    key: AnyKey
    """The key, with an open epilogue."""
    source: str
    bitcode: Path
    host_shim: Path


def stencils_of(artifacts: Iterable[Artifact], store: Store) -> Iterator[StencilFiles]:
    """Yield the stencil of each kernel whose stencil was compiled here and is still there."""
    for artifact in artifacts:
        kernel = store.find("kernel", artifact.folder.name)
        inputs = {} if kernel is None else kernel.record["inputs"]
        if not inputs.keys() >= {*COMPILED_FROM}:
            continue
        compiled = {name: inputs[name] for name in COMPILED_FROM}
        stencil, host = (
            store.find(kind, digest_of(kind, compiled)) for kind in ("stencil", "host")
        )
        if stencil is not None and host is not None:
            yield StencilFiles(
                key=artifact.key.stencil,
                source=compiled["source"],
                bitcode=stencil.file(BITCODE),
                host_shim=host.file(HOST),
            )
