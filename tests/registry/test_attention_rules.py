# SPDX-License-Identifier: MIT
"""The rules of attention one by one, and that there is no rule without such a row."""

from dataclasses import fields, replace
from typing import Any

import pytest

import cklang as ck
from cklang.arch import all_archs, arch
from cklang.families import FAMILIES
from cklang.families.attention.host import AttentionOperand, AttentionTensor
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    ScoreKind,
)
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention_backward.key import AttentionGradAlgorithm, AttentionGradSignature
from cklang.selection.diagnose import advise, fix
from cklang.selection.rules import violations
from cklang.selection.space import attention_pattern, enumerate_legal
from cklang.types import DType, bf16, f16, f32, fp8, fp8_fnuz, i8
from tests.support.algorithms import ATTENTION, V3

ASYNC = replace(ATTENTION, pipeline=AttentionPipeline.QR_ASYNC)
SQUARE = replace(ATTENTION, tile=(128, 128, 32, 128, 32, 128))
WIDE = replace(ATTENTION, tile=(128, 128, 32, 256, 32, 256))
TRANSPOSED = replace(ATTENTION, pipeline=AttentionPipeline.QR_ASYNC_TRLOAD)
LONG = replace(
    ATTENTION,
    tile=(64, 64, 64, 512, 32, 64),
    warp_tile=(16, 16, 16),
    pipeline=AttentionPipeline.LONG_HEAD,
)
GRAD = AttentionGradAlgorithm(
    tile=(32, 128, 64, 32, 64, 32, 32, 64, 64),
    warps=((1, 4, 1), (4, 1, 1), (1, 4, 1)),
    warp_tiles=((16, 16, 32), (16, 16, 16), (16, 16, 32)),
    vector=8,
)


LOADED: dict[str, Any] = {
    "pipeline": "trload_kr_ktr_vr",
    "warp_tiles": ((16, 16, 32), (16, 16, 32), (16, 16, 32)),
}
WHOLE: dict[str, Any] = {
    "tile": (32, 16, 64, 32, 64, 32, 16, 64, 64),
    "warps": ((1, 1, 1),) * 3,
    "warp_tiles": ((16, 16, 32), (16, 16, 16), (16, 16, 16)),
    "pipeline": "trload_qr_qtr_dor",
}
LONG_GRAD: dict[str, Any] = {
    "tile": (32, 64, 64, 32, 64, 32, 32, 256, 256),
    "pipeline": "long_head",
}
TILING = "attention-grad-tiling"
BOTH = ("attention", "attention_backward")


def _long(place: int, value: int) -> dict[str, Any]:
    """Return the tiling of ``long_head`` with another number at one place."""
    tile = LONG_GRAD["tile"]
    return {**LONG_GRAD, "tile": (*tile[:place], value, *tile[place + 1 :])}


def signature(dtype: DType = f16, **changes: Any) -> AttentionSignature:
    return AttentionSignature(**{"dtype": dtype, "dtype_o": dtype, "dtype_bias": dtype, **changes})


def grad_signature(dtype: DType = f16, bias_grad: bool = False, **changes: Any) -> Any:
    forward = signature(dtype, **{"dtype_o": f32, "lse": True, **changes})
    return AttentionGradSignature(forward=forward, bias_grad=bias_grad, deterministic=False)


def case(**changes: Any) -> AttentionCase:
    """Return a small problem; what is no argument of a problem without arrays is put into it."""
    named = {"left", "right", "sink", "packed", "page_size", "dtype", "lse", "score", "scale"}
    named |= {"o"} if isinstance(changes.get("o"), DType) else set()
    problem = ck.dispatch.attention_problem(
        2, 4, 40, 48, 64, kv_heads=2, **{k: v for k, v in changes.items() if k in named}
    )
    rest = {k: v for k, v in changes.items() if k not in named}
    whole = {k: rest.pop(k) for k in [*rest] if k in {f.name for f in fields(AttentionCase)}}
    return replace(problem, problem=replace(problem.problem, **rest), **whole)


