# SPDX-License-Identifier: MIT
"""What a judge says of a submission, as data, text, JSON and SARIF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cklang.emulator.engine.reports import sarif_log

ASPECTS = ("right", "safe", "honest")
RULES: Mapping[str, tuple[str, str]] = {
    "fails": ("right", "The submission raises an error, or ends."),
    "differs": ("right", "A result differs from the reference's."),
    "task-check": ("right", "The task's own check objects."),
    "special": (
        "right",
        "Infinities, NaNs or extremes are treated otherwise than by the reference.",
    ),
    "gaps": ("right", "Inputs that are not contiguous are not read as the reference reads them."),
    "unsafe": ("safe", "A check of the emulated GPU reports a kernel."),
    "stale": ("honest", "A result is that of an earlier call."),
    "torch": ("honest", "torch computes in the call, on the CPU in the place of kernels."),
    "no-kernel": ("honest", "A result was not written by a kernel of the call."),
    "patched": ("honest", "The submission replaces functions of torch or Python."),
    "other-type": ("honest", "A result is no tensor on the GPU."),
}
"""The aspect that each rule belongs to, and what it says."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a judge found."""

    rule: str
    """One of :data:`RULES`."""
    message: str
    level: str = "error"
    """``error``, or ``warning`` for what does not refuse a submission."""
    kernel: str = ""
    file: str = ""
    line: int = 0

    @property
    def aspect(self) -> str:
        """Which of :data:`ASPECTS` it is about."""
        return RULES[self.rule][0]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How the emulated GPU computes what the kernels executed, in instructions of waves."""

    exact: int
    modelled: int
    """Matrix products, whose order of rounding is modelled (``emulator.numerics``)."""
    approximate: int
    """Transcendental operations, whose last bits are not the GPU's."""
    names: tuple[str, ...]
    """The operations that are not exact."""

    def __str__(self) -> str:
        counts = f"{self.modelled} modelled, {self.approximate} approximate"
        names = f" ({', '.join(self.names)})" if self.names else ""
        return f"{self.exact} instructions exact, {counts}{names}"


_MODELLED = re.compile(r"v_s?w?mfma|v_wmma|v_swmmac|v_smfmac|v_dot")
_APPROXIMATE = re.compile(r"v_(s_)?(exp|log|sin|cos|rcp|rsq|sqrt|tanh)_")


def certificate(operations: Mapping[str, int]) -> Certificate:
    """Return the certificate of some executed operations.

    Example:
        >>> certificate({"v_add_f32_e32": 4, "v_exp_f32_e32": 2}).names
        ('v_exp_f32_e32',)
    """
    modelled = {name for name in operations if _MODELLED.match(name)}
    approximate = {name for name in operations if _APPROXIMATE.match(name)}
    counts = {
        name: sum(operations[n] for n in names)
        for name, names in (("m", modelled), ("a", approximate))
    }
    return Certificate(
        exact=sum(operations.values()) - counts["m"] - counts["a"],
        modelled=counts["m"],
        approximate=counts["a"],
        names=tuple(sorted(modelled | approximate)),
    )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says of a submission."""

    task: str
    submission: str
    form: str
    gpu: str
    findings: tuple[Finding, ...]
    trials: int
    seconds: float
    sizes: Mapping[str, int] = field(default_factory=dict)
    failing_sizes: Mapping[str, int] | None = None
    """The smallest sizes with which it still fails."""
    us: float | None = None
    """The kernels of a call, by the clock; None if nothing was launched or it is not known."""
    us_error: float | None = None
    """The relative error of the clock on such kernels."""
    us_under_load: float | None = None
    launches: tuple[Mapping[str, Any], ...] = ()
    certificate: Certificate | None = None

    def is_(self, aspect: str) -> bool:
        """Return whether nothing speaks against one of :data:`ASPECTS`."""
        return not any(f.aspect == aspect and f.level == "error" for f in self.findings)

    @property
    def accepted(self) -> bool:
        """Whether the submission is right, safe and honest."""
        return all(map(self.is_, ASPECTS))

    def __str__(self) -> str:
        head = "accepted" if self.accepted else "refused"
        words = ", ".join(f"{'' if self.is_(aspect) else 'not '}{aspect}" for aspect in ASPECTS)
        lines = [f"{self.submission}: {head} ({words}) on {self.gpu}, {self.trials} calls"]
        lines += [
            f"  {finding.level}: {finding.rule}: {finding.message}" for finding in self.findings
        ]
        if self.failing_sizes is not None:
            lines.append(f"  fails with {_sizes(self.failing_sizes)}")
        return "\n".join([*lines, *self._measured()])

    def _measured(self) -> Iterator[str]:
        if self.us is not None:
            error = "not known" if self.us_error is None else f"{self.us_error:.0%}"
            yield f"  quick: {self.us:.2f} µs by the clock (its error: {error})"
        for launch in self.launches:
            time = f"{launch['us']:9.2f} µs, {launch['bound']}" if "us" in launch else "not timed"
            yield f"    {launch['kernel']}: {time}, {launch['vgprs']} vector registers"
        if self.certificate is not None:
            yield f"  sure: {self.certificate}"

    def to_json(self) -> str:
        """Return it as JSON, as ``cklang/judge/verdict.schema.json`` describes it."""
        facts = asdict(self)
        facts |= {"accepted": self.accepted, **{aspect: self.is_(aspect) for aspect in ASPECTS}}
        return json.dumps(facts, indent=2)

    def to_sarif(self) -> str:
        """Return its findings as a SARIF 2.1.0 log."""
        rules = {name: text for name, (_, text) in RULES.items()}
        return sarif_log(
            "cklang judge", rules, [_result(f, self.submission) for f in self.findings]
        )


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items()) or "the task's own sizes"


def _result(finding: Finding, submission: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": finding.file or submission},
            "region": {"startLine": max(finding.line, 1)},
        }
    }
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    message = {"text": finding.message}
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": message,
        "locations": [location],
    }


def findings_of(reports: Sequence[Any]) -> list[Finding]:
    """Return what checks of the emulated GPU have reported."""
    return [
        Finding(
            rule="unsafe",
            message=f"{report.check}: {report.message}",
            kernel=report.kernel,
            file=report.file,
            line=report.line,
        )
        for report in reports
        if report.level == "error"
    ]
