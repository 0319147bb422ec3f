# SPDX-License-Identifier: MIT
"""How kernels of attention are chosen: tiles and reasons for problems of models.

python examples/attention/heuristics.py
"""

from __future__ import annotations

import cklang as ck

PROBLEMS = {
    "training, 2k": {"batch": 4, "heads": 32, "queries": 2048, "keys": 2048},
    "prefill, 8k": {"batch": 1, "heads": 32, "queries": 8192, "keys": 8192},
    "decode, 4k": {"batch": 16, "heads": 32, "queries": 1, "keys": 4096},
    "decode, 64k, alone": {"batch": 1, "heads": 32, "queries": 1, "keys": 65536},
}


def main() -> None:
    """Choose for each problem on four GPUs; no array is needed and nothing is compiled."""
    print("problem             GPU      tile                       why")
    tiles = set()
    for name, n in PROBLEMS.items():
        sizes = n["batch"], n["heads"], n["queries"], n["keys"], 128
        problem = ck.dispatch.attention_problem(*sizes, kv_heads=8, right=0)
        for gpu in ("gfx942", "gfx950", "gfx1100", "gfx1201"):
            chosen = ck.dispatch.select(problem, arch=gpu)
            algorithm = chosen.key.algorithm
            assert isinstance(algorithm, ck.dispatch.AttentionAlgorithm)
            tile = "x".join(map(str, algorithm.tile))
            tiles.add(tile)
            words = f"{tile:25}  {chosen.reason[:60]}"
            print(f"{name:18}  {gpu:7}  {words}")
    assert len(tiles) > 2, "GPUs and problems want different tiles"

    # Strategies and registries work as for products.
    with ck.using(strategy="first_fit", arch="gfx942"):
        print(ck.dispatch.select(problem).reason)


if __name__ == "__main__":
    main()