def rejected(
    algorithm: AttentionAlgorithm | AttentionGradAlgorithm,
    what: Any = None,
    gpu: str = "gfx942",
    problem: Any = None,
) -> set[str]:
    default = grad_signature() if isinstance(algorithm, AttentionGradAlgorithm) else signature()
    return {r.rule for r in violations(algorithm, what or default, arch(gpu), problem)}


# (changes of the algorithm, changes of the signature, GPU, the rule)
ALGORITHMS: list[tuple[AttentionAlgorithm, dict[str, Any], str, str]] = [
    (ATTENTION, {"dtype": fp8}, "gfx942", "attention-encoding"),
    (ATTENTION, {"dtype_o": fp8_fnuz}, "gfx950", "attention-encoding"),
    (ATTENTION, {"dtype": i8}, "gfx942", "attention-dtype"),
    (ATTENTION, {"dtype": f32}, "gfx1100", "attention-dtype"),
    (ASYNC, {}, "gfx1201", "attention-pipeline"),
    (ASYNC, {"dtype": f32}, "gfx942", "attention-pipeline"),
    (ASYNC, {"blocks": (128, 64)}, "gfx942", "attention-blocks"),
    (replace(WIDE, pipeline=AttentionPipeline.QR_ASYNC), {}, "gfx942", "attention-tiling"),
    (replace(ATTENTION, warp_tile=(32, 32, 7)), {}, "gfx942", "attention-instruction"),
    (replace(ATTENTION, warps=(2, 2, 1)), {}, "gfx942", "attention-warps"),
    (replace(ATTENTION, warps=(32, 1, 1)), {}, "gfx942", "attention-threads"),
    (replace(ATTENTION, tile=(96, 64, 32, 64, 32, 64)), {}, "gfx942", "attention-tile-q"),
    (replace(ATTENTION, tile=(128, 80, 32, 64, 16, 64)), {}, "gfx942", "attention-tile-k"),
    (replace(ATTENTION, tile=(128, 64, 32, 80, 32, 64)), {}, "gfx942", "attention-tile-v"),
    (replace(ATTENTION, tile=(128, 64, 48, 64, 32, 64)), {}, "gfx942", "attention-step-d"),
    (replace(ATTENTION, tile=(128, 64, 8, 64, 32, 64)), {}, "gfx942", "attention-step-d"),
    (replace(ATTENTION, tile=(128, 64, 32, 64, 48, 64)), {}, "gfx942", "attention-step-k"),
    (replace(ATTENTION, tile=(128, 64, 32, 64, 8, 64)), {}, "gfx942", "attention-step-k"),
    (replace(ATTENTION, tile=(128, 64, 64, 64, 32, 64)), {}, "gfx942", "attention-loops"),
    (replace(ATTENTION, tile=(128, 64, 32, 64, 32, 512)), {}, "gfx942", "attention-head-limit"),
    (replace(ATTENTION, tile=(128, 64, 32, 512, 32, 64)), {}, "gfx942", "attention-head-limit"),
    (replace(SQUARE, tile=(128, 64, 32, 128, 32, 128)), {}, "gfx942", "attention-tile-128"),
    (replace(SQUARE, tile=(256, 128, 32, 128, 32, 128), pipeline=AttentionPipeline.QR_ASYNC), {},
     "gfx942", "attention-tile-128"),
    (replace(ATTENTION, tile=(32, 64, 32, 64, 32, 64), warps=(1, 1, 1)), {}, "gfx942",
     "attention-tile-rows"),
    (replace(SQUARE, tile=(128, 128, 64, 128, 32, 128)), {}, "gfx942", "attention-step-128"),
    (replace(WIDE, tile=(128, 32, 32, 256, 32, 256)), {}, "gfx942", "attention-schedule"),
    (replace(ATTENTION, tile=(256, 256, 128, 256, 32, 256)), {}, "gfx942", "attention-lds"),
    (replace(WIDE, pipeline=AttentionPipeline.QS), {}, "gfx942", "attention-lds"),
    (replace(ASYNC, tile=(128, 256, 64, 64, 64, 64)), {}, "gfx942", "attention-lds"),
    (replace(ASYNC, tile=(128, 32, 32, 64, 32, 64)), {}, "gfx950", "attention-async-load"),
    (replace(ASYNC, tile=(128, 64, 64, 64, 64, 64)), {}, "gfx942", "attention-async-steps"),
    (replace(ASYNC, pad_d=False), {}, "gfx942", "attention-async-pads"),
    (replace(ATTENTION, pad_q=False), {"packed": True}, "gfx942", "attention-packed-pads"),
    (replace(ATTENTION, pad_k=False), {"paged": True}, "gfx942", "attention-packed-pads"),
    (replace(ATTENTION, pad_k=False), {"split": True}, "gfx942", "attention-split-pads"),
    (ASYNC, {"paged": True}, "gfx942", "attention-paged"),
    (replace(ATTENTION, vector=16), {}, "gfx942", "attention-vector"),
    (replace(ATTENTION, vector=6), {}, "gfx942", "attention-vector"),
    (replace(ASYNC, vector=1), {}, "gfx942", "attention-async-vector"),
    (TRANSPOSED, {}, "gfx942", "attention-pipeline"),
    (V3, {"dtype": f32}, "gfx950", "attention-pipeline"),
    (TRANSPOSED, {"score": ScoreKind.BIAS}, "gfx950", "attention-scores"),
    (V3, {"score": ScoreKind.ALIBI}, "gfx950", "attention-scores"),
    (TRANSPOSED, {"dropout": True}, "gfx950", "attention-drops"),
    (replace(ATTENTION, pipeline=AttentionPipeline.QS), {"dropout": True}, "gfx942",
     "attention-drops"),
    (TRANSPOSED, {"paged": True}, "gfx950", "attention-paged"),
    (replace(TRANSPOSED, tile=(128, 64, 32, 32, 32, 64)), {}, "gfx950",
     "attention-transposed-heads"),
    (replace(TRANSPOSED, tile=(64, 64, 32, 64, 32, 64), warps=(2, 1, 1)), {}, "gfx950",
     "attention-transposed-queries"),
    (replace(TRANSPOSED, tile=(128, 128, 32, 128, 32, 128)), {}, "gfx950",
     "attention-transposed-keys"),
    (replace(V3, vector=4), {}, "gfx950", "attention-transposed-vector"),
    (replace(TRANSPOSED, tile=(128, 16, 32, 64, 16, 64)), {}, "gfx950",
     "attention-transposed-load"),
    (replace(V3, tile=(256, 160, 128, 128, 160, 128)), {}, "gfx950", "attention-transposed-lds"),
    (replace(V3, tile=(256, 32, 64, 128, 32, 128)), {}, "gfx950", "attention-one-step"),
    (replace(V3, warps=(4, 1, 1)), {}, "gfx950", "attention-wave-groups"),
    (LONG, {"dtype": f32}, "gfx942", "attention-pipeline"),
    (LONG, {"dropout": True}, "gfx942", "attention-long-drops"),
    (LONG, {"score": ScoreKind.BIAS}, "gfx942", "attention-long-scores"),
    (LONG, {"score": ScoreKind.ALIBI}, "gfx942", "attention-long-scores"),
    (replace(LONG, pad_d=False), {}, "gfx942", "attention-async-pads"),
    (replace(LONG, tile=(64, 64, 64, 512, 32, 128)), {}, "gfx942", "attention-long-step"),
    (replace(LONG, tile=(64, 64, 64, 528, 32, 64)), {}, "gfx942", "attention-long-registers"),
    (replace(LONG, tile=(64, 64, 32, 512, 32, 32)), {}, "gfx1201", "attention-long-registers"),
    (replace(LONG, tile=(64, 64, 64, 512, 64, 64)), {}, "gfx942", "attention-long-lds"),
    (TRANSPOSED, {"transposed_v": True}, "gfx950", "attention-transposed-v"),
    (ATTENTION, {"dtype": f32, "transposed_v": True}, "gfx942", "attention-transposed-v"),
    (ATTENTION, {"packed": True, "transposed_v": True}, "gfx942", "attention-transposed-v-lengths"),
    (replace(V3, tile=(512, 32, 128, 128, 32, 128)), {}, "gfx950", "attention-row-of-a-thread"),
    (replace(V3, warp_tile=(16, 16, 32)), {}, "gfx950", "attention-row-of-a-thread"),
]  # fmt: skip

