# SPDX-License-Identifier: MIT
"""The annotation of a tensor that an op updates in place: ``cache: ck.inout[ck.f16[S, D]]``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InOutType:
    """An annotation whose argument takes a result of the op."""

    of: object
    """The annotation of the tensor."""

    def __str__(self) -> str:
        return f"inout[{self.of}]"


class InOut:
    """``ck.inout[T]``: a parameter whose array takes the result that is written into it.

    Example:
        >>> S, D, B = ck.dims("S D B")
        >>> @ck.op
        ... def put(
        ...     cache: ck.inout[ck.f16[S, D]], slots: ck.i32[B], rows: ck.f16[B, D]
        ... ) -> ck.f16[S, D]:
        ...     return ck.scatter(cache, slots, rows)
        >>> print(ck.inout[ck.f16[S, D]])
        inout[f16[S, D]]
    """

    def __getitem__(self, of: object) -> InOutType:
        return InOutType(of)


inout = InOut()
