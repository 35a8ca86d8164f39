"""`check`: lists all faults of predictions in one pass before scoring."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from datasets import Dataset

from bench_datasets._util.grid import render_html
from bench_datasets.faults import FAULTS, BenchError, Fault, cut, shorten_text

if TYPE_CHECKING:
    from bench_datasets.predictions.read import Predictions

_HTML = """\
<p><b>{{ report.benchmark }}</b>: {{ report.counts }}: \
{% if report.ok %}{{ report.state }}{% else %}<b>{{ report.state }}</b>{% endif %}</p>
{%- for hint in report.hints %}<p>hint: {{ hint }}</p>{% endfor %}
{%- if report.errors or report.warnings -%}
<table><tr><th></th><th>code</th><th>count</th><th>what to do</th><th>examples</th></tr>
{%- for title, groups in kinds %}{% for group in groups -%}
<tr><td>{{ title }}</td><td><code>{{ group.code }}</code></td><td>{{ "{:,}".format(group.count) }}</td>
{#- #}<td>{{ group.advice }}</td><td>
{%- for fault in group.examples %}{% if not loop.first %}<br>{% endif %}<code>{{ fault.key }}</code> {{ fault.text }}
{%- endfor %}</td></tr>
{%- endfor %}{% endfor %}</table>
{%- endif %}"""


UNKNOWN = "a fault code that this version does not know; remove it from pred_faults, or read the predictions again"
"""Advice on faults of predictions whose code is none of `faults.FAULTS`; they stop the scoring."""

EXAMPLES = 5
"""Most examples that a group keeps."""


@dataclass(frozen=True)
class FaultGroup:
    """All findings of one kind.

    Attributes:
        code: a key of `faults.FAULTS`, or the warning's name.
        count: how many there are.
        examples: the first few, with the row's key.
        advice: what it means and what to do.
    """

    code: str
    count: int
    examples: tuple[Fault, ...]
    advice: str

    def lines(self) -> list[tuple[str, str]]:
        """The examples as (key, text); a text that all of them end with stands once, under an empty key."""
        texts = [fault.text for fault in self.examples]
        ends = [found.start() for found in re.finditer(r"; | \(none of ", texts[0])] if len(texts) > 1 else []
        end = next((texts[0][at:] for at in ends if all(text.endswith(texts[0][at:]) for text in texts)), "")
        found = [(fault.key, fault.text[: len(fault.text) - len(end)]) for fault in self.examples]
        if self.count > len(found):
            found.append(("", f"and {self.count - len(found):,} more"))
        return [*found, ("", end.removeprefix("; ").strip())] if end else found


@dataclass(frozen=True)
class CheckReport:
    """The findings of `check`.

    Attributes:
        benchmark: whose predictions they are.
        rows: number of predictions.
        masks: number of masks in them, unsound ones included.
        errors: what stops the scoring, unless it is asked to skip and report.
        warnings: what is scored, but is probably not meant.
        on_fault: what the scoring is to do about errors: `stop`, or something that lets it go on.
        hints: likely causes of a low score that a sample of the rows shows, one sentence each.
    """

    benchmark: str
    rows: int
    masks: int
    errors: tuple[FaultGroup, ...] = ()
    warnings: tuple[FaultGroup, ...] = ()
    on_fault: str = "stop"
    hints: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stops the scoring."""
        return not self.errors or self.on_fault != "stop"

    @property
    def state(self) -> str:
        """Whether nothing stops the scoring, in words."""
        done = {"skip-and-report": "rows with errors are left out", "count-as-wrong": "errors are counted as wrong"}
        if not self.ok:
            return "not ok"
        return f"ok ({done.get(self.on_fault, 'errors are passed over')})" if self.errors else "ok"

    @property
    def counts(self) -> str:
        """Numbers of predictions and masks, in words."""
        parts = ((self.rows, "prediction"), (self.masks, "mask"))
        return ", ".join(f"{number:,} {what}{'' if number == 1 else 's'}" for number, what in parts)

    def __str__(self) -> str:
        lines = [f"{self.benchmark}: {self.counts}: {self.state}"]
        for title, groups in (("error", self.errors), ("warning", self.warnings)):
            for group in groups:
                lines.append(f"{title} {group.code}: {group.count:,} ({group.advice})")
                lines += [f"    {key}: {text}" if key else f"    {text}" for key, text in group.lines()]
        return "\n".join([*lines, *(f"hint: {hint}" for hint in self.hints)])

    def to_json(self) -> str:
        """The report as JSON text: benchmark, ok, rows, masks, errors, warnings, hints."""
        groups = {
            name: [
                {
                    "code": group.code,
                    "count": group.count,
                    "advice": group.advice,
                    "examples": [{"key": fault.key, "text": fault.text} for fault in group.examples],
                }
                for group in given
            ]
            for name, given in (("errors", self.errors), ("warnings", self.warnings))
        }
        head = {"benchmark": self.benchmark, "ok": self.ok, "rows": self.rows, "masks": self.masks}
        return json.dumps(head | groups | {"hints": list(self.hints)}, indent=2)

    def _repr_html_(self) -> str:
        return render_html(_HTML, report=self, kinds=(("error", self.errors), ("warning", self.warnings)))


@dataclass
class Collector:
    """Groups findings by code as they come, keeping the first few of each."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Fault]] = field(default_factory=dict)

    def add(self, code: str, key: str, text: str) -> None:
        """One finding."""
        self.counts[code] = self.counts.get(code, 0) + 1
        kept = self.examples.setdefault(code, [])
        if len(kept) < EXAMPLES:
            kept.append(Fault(code, shorten_text(key, 200), cut(text)))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Several findings."""
        for fault in faults:
            self.add(*fault)

    def groups(self, advice: dict[str, str]) -> tuple[FaultGroup, ...]:
        """The groups, commonest first; advice by code, else the fault's meaning."""
        order = sorted(self.counts, key=lambda code: (-self.counts[code], code))
        return tuple(
            FaultGroup(
                shorten_text(code),
                self.counts[code],
                tuple(self.examples[code]),
                advice.get(code) or (FAULTS[code].meaning if code in FAULTS else UNKNOWN),
            )
            for code in order
        )


def check(benchmark: str, predictions: Predictions, truth: Any = None) -> CheckReport:
    """List all faults of predictions, and probable mistakes.

    Args:
        benchmark: name of the benchmark.
        predictions: anything that `read_predictions` takes.
        truth: the rows they are for, in any form that `score` takes, streams aside; without it nothing is said about
            unknown, missing and resized rows.

    Returns:
        The report: errors and warnings by code, each with its count and the first few rows.

    Raises:
        BenchError: the predictions cannot be read at all; see `read_predictions`.
    """
    from bench_datasets.benchmark import get_benchmark
    from bench_datasets.predictions.values import read_truth

    if truth is not None:
        truth = read_truth(benchmark, truth)
        if not isinstance(truth, Dataset):
            raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    report = get_benchmark(benchmark).prediction_form().check(benchmark, predictions, truth)
    return replace(report, benchmark=benchmark)
