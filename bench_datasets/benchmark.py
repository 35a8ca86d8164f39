"""The `Benchmark` class, and the registry of all benchmarks of this installation."""

from __future__ import annotations

import importlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from datasets import List, Value

from bench_datasets.benchmarks import NAMES
from bench_datasets.faults import FAULTS, BenchError, FaultKind, shorten
from bench_datasets.plugins import Plugin, PluginError, find_plugins, warn

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from datasets import Dataset, Features
    from numpy.typing import NDArray

    from bench_datasets.display.explain import Explanation
    from bench_datasets.display.show import Shown
    from bench_datasets.hub.dataset_form import DatasetForm
    from bench_datasets.masks import Decoded
    from bench_datasets.predictions.form import PredictionForm
    from bench_datasets.report.section import Section
    from bench_datasets.results.error_kinds import Errors
    from bench_datasets.results.estimates import Gathered
    from bench_datasets.results.legend import Meaning
    from bench_datasets.results.result import Metric, Slice
    from bench_datasets.scoring.batch import Batch
    from bench_datasets.scoring.faulty_rows import Faulty
    from bench_datasets.scoring.options import ScoreOptions
    from bench_datasets.scoring.shared_truth import SharedTruth
    from bench_datasets.scoring.units import Units


@dataclass(frozen=True)
class Source:
    """Default location of a benchmark's data.

    Attributes:
        repo: Hub dataset id.
        revision: Hub revision that is read, a branch or a commit.
        env: environment variable that names another root (a folder or any fsspec URL).
        rows: published number of rows per part; a complete run has scored as many.
        licence: the data's licence, as the source states it.
    """

    repo: str
    revision: str
    env: str
    rows: dict[str, int] = field(default_factory=dict)
    licence: str = "not stated"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A named, versioned way to score. Benchmarks add their own settings in a subclass.

    Attributes:
        name: as in `score(..., protocol=name)`.
        version: raised whenever a number could change.
        meaning: one sentence for people.
        comparable_to: the published numbers that a complete run can be compared with, or `None`.
    """

    name: str
    version: str
    meaning: str
    comparable_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """How a benchmark's metrics are printed and laid out in tables. A metric's name is the first word of its key.

    Attributes:
        first: names of the metrics in the first rows of a table by part.
        overall: key of the metric that is the mean of a metric's parts, by name, where it has a key of its own.
        numbers: names of metrics that are no fractions; they are printed with decimals and not in percent.
        whole: names of metrics that are printed as whole numbers.
        pivots: titles of tables by row and column, by name; the keys are `<name>/<row>/<column>`.
        crossed: pattern of keys that only the tables of slices show.
        slices: names of the metrics that the tables of slices show; all for a table that has none of them.
        unsliced: names of ranked metrics that the tables of slices leave out.
        slice_titles: titles of the tables of slices, by column.
        short_names: short names of parts, for narrow terminals.
    """

    first: tuple[str, ...] = ()
    overall: Mapping[str, str] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    pivots: Mapping[str, str] = field(default_factory=dict)
    crossed: str = ""
    slices: tuple[str, ...] = ()
    unsliced: frozenset[str] = frozenset()
    slice_titles: Mapping[str, str] = field(default_factory=dict)
    short_names: Mapping[str, str] = field(default_factory=dict)


COMMON_SCORE_COLUMNS: Mapping[str, tuple[object, str]] = {
    "key": (Value("string"), "the ground truth row's key"),
    "cluster": (Value("string"), "what the row is resampled with"),
    "protocol": (Value("string"), "protocol and version, such as `default@1`"),
    "row_sha256": (Value("string"), "hash of the ground truth row's labels and masks; empty for invalid masks"),
    "faults": (List(Value("string")), "fault codes of the ground truth row and of its prediction"),
    "skipped": (Value("bool"), "whether a fault kept the row from being scored"),
}
"""Feature and meaning of the columns that every score table has."""

ProtocolT = TypeVar("ProtocolT")


def choose_protocol(benchmark: str, protocols: Mapping[str, ProtocolT], name: str | None) -> ProtocolT:
    """The protocol of a name; the first one for `None`.

    Args:
        benchmark: the benchmark's name, for the message.
        protocols: protocols by name, the default first.
        name: the name, or `None`.

    Raises:
        BenchError: there is no protocol of that name; the message lists the names.

    Example:
        >>> choose_protocol("mybench", {"strict": 1, "loose": 2}, None)
        1
    """
    chosen = name or next(iter(protocols))
    if chosen not in protocols:
        raise BenchError(f"protocol of {benchmark}: expected one of {', '.join(protocols)}, got {chosen!r}")
    return protocols[chosen]


class Benchmark(ABC):
    """A benchmark: its data, protocols, scoring and statistics.

    A subclass declares the attributes and implements `measure` and `statistics`. All other methods have defaults
    for benchmarks with one prediction per row. A package declares an instance as entry point of the group
    `bench_datasets.benchmarks`; docs/add-a-benchmark.md shows a complete one.

    Attributes:
        name: as in `load_dataset(name)`, `bd.score(name, ...)` and on the command line.
        title: the name for people.
        builder: module with the `datasets` builder.
        source: default location of the data.
        protocols: the protocols by name, the default first.
        headline: metric key of a protocol's main number, by protocol.
        headline_parts: prefix of the metric keys that the headline is the mean of, by protocol.
        task_ids: task id of the Hub leaderboard on the source dataset, by protocol.
        truth_columns: columns of ground truth rows that scoring reads.
        required_columns: columns without which ground truth rows can't be scored.
        prediction_columns: columns of predictions that scoring reads.
        score_columns: feature and meaning of each column of the score table. `key`, `cluster`, `protocol`,
            `row_sha256`, `faults` and `skipped` must be among them.
        boundary_columns: further score columns of the option `boundary`; empty for a benchmark without that option.
        skipped_values: value of a measured column in rows that are not scored, by column; otherwise 0 or an empty list.
        sort_columns: columns that a score table is sorted by, and that identify a row.
        unit: what the bootstrap resamples.
        unit_title: the unit in a word for people; empty for `unit` itself.
        layout: how metrics are printed and laid out in tables.
        options: options of scoring that the benchmark has: `k` (ranks), `oracle`.
        lower_is_better: names of metrics of which less is better.
        faults: its fault codes, besides those of all benchmarks; see `bench_datasets.faults.fault_kinds`.
        counts: names of metrics that are plain counts, without a confidence interval.
        unpaired_slices: slices that each run cuts for itself, so that runs can't be paired over them.
        unpaired_metrics: first words of metric keys that runs can't be paired by.
        legend: meaning of each kind of metric key, by pattern such as `p@<t>`.
        parts: names of the parts of a split that rows and predictions may be named after, in order; most have none.
        more_splits: splits that a source may have beside the published one, by the name that people use.
        pairing_columns: ground truth columns that pairing reads; all truth columns for none.
        predicted_columns: columns that a model adds to ground truth rows at least.
        demo_metrics: metric keys that `demo` shows.
        demo_protocols: further protocols whose headline `demo` shows.
        seconds_alone: measured seconds per row, mask and byte of the work that one process does.
        seconds_shared: the same of scoring, and per pair of masks, which processes share.
        counted: what the `n` of the headline counts, in the plural.
        prediction_key: column of predictions that says what they are for.
        prediction_for: what one prediction is for, in the singular.
        citation: BibTeX.
        about: what the benchmark is and what a row is, in two sentences, for cards.
        task_categories: the Hub's names of the tasks, for cards.
        tags: further words for search, for cards.
        columns: meaning of ground truth columns by name, for cards.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    builder: ClassVar[str]
    source: ClassVar[Source]
    protocols: ClassVar[Mapping[str, Protocol]]
    headline: ClassVar[Mapping[str, str]]
    headline_parts: ClassVar[Mapping[str, str]] = {}
    task_ids: ClassVar[Mapping[str, str]] = {}
    truth_columns: ClassVar[tuple[str, ...]]
    required_columns: ClassVar[tuple[str, ...]] = ()
    prediction_columns: ClassVar[tuple[str, ...]] = ("pred_masks", "pred_scores", "pred_faults")
    score_columns: ClassVar[Mapping[str, tuple[object, str]]]
    boundary_columns: ClassVar[Mapping[str, tuple[object, str]]] = {}
    skipped_values: ClassVar[Mapping[str, Any]] = {}
    sort_columns: ClassVar[tuple[str, ...]] = ("key",)
    unit: ClassVar[str] = "row"
    unit_title: ClassVar[str] = ""
    layout: ClassVar[TableLayout] = TableLayout()
    options: ClassVar[frozenset[str]] = frozenset()
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    faults: ClassVar[Mapping[str, FaultKind]] = {}
    counts: ClassVar[frozenset[str]] = frozenset()
    unpaired_slices: ClassVar[frozenset[str]] = frozenset()
    unpaired_metrics: ClassVar[frozenset[str]] = frozenset()
    legend: ClassVar[Mapping[str, Meaning]] = {}
    parts: ClassVar[tuple[str, ...]] = ()
    more_splits: ClassVar[Mapping[str, str]] = {}
    pairing_columns: ClassVar[tuple[str, ...]] = ()
    predicted_columns: ClassVar[tuple[str, ...]] = ("pred_masks",)
    demo_metrics: ClassVar[tuple[str, ...]] = ()
    demo_protocols: ClassVar[tuple[str, ...]] = ()
    seconds_alone: ClassVar[Mapping[str, float]] = {"rows": 2.8e-05, "masks": 2.5e-06, "bytes": 1.0e-08}
    seconds_shared: ClassVar[Mapping[str, float]] = {"rows": 1.2e-05, "masks": 0.0, "bytes": 1.5e-08, "pairs": 1.9e-08}
    counted: ClassVar[str] = ""
    prediction_key: ClassVar[str] = "key"
    prediction_for: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    about: ClassVar[str] = ""
    task_categories: ClassVar[tuple[str, ...]] = ()
    tags: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[Mapping[str, str]] = {}

    def __repr__(self) -> str:
        return f"<benchmark {self.name}>"

    # Names and schemas

    def protocol(self, name: str | None = None) -> Protocol:
        """The protocol of a name; the default for `None`.

        Raises:
            BenchError: there is no protocol of that name; the message lists the names.

        Example:
            >>> get_benchmark("pbench").protocol().name
            'released'
        """
        return choose_protocol(self.name, self.protocols, name)

    @property
    def default_protocol(self) -> str:
        """The name of the default protocol."""
        return next(iter(self.protocols))

    def headline_key(self, protocol: str, k: Sequence[int] | None = None) -> str | None:
        """The metric key of a run's headline: the protocol's, or the same at the run's first K.

        Args:
            protocol: its name.
            k: ranks of the run; `None` or empty for benchmarks without ranks.

        Example:
            >>> BENCHMARKS["pvsg"].headline_key("official", (5, 10)), BENCHMARKS["pvsg"].headline_key("official")
            ('R@5/0.5', 'R@20/0.5')
        """
        key = self.headline.get(protocol)
        ranked = _RANKED.fullmatch(key or "")
        if ranked is None or not k or int(ranked[2]) in k:
            return key
        return f"{ranked[1]}{int(k[0])}{ranked[3] or ''}"

    def score_features(self, *, boundary: bool = False) -> Features:
        """The `Features` of the score table.

        Args:
            boundary: whether with the columns of the option `boundary`.

        Raises:
            BenchError: the benchmark has no such columns.
        """
        from datasets import Features

        if boundary and not self.boundary_columns:
            raise BenchError(f"boundary: {self.name} compares no outlines; leave it out")
        columns = {**self.score_columns, **(self.boundary_columns if boundary else {})}
        return Features({name: feature for name, (feature, _) in columns.items()})

    def prediction_form(self) -> PredictionForm:
        """How predictions are written: their columns, a reader per format, and their check.

        By default a list of masks per row, named by key or by id.
        """
        from bench_datasets.predictions.mask_form import MASK_FORM

        return MASK_FORM

    def prediction_features(self) -> Mapping[str, Any]:
        """Features of the columns that a model may add to ground truth rows, by name."""
        known = self.prediction_form().features
        return {name: known[name] for name in self.prediction_columns if name in known and name != "pred_faults"}

    def with_names(self, predicted: Mapping[str, Any]) -> Mapping[str, Any]:
        """One row's predicted columns with class labels as names; by default unchanged.

        Args:
            predicted: values by column, as a model gave them; masks are RLE.
        """
        return predicted

    def row_names(
        self, table: pa.Table | None, part: str | None, columns: Sequence[str]
    ) -> tuple[list[str], list[int], list[str]]:
        """Keys, ids and parts of ground truth rows.

        Args:
            table: their columns `key`, `id` and `level`, as far as there are any.
            part: the part of rows that name none.
            columns: names of all columns of the rows, for messages.

        Returns:
            A list each; -1 and an empty text for rows without id and part.
        """
        if table is None or "key" not in table.column_names:
            raise BenchError(f"truth: expected a column key, found {', '.join(columns)}")
        keys = [str(key) for key in table["key"].to_pylist()]
        ids = table["id"].to_pylist() if "id" in table.column_names else [-1] * len(keys)
        return keys, ids, [part or ""] * len(keys)

    def predicted_names(self, table: pa.Table, keys: Sequence[str]) -> Sequence[str]:
        """The names that predictions for ground truth rows bear in the column `prediction_key`; by default the keys.

        Args:
            table: the rows' truth columns.
            keys: the rows' keys.
        """
        del table
        return keys

    # Pairing

    def pair_units(self, truth: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
        """Pair predictions with ground truth rows; by default one prediction per row, by key or by id.

        Args:
            truth: the truth columns.
            predictions: as `read_predictions` gives them.
            options: of the scoring.
            whole: whether predictions for unknown rows are a fault.

        Returns:
            The score rows to be, with the predictions that belong to each.

        Raises:
            BenchError: two rows bear one key, or a column is absent.
        """
        from bench_datasets.scoring.units import pair_rows

        return pair_rows(self, truth, predictions, options, whole)

    def attach(
        self,
        table: pa.Table,
        found: pa.Table | None,
        place: NDArray[np.int64],
        begin: NDArray[np.int64],
        columns: dict[str, list[Any]],
        schema: pa.Schema,
        options: ScoreOptions,
    ) -> pa.Table:
        """Ground truth rows with the columns of their predictions; by default one prediction per row.

        Args:
            table: n ground truth rows.
            found: prediction rows, or `None` if there are none.
            place: rows of `found`, -1 for none.
            begin: `(n + 1,) int64`, where each row's predictions begin in `place`.
            columns: further columns of the rows, as pairing found them.
            schema: of the prediction columns.
            options: of the scoring.
        """
        from bench_datasets.scoring.units import attach_rows

        return attach_rows(table, found, place, begin, columns, schema, options)

    def split_predictions(self, table: pa.Table) -> tuple[Any, pa.Table | list[Any]]:
        """The masks of prediction rows, and their other fields, which the predictions' hash covers too.

        Raises:
            BenchError: there is no column `pred_masks`.
        """
        from bench_datasets.scoring.units import split_masks

        return split_masks(table)

    # Scoring

    def read_batch(self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Batch:
        """Read ground truth rows with their predictions; by default lists of masks.

        Args:
            batch: n rows, as an Arrow table or as columns by name.
            options: how to score.

        Raises:
            BenchError: a column is absent.
        """
        from bench_datasets.scoring.mask_batch import MaskBatch

        del options
        return MaskBatch.read(self, batch)

    @abstractmethod
    def measure(self, rows: Any, protocol: Any, options: ScoreOptions) -> Mapping[str, Any]:
        """Measure rows without faults: integers from which every number is made.

        Args:
            rows: n rows, of the type that `read_batch` returns.
            protocol: one of `protocols`.
            options: how to score.

        Returns:
            n values per column, for all columns of `score_columns` that `rows` does not fill itself.
        """

    def read_shared_truth(self, table: pa.Table) -> SharedTruth | None:
        """Ground truth rows that several units share, read once for all of them; by default nothing is shared.

        A benchmark that returns something takes a part of it as `truth` in its `read_batch`.

        Args:
            table: all ground truth rows that are scored.
        """
        del table
        return None

    def score_table(
        self,
        batch: pa.Table | Mapping[str, Any],
        options: ScoreOptions,
        decoded: Decoded | None = None,
        truth: SharedTruth | None = None,
    ) -> pa.Table:
        """Score a batch of ground truth rows with their predictions.

        Args:
            batch: n rows, as an Arrow table or as columns by name.
            options: how to score.
            decoded: the predicted masks, where they were decoded before.
            truth: the part of `read_shared_truth` that the batch is about, where it was read before.

        Returns:
            n score rows in the batch's order, with the columns of `score_columns`.

        Raises:
            FaultError: a row has a fault and the options say to stop.
            BenchError: a column is absent.
        """
        from bench_datasets.scoring.batch import score_batch

        more = {} if truth is None else {"truth": truth}
        rows: Batch = self.read_batch(batch, options, **more)
        if decoded is not None:
            rows.use_decoded(decoded)
        return score_batch(self, rows, options)

    def row_faults(self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Faulty:
        """The rows of a batch that can't be scored, with their faults; nothing is scored.

        Raises:
            FaultError: there is such a row and the options say to stop.
            BenchError: a column is absent.
        """
        return self.read_batch(batch, options).find_faults(self.protocol(options.protocol), options)

    # Statistics

    @abstractmethod
    def statistics(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
    ) -> Gathered:
        """Every number of a score table, as a function of summed columns, per slice.

        Args:
            table: score rows without skipped ones, sorted.
            protocol: name of the protocol they were scored under.
            k: ranks, for benchmarks with the option `k`; the default ranks for `None`.
            thresholds: thresholds in place of the protocol's.
            by: further columns to slice by.

        Raises:
            BenchError: a column to slice by is absent or a list, or a threshold is out of range.
        """

    def summarize_table(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
        draws: int = 0,
        seed: int = 0,
    ) -> tuple[dict[str, Metric], list[Slice]]:
        """Metrics and slices of a score table, with confidence intervals.

        Args:
            table: score rows without skipped ones, sorted.
            protocol: name of the protocol.
            k: see `statistics`.
            thresholds: see `statistics`.
            by: see `statistics`.
            draws: bootstrap draws; 0 for no intervals.
            seed: of the draws.
        """
        from bench_datasets.results.estimates import assemble

        found = self.statistics(table, protocol, k=k, thresholds=thresholds, by=by)
        clusters = table["cluster"].to_pylist()
        return assemble(found, clusters, draws, seed, lower=self.lower_is_better, counts=self.counts)

    def paired_rows(self, table: pa.Table) -> pa.Table:
        """The score rows over which runs are compared; by default all."""
        return table

    def shared_rows(
        self, tables: Mapping[str, pa.Table], *, run: str | None = None, condition: str | None = None
    ) -> tuple[dict[str, pa.Table], list[str]]:
        """The score rows that several models are compared over, and sentences about rows that were left out.

        Args:
            tables: sorted score tables by model.
            run: the one run to compare, for benchmarks with several runs.
            condition: the condition to compare, for benchmarks with conditions.

        Raises:
            BenchError: the benchmark has no runs or conditions.
        """
        for name, value in (("run", run), ("condition", condition)):
            if value is not None:
                raise BenchError(f"compare: {name}: these scores have one prediction per row; leave {name} out")
        return {name: self.paired_rows(table) for name, table in tables.items()}, []

    def comparable_to(
        self, protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> str | None:
        """The published numbers that a run can be compared with; by default none.

        Args:
            protocol: its name.
            scored: the score rows.
            dataset: of the result.
            settings: of the result.
        """
        del protocol, scored, dataset, settings
        return None

    # Views

    def likely_causes(self, table: pa.Table, features: Features) -> list[str]:
        """Likely causes of a score near zero, one sentence each; by default none.

        Args:
            table: a sample of ground truth rows with their predictions.
            features: of the ground truth.
        """
        del table, features
        return []

    def explain(self, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
        """The matching behind one row's score; by default every metric over the row alone.

        Args:
            row: a ground truth row.
            prediction: its prediction, or a Dataset of predictions.
            protocol: a protocol's name; the default for `None`.
        """
        from bench_datasets.display.explain import explain_by_metrics

        return explain_by_metrics(self, row, prediction, protocol)

    def error_kinds(self, table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None, **options: Any) -> Errors:
        """The kinds of errors of every scored row.

        Args:
            table: score rows.
            protocol: they were scored under.
            rows: ground truth rows with their predictions, in batches, or `None`.
            **options: of the benchmark.

        Raises:
            BenchError: the benchmark tells no kinds of errors apart.
        """
        del table, protocol, rows, options
        raise BenchError(f"{self.name}: the benchmark tells no kinds of errors apart")

    def show_row(self, row: Mapping[str, Any], frame: int | None = None) -> Shown | None:
        """A ground truth row as text and picture, or `None` if it is not a row of this benchmark.

        Args:
            row: a mapping of its columns.
            frame: of a video, the frame to draw.
        """
        del row, frame
        return None

    def converters(self) -> Mapping[str, Callable[..., Any]]:
        """Functions that convert other annotations into the source's layout, by the name of the annotations."""
        return {}

    def write_other_formats(self, model: str, folder: Path) -> None:
        """Write a sample model's predictions in further formats; by default in none.

        Args:
            model: its name.
            folder: an existing folder.
        """
        del model, folder

    def dataset_form(self) -> DatasetForm:
        """Configs, columns, counts and preview of the published dataset; by default those of rows with masks."""
        from bench_datasets.hub.dataset_form import default_form

        return default_form(self.title, self.columns)

    def sample_dir(self) -> str:
        """The folder of the built-in sample, in the source's layout.

        Raises:
            BenchError: the sample has no folder; it is the builder's config `sample`.
        """
        raise BenchError(f"{self.name}: the built-in sample has no folder of its own")

    def sample_predictions(self, model: str) -> str | None:
        """The file of a sample model's predictions; by default there are none."""
        del model
        return None

    def report_section(self) -> Section:
        """The benchmark's part of a report page."""
        from bench_datasets.report.generic import SECTION

        return SECTION


_RANKED = re.compile(r"(.*@)(\d+)(/.*)?")


class Benchmarks(Mapping[str, Benchmark]):
    """The benchmarks of this installation by name: those of this package, then those of plug-ins.

    A benchmark is imported when it is first asked for. A plug-in that can't be used gives one warning and is left out.
    See `bench_datasets.plugins`.
    """

    def __init__(self, own: Sequence[str]) -> None:
        self._own = tuple(own)
        self._lock = threading.RLock()
        self._found: dict[str, Plugin] | None = None
        self._loaded: dict[str, Benchmark] = {}
        self._broken: dict[str, PluginError] = {}

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the benchmarks of this package."""
        return self._own

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """The plug-ins that are installed, loaded or not."""
        with self._lock:
            if self._found is None:
                self._found = find_plugins(taken=self._own)
            return self._found

    @property
    def broken(self) -> Mapping[str, PluginError]:
        """Reasons why requested plug-ins do not work, by name."""
        return self._broken

    def refresh(self) -> None:
        """Look for plug-ins again; for packages that are installed while this process runs."""
        with self._lock:
            self._found = None
            self._loaded.clear()
            self._broken.clear()

    def __getitem__(self, name: str) -> Benchmark:
        with self._lock:
            if name in self._own and name not in self._loaded:
                self._loaded[name] = importlib.import_module(f"bench_datasets.benchmarks.{name}").BENCHMARK
            if name not in self._loaded and name not in self._broken and name in self.plugins:
                try:
                    self._loaded[name] = self.plugins[name].load(lambda value: _wrong(name, value))
                except PluginError as error:
                    self._broken[name] = error
                    warn(str(error))
            return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in list(self.plugins) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Benchmarks({', '.join([*self._own, *self.plugins])})"


def _wrong(name: str, value: Any) -> str | None:
    """The reason why a plug-in's value is not usable, or None."""
    if not isinstance(value, Benchmark):
        return f"expected an instance of bench_datasets.benchmark.Benchmark, found {type(value).__name__}"
    absent = [field for field in _DECLARED if not hasattr(value, field)]
    if absent:
        return f"it lacks the attributes {', '.join(absent)}"
    if value.name != name:
        return f"the entry point is called {name!r}, the benchmark {value.name!r}; they must agree"
    for field_name in ("title", "builder"):
        text: object = getattr(value, field_name)
        if not isinstance(text, str) or not text:
            return f"{field_name}: expected a text, found {text!r}"
    protocols: object = value.protocols
    if not isinstance(protocols, Mapping) or not protocols:
        return f"protocols: expected protocols by name, the default first, found {protocols!r}"
    absent = [protocol for protocol in value.protocols if protocol not in value.headline]
    if absent:
        return f"headline: expected a metric key for every protocol, found none for {', '.join(absent)}"
    source: object = value.source
    if not isinstance(source, Source) or not source.env:
        return f"source: expected a Source with the name of an environment variable, found {source!r}"
    faults: object = value.faults
    if not isinstance(faults, Mapping) or not all(isinstance(kind, FaultKind) for kind in faults.values()):
        return f"faults: expected what bench_datasets.faults.fault_kinds returns, found {shorten(faults)}"
    absent = [column for column in COMMON_SCORE_COLUMNS if column not in value.score_columns]
    if absent:
        return f"score_columns: expected {', '.join(absent)} among them"
    return None


_DECLARED = ("name", "title", "builder", "source", "protocols", "headline", "truth_columns", "score_columns")


def import_error(value: Benchmark) -> str | None:
    """Why a benchmark's builder can't be imported, in words, or None.

    Example:
        >>> import_error(BENCHMARKS["pbench"]) is None
        True
    """
    try:
        importlib.import_module(value.builder)
    except Exception as error:  # whatever somebody else's module does when it is imported
        return f"its builder {value.builder} can't be imported: {type(error).__name__}: {error}"
    return None


BENCHMARKS = Benchmarks(NAMES)
"""Every benchmark that this installation knows, by name."""

FAULTS.add_declared(lambda: (benchmark.faults for benchmark in BENCHMARKS.values()))


@lru_cache(maxsize=1)
def known_parts() -> tuple[str, ...]:
    """Names of the parts of this package's benchmarks, in order: what rows and files of predictions may be named after.

    Example:
        >>> known_parts()[0]
        'level_0'
    """
    return tuple(dict.fromkeys(part for name in BENCHMARKS.own for part in BENCHMARKS[name].parts))


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of a name.

    Raises:
        BenchError: there is no benchmark of that name; the message lists the names there are. `PluginError`, if it is a
            plug-in's that doesn't work.

    Example:
        >>> list(get_benchmark("pbench").protocols)
        ['released', 'paper', 'card']
    """
    try:
        return BENCHMARKS[name]
    except KeyError:
        if name in BENCHMARKS.broken:
            raise BENCHMARKS.broken[name] from None
        raise BenchError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, got {name!r}") from None
