# SPDX-License-Identifier: MIT
"""An algorithm of products or convolutions as text."""

from cklang.families.gemm.key import Algorithm, ConvSpecial, Reduction


def algorithm_words(algorithm: Algorithm) -> str:
    """Return an algorithm as one line of text."""
    tile, warps, warp_tile = (
        "x".join(map(str, triple))
        for triple in (algorithm.tile, algorithm.warps, algorithm.warp_tile)
    )
    vectors = f"A {algorithm.vector_a}, B {algorithm.vector_b}, E {algorithm.vector_e}"
    if algorithm.vector_d:
        vectors += f", D {', '.join(map(str, algorithm.vector_d))}"
    return (
        f"tile {tile}, warps {warps}, warp tile {warp_tile}, {algorithm.pipeline.value}, "
        f"{algorithm.scheduler.value}, {algorithm.epilogue.value}, vectors {vectors}"
        + "".join(f", {word}" for word in _more(algorithm))
    )


def _more(a: Algorithm) -> list[str]:
    """Return what most algorithms do not have."""
    words = {
        f"{a.special.value} only": a.special is not ConvSpecial.DEFAULT,
        f"{a.groups_merged} groups in a tile": a.groups_merged > 1,
        f"{a.split_k} workgroups share a tile": a.split_k > 1,
        "all workgroups share all steps": a.stream_k,
        f"reduction {a.reduction.value}": a.reduction is not Reduction.NONE,
    }
    return [word for word, said in words.items() if said]
