# SPDX-License-Identifier: MIT
"""Text of the IR as an op: what :meth:`.op.Op.ir` prints is called, built and measured like an op.

Files of it end in ``.ckir``. The grammar (``cklang/ir/grammar.lark``) is the only reader.
"""

from pathlib import Path

from cklang.errors import error
from cklang.ir.nodes import Function
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.op import Op

SUFFIX = ".ckir"
"""What the name of a file of IR ends with."""


def parse(text: str, *, name: str = "<text>") -> Op:
    """Return the op whose program is ``text``: one function of the IR.

    Args:
        text: The text; ``docs/language.md`` has the grammar, ``str(op.ir(...))`` prints it.
        name: What messages call the text, such as a file name.

    Example:
        >>> scaled = ck.parse('''
        ... func @scaled(%x: f16[M, K], %w: f16[K, N], %scale: f32[]) -> f16[M, N] {
        ...   %product: f32[M, N] = gemm(%x, %w)
        ...   %factor: f32[M, N] = broadcast(%scale) {dims = []}
        ...   %result: f32[M, N] = mul(%product, %factor)
        ...   %rounded: f16[M, N] = cast(%result) {to = f16}
        ...   return %rounded
        ... }''')
        >>> x, w = np.ones((4, 8), np.float16), np.ones((8, 6), np.float16)
        >>> ir = scaled.ir(x, w, 0.5)
        >>> str(ck.parse(str(ir)).ir(x, w, 0.5)) == str(ir)
        True

    Raises:
        CkSyntaxError, CkTypeError, CkValueError: I rows, with the place in the text: it is not of
            the grammar, or an operation is not legal.
        CkValueError: K020, ``text`` is no ``str``; K021, its function has no result.
    """
    from cklang.ir.parser import parse_function
    from cklang.ir.verifier import verify

    if not isinstance(text, str):
        raise error("K020", got=text)
    return op_from_ir(verify(parse_function(text, name), allow_unused=True))


def read_op(path: Path) -> Op:
    """Return the op of a file; see :func:`parse`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise error("Z010", name=str(path), problem=str(problem)) from problem
    return parse(text, name=str(path))


def op_from_ir(function: Function) -> Op:
    """Return the op whose program is a verified function."""
    return Op(IrProgram(ir=function))
