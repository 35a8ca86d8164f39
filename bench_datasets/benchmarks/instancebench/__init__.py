"""InstanceBench: target-centric expression sets, labelled by referential logic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_datasets.benchmark import Benchmark, Source, TableLayout
from bench_datasets.benchmarks.instancebench.faults import FAULTS
from bench_datasets.benchmarks.instancebench.legend import METRICS
from bench_datasets.benchmarks.instancebench.protocol import PROTOCOLS, InstanceBenchProtocol
from bench_datasets.benchmarks.instancebench.schema import (
    BOUNDARY_COLUMNS,
    ORIGINAL,
    PREDICTION_COLUMNS,
    SCORE_COLUMNS,
    TRUTH_COLUMNS,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from datasets import Dataset, Features
    from numpy.typing import NDArray

    from bench_datasets.benchmarks.instancebench.batch import Rows, Sets
    from bench_datasets.display.explain import Explanation
    from bench_datasets.display.show import Shown
    from bench_datasets.hub.dataset_form import DatasetForm
    from bench_datasets.predictions.form import PredictionForm
    from bench_datasets.report.section import Section
    from bench_datasets.results.error_kinds import Errors
    from bench_datasets.results.estimates import Gathered
    from bench_datasets.results.result import Metric, Slice
    from bench_datasets.scoring.options import ScoreOptions
    from bench_datasets.scoring.units import Units


class InstanceBench(Benchmark):
    """InstanceBench: a set of expressions about one target per row; one prediction per expression."""

    name = "instancebench"
    title = "InstanceBench"
    builder = "bench_datasets.benchmarks.instancebench.build"
    source = Source(repo="", revision="", env="BENCH_DATASETS_INSTANCEBENCH", rows={"test": 2918})
    protocols = PROTOCOLS
    headline = {"default": "miou"}
    headline_parts = {"default": "miou/operation/"}
    faults = FAULTS
    truth_columns = TRUTH_COLUMNS
    required_columns = ("expressions",)
    prediction_columns = PREDICTION_COLUMNS
    score_columns = SCORE_COLUMNS
    boundary_columns = BOUNDARY_COLUMNS
    skipped_values = {"core_intersection": -1}
    sort_columns = ("key", "run", "condition")
    unit = "tces"
    unit_title = "set"
    lower_is_better = frozenset({"identity_error", "same_class_switch", "unresolved", "exclusion_drop"})
    layout = TableLayout(
        numbers=frozenset({"nci", "delta_nci", "spearman"}),
        whole=frozenset({"transition"}),
        pivots={
            "sensitivity": "under other identity thresholds (similarity / margin)",
            "transition": "core pairs from one family (minimal) to another (variant)",
        },
        crossed=r"miou/(operation|source|[^/]+)/.+|all@[\d.]+/source/.+",
        short_names={
            "ordinal": "ord",
            "extremal": "ext",
            "relative_selection": "rel",
            "subgroup_based": "sub",
            "single_anchor_relation": "1-anc",
            "multi_anchor_relation": "n-anc",
            "nested_grounding": "nest",
            "target_evidence": "evid",
            "negation_or_exclusion": "neg",
        },
    )
    legend = METRICS
    more_splits = {"train": "train", "validation": "validation", "val": "validation"}
    pairing_columns = ("key", "faults", "expressions")
    demo_metrics = ("miou", "p@0.7", "all@0.7", "all_target_id", "retention/variant", "conditional_mask_iou")
    counted = "expressions"
    prediction_key = "expression_id"
    prediction_for = "expression"
    citation = "@misc{instancebench, title={InstanceBench}, author={Li and others}, year={2026}}"
    about = (
        "Sets of expressions that all mean one instance, by different paths, among other instances of its class:"
        " does a model find the same thing however it is asked? A row is one set about one image."
    )
    task_categories = ("image-segmentation", "mask-generation")
    tags = ("referring-segmentation", "instance-segmentation", "visual-grounding")

    def prediction_form(self) -> PredictionForm:
        """One mask, box or candidate id per expression, run and condition."""
        from bench_datasets.benchmarks.instancebench.predictions import FORM

        return FORM

    def prediction_features(self) -> Mapping[str, Any]:
        """Lists aligned with the expressions of a row."""
        from bench_datasets.benchmarks.instancebench.prediction_rows import PREDICTION_FEATURES

        return dict(PREDICTION_FEATURES)

    def predicted_names(self, table: pa.Table, keys: Sequence[str]) -> Sequence[str]:
        """The ids of the rows' expressions."""
        if "expressions" not in table.column_names:
            return keys
        return [str(item["expression_id"]) for row in table["expressions"].to_pylist() for item in row or ()]

    def pair_units(self, truth: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
        """One prediction per expression, for each run and condition."""
        from bench_datasets.benchmarks.instancebench.pairing import pair_units

        return pair_units(truth, predictions, options, whole)

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
        """Ground truth rows with lists of predictions aligned with their expressions."""
        from bench_datasets.benchmarks.instancebench.pairing import attach

        return attach(table, found, place, begin, columns, schema, options)

    def split_predictions(self, table: pa.Table) -> tuple[Any, pa.Table]:
        """The masks of prediction rows, and their other fields."""
        from bench_datasets.benchmarks.instancebench.pairing import split_predictions

        return split_predictions(table)

    def read_batch(self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions, truth: Sets | None = None) -> Rows:
        """Sets of expressions with their candidates and aligned predictions."""
        from bench_datasets.benchmarks.instancebench.batch import read_rows

        del options
        return read_rows(batch, truth)

    def read_shared_truth(self, table: pa.Table) -> Sets:
        """The sets, which every run and condition of a file answers."""
        from bench_datasets.benchmarks.instancebench.batch import read_sets

        return read_sets(table)

    def measure(self, rows: Rows, protocol: InstanceBenchProtocol, options: ScoreOptions) -> Mapping[str, pa.Array]:
        """Areas, intersections with every candidate, boxes and named candidates."""
        from bench_datasets.benchmarks.instancebench.measure import measure

        del protocol
        return measure(rows, boundary=options.boundary)

    def statistics(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
    ) -> Gathered:
        """Every number of the paper's tables, per source, operation and further columns; means over runs."""
        from bench_datasets.benchmarks.instancebench.statistics import slice_statistics

        del k
        return slice_statistics(table, protocol, thresholds=thresholds, by=by)

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
        """Metrics and slices, with the standard deviation over runs and the counts of transitions."""
        from bench_datasets.benchmarks.instancebench.statistics import summarize_table

        del k
        return summarize_table(table, protocol, thresholds=thresholds, by=by, draws=draws, seed=seed)

    def paired_rows(self, table: pa.Table) -> pa.Table:
        """The score rows of the original expressions."""
        import pyarrow.compute as pc

        return table.filter(pc.equal(table["condition"], ORIGINAL))

    def shared_rows(
        self, tables: Mapping[str, pa.Table], *, run: str | None = None, condition: str | None = None
    ) -> tuple[dict[str, pa.Table], list[str]]:
        """The score rows of the runs and conditions that all models have."""
        from bench_datasets.benchmarks.instancebench.shared_runs import shared_rows

        return shared_rows(tables, run=run, condition=condition)

    def comparable_to(
        self, protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> str | None:
        """The paper's tables, for a run that scored the whole test set."""
        del settings
        keys = set(self.paired_rows(scored)["key"].to_pylist())
        whole = dataset.get("split") == "test" and len(keys) == self.source.rows["test"]
        return self.protocol(protocol).comparable_to if whole else None

    def likely_causes(self, table: pa.Table, features: Features) -> list[str]:
        """Likely causes of a score near zero."""
        from bench_datasets.benchmarks.instancebench.hints import likely_causes

        return likely_causes(table, features)

    def explain(self, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
        """Each expression's mask, and the candidate that it is assigned to."""
        from bench_datasets.benchmarks.instancebench.explain import explain

        return explain(row, prediction, protocol)

    def error_kinds(self, table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None, **options: Any) -> Errors:
        """The failures of the paper: identity error, same-class switch, unresolved, poor mask."""
        from bench_datasets.benchmarks.instancebench.errors import find

        return find(table, protocol, rows, **options)

    def show_row(self, row: Mapping[str, Any], frame: int | None = None) -> Shown | None:
        """A set with its target and expressions."""
        from bench_datasets.benchmarks.instancebench.show import show_set

        return show_set(row) if "candidates" in row else None

    def converters(self) -> Mapping[str, Callable[..., Any]]:
        """RefCOCO's annotations."""
        from bench_datasets.benchmarks.instancebench.refcoco import refcoco_to_manifest

        return {"refcoco": refcoco_to_manifest}

    def dataset_form(self) -> DatasetForm:
        """Configs, columns, counts and preview of the published dataset."""
        from bench_datasets.benchmarks.instancebench.publish import FORM

        return FORM

    def sample_dir(self) -> str:
        """The folder of the built-in sample, in the source's layout."""
        from bench_datasets.samples import instancebench_sample_dir

        return str(instancebench_sample_dir())

    def sample_predictions(self, model: str) -> str:
        """The file of a sample model's predictions."""
        from bench_datasets.samples import instancebench_sample_predictions

        return str(instancebench_sample_predictions(model))

    def report_section(self) -> Section:
        """The benchmark's part of a report page."""
        from bench_datasets.benchmarks.instancebench.report import SECTION

        return SECTION


BENCHMARK = InstanceBench()