# (changes of the algorithm, changes of the problem, the rule)
PROBLEMS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"pad_k": False}, {"values": {"lengths_k": "n"}}, "attention-lengths-pad"),
    ({"pipeline": AttentionPipeline.QS}, {"values": {"lengths_k": "n"}}, "attention-no-keys"),
    ({}, {"values": {"min_seqlen_q": "n"}, "signature": signature(split=True)}, "attention-skip"),
    ({}, {"kv_heads": 3}, "attention-heads"),
    ({}, {"scale": -0.5}, "attention-scale"),
    ({}, {"left": 2**31}, "attention-window"),
    ({}, {"sink": 2**30}, "attention-window"),
    ({}, {"hdim_v": 257}, "attention-head-size"),
    ({}, {"hdim_v": 257, "signature": signature(dropout=True)}, "attention-head-most"),
    ({}, {"hdim_q": 72}, "attention-head-size"),
    ({}, {"hdim_v": 128}, "attention-head-size"),
    ({"pad_d": False}, {"hdim_q": 56}, "attention-head-pad"),
    ({"pad_dv": False}, {"hdim_v": 8}, "attention-head-pad"),
    ({"pad_q": False}, {}, "attention-length-pad"),
    ({"pad_k": False}, {}, "attention-length-pad"),
    ({"pad_k": False}, {"seqlen_k": 0}, "attention-length-pad"),
    ({}, {"hdim_q": 60}, "attention-head-vector"),
    ({"pipeline": AttentionPipeline.LONG_HEAD}, {"hdim_q": 256}, "attention-long-head"),
    ({"pipeline": AttentionPipeline.LONG_HEAD}, {"hdim_v": 2**26}, "attention-long-slices"),
    (
        {},
        {"seqlen_k": 52, "signature": signature(transposed_v=True)},
        "attention-transposed-v-vector",
    ),
    (
        {},
        {"values": {"lengths_k": "n"}, "signature": signature(transposed_v=True)},
        "attention-transposed-v-vector",
    ),
    ({}, {"steps": {"q": 2}}, "attention-contiguous"),
    ({}, {"lists": {"pages": 3}}, "attention-lists"),
    ({}, {"alignments": {"k": 2}}, "attention-alignment"),
    ({}, {"hdim_v": 0}, "attention-head-least"),
    ({}, {"k": AttentionTensor(stride_seq=2**26)}, "attention-span"),
    ({}, {"q": AttentionTensor(stride_seq=-64)}, "attention-span"),
    ({}, {"seqlen_k": 2**30}, "attention-lengths"),
    ({}, {"o": AttentionTensor(stride_seq=32)}, "attention-result-rows"),
    (
        {},
        {
            "reads": ("t",),
            "operands": (AttentionOperand(pointer=0, extents=(2**20,), strides=(2**12,)),),
        },
        "attention-reads",
    ),
]

