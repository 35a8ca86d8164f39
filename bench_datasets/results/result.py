"""`Result`: all numbers of one scored run with their origin, and its file `result.json`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench_datasets._util.atomic import replacing
from bench_datasets._util.untrusted import load_json, read_regular
from bench_datasets.faults import BenchError

SCHEMA_VERSION = 1

MAX_RESULT = 1 << 28
"""Most bytes of a `result.json` that are read: 256 MiB."""


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes:
        value: a fraction, a count or a mean; NaN where it is undefined.
        n: how many rows (or predictions) it is about; 0 where it is undefined.
        ci95: percentile bootstrap interval, or `None` where there is none.
        higher_is_better: whether more is better.
        sd: sample standard deviation over runs, where there are several.
        runs: number of runs, where there are several.
    """

    value: float
    n: int
    ci95: tuple[float, float] | None = None
    higher_is_better: bool = True
    sd: float | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Slice:
    """The numbers of some rows: those where `by` is `value`."""

    by: str
    value: str
    metrics: dict[str, Metric]


@dataclass(frozen=True)
class Result:
    """The numbers of one scored run.

    Attributes:
        benchmark: its name.
        protocol: `name`, `version`, and `comparable_to`: whose published numbers these compare with, or `None`.
        dataset: `source`, `split`, `revision`, `rows` (`scored`, `expected`), `content_sha256`.
        predictions: `sha256`, `rows`, `missing`; `None` where the run did not record them.
        settings: `missing`, `on_fault`, `k`, `boundary`, `thresholds`.
        statistics: `seed`, `draws`, `unit` (what is resampled: row, image, tces or video), `clusters` (how many;
            files of older versions lack it).
        metrics: numbers by key.
        slices: the same numbers over parts of the rows.
        faults: by code, `count` and `examples` (keys).
        packages: versions that computed it.
        created: UTC time, ISO 8601.
        headline: the key of the number that stands for the result.
        schema_version: of the file.
    """

    benchmark: str
    protocol: dict[str, Any]
    dataset: dict[str, Any]
    predictions: dict[str, Any]
    settings: dict[str, Any]
    statistics: dict[str, Any]
    metrics: dict[str, Metric]
    slices: list[Slice]
    faults: dict[str, dict[str, Any]]
    packages: dict[str, str]
    created: str
    headline: str | None = None
    schema_version: int = field(default=SCHEMA_VERSION)

    @property
    def comparable_to(self) -> str | None:
        """The published numbers that these can be compared with."""
        return self.protocol.get("comparable_to")

    @property
    def partial(self) -> bool | None:
        """Whether fewer rows were scored than the source holds; `None` where that is not known."""
        rows = self.dataset["rows"]
        return None if rows["expected"] is None else rows["scored"] < rows["expected"]

    def to_dict(self) -> dict[str, Any]:
        """The content of `result.json`: plain values, `None` for NaN."""
        fields = asdict(self)
        fields.pop("headline")
        fields["metrics"] = {key: _plain(metric) for key, metric in self.metrics.items()}
        fields["slices"] = [
            {"by": part.by, "value": part.value, "metrics": {key: _plain(m) for key, m in part.metrics.items()}}
            for part in self.slices
        ]
        order = ["schema_version", *(name for name in fields if name != "schema_version")]
        return {name: fields[name] for name in order}

    def to_json(self) -> str:
        """`result.json` as text; the same numbers give the same bytes (`created` aside)."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `result.json`; a folder gets it under that name. The file appears whole or not at all."""
        target = Path(path)
        if target.is_dir():
            target = target / "result.json"
        with replacing(target) as (partial,):
            partial.write_text(self.to_json(), encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a `result.json`, or the one in a folder.

        Raises:
            BenchError: there is none, it is no result file, or it is of a newer schema.
        """
        source = Path(path)
        source = source / "result.json" if source.is_dir() else source
        try:
            data = read_regular(source, MAX_RESULT)
        except BenchError:
            raise
        except OSError as error:
            give = "give the folder that `score --out` wrote"
            raise BenchError(f"{source}: can't be read ({error.strerror}); {give}") from error
        return cls.loads(data, source)

    @classmethod
    def loads(cls, data: bytes, source: object = "result.json") -> Result:
        """The result that the bytes of a `result.json` hold.

        Args:
            data: the file's content.
            source: what to call it in messages.

        Raises:
            BenchError: it is no result file, or it is of a newer schema.
        """
        try:
            content = load_json(data.decode("utf-8-sig"))
            if not isinstance(content, dict):
                raise BenchError(f"found {type(content).__name__}")
            result = cls.from_dict(content)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            text = str(error) if isinstance(error, BenchError) else f"found something else ({error!r:.200})"
            if isinstance(error, (UnicodeDecodeError, json.JSONDecodeError)):
                text = "found no JSON; score again, or give the folder that `score --out` wrote"
            raise BenchError(f"{source}: expected a result file; {text}") from error
        return result

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Result:
        """The result behind the content of a `result.json`.

        Raises:
            BenchError: a field is missing, of another type, not finite or too large, or the schema is newer.
        """
        from bench_datasets.benchmark import BENCHMARKS
        from bench_datasets.data.provenance import without_secrets
        from bench_datasets.scoring.record_schema import validate_result

        version = content.get("schema_version")
        if not isinstance(version, int) or isinstance(version, bool):
            raise BenchError(f"expected a whole number as schema_version, found {ascii(version)[:60]}")
        if version > SCHEMA_VERSION:
            raise BenchError(f"schema_version {version} is newer than this package's {SCHEMA_VERSION}; update it")
        validate_result(content)
        entry = BENCHMARKS.get(content["benchmark"])
        names = ("protocol", "dataset", "predictions", "settings", "statistics", "faults", "packages")
        fields = {name: dict(content[name]) for name in names}
        if fields["dataset"]["source"] is not None:  # older versions recorded passwords of URLs
            fields["dataset"]["source"] = without_secrets(fields["dataset"]["source"])
        return cls(
            benchmark=content["benchmark"],
            **fields,
            metrics={key: _metric(metric) for key, metric in content["metrics"].items()},
            slices=[
                Slice(part["by"], part["value"], {key: _metric(m) for key, m in part["metrics"].items()})
                for part in content["slices"]
            ],
            created=content["created"],
            headline=entry.headline_key(content["protocol"]["name"], content["settings"].get("k")) if entry else None,
            schema_version=content["schema_version"],
        )

    def __str__(self) -> str:
        from bench_datasets.results.tables import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from bench_datasets.results.tables import as_html

        return as_html(self)


def _plain(metric: Metric) -> dict[str, Any]:
    value = metric.value if math.isfinite(metric.value) else None
    result: dict[str, Any] = {"value": value, "n": metric.n, "ci95": list(metric.ci95) if metric.ci95 else None}
    if metric.runs is not None:
        result |= {"sd": metric.sd, "runs": metric.runs}
    return {**result, "higher_is_better": metric.higher_is_better}


def _metric(content: Mapping[str, Any]) -> Metric:
    value = math.nan if content["value"] is None else float(content["value"])
    ci95 = tuple(content["ci95"]) if content["ci95"] else None
    return Metric(value, content["n"], ci95, content["higher_is_better"], content.get("sd"), content.get("runs"))
