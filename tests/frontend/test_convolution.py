# SPDX-License-Identifier: MIT
"""``ck.conv`` and its gradients: forms, extents that get names, NumPy outside a program."""

import numpy as np
import pytest

from cklang.frontend import functions
from cklang.reference.evaluate import evaluate

HEAD = 'H, W, C, Ho, Wo, G = ck.dims("H W C Ho Wo G")\n'


@pytest.fixture
def ir(specialised):
    def make(parameters: str, body: str, result: str = "ck.f32[N, Ho, Wo, K]"):
        text = f"{HEAD}@ck.op\ndef f({parameters}) -> {result}:\n    {body}\n"
        (function,) = specialised(text, "convolutions")
        return function

    return make


X, WEIGHT = "x: ck.f16[N, H, W, C]", "w: ck.f16[K, 3, 3, C]"


def convolutions(function):
    return [each for each in function.body if each.op.startswith("conv")]


def test_equal_windows_give_equal_extents(ir):
    body = "return ck.relu(ck.conv(x, w)) * ck.conv(x, v)"
    first, second = convolutions(ir(f"{X}, {WEIGHT}, v: ck.f16[K, 3, 3, C]", body))
    assert first.result.type == second.result.type


def test_branches_that_meet_have_one_extent(ir):
    """A strided 3 x 3 and a strided 1 x 1 are added up: their extents are declared to be equal."""
    body = "return ck.conv(x, w, stride=2, padding=1) + ck.conv(x, v, stride=2)"
    function = ir(f"{X}, {WEIGHT}, v: ck.f16[K, 1, 1, C]", body)
    first, second = convolutions(function)
    assert str(first.result.type) == str(second.result.type) == "f32[N, Ho, Wo, K]"
    x, w, v = (np.ones(s, np.float16) for s in ((1, 7, 8, 2), (3, 3, 3, 2), (3, 1, 1, 2)))
    (result,) = evaluate(function, (x, w, v))
    assert result.shape == (1, 4, 4, 3)


CHAIN = "ck.conv(ck.conv(x, v, stride=2).to(ck.f16), w, stride=2)"
FIRST = f"v: ck.f16[C, 3, 3, C], {WEIGHT}"
NAMES = {
    "of the annotation": (WEIGHT, "ck.conv(x, w)", "N, Ho, Wo, K"),
    "of what it meets": (
        f"{WEIGHT}, r: ck.f32[N, Ho, Wo, K]",
        "ck.conv(x, w, stride=2) + r",
        "N, Ho, Wo, K",
    ),
    "of the image, which padding keeps": (WEIGHT, "ck.conv(x, w, padding=1)", "N, H, W, K"),
    "of its own in a chain": (FIRST, CHAIN, "N, H_0, W_0, C"),
    "that avoid the user's": (f'{FIRST}, s: ck.f32["H_0", "W_0"]', CHAIN, "N, H_1, W_1, C"),
}


@pytest.mark.parametrize("what", NAMES)
def test_extents_take_the_names(ir, what):
    parameters, value, names = NAMES[what]
    result = f"ck.f32[{names}]" if "H, W" in names else "ck.f32[N, Ho, Wo, K]"
    conv, *_ = convolutions(ir(f"{X}, {parameters}", f"return {value}", result))
    assert str(conv.result.type) == f"f32[{names}]"


@pytest.mark.parametrize(
    ("x", "w", "arguments", "result"),
    [
        ("N, W, C", "K, 3, C", "", "N, Wo, K"),
        ("N, 8, H, W, C", "K, 3, 3, 3, C", "", "N, 6, Ho, Wo, K"),
        ("N, H, W, 32", "K, 3, 3, 8", ", groups=4", "N, Ho, Wo, K"),
        ("N, H, W, C", "K, 3, 3, M", ", groups=4", "N, Ho, Wo, K"),
        ("N, H, W, G, C", "G, K, 3, 3, C", "", "N, Ho, Wo, G, K"),
        ("N, W, 2, 8", "2, 64, 3, 8", ", spatial=1", "N, Wo, 2, 64"),
        ("N, W, 2, 8", "2, 64, 3, 8", ", padding=(0,)", "N, Wo, 2, 64"),
        ("N, 8, H, W, G, C", "G, K, 3, 3, 3, C", "", "N, 6, Ho, Wo, G, K"),
        ("N, 8, 64, 64", "64, 3, 3, 64", ", groups=1", "N, 6, 62, 64"),
    ],
)
def test_forms(ir, x, w, arguments, result):
    body = f"return ck.conv(x, w{arguments})"
    function = ir(f"x: ck.f16[{x}], w: ck.f16[{w}]", body, f"ck.f32[{result}]")
    assert str(convolutions(function)[0].result.type) == f"f32[{result}]"