V3_PROBLEMS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"right": 0, "scale": 0.7}, "attention-masked-scale"),
    ({"pad_k": False}, {"seqlen_k": 64}, "attention-two-tiles"),
]

GRADS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"dtype": fp8}, "gfx942", "attention-grad-encoding"),
    ({}, {"dtype": fp8_fnuz}, "gfx942", "attention-grad-dtype"),
    ({}, {"dtype": f32}, "gfx1100", "attention-grad-dtype"),
    ({}, {"paged": True}, "gfx942", "attention-grad-plain"),
    ({"pipeline": "trload_kr_ktr_vr"}, {}, "gfx950", "attention-grad-tiling"),
    ({"tile": (64, 128, 64, 64, 64, 64, 32, 64, 64), **LOADED}, {}, "gfx950", TILING),
    ({**LOADED, "pipeline": "kr_ktr_vr"}, {}, "gfx950", TILING),
    (WHOLE, {"score": "bias"}, "gfx950", "attention-grad-whole"),
    (WHOLE, {"mask": "causal"}, "gfx950", "attention-grad-whole"),
    (WHOLE, {"mask": "window"}, "gfx950", "attention-grad-whole"),
    (WHOLE, {"packed": True}, "gfx950", "attention-grad-whole"),
    ({**LOADED, "vector": 4}, {}, "gfx950", "attention-grad-load"),
    ({}, {"bias_grad": True}, "gfx942", "attention-grad-bias"),
    ({"warp_tiles": ((16, 16, 7),) * 3}, {}, "gfx942", "attention-grad-instruction"),
    ({"warps": ((1, 4, 1), (2, 1, 1), (1, 4, 1))}, {}, "gfx942", "attention-grad-warps"),
    ({"warps": ((1, 32, 1),) * 3}, {}, "gfx942", "attention-grad-threads"),
    ({"tile": (32, 128, 64, 16, 64, 32, 32, 64, 64)}, {}, "gfx942", "attention-grad-steps"),
    ({"tile": (32, 128, 64, 32, 64, 16, 32, 64, 64)}, {}, "gfx942", "attention-grad-steps"),
    ({"tile": (32, 128, 32, 32, 64, 32, 32, 64, 64)}, {}, "gfx942", "attention-grad-head-steps"),
    ({"tile": (32, 128, 64, 32, 32, 32, 32, 64, 64)}, {}, "gfx942", "attention-grad-head-steps"),
    ({"tile": (32, 128, 64, 32, 64, 32, 48, 64, 64)}, {}, "gfx942", "attention-grad-key-steps"),
    ({"tile": (24, 128, 64, 24, 64, 24, 32, 64, 64)}, {}, "gfx942", "attention-grad-tile"),
    ({"tile": (32, 128, 512, 32, 64, 32, 32, 512, 64)}, {}, "gfx942", "attention-grad-head-limit"),
    ({"tile": (32, 128, 64, 32, 512, 32, 32, 64, 512)}, {}, "gfx942", "attention-grad-head-limit"),
    ({"vector": 16}, {}, "gfx942", "attention-grad-vector"),
    (LONG_GRAD, {"dropout": True}, "gfx942", "attention-grad-long-drops"),
    (_long(2, 32), {}, "gfx942", "attention-grad-long-step"),
    (_long(8, 128), {}, "gfx942", "attention-grad-long-step"),
    (_long(7, 288), {}, "gfx942", "attention-grad-long-step"),
    (_long(1, 128), {}, "gfx942", "attention-grad-long-registers"),
    (LONG_GRAD, {}, "gfx1201", "attention-grad-long-registers"),
]

