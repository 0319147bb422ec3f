# SPDX-License-Identifier: MIT
"""``ck.einsum`` against NumPy's: every grouping of labels, in the IR and in its kernel."""

import numpy as np
import pytest

from cklang.frontend.ops.einsum import read_subscripts
from cklang.reference.evaluate import evaluate
from tests.support.plans import kernel_function, plan, product_kernels

SIZES = {"g": 2, "h": 3, "m": 4, "i": 2, "n": 5, "j": 3, "k": 6, "l": 2}

LEGAL = [
    "mk,kn->mn", "mk,nk->nm", "km,kn->mn", "gmk,gnk->gmn", "gmk,gkn->mgn", "mgk,gnk->gnm",
    "gmk,nk->gmn", "mk,gnk->gmn", "mik,kn->min", "imk,knj->ijmn", "ghmk,hgnk->ghmn",
    "gmhk,ghkn->hgnm", "mk,kn", " gmk , gkn -> gmn ", "mkj,kjn->mn", "mjk,njk->nm", "hgmk,nhk->gmn",
    "gijkl,mkl->gijm", "gmlk,ghlkn->gmhn", "ghmik,hgkijn->gnmhj", "mk,k->m", "k,kn->n", "k,k->",
    "k,k", "gmk,gk->gm", "gmk,gk->mg", "gk,gnk->ng", "gk,gk->g", "gkl,gkl->g", "ghkl,hgkl->hg",
    "m,n->mn", "m,n->nm", "gmi,gjn->gmijn", "mkh,kh->m",
]  # fmt: skip


def program(subscripts: str) -> str:
    """The text of an op that contracts two f16 tensors."""
    labels = read_subscripts(subscripts)
    sides = [", ".join(each.upper() for each in part) for part in (labels.a, labels.b)]
    result = ", ".join(each.upper() for each in labels.result)
    return (
        f"{', '.join(each.upper() for each in SIZES)} = "
        f"ck.dims('{' '.join(each.upper() for each in SIZES)}')\n"
        f"@ck.op\n"
        f"def f(a: ck.f16[{sides[0]}], b: ck.f16[{sides[1]}]) -> ck.f32[{result or '()'}]:\n"
        f"    return ck.einsum({subscripts!r}, a, b)\n"
    )


@pytest.mark.parametrize("subscripts", LEGAL)
def test_it_is_numpys(subscripts, specialised):
    (function,) = specialised(program(subscripts), "einsum")
    labels = read_subscripts(subscripts)
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-4, 5, [SIZES[each] for each in part]).astype(np.float16)
        for part in (labels.a, labels.b)
    )
    want = np.einsum(subscripts, a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(evaluate(function, [a, b])[0], want)
    (kernel,) = product_kernels(plan(function))
    arrays = {"a": a, "b": b}
    inputs = [arrays[value.name] for value in kernel.inputs]
    np.testing.assert_array_equal(evaluate(kernel_function(kernel), inputs)[0], want)


@pytest.mark.parametrize(
    ("subscripts", "problem"),
    [
        ("mk->mk", "not of the form"),
        ("m1,kn->mn", "not of the form"),
        ("...mk,kn->mn", "not of the form"),
        ("mmk,kn->mn", "has a label twice"),
        ("mk,kn->mnq", "is in no operand"),
        ("mjk,kn->mn", "in one operand alone"),
        ("mk,kn->nn", "has a label twice"),
        ("mk,mk->mk", "no label is summed over, and the result has no label of either operand"),
        ("mk,m->mk", "no label is summed over, and the result has no label of one operand alone"),
    ],
)
def test_what_is_no_product(subscripts, problem):
    with pytest.raises(ValueError, match=problem):
        read_subscripts(subscripts)
