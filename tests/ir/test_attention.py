# SPDX-License-Identifier: MIT
"""Rules of attention in the IR, and the random numbers of dropout."""

import numpy as np
import pytest

from cklang.errors import CkError
from cklang.ir import attention
from cklang.ir.parser import parse_function
from cklang.ir.philox import keep_mask, philox, random_bytes
from cklang.ir.verifier import verify

INDICES = ", ".join(f"%{name}: i32[]" for name in attention.INDICES)
TEXT = f"""func @f(%q: f16[B, H, S, D], %k: f16[B, G, T, D], %v: f16[B, G, T, E], %w: f32[H]) -> f32[B, H, S, E] {{
  %0: f32[B, H, S, E] = attention(%q, %k, %v, %w) {{dropout = 0.0, mask = func @mask({INDICES}, %d0: f32[H]) -> bool[] {{
    %0: bool[] = le(%j, %i)
    return %0
  }}, roles = ["q", "k", "v", "read"], scale = "auto", score = func @score(%s: f32[], {INDICES}, %d0: f32[H]) -> f32[] {{
    %0: f32[] = element(%d0, %h)
    %1: f32[] = mul(%s, %0)
    return %1
  }}}}
  return %0
}}"""  # noqa: E501 - the printer's own lines


def test_text_goes_there_and_back() -> None:
    function = verify(parse_function(TEXT))
    assert str(function) == TEXT
    assert parse_function(str(function)) == function


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("I014", "attention(%q, %k, %v, %w)", "attention(%q, %k)"),
        ("I018", "%k: f16[B, G", "%k: bf16[B, G"),
        ("I018", "%0: f32[] = element(%d0, %h)", "%0: f32[] = element(%d0, %s)"),
        ("I019", "%k: f16[B, G, T, D]", "%k: f16[B, G, T, E]"),
        ("I019", "%q: f16[B, H, S, D], %k: f16[B, G", "%q: f16[B, 6, S, D], %k: f16[B, 4"),
        ("I019", "element(%d0, %h)", "element(%d0)"),
        ("I040", '"v", "read"]', '"v"]'),
        ("I040", '["q", "k"', '["k", "q"'),
        ("I041", "%d0: f32[H]) -> bool[]", "%d0: f16[H]) -> bool[]"),
        ("I041", "return %1\n", "return %1, %1\n"),
        ("I042", '"auto"', '"big"'),
        ("I043", "dropout = 0.0", "dropout = 1.0"),
        ("I044", "dropout = 0.0", "dropout = 0.5"),
    ],
)
def test_each_rule_is_kept(code: str, old: str, new: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    if code == "I041" and "return" in old:
        text = text.replace("-> f32[] {\n    %0", "-> f32[], f32[] {\n    %0")
    if "[B, 6" in new:
        text = text.replace("%v: f16[B, G", "%v: f16[B, 4").replace("f32[B, H, S", "f32[B, 6, S")
    with pytest.raises(CkError) as caught:
        verify(parse_function(text))
    assert f"CK-{code}" in str(caught.value)


def test_regions_read_a_limited_number_of_tensors() -> None:
    count = attention.READ_LIMIT + 1
    operands = ", ".join(["%q", "%k", "%v", *["%w"] * count])
    params = ", ".join(f"%d{place}: f32[H]" for place in range(count))
    text = TEXT.replace("%q, %k, %v, %w", operands).replace("%d0: f32[H]", params)
    roles = ", ".join(['"read"'] * count)
    with pytest.raises(CkError, match="CK-I040"):
        verify(parse_function(text.replace('"v", "read"', f'"v", {roles}')))


def test_an_index_is_limited_to_its_axis() -> None:
    table = np.arange(6.0).reshape(2, 3)
    i = np.array([-5, 0, 1, 2])
    assert attention.element(table, i, i).tolist() == [0, 0, 4, 5]
    assert attention.element(np.ones((0, 3)), i, i).tolist() == [0] * 4


# Known answers of the authors' Random123 library for philox4x32 with 7 rounds.
@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        ((0,) * 4, (0,) * 2, "5f6fb709 0d893f64 4f121f81 4f730a48"),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, "5207ddc2 45165e59 4d8ee751 8c52f662"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "4dfccaba 190a87f0 c47362ba b6b5242a",
        ),
    ],
)
def test_philox_gives_the_published_numbers(
    counter: tuple[int, ...], key: tuple[int, int], want: str
) -> None:
    low, high = (np.array(counter[at] | counter[at + 1] << 32, np.uint64) for at in (0, 2))
    got = philox(low, high, key[0] | key[1] << 32)
    assert " ".join(f"{number:08x}" for number in got) == want


def test_random_bytes_stand_where_a_wave_of_the_device_has_them() -> None:
    seed, offset, shape = 7, 2**32 - 3, (2, 3, 50, 70)
    got = random_bytes(shape, seed, offset)
    assert got.shape == shape
    for b, h, i, j in ((0, 0, 0, 0), (1, 2, 49, 69), (0, 1, 17, 33), (1, 0, 40, 5)):
        row, column = i % 32, j % 32
        lane = column + 32 * (row // 8 % 2)
        byte = 8 * (row // 16) + row % 8
        counter = np.array(offset + 64 * (3 * b + h) + lane, np.uint64)
        words = philox(counter, np.array(i // 32 | (j // 32) << 32, np.uint64), seed)
        assert got[b, h, i, j] == int(words[byte // 4]) >> 8 * (byte % 4) & 255


def test_dropout_keeps_the_share_that_it_says() -> None:
    kept = keep_mask((2, 2, 128, 128), 0.25, 3, -1)
    # 256 values, of which floor(255 * 0.75) + 1 are kept.
    assert abs(kept.mean() - 192 / 256) < 0.01
    assert (kept != keep_mask((2, 2, 128, 128), 0.25, 4, -1)).any()
