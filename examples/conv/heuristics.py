# SPDX-License-Identifier: MIT
"""How the cost model chooses for convolutions: pools, predicted times and reasons, no array needed.

python examples/conv/heuristics.py
"""

from __future__ import annotations

import cklang as ck

PROBLEMS = {
    "first layer": ((32, 224, 224, 3), (64, 7, 7, 3), 2, 3),
    "many pixels": ((32, 56, 56, 64), (64, 3, 3, 64), 1, 1),
    "pointwise": ((32, 28, 28, 512), (128, 1, 1, 512), 1, 0),
    "many channels": ((32, 7, 7, 512), (512, 3, 3, 512), 1, 1),
    "one image": ((1, 14, 14, 256), (256, 3, 3, 256), 1, 1),
}


def main() -> None:
    """Compare the default pool with the small one, on two GPUs."""
    print("problem        GPU     tile of `essential`  tile of `catalogue`  kernels  why")
    tiles = set()
    for name, (x, w, stride, padding) in PROBLEMS.items():
        problem = ck.dispatch.conv_problem(x, w, stride=stride, padding=padding, dtype=ck.bf16)
        for gpu in ("gfx942", "gfx950"):
            chosen = {}
            for preset in ("essential", "catalogue"):
                with ck.using(arch=gpu, preset=preset):
                    chosen[preset] = ck.dispatch.select(problem)
                assert ck.dispatch.select(problem, arch=gpu) == ck.dispatch.select(
                    problem, arch=gpu
                )
            words = []
            for each in chosen.values():
                algorithm = each.key.algorithm
                assert isinstance(algorithm, ck.dispatch.Algorithm)
                words.append("x".join(map(str, algorithm.tile)))
            best = chosen["catalogue"]
            tiles.add(words[1])
            print(
                f"{name:13}  {gpu}  {words[0]:19}  {words[1]:19}  {len(best.pool):7}  "
                f"{best.reason[:60]}"
            )
    assert len(tiles) > 1, "different problems want different tiles"


if __name__ == "__main__":
    main()