GRAD_PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"hdim_q": 257, "signature": signature(dropout=True)}, "attention-grad-head-most"),
    ({"hdim_q": 72}, "attention-grad-head-size"),
    ({"hdim_v": 72}, "attention-grad-head-size"),
    ({"o": f32}, "attention-grad-result"),
    ({"kv_heads": 3}, "attention-grad-heads"),
    ({"hdim_q": 60}, "attention-grad-head-vector"),
    ({"steps": {"v": 2}}, "attention-grad-contiguous"),
    ({"lists": {"pages": 3}}, "attention-grad-lists"),
    ({"alignments": {"q": 2}}, "attention-grad-alignment"),
    ({"hdim_q": 0}, "attention-grad-head-least"),
    ({"v": AttentionTensor(stride_seq=2**26)}, "attention-grad-span"),
    ({"right": 2**30}, "attention-grad-window"),
    (
        {
            "reads": ("t",),
            "operands": (AttentionOperand(pointer=0, extents=(2**20,), strides=(2**12,)),),
        },
        "attention-grad-reads",
    ),
]

LONG_GRAD_PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"hdim_q": 256}, "attention-grad-long-head"),
    ({"hdim_v": 2**26}, "attention-grad-long-slices"),
]


def changed_signature(changes: dict[str, Any]) -> AttentionSignature:
    return signature(**{"dtype": f16, **changes})


