# SPDX-License-Identifier: MIT
"""Which stage of a kernel's pipeline an instruction belongs to.

The kind of an instruction says it for memory, matrix units and waits. For arithmetic it is the
innermost inlined function that is known to belong to a stage: CK Tile's functions and those of
ops keep their names in the debug information. What is inlined into an epilogue belongs to it.
"""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from cklang.emulator.clock.instruction import Instruction
from cklang.emulator.clock.kernel import LaunchDetail
from cklang.emulator.profiler.inlining import calls_of_sections
from cklang.memo import BoundedMemo

_KINDS = (
    (re.compile(r"v_(mfma|smfmac|wmma|swmmac)"), "matrix"),
    (re.compile(r"ds_(write|store)"), "LDS store"),
    (re.compile(r"ds_(read|load)"), "LDS read"),
    (re.compile(r"ds_"), "lane exchange"),
    (re.compile(r"(t?buffer|global|flat)_(load|gather)|image_(load|sample|gather)"), "global load"),
    (re.compile(r"(t?buffer|global|flat)_(store|atomic)|image_(store|atomic)"), "global store"),
    (re.compile(r"scratch_"), "spill"),
    (re.compile(r"s_(load|buffer_load)"), "scalar load"),
    (re.compile(r"s_barrier"), "barrier"),
    (re.compile(r"s_(wait|nop|sleep|delay_alu)"), "wait"),
)
"""Instructions whose kind says the stage; the first row that fits."""

_BOUNDS = "bounds check"
_CHOICE = re.compile(r"v_(cndmask|cmp)")
_ACCESS = re.compile(r"amd_(async_)?buffer_\w+")
"""Where CK Tile's accesses choose, they replace what is out of bounds."""
_OURS = re.compile(r".*/(ck_tile|cklang)/|.*stencil\.hip|.*ck_fill_")
"""Files in which names of functions mean what the table says."""
_FUNCTIONS = (
    (
        re.compile(
            r"(move|make|update|set|init)_?\w*(coordinate|window|transform|descriptor|view)|"
            r"calculate_\w+|update_lower_index|move\w*_tensor\w*|get_partition_index|"
            r"_get_partition_index|Get(OutputTileIndex|TileRange\w*|\w*Offset\w*)|"
            r"do_magic_division|integer_divide_\w+|get_x_indices\w*|place|window|"
            r"make_\w*buffer_resource|amd_(async_)?buffer_\w+"
        ),
        "address arithmetic",
    ),
    (re.compile(r"(coordinate|adaptor_coordinate)_\w+|is_valid_upper\w+"), _BOUNDS),
    (
        re.compile(
            r"type_convert|cast_tile\w*|float_to_\w+|\w+_to_float|narrow|widen|bit_cast|"
            r"shuffle_tile\w*|transpose_\w+|ck_round_\w+"
        ),
        "conversion",
    ),
    (re.compile(r"ck_exp2?|exp2f?|block_tile_reduce\w*|warp_tile_reduce\w*|ck_score"), "softmax"),
    (re.compile(r"IsOutOfBound|IsEdgeTile|LogitsMask|set_tile_if|lets_through|ck_mask"), "mask"),
    (re.compile(r"ck_prologue_\w+"), "prologue"),
    (re.compile(r"\w*philox\w*|get_random\w*|BlockDropout\w*"), "dropout"),
)
"""Functions of CK Tile and of ops, and the stage of what they compute."""

_EPILOGUE_FUNCTION = re.compile(r"ck_(epilogue|output)|\w*Epilogue\w*")
_EPILOGUE_FILE = re.compile(r".*/ops/epilogue/|.*/cklang/epilogue\.hpp")
_EPILOGUE = "epilogue"
_ARITHMETIC = (
    (re.compile(r"s_c?branch|s_cmp|s_setpc|s_swappc|s_call|s_endpgm|s_setprio|s_\w*saveexec"),
     "control"),
    (re.compile(r"v_"), "vector arithmetic"),
    (re.compile(r""), "scalar arithmetic"),
)  # fmt: skip
"""What no function claims."""

