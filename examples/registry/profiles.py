# SPDX-License-Identifier: MIT
"""Attention profiles: the kernels that PyTorch, flash-attention or AITER need, a registry for each.

python examples/registry/profiles.py
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import cklang as ck

PROFILES: dict[str, dict[str, Any]] = {
    "flash": {"dtypes": ["f16"], "heads": [64]},
    "pytorch": {"dtypes": ["bf16"], "heads": [128]},
    "aiter": {"dtypes": ["f16"], "heads": [128]},
    "fp32": {"dtypes": ["f32"], "heads": [64]},
    "fp8": {},
}


def main() -> None:
    """Declare every profile; nothing is compiled before ``registry.build()`` or a bundle."""
    registries = {}
    print("profile   GPU     kernels  families")
    for name, part in PROFILES.items():
        for gpu in ("gfx942", "gfx950"):
            registry = ck.dispatch.Registry(f"{name} on {gpu}")
            registry.declare_profile(name, gpu, **part)
            families = Counter(kernel.key.family for kernel in registry)
            words = ", ".join(f"{count} {family}" for family, count in families.items())
            print(f"{name:8}  {gpu}  {len(registry):7}  {words}")
            registries[name, gpu] = registry
    assert all(len(registry) for registry in registries.values())

    # A problem finds its kernel in the registry of its users, and in no other.
    problem = ck.dispatch.attention_problem(2, 8, 1024, 1024, 64, right=0)
    with ck.using(registry=registries["flash", "gfx942"], arch="gfx942"):
        chosen = ck.dispatch.select(problem)
    print(f"causal, heads of 64: {chosen.key.label}")
    assert chosen.key in registries["flash", "gfx942"]
    assert chosen.key not in registries["aiter", "gfx942"]

    # All of them are one file if that is wanted, and equal to what was exported.
    together = ck.dispatch.Registry("all")
    new = sum(together.merge(registry) for registry in registries.values())
    again = ck.dispatch.Registry.from_json(json.loads(json.dumps(together.to_json())))
    print(f"together {new} kernels; imported the same: {again.same_as(together)}")
    assert again.same_as(together)


if __name__ == "__main__":
    main()