@pytest.mark.parametrize(("algorithm", "changes", "gpu", "rule"), ALGORITHMS)
def test_each_rule_of_an_algorithm_objects(
    algorithm: AttentionAlgorithm, changes: dict[str, Any], gpu: str, rule: str
) -> None:
    assert rule in rejected(algorithm, changed_signature(changes), gpu)


@pytest.mark.parametrize(("how", "changes", "rule"), PROBLEMS)
def test_each_rule_of_a_problem_objects(
    how: dict[str, Any], changes: dict[str, Any], rule: str
) -> None:
    assert rejected(ATTENTION, problem=case()) == set()
    assert rule in rejected(replace(ATTENTION, **how), problem=case(**changes))


@pytest.mark.parametrize(("how", "changes", "rule"), V3_PROBLEMS)
def test_each_rule_of_a_problem_of_v3_objects(
    how: dict[str, Any], changes: dict[str, Any], rule: str
) -> None:
    assert rejected(V3, gpu="gfx950", problem=case(scale=0.7)) == set()
    assert rejected(V3, gpu="gfx950", problem=case(right=0, scale=0.69)) == set()
    assert rejected(V3, gpu="gfx950", problem=case(seqlen_k=64)) == set()
    assert rule in rejected(replace(V3, **how), gpu="gfx950", problem=case(**changes))


@pytest.mark.parametrize(("how", "changes", "gpu", "rule"), GRADS)
def test_each_rule_of_a_gradient_objects(
    how: dict[str, Any], changes: dict[str, Any], gpu: str, rule: str
) -> None:
    assert rejected(GRAD) == set()
    assert rule in rejected(replace(GRAD, **how), grad_signature(**changes), gpu)


@pytest.mark.parametrize(("changes", "rule"), GRAD_PROBLEMS)
def test_each_rule_of_a_gradients_problem_objects(changes: dict[str, Any], rule: str) -> None:
    whole = ck.dispatch.attention_grad_problem(case())
    assert rejected(GRAD, problem=whole) == set()
    assert rule in rejected(GRAD, problem=ck.dispatch.attention_grad_problem(case(**changes)))


@pytest.mark.parametrize(("changes", "rule"), LONG_GRAD_PROBLEMS)
def test_each_rule_of_a_long_heads_problem_objects(changes: dict[str, Any], rule: str) -> None:
    algorithm = replace(GRAD, **LONG_GRAD)
    assert (
        rejected(algorithm, problem=ck.dispatch.attention_grad_problem(case(hdim_q=320))) == set()
    )
    assert rule in rejected(algorithm, problem=ck.dispatch.attention_grad_problem(case(**changes)))


@pytest.mark.parametrize("changes", [{"seqlen_q": 33}, {"left": 3}, {"right": 0}])
def test_all_queries_at_once_are_those_of_one_tile(changes: dict[str, Any]) -> None:
    algorithm, what = replace(GRAD, **WHOLE), grad_signature(mask="function")

    def broken_rules(**changes: Any) -> set[str]:
        problem = ck.dispatch.attention_grad_problem(case(**{"seqlen_q": 32, **changes}))
        return rejected(algorithm, what, "gfx950", problem)

    assert broken_rules() == rejected(replace(GRAD, **LOADED), gpu="gfx950") == set()
    assert broken_rules(**changes) == {"attention-grad-queries"}


def test_there_is_a_row_for_each_rule() -> None:
    rows = (*ALGORITHMS, *PROBLEMS, *V3_PROBLEMS, *GRADS, *GRAD_PROBLEMS, *LONG_GRAD_PROBLEMS)
    shown = {rule for *_, rule in rows}
    # The first has a GPU with fewer pipelines, the other problems for gfx950 alone.
    shown |= {"attention-grad-pipeline", "attention-grad-queries"}
    rules = [rule for name in BOTH for rule in FAMILIES[name].rules.rules]
    assert shown == {rule.id for rule in rules}
    assert len(rules) == len({rule.id for rule in rules})
    assert all(len(rule.sentence.split()) >= 4 for rule in rules)


