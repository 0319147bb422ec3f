# SPDX-License-Identifier: MIT
"""From a decorated Python function to the mini-IR. Nothing is imported here.

The language is the part of Python that this list names; all else is an F error of
:mod:`cklang.errors`, raised when the function is decorated if no dtypes are needed to see it, and
when it is specialised otherwise::

    parameters   tensors ck.f16[M, K], run-time scalars ck.f32, dtype variables T[M, K],
                 compile-time constants ck.const[float], which may have defaults, and tensors
                 that a call may leave out, ck.f16[N] | None = None
    statements   assignment and augmented assignment to names and tuples of names, if, for, break,
                 continue, assert, pass, return, a docstring
    tensors      + - * / // % ** @ -x abs(x), < <= > >= == !=, & | ^ ~ of booleans and integers,
                 << >> of integers, x.T, x[:, None], x[..., None], x.to(dtype), x.dtype,
                 x.ndim, x.shape, dims as the numbers that a call gives, and the functions of ck
    constants    Python's numbers, booleans, strings and tuples, computed by Python itself with all
                 its operators, `and or not in is`, conditional expressions, the math module and
                 abs bool enumerate float int len max min range reversed round zip
    helpers      functions made with @ck.fn, inlined; they return one value or a tuple
    ops          other functions made with @ck.op, inlined; arguments and results are cast to their
                 annotations

Conditions and loop bounds are constants: `if` chooses what is compiled, `for` is unrolled. Names
from outside the function, and attributes and entries of such objects, are looked up once, when it
is decorated.

A tensor expression is computed in f32 (narrow floats are widened, i8 becomes i32), shapes
broadcast as in NumPy, where two dims of different names never do, and the only roundings are
casts: those the user writes, and one to the dtype of the return annotation. The arguments of an op
that another calls are cast in the same way.

Steps: :mod:`.text` finds the source, :mod:`.subset` checks the syntax, :mod:`.signature` reads the
annotations, :mod:`.names` looks up what comes from outside, and :mod:`.helper` holds the four
together. :mod:`.program` then runs the function on symbols (:mod:`.statements`,
:mod:`.expressions`, :mod:`.calls`; of ops in it :mod:`.op_calls`), :mod:`.returns` checks what it
returns, and :mod:`.emit` and the files of :mod:`.ops` write the IR.
:mod:`.intrinsics` registers the functions of the language, each beside its code in :mod:`.ops` with
its NumPy meaning outside programs; :mod:`.functions` has all of them.
"""