STAGES: tuple[str, ...] = tuple(
    dict.fromkeys(
        (_EPILOGUE, *(name for table in (_KINDS, _FUNCTIONS, _ARITHMETIC) for _, name in table))
    )
)
"""All stages."""


def stage_of(op: str, functions: Sequence[str] = (), *, epilogue: bool = False) -> str:
    """Return the stage of an instruction.

    Args:
        op: The operation.
        functions: That it was inlined from, the innermost first, with template arguments or not.
        epilogue: Whether one of their files is that of an epilogue.

    Example:
        >>> stage_of("ds_read_b128"), stage_of("v_add_u32_e32")
        ('LDS read', 'vector arithmetic')
        >>> stage_of("v_add_u32_e32", ["operator+=<2>", "move_tile_window<int>", "Run"])
        'address arithmetic'
        >>> stage_of("v_cndmask_b32_e32", ["amd_buffer_load_invalid_element_return_zero"])
        'bounds check'
        >>> stage_of("buffer_store_dwordx2", ["store_tile", "ck_epilogue"])
        'epilogue'
    """
    names = [_plain(name) for name in functions]
    if epilogue or any(_EPILOGUE_FUNCTION.fullmatch(name) for name in names):
        return _EPILOGUE
    kind = next((stage for pattern, stage in _KINDS if pattern.match(op)), "")
    if kind:
        return kind
    claimed = (_of_function(name, op) for name in names)
    return next(filter(None, claimed), "") or next(
        stage for pattern, stage in _ARITHMETIC if pattern.match(op)
    )


def _plain(function: str) -> str:
    return function.partition("<")[0]


@cache
def _of_function(name: str, op: str = "") -> str:
    if _CHOICE.match(op) and _ACCESS.fullmatch(name):
        return _BOUNDS
    return next((stage for pattern, stage in _FUNCTIONS if pattern.fullmatch(name)), "")


def stages_of(detail: LaunchDetail) -> tuple[str, ...]:
    """Return the stage of each line of a listing; those of the last few codes are kept."""
    launch = detail.launch
    key = (launch.gpu, launch.code, launch.debug.get(".debug_info", b""))
    known = _KNOWN.get(key)
    if known is not None and known[0] is detail.listing:
        return known[1]
    stages = _stages(detail)
    _KNOWN.put(key, (detail.listing, stages))
    return stages


_KNOWN: BoundedMemo[tuple[str, bytes, bytes], tuple[Sequence[Instruction], tuple[str, ...]]] = (
    BoundedMemo(8)
)


def _stages(detail: LaunchDetail) -> tuple[str, ...]:
    launch = detail.launch
    dwords = len(detail.line_of)
    owner = np.full(dwords, -1, np.int64)
    epilogue = np.zeros(dwords, dtype=bool)
    names: list[str] = []
    calls = calls_of_sections(launch.debug, launch.base)
    for call in sorted(calls, key=lambda call: call.depth):
        name = _plain(call.function)
        code = slice(max(0, call.begin // 4), max(0, call.end // 4))
        if _EPILOGUE_FUNCTION.fullmatch(name) or _EPILOGUE_FILE.match(call.file):
            epilogue[code] = True
        if _OURS.match(call.file) and _of_function(name):
            owner[code] = len(names)
            names.append(name)
    for begin, end, file, _ in launch.sources.tolist():
        epilogue[begin:end] |= bool(_EPILOGUE_FILE.match(launch.files[file]))
    stages = [""] * len(detail.listing)
    for dword in np.flatnonzero(detail.line_of >= 0).tolist():
        at = int(owner[dword])
        line = int(detail.line_of[dword])
        functions = names[at : at + 1] if at >= 0 else []
        stages[line] = stage_of(detail.listing[line].op, functions, epilogue=bool(epilogue[dword]))
    return tuple(stages)