def test_a_pipeline_of_gradients_that_no_table_has_is_refused() -> None:
    spec = arch("gfx942")
    one = tuple(replace(row, pipelines=("kr_ktr_vr",)) for row in spec.attention_grad_tiles)
    few = replace(spec, attention_grad_tiles=one)
    broken_rules = {r.rule for r in violations(GRAD, grad_signature(), few)}
    assert broken_rules == {"attention-grad-pipeline", "attention-grad-tiling"}


@pytest.mark.parametrize("family", BOTH)
def test_rules_read_the_fields_they_name_and_no_others(family: str) -> None:
    """A rule that read another field would be asked too early by the enumeration."""
    base: Any = ATTENTION if family == "attention" else GRAD
    what: Any = signature() if family == "attention" else grad_signature()
    far: dict[str, Any] = {"tile": tuple(7 * n for n in base.tile), "vector": 3, "block_per_cu": 3}
    if family == "attention":
        far |= {"warps": (3, 2, 1), "warp_tile": (7, 7, 7), "pipeline": "qs"}
        far |= dict.fromkeys(("pad_q", "pad_k", "pad_d", "pad_dv"), False)
    else:
        far |= {"warps": ((3, 1, 1),) * 3, "warp_tiles": ((7, 7, 7),) * 3}
        far |= {"pipeline": "trload_qr_qtr_dor"}
    other = replace(base, **far)
    for rule in FAMILIES[family].rules.algorithms:
        mixed = replace(other, **{name: getattr(base, name) for name in rule.reads})
        spec = arch("gfx942")
        assert (rule.check(mixed, what, spec) is None) == (rule.check(base, what, spec) is None)


@pytest.mark.parametrize("spec", all_archs(), ids=lambda spec: spec.name)
@pytest.mark.parametrize("dtype", [f16, bf16, f32, fp8, fp8_fnuz], ids=str)
def test_every_tiling_of_a_gpu_keeps_the_rules(spec: Any, dtype: DType) -> None:
    """The tables are CK Tile's own choices: a rule that rejects one is wrong."""
    what = signature(dtype)
    listed = list(enumerate_legal(what, spec, attention_pattern(pipeline="*")))
    wrong = dtype.encoding not in ("", spec.fp8)
    name = dtype.name.removesuffix("_fnuz")
    rows = [row for row in spec.attention_tiles if name in row.dtypes and not wrong]
    assert {(a.tile, a.pipeline.value) for a in listed} == {
        (row.tile, pipeline) for row in rows for pipeline in row.pipelines
    }
    every = attention_pattern(gradient=True, pipeline="*")
    back = enumerate_legal(grad_signature(dtype), spec, every)
    grads = [row for row in spec.attention_grad_tiles if dtype.name in row.dtypes]
    assert {(a.tile, a.warp_tiles, a.pipeline.value) for a in back} == {
        (row.tile, row.warp_tiles, pipeline) for row in grads for pipeline in row.pipelines
    }


def test_what_a_rule_says_and_what_would_be_legal() -> None:
    bad = replace(ATTENTION, tile=(128, 64, 32, 32, 32, 32))
    proposals = advise(bad, signature(), "gfx942", case())
    assert [advice.rule for advice in proposals] == ["attention-loops", "attention-head-size"]
    said = str(proposals[1])
    assert "the head size of q and k is 64, must be at most 32 (a tile holds a whole head)" in said
    assert "legal: tile = 128x64x32x64x32x64" in said
    proposal = fix(bad, signature(), "gfx942", case())
    assert proposal.algorithm == ATTENTION
    assert str(proposal) == "tile: 128x64x32x32x32x32 -> 128x64x32x64x32x64"


def test_scores_of_the_users_may_have_any_scale() -> None:
    problem = case(scale=-0.5, score=ScoreKind.FUNCTION)
    assert rejected(ATTENTION, problem=problem) == set()