def test_gradient_takes_size_from_constants_and_dims(ir, specialised):
    parameters = "dy: ck.f16[N, Ho, Wo, K], w: ck.f16[K, 3, 3, C], r: ck.f16[N, H, W, C]"
    body = "return ck.conv_grad_input(dy, w, stride=2, padding=1, size=(H, W)) + r"
    (conv,) = convolutions(ir(parameters, body, "ck.f32[N, H, W, C]"))
    assert str(conv.result.type) == "f32[N, H, W, C]"
    text = (
        f"{HEAD}CONSTS = {{'size': 13}}\n@ck.op\n"
        "def f(dy: ck.f16[N, 7, 7, K], w: ck.f16[K, 3, 3, C], size: ck.const[int])"
        " -> ck.f32[N, 13, 13, C]:\n"
        "    return ck.conv_grad_input(dy, w, stride=2, padding=1, size=(size, size))\n"
    )
    (function,) = specialised(text, "sizes")
    assert str(convolutions(function)[0].result.type) == "f32[N, 13, 13, C]"


@pytest.mark.parametrize("annotation", ["", " -> ck.f32[N, Ho, Wo, K]"])
def test_helper_may_return_a_convolution(specialised, annotation):
    text = (
        f"{HEAD}@ck.fn\ndef unit(x, w){annotation}:\n"
        "    return ck.relu(ck.conv(x, w, stride=2))\n"
        f"@ck.op\ndef f({X}, {WEIGHT}) -> ck.f16[N, Ho, Wo, K]:\n    return unit(x, w)\n"
    )
    (function,) = specialised(text, "helpers")
    assert str(convolutions(function)[0].result.type) == "f32[N, Ho, Wo, K]"


def test_same_on_arrays():
    """Outside a program the functions compute on NumPy arrays, with sizes found or given."""
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (2, 7, 6, 4)), rng.uniform(-1, 1, (6, 3, 3, 2))
    numbers = {"stride": 2, "padding": 1, "groups": 2}
    y = functions.conv(x, w, **numbers)
    assert y.shape == (2, 4, 3, 6)
    dx = functions.conv_grad_input(y, w, **numbers, size=(7, 6))
    dw = functions.conv_grad_weight(x, y, **numbers, size=(3, 3))
    # <conv(x, w), y> = <x, grad_input(y, w)> = <w, grad_weight(x, y)>
    assert np.sum(y * y) == pytest.approx(np.sum(x * dx)) == pytest.approx(np.sum(w * dw))


@pytest.mark.parametrize(("size", "words"), [(None, "do not decide"), ((9, 6), "do not fit")])
def test_arrays_that_do_not_fit(size, words):
    y, w = np.ones((2, 4, 3, 6)), np.ones((6, 3, 3, 4))
    with pytest.raises(ValueError, match=words):
        functions.conv_grad_input(y, w, stride=2, padding=1, size=size)


def test_groups_may_be_a_constant(specialised):
    """With groups said, the channels of input and weight are two dims, whatever the number."""
    for groups in (1, 4):
        text = (
            f"{HEAD}CONSTS = {{'groups': {groups}}}\n@ck.op\n"
            f"def f({X}, w: ck.f16[K, 3, 3, M], groups: ck.const[int]) -> ck.f32[N, Ho, Wo, K]:\n"
            "    return ck.conv(x, w, groups=groups)\n"
        )
        (function,) = specialised(text, "groups")
        assert str(convolutions(function)[0].result.type) == "f32[N, Ho, Wo, K]"
