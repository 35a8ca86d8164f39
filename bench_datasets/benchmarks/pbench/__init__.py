"""PBench: referring segmentation by level of difficulty, with dense scenes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_datasets.benchmark import Benchmark, Source, TableLayout
from bench_datasets.benchmarks.pbench.faults import FAULTS
from bench_datasets.benchmarks.pbench.legend import METRICS
from bench_datasets.benchmarks.pbench.protocol import PROTOCOLS, PBenchProtocol
from bench_datasets.benchmarks.pbench.schema import (
    BOUNDARY_COLUMNS,
    LEVELS,
    PREDICTION_COLUMNS,
    SCORE_COLUMNS,
    TRUTH_COLUMNS,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

    from bench_datasets.benchmarks.pbench.batch import Rows
    from bench_datasets.display.explain import Explanation
    from bench_datasets.display.show import Shown
    from bench_datasets.hub.dataset_form import DatasetForm
    from bench_datasets.predictions.form import PredictionForm
    from bench_datasets.report.section import Section
    from bench_datasets.results.error_kinds import Errors
    from bench_datasets.results.estimates import Gathered
    from bench_datasets.scoring.options import ScoreOptions


class PBench(Benchmark):
    """PBench: an expression about an image per row, with the masks of everything it names."""

    name = "pbench"
    title = "PBench"
    builder = "bench_datasets.benchmarks.pbench.build"
    source = Source(
        repo="tiiuae/PBench",
        revision="main",
        env="BENCH_DATASETS_PBENCH",
        rows=dict(zip(LEVELS, (1930, 1108, 969, 1089, 861, 381), strict=True)),
    )
    protocols = PROTOCOLS
    headline = {"released": "average", "paper": "average", "card": "accuracy"}
    headline_parts = {"released": "macro_f1/", "paper": "macro_f1/", "card": "accuracy/"}
    task_ids = {"released": "average"}
    faults = FAULTS
    truth_columns = TRUTH_COLUMNS
    prediction_columns = PREDICTION_COLUMNS
    score_columns = SCORE_COLUMNS
    boundary_columns = BOUNDARY_COLUMNS
    skipped_values = dict.fromkeys(
        ("position_truth", "position_intersection", "position_union", "position_drift")
    )  # null where the order of generation is not known
    lower_is_better = frozenset(
        {"mask_redundancy_rate", "duplicates", "count_error", "collapse", "il_fp", "il_fn", "duplicate_rate", "drift"}
    )
    counts = frozenset({"il_tp", "il_tn", "il_fp", "il_fn"})
    unpaired_slices = frozenset({"position"})
    layout = TableLayout(
        first=("macro_f1", "accuracy"),
        overall={"macro_f1": "average"},
        numbers=frozenset({"duplicates", "count_error", "drift"}),
        whole=counts,
        slices=("macro_f1", "accuracy", "giou", "mask_redundancy_rate", "duplicates", "collapse", "count_error"),
        slice_titles={"count": "by number of ground truth masks", "position": "by place in the generated sequence"},
    )
    legend = METRICS
    parts = LEVELS
    pairing_columns = ("key", "id", "level")
    demo_metrics = (*(f"macro_f1/{level}" for level in LEVELS), "average")
    demo_protocols = ("paper", "card")
    counted = "rows"
    citation = (
        "@misc{falconperception, title={Falcon Perception}, year={2026}, eprint={2603.27365}, archivePrefix={arXiv}}"
    )
    about = (
        "Referring expressions and the masks of everything they name, in five levels of difficulty and a dense part"
        " with very many instances. A row is one expression about one image."
    )
    task_categories = ("image-segmentation", "mask-generation")
    tags = ("referring-segmentation", "instance-segmentation", "open-vocabulary")

    def prediction_form(self) -> PredictionForm:
        """Lists of masks per row, in the shared formats and in Falcon Perception's own."""
        from bench_datasets.benchmarks.pbench.predictions import FORM

        return FORM

    def row_names(
        self, table: pa.Table | None, part: str | None, columns: Sequence[str]
    ) -> tuple[list[str], list[int], list[str]]:
        """Keys, ids and levels; a key that is absent is made of level and id."""
        from bench_datasets.benchmarks.pbench.batch import row_names

        return row_names(table, part, columns)

    def read_batch(self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Rows:
        """Rows with masks, scores and centres."""
        from bench_datasets.benchmarks.pbench.batch import read_rows

        return read_rows(batch, options.level)

    def measure(self, rows: Rows, protocol: PBenchProtocol, options: ScoreOptions) -> Mapping[str, pa.Array]:
        """Assigned pairs, unions, duplicates and positions."""
        from bench_datasets.benchmarks.pbench.measure import measure

        return measure(rows, protocol, boundary=options.boundary)

    def statistics(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
    ) -> Gathered:
        """Every number, per level, number of masks, position and further columns."""
        from bench_datasets.benchmarks.pbench.statistics import slice_statistics

        del k
        return slice_statistics(table, protocol, thresholds=thresholds, by=by)

    def comparable_to(
        self, protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> str | None:
        """The published table, for a run that scored every level whole and at the protocol's thresholds."""
        del dataset
        levels = Counter(scored["level"].to_pylist())
        whole = all(levels[level] == rows for level, rows in self.source.rows.items())
        return self.protocol(protocol).comparable_to if whole and settings.get("thresholds") is None else None

    def likely_causes(self, table: pa.Table, features: Features) -> list[str]:
        """Likely causes of a score near zero."""
        from bench_datasets.benchmarks.pbench.hints import likely_causes

        return likely_causes(table, features)

    def explain(self, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
        """The matching of predicted masks with ground truth masks."""
        from bench_datasets.benchmarks.pbench.explain import explain

        return explain(row, prediction, protocol)

    def error_kinds(self, table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None, **options: Any) -> Errors:
        """Missed, extra, duplicate, merged and split masks, and others."""
        from bench_datasets.benchmarks.pbench.errors import find

        return find(table, protocol, rows, **options)

    def show_row(self, row: Mapping[str, Any], frame: int | None = None) -> Shown | None:
        """A row with a list of masks."""
        from bench_datasets.display.show import show_masks

        level = row.get("level")
        named = LEVELS[level] if isinstance(level, int) and 0 <= level < len(LEVELS) else level
        return show_masks(row, str(row.get("key") or f"{named}/{row.get('id')}")) if "masks" in row else None

    def converters(self) -> Mapping[str, Callable[..., Any]]:
        """COCO's annotations."""
        from bench_datasets.benchmarks.pbench.coco_source import coco_to_pbench

        return {"coco": coco_to_pbench}

    def dataset_form(self) -> DatasetForm:
        """Configs, columns, counts and preview of the published dataset."""
        from bench_datasets.benchmarks.pbench.publish import FORM

        return FORM

    def sample_dir(self) -> str:
        """The folder of the built-in sample, in the source's layout."""
        from bench_datasets.samples import pbench_sample_dir

        return str(pbench_sample_dir())

    def sample_predictions(self, model: str) -> str:
        """The file of a sample model's predictions."""
        from bench_datasets.samples import pbench_sample_predictions

        return str(pbench_sample_predictions(model))

    def report_section(self) -> Section:
        """The benchmark's part of a report page."""
        from bench_datasets.benchmarks.pbench.report import SECTION

        return SECTION


BENCHMARK = PBench()
