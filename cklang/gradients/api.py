# SPDX-License-Identifier: MIT
"""``ck.vjp`` and ``ck.grad``: the gradients of an op as an op."""

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from cklang.errors import error
from cklang.gradients.program import (
    GradientProgram,
    default_parameters,
    differentiable,
    expect_floats,
    expect_one_element,
)
from cklang.runtime.op import Op

_memo: WeakKeyDictionary[Op, dict[object, Op]] = WeakKeyDictionary()
"""Gradients by op: asked for again, they are the same op with its plans."""


def vjp(op: Op, *, wrt: Sequence[str] | str | None = None) -> Op:
    """Return the op that gives the gradients of an op by its parameters.

    It takes the arguments of ``op``, then the gradient by each result of floats, named ``dy``
    (``dy0``, ``dy1``... of several). It computes again what it needs of the forward op, and the
    planner fuses that as it fuses any op. Gradients are f32 until they are complete, and are
    rounded once, to the dtype of the parameter.

    Args:
        op: An op; a gradient is one too, so second derivatives are ``ck.vjp(ck.vjp(op))``.
        wrt: The names of the parameters: tensors and run-time scalars of f16, bf16 or f32. All
            tensors of these dtypes if left out.

    Returns:
        An op with a result for each parameter, of its shape and dtype. The same op for the same
        arguments.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> x, w, dy = np.ones((256, 64), "e"), np.ones((512, 64), "e"), np.ones((256, 512), "e")
        >>> dx, dw = ck.vjp(linear)(x, w, dy)
        >>> dx.shape, float(dx[0, 0]), float(dw[0, 0])
        ((256, 64), 512.0, 256.0)

    Raises:
        CkTypeError: G027, ``op`` is no op.
        CkValueError: G021, ``wrt`` names something else; G024, nothing has a gradient. When the
            gradient is planned: G023, the call leaves out a parameter of ``wrt``.
        CkUnsupportedError: When it is planned: G020, G025, G026, an op of the program has no rule.
    """
    return _gradient(op, wrt, is_scalar=False)


def grad(op: Op, *, wrt: Sequence[str] | str | None = None) -> Op:
    """Return the op that gives the gradients of an op whose one result has one element.

    It takes the arguments of ``op``; everything else is as for :func:`vjp`.

    Example:
        >>> M, N = ck.dims("M N")
        >>> @ck.op
        ... def loss(x: ck.f32[M, N], target: ck.f32[M, N]) -> ck.f32[()]:
        ...     return ck.mean(ck.square(x - target))
        >>> x, target = np.full((2, 4), 3, "f"), np.ones((2, 4), "f")
        >>> ck.grad(loss, wrt="x")(x, target)[0]
        array([0.5, 0.5, 0.5, 0.5], dtype=float32)

    Raises:
        CkValueError: G022, the result has more than one element, or there are several.
        CkError: As :func:`vjp`.
    """
    return _gradient(op, wrt, is_scalar=True)


def _gradient(op: Op, wrt: Sequence[str] | str | None, *, is_scalar: bool) -> Op:
    if not isinstance(op, Op):
        raise error("G027", what=f"ck.{'grad' if is_scalar else 'vjp'}", got=repr(op))
    names = (wrt,) if isinstance(wrt, str) else None if wrt is None else tuple(wrt)
    known = _memo.setdefault(op, {})
    if (names, is_scalar) not in known:
        known[names, is_scalar] = _new(op, names, is_scalar)
    return known[names, is_scalar]


def _new(op: Op, names: tuple[str, ...] | None, is_scalar: bool) -> Op:
    program = op.program
    if is_scalar:
        expect_one_element(program)
    expect_floats(program)
    wrt = default_parameters(program) if names is None else names
    legal = differentiable(program)
    wrong = [name for at, name in enumerate(wrt) if name not in legal or name in wrt[:at]]
    if wrong or not wrt:
        got = wrong[0] if wrong else ()
        raise error("G021", name=program.name, got=got, legal=", ".join(legal))
    if isinstance(program, GradientProgram):
        program = replace(program, by_kernels=False, _memo={})
    gradient = GradientProgram(primal=program, wrt=wrt, is_scalar=is_scalar)
    # An algorithm was named for the kernels of the op, not for those of its gradient.
    return Op(gradient, replace(op.request, algorithm=None, others=(), splits=None))
