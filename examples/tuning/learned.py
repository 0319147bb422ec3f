# SPDX-License-Identifier: MIT
"""The learned ranker beside the cost model, for 8-bit products with block scales.

python examples/tuning/learned.py

Both were fitted to published winners on MI300X and MI355X. The ranker needs LightGBM
(pip install 'cklang[tune]') and is used only where somebody asks for it.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import cklang as ck
from cklang.families.gemm.key import Scale

SIZES = ((1, 7168, 2048), (16, 7168, 2048), (128, 4096, 7168), (1024, 4096, 7168))
SCALED: dict[str, Any] = {
    "e": ck.bf16,
    "scale_a": Scale(dtype=ck.f32, block=(1, 128)),
    "scale_b": Scale(dtype=ck.f32, block=(128, 128)),
}


def main() -> None:
    """Choose for some sizes of a language model on both GPUs."""
    installed = importlib.util.find_spec("lightgbm") is not None
    strategies = ("heuristic", "learned") if installed else ("heuristic",)
    print("GPU        M     N     K  strategy   tile            reason")
    for gpu, dtype in (("gfx942", ck.fp8_fnuz), ("gfx950", ck.fp8)):
        for m, n, k in SIZES:
            problem = ck.problem(m, n, k, a=dtype, **SCALED)
            for strategy in strategies:
                with ck.using(arch=gpu, strategy=strategy, preset="catalogue"):
                    chosen = ck.select(problem)
                algorithm = chosen.key.algorithm
                assert isinstance(algorithm, ck.Algorithm)
                assert strategy in ("heuristic",) or "learned" in chosen.reason
                tile = "x".join(map(str, algorithm.tile))
                print(f"{gpu}  {m:5} {n:5} {k:5}  {strategy:9}  {tile:14}  {chosen.reason[:48]}")

    # Where nothing was learned the cost model decides, and the reason says so.
    if installed:
        with ck.using(arch="gfx90a", strategy="learned"):
            chosen = ck.select(ck.problem(128, 4096, 4096))
        print(chosen.reason)
        assert "nothing was learned" in chosen.reason


if __name__ == "__main__":
    main()
