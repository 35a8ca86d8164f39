"""Ground truth, predictions and images of runs, where available, checked to be those of the scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from datasets import Image

from bench_datasets.data import open_truth
from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions
from bench_datasets.report.runs import Run
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.prepare import Plan, UnitScorer, make_plan

HELD = 32
"""Rows, about, that are scored again before a page is made, to see that truth and predictions are the run's."""


class Material:
    """Data that a report can show besides numbers.

    Args:
        runs: of the report.
        data: where the truth is, as `--data` takes it.
        predictions: those of each run, in order; none for no masks.
        split: of the truth.
        images: whether to look for images.

    Raises:
        BenchError: predictions or truth are not those that a run was scored on.
    """

    def __init__(
        self, runs: Sequence[Run], data: str | None, predictions: Sequence[str], *, split: str = "test",
        images: bool = True,
    ) -> None:  # fmt: skip
        if predictions and len(predictions) != len(runs):
            raise BenchError(f"predictions: expected one per run ({len(runs)}), in their order, got {len(predictions)}")
        self.benchmark = runs[0].result.benchmark
        self.data, self.split, self.images = data, split, images
        self.truth = open_truth(self.benchmark, data, split=split)
        self.keys = [str(key) for key in self.truth["key"]]
        self.row_of = {key: i for i, key in enumerate(self.keys)}
        self.verified: set[tuple[int, str]] = set()
        for run in runs:
            absent = sorted({str(key) for key in run.table["key"].to_pylist()} - self.row_of.keys())
            if absent:
                raise self._other_rows(run, f"{len(absent)} of its rows, such as {absent[0]}, are not there")
        # Where the truth stood in for tubes or relations, the model's own masks are not what was scored.
        oracle = any("oracle" in run.table.column_names and any(run.table["oracle"].to_pylist()) for run in runs)
        given = [] if oracle else list(predictions)
        self.plans = [self._plan(run, place) for run, place in zip(runs, given, strict=False)]
        for i, _ in enumerate(self.plans):
            # Rows of one key may still be others: some are scored again before anything is made of them.
            held = sorted(set(runs[i].table["key"].to_pylist()))
            self.verify(runs[i], i, held[:: max(1, len(held) // HELD)])

    def _other_rows(self, run: Run, what: str) -> BenchError:
        """The error that the truth is not the run's, in a sentence."""
        source = run.result.dataset.get("source") or "rows from a place that was not recorded"
        data = f"on {self.data}" if self.data is not None else "on the benchmark's own source"
        return BenchError(
            f"report: {run.name} was scored on {source}, not {data}: {what}; name the data of its scores (--data)"
        )

    def _plan(self, run: Run, place: str) -> Plan:
        settings = run.result.settings
        plan = make_plan(
            self.benchmark, self.truth, read_predictions(self.benchmark, place), run.result.protocol["name"],
            missing=settings.get("missing") or "empty", on_fault=settings.get("on_fault") or "skip-and-report",
            whole=False,
        )  # fmt: skip
        expected, found = run.result.predictions.get("sha256"), plan.record["predictions"]["sha256"]
        rows = set(run.table["key"].to_pylist())
        if expected is not None and expected != found and len(rows) == len(set(self.truth["key"])):
            raise BenchError(f"{place}: expected the predictions that {run.name} was scored on, found others")
        return plan

    def batches(self, run: int, keys: Collection[str] | None = None) -> Iterator[pa.Table]:
        """Truth rows with a run's predictions beside them, in batches; those of some keys, or all."""
        plan = self.plans[run]
        wanted = [u for u in plan.everything if keys is None or self.keys[int(plan.units.truth[u])] in keys]
        work, size = UnitScorer(plan), plan.lot
        for first in range(0, len(wanted), size):
            yield work.attached(wanted[first : first + size])

    def verify(self, run: Run, number: int, keys: Collection[str]) -> None:
        """Score some rows again and hold them against the run's; each once.

        Raises:
            BenchError: they differ.
        """
        keys = {key for key in keys if (number, key) not in self.verified}
        if not keys:
            return
        self.verified |= {(number, key) for key in keys}
        names = run.metric.sort_columns
        rows = run.table.to_pylist() if len(keys) * 4 > len(run.table) else None
        if rows is None:
            rows = run.table.filter(pa.compute.is_in(run.table["key"], pa.array(sorted(keys)))).to_pylist()
        expected = {tuple(row[name] for name in names): row for row in rows}
        options = ScoreOptions(run.result.protocol["name"], missing="empty", on_fault="skip-and-report")
        for batch in self.batches(number, keys):
            for row in run.metric.score_table(batch, options).to_pylist():
                stored = expected.get(tuple(row[name] for name in names))
                if stored is None:
                    continue
                differ = [
                    c for c in row if c in stored and c not in ("cluster", "faults") and not _same(row[c], stored[c])
                ]
                if "row_sha256" in differ:
                    raise self._other_rows(run, f"{row['key']} is another row there")
                if differ:
                    raise BenchError(
                        f"{row['key']}: scored again, {', '.join(differ[:3])} of {run.name} comes out otherwise; name"
                        " the truth and the predictions that the run was scored on (--data, --predictions)"
                    )

    def pictures(self, keys: Collection[str]) -> dict[str, Any]:
        """The images of some rows by key, `{"bytes", "path"}`; rows without one are absent."""
        if not self.images or not keys or self.data is None:  # a whole benchmark is not fetched for some rows
            return {}
        stream = open_truth(self.benchmark, self.data, split=self.split, images=True, streaming=True)
        if "image" not in (stream.features or {}):
            return {}
        found: dict[str, Any] = {}
        wanted = set(keys)
        for row in stream.cast_column("image", Image(decode=False)).select_columns(["key", "image"]):
            if row["key"] in wanted:
                wanted.discard(row["key"])
                if row["image"] is not None:
                    found[row["key"]] = row["image"]
                if not wanted:
                    break
        return found


def _same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))
