# SPDX-License-Identifier: MIT
"""The legal casts, each with its C expression: ``{0}`` is the variable that is converted.

The op table says what the helper functions are and how narrow values are kept in C.
"""

from collections.abc import Mapping
from types import MappingProxyType

from cklang.types import DType, bf8, bf8_fnuz, bf16, bool_, f16, f32, fp8, fp8_fnuz, i8, i32, i64

# C's own conversion is undefined outside the range of int.
_TO_I32 = (
    "{0} != {0} ? 0 : {0} >= 2147483648.0f ? 2147483647 : "
    "{0} < -2147483648.0f ? -2147483647 - 1 : (int){0}"
)

_TO_I8 = "{0} != {0} ? 0 : {0} >= 127.0f ? 127 : {0} <= -128.0f ? -128 : (int){0}"
_NARROW_I8 = "{0} > 127 ? 127 : {0} < -128 ? -128 : {0}"
_TO_I64 = (
    "{0} != {0} ? 0 : {0} >= 9223372036854775808.0f ? 9223372036854775807 : "
    "{0} < -9223372036854775808.0f ? -9223372036854775807 - 1 : (long){0}"
)
_I64_TO_I32 = "{0} > 2147483647 ? 2147483647 : {0} < -2147483647 - 1 ? -2147483647 - 1 : (int){0}"

_ROUND = {
    f16: "ck_round_f16({0})",
    bf16: "ck_round_bf16({0})",
    f32: "{0}",
    fp8: "ck_round_fp8({0})",
    bf8: "ck_round_bf8({0})",
    fp8_fnuz: "ck_round_fp8_fnuz({0})",
    bf8_fnuz: "ck_round_bf8_fnuz({0})",
}


def _casts() -> dict[tuple[DType, DType], str]:
    rows = {(source, to): c for source in _ROUND for to, c in _ROUND.items()}
    # A value already in the type does not change.
    rows |= {(dtype, dtype): "{0}" for dtype in _ROUND}
    for source in (i8, i32, i64, bool_):
        rows |= {(source, to): c.replace("{0}", "(float){0}") for to, c in _ROUND.items()}
        rows |= {(source, i32): "(int){0}", (source, bool_): "{0} != 0", (source, i64): "(long){0}"}
        rows |= {(source, i8): _NARROW_I8.replace("{0}", "(int){0}")}
    for source in _ROUND:
        rows |= {(source, i32): _TO_I32, (source, i8): _TO_I8, (source, bool_): "{0} != 0.0f"}
        rows |= {(source, i64): _TO_I64}
    return rows | {(i64, i32): _I64_TO_I32, (i64, i8): f"(int)({_NARROW_I8})"}


CASTS: Mapping[tuple[DType, DType], str] = MappingProxyType(_casts())
"""The C expression of each legal cast, by (from, to)."""
