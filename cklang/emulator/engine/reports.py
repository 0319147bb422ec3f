# SPDX-License-Identifier: MIT
"""Reports of the emulator's checks as data: read from ``CKLANG_REPORTS``, as JSON and as SARIF."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RULES = {
    "waits": "A register is used before a wait that covers the load that writes it.",
    "races": "Nothing orders two accesses of waves of a workgroup to a byte of LDS.",
    "uninitialized": "Memory is read that nobody has written.",
    "memory": "An access is out of bounds or misaligned.",
    "hazards": "Wait states between two instructions are missing.",
    "global_races": "Nothing orders two accesses to a byte of global memory.",
    "range": "Only the range in a buffer's descriptor keeps an access from memory.",
    "numeric": "A NaN or an infinity is computed from operands that are none.",
    "schedule": "Results depend on the order of execution.",
    "fault": "A kernel cannot go on.",
}
"""What each check, and the execution itself, reports."""

_NOTES = {"range", "numeric"}
"""Checks of what right kernels do too."""
_PLACE = re.compile(r"workgroup \((\d+), (\d+), (\d+)\), wave (\d+)(?:, lane (\d+))?")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """One cause: a check at an instruction of a kernel, as it was met first."""

    check: str
    """One of :data:`RULES`."""
    kernel: str
    message: str
    pc: int
    """Bytes from the beginning of the kernel."""
    file: str = ""
    line: int = 0
    address: int = 0
    """An address in memory; 0 if the report is about none."""
    workgroup: tuple[int, int, int] | None = None
    wave: int | None = None
    lane: int | None = None

    @property
    def level(self) -> str:
        """How serious it is, in SARIF's words."""
        return "note" if self.check in _NOTES else "error"


def read_reports(path: Path) -> list[CheckReport]:
    """Return the reports that programs have written to a file; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return list(_one_of_each(_report(json.loads(line)) for line in lines if line))


def _one_of_each(reports: Iterable[CheckReport]) -> Iterable[CheckReport]:
    """Leave out what another process has reported too."""
    known = set()
    for report in reports:
        cause = (report.check, report.kernel, report.pc)
        if cause not in known:
            known.add(cause)
            yield report


def _report(fields: dict[str, Any]) -> CheckReport:
    place = _PLACE.search(fields["message"])
    if place is None:
        return CheckReport(**fields)
    x, y, z, wave = (int(place[n]) for n in range(1, 5))
    lane = None if place[5] is None else int(place[5])
    return CheckReport(**fields, workgroup=(x, y, z), wave=wave, lane=lane)


def to_json(reports: Sequence[CheckReport]) -> str:
    """Return reports as a JSON list of objects, one for each.

    Example:
        >>> one = CheckReport(check="waits", kernel="k", message="missing wait", pc=16)
        >>> json.loads(to_json([one]))[0]["check"]
        'waits'
    """
    return json.dumps([asdict(report) for report in reports], indent=2)


def to_sarif(reports: Sequence[CheckReport]) -> str:
    """Return reports as a SARIF 2.1.0 log, which editors and code hosts show at their lines.

    Example:
        >>> one = CheckReport(check="waits", kernel="k", message="missing wait", pc=16)
        >>> json.loads(to_sarif([one]))["runs"][0]["results"][0]["ruleId"]
        'waits'
    """
    return sarif_log("cklang check", RULES, [_result(report) for report in reports])


def sarif_log(tool: str, rules: Mapping[str, str], results: Sequence[Mapping[str, Any]]) -> str:
    """Return results of a tool, and what its rules say, as a SARIF 2.1.0 log."""
    texts = [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()]
    run = {"tool": {"driver": {"name": tool, "rules": texts}}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(report: CheckReport) -> dict[str, Any]:
    """One result of SARIF."""
    logical = {"name": report.kernel, "kind": "function"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if report.file and report.line:
        region = {"startLine": report.line}
        artifact = {"uri": report.file}
        location["physicalLocation"] = {"artifactLocation": artifact, "region": region}
    known = ("pc", "address", "workgroup", "wave", "lane")
    values = {name: getattr(report, name) for name in known}
    return {
        "ruleId": report.check,
        "level": report.level,
        "message": {"text": report.message},
        "locations": [location],
        "properties": {name: value for name, value in values.items() if value is not None},
    }
