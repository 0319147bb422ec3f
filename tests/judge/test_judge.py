# SPDX-License-Identifier: MIT
"""``cklang judge``: each program of ``benchmarks/judge_programs.py`` gets the verdict it should."""

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from judge_programs import PROGRAMS, TASKS

import cklang.judge
from cklang.cli.main import main
from cklang.errors import CkValueError
from cklang.judge import Finding, Verdict, judge
from cklang.judge.comparison import compared
from cklang.judge.task import FORMS, load_task
from cklang.judge.verdict import ASPECTS, RULES, certificate
from cklang.judge.wire import Other, receive, send

pytestmark = pytest.mark.usefixtures("torch", "triton", "emulator")

SCHEMA = json.loads((Path(cklang.judge.__file__).parent / "verdict.schema.json").read_text())
ALWAYS = ("relu", "relu, no mask", "relu, results kept by address", "sums, not atomic")
"""Programs of every run; the others are judged in full ones."""


def judged(name: str, folder: Path, **settings: Any) -> Verdict:
    program = PROGRAMS[name]
    task, submission = folder / "task.py", folder / "submission.py"
    task.write_text(TASKS[program.task])
    submission.write_text(program.text)
    sizes = {"size": 700} if program.task == "sums" else {}
    return judge(task, submission, gpu="gfx942", sizes=sizes, **settings)


def errors_of(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings if finding.level == "error"}


def cases() -> list[Any]:
    rest = [pytest.param(name, marks=pytest.mark.full) for name in PROGRAMS if name not in ALWAYS]
    return [*(pytest.param(name, marks=pytest.mark.isa) for name in ALWAYS), *rest]


@pytest.mark.parametrize("name", cases())
def test_programs_get_their_verdicts(name: str, tmp_path: Path) -> None:
    verdict = judged(name, tmp_path, shrink=0)
    assert errors_of(verdict) == set(PROGRAMS[name].finds), str(verdict)
    assert verdict.accepted == (not PROGRAMS[name].finds)
    jsonschema.validate(json.loads(verdict.to_json()), SCHEMA)


@pytest.mark.full
def test_the_smallest_failing_sizes(tmp_path: Path) -> None:
    verdict = judged("relu, leaky", tmp_path, shrink=3)
    assert verdict.failing_sizes is not None
    assert verdict.failing_sizes["rows"] == 1


@pytest.mark.full
def test_a_submission_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASKS["softmax"])
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1000)\n")
    limits = cklang.judge.Limits(seconds=20)
    verdict = judge(tmp_path / "task.py", tmp_path / "slow.py", gpu="gfx942", limits=limits)
    assert errors_of(verdict) == {"fails"}
    assert "20 s" in verdict.findings[0].message


@pytest.mark.full
def test_torch_is_allowed_where_that_is_said(tmp_path: Path) -> None:
    verdict = judged("linear by torch, a kernel that copies", tmp_path, allow_torch=True)
    assert verdict.accepted
    assert "torch" in {finding.rule for finding in verdict.findings}


@pytest.mark.full
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged_by = PROGRAMS["sums, not atomic"]
    (tmp_path / "task.py").write_text(TASKS[judged_by.task])
    (tmp_path / "submission.py").write_text(judged_by.text)
    files = [str(tmp_path / "task.py"), str(tmp_path / "submission.py")]
    assert main(["judge", "--size", "size=600", "--format", "sarif", *files]) == 1
    log = json.loads(capsys.readouterr().out)
    assert {result["ruleId"] for result in log["runs"][0]["results"]} >= {"unsafe"}
    assert main(["judge", str(tmp_path / "submission.py"), files[1]]) == 1
    assert "CK-Z010" in capsys.readouterr().err


VERDICT = Verdict(
    task="t.py",
    submission="s.py",
    form=FORMS[0].name,
    gpu="gfx942",
    findings=(
        Finding(rule="unsafe", message="races: two stores", kernel="k", file="s.py", line=7),
        Finding(rule="gaps", message="differs", level="warning"),
    ),
    trials=3,
    seconds=1.5,
    us=2.0,
    us_error=0.07,
    certificate=certificate({"v_add_f32_e32": 4, "v_exp_f32_e32": 2, "v_mfma_f32_16x16x4_f32": 1}),
)


@pytest.mark.pure
def test_a_verdict_as_text_and_data() -> None:
    text = str(VERDICT)
    assert text.startswith("s.py: refused (right, not safe, honest) on gfx942, 3 calls")
    assert "4 instructions exact, 1 modelled, 2 approximate" in text
    data = json.loads(VERDICT.to_json())
    jsonschema.validate(data, SCHEMA)
    assert [data[each] for each in ASPECTS] == [True, False, True]
    (first, second) = json.loads(VERDICT.to_sarif())["runs"][0]["results"]
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert second["level"] == "warning"


@pytest.mark.pure
def test_the_schema_knows_every_rule_and_form() -> None:
    finding = SCHEMA["properties"]["findings"]["items"]["properties"]
    assert set(finding["rule"]["enum"]) == set(RULES)
    assert SCHEMA["properties"]["form"]["enum"] == [form.name for form in FORMS]
    assert {aspect for aspect, _ in RULES.values()} == set(ASPECTS)


@pytest.mark.pure
def test_messages_come_back_as_they_were() -> None:
    tensors = [torch.arange(6).reshape(2, 3).t(), torch.ones(3).bfloat16(), torch.zeros(0, 2)]
    message = {"a": (1, None, "x", 2.5, True), "b": tensors, "c": {"d": tensors[0]}, "e": object()}
    file = io.BytesIO()
    send(file, message)
    file.seek(0)
    got = receive(file)
    assert got["a"] == message["a"]
    assert got["e"] == Other("object")
    for one, other in zip([*got["b"], got["c"]["d"]], [*tensors, tensors[0]], strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    with pytest.raises(EOFError):
        receive(file)


def _sum_of(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[0], dtype=x.dtype)
    for column in order:
        total = total + x[:, column]
    return total


@pytest.mark.pure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_bounds_of_results(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 1000).to(dtype)
    exact, own = x.double().sum(1), x.float().sum(1).to(dtype)

    def says(got: torch.Tensor) -> str:
        return compared(got, exact, own, [x], special=False)

    other_order = _sum_of(x.float(), torch.arange(1000)).to(dtype)
    assert not says(other_order)
    wrong = own.clone()
    wrong[3] += 0.3 * own.float().square().mean().sqrt().to(dtype)
    assert "1 of 50 elements differ; element [3]" in says(wrong)
    wrong[3] = float("nan")
    assert "1 of 50" in says(wrong)
    assert "dtype" in says(own.double())
    assert "shape" in says(own[:9])
    assert "0 results" in compared(None, exact, own, [x], special=False)


@pytest.mark.pure
def test_files_that_are_no_task(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    for name in ("other.py", "missing.py"):
        with pytest.raises(CkValueError, match="Z010"):
            load_task(tmp_path / name, {})
