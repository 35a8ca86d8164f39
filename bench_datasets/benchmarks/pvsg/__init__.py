"""PVSG: videos with panoptic mask tubes and relations between the objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_datasets.benchmark import Benchmark, Source, TableLayout
from bench_datasets.benchmarks.pvsg.faults import FAULTS
from bench_datasets.benchmarks.pvsg.legend import METRICS
from bench_datasets.benchmarks.pvsg.protocol import DEFAULT_K, PROTOCOLS, PVSGProtocol
from bench_datasets.benchmarks.pvsg.schema import PREDICTION_COLUMNS, SCORE_COLUMNS, TRUTH_COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from datasets import Dataset, Features

    from bench_datasets.benchmarks.pvsg.batch import Videos
    from bench_datasets.display.explain import Explanation
    from bench_datasets.display.show import Shown
    from bench_datasets.hub.dataset_form import DatasetForm
    from bench_datasets.predictions.form import PredictionForm
    from bench_datasets.report.section import Section
    from bench_datasets.results.error_kinds import Errors
    from bench_datasets.results.estimates import Gathered
    from bench_datasets.scoring.options import ScoreOptions
    from bench_datasets.scoring.units import Units


class PVSG(Benchmark):
    """PVSG: one video per row; one prediction of mask tubes and ranked triplets per video."""

    name = "pvsg"
    title = "PVSG"
    builder = "bench_datasets.benchmarks.pvsg.build"
    source = Source(
        repo="Jingkang/PVSG",
        revision="main",
        env="BENCH_DATASETS_PVSG",
        rows={"train": 338, "test": 62},
        licence="research use",
    )
    protocols = PROTOCOLS
    headline = {
        "official": "R@20/0.5",
        "volume": "R@20/0.5",
        "card": "R@20/0.5",
        "weak_official": "weak_official/R@20",
        "step": "R@20/0.5",
    }
    faults = FAULTS
    truth_columns = TRUTH_COLUMNS
    prediction_columns = PREDICTION_COLUMNS
    score_columns = SCORE_COLUMNS
    skipped_values = dict.fromkeys(("height", "width", "frames", "triplets"))
    unit = "video"
    options = frozenset({"k", "oracle"})
    lower_is_better = frozenset({"loss"})
    unpaired_metrics = frozenset({"vpq", "stq"})
    layout = TableLayout(unsliced=frozenset({"mR", "timeless_recall"}))
    legend = METRICS
    pairing_columns = ("key",)
    predicted_columns = ("pred_tubes", "pred_triplets")
    demo_metrics = ("R@20/0.5", "R@50/0.5", "R@100/0.5", "mR@20/0.5", "pair_recall@20/0.5", "vpq", "stq")
    seconds_alone = {"rows": 0.0061, "masks": 9.6e-06, "bytes": 4.4e-09}
    seconds_shared = {"rows": 0.00048, "masks": 0.0, "bytes": 3.4e-08, "pairs": 1.1e-07}
    counted = "relations"
    prediction_for = "video"
    citation = (
        "@inproceedings{yang2023pvsg, title={Panoptic Video Scene Graph Generation}, author={Yang and others},"
        " booktitle={CVPR}, year={2023}, eprint={2311.17058}, archivePrefix={arXiv}}"
    )
    about = (
        "Videos with a mask for every object in every frame, and the relations between the objects, each with its"
        " spans of frames. A row is one video."
    )
    task_categories = ("image-segmentation", "video-classification")
    tags = ("video", "panoptic-segmentation", "scene-graph")

    def with_names(self, predicted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Categories and predicates by name; tubes and triplets of which one is absent are empty."""
        from bench_datasets.benchmarks.pvsg.prediction_parse import read_category
        from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES

        result: dict[str, Any] = {"pred_tubes": [], "pred_triplets": [], **predicted}
        for column, field, names in (
            ("pred_tubes", "category", CATEGORIES),
            ("pred_triplets", "predicate", PREDICATES),
        ):
            if isinstance(result[column], (list, tuple)):
                result[column] = [
                    {**item, field: read_category(item.get(field), names)} if isinstance(item, Mapping) else item
                    for item in result[column]
                ]
        return result

    def prediction_form(self) -> PredictionForm:
        """Mask tubes and ranked triplets per video."""
        from bench_datasets.benchmarks.pvsg.predictions import FORM

        return FORM

    def pair_units(self, truth: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
        """One prediction per video, by key."""
        from bench_datasets.benchmarks.pvsg.pairing import pair_units

        return pair_units(truth, predictions, options, whole)

    def split_predictions(self, table: pa.Table) -> tuple[Any, list[Any]]:
        """The masks of prediction rows, and their other fields."""
        from bench_datasets.benchmarks.pvsg.pairing import split_predictions

        return split_predictions(table)

    def read_batch(self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Videos:
        """Videos with mask tubes and relations."""
        from bench_datasets.benchmarks.pvsg.batch import Videos, read_rows

        return Videos(list(read_rows(batch)), options.oracle or "")

    def measure(self, rows: Videos, protocol: PVSGProtocol, options: ScoreOptions) -> Mapping[str, pa.Array]:
        """Overlaps of relations and tubes, VPQ and STQ."""
        from bench_datasets.benchmarks.pvsg.measure import measure

        return measure(rows, protocol, options.oracle)

    def statistics(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
    ) -> Gathered:
        """Every number, per predicate, span length, object size, source and further columns."""
        from bench_datasets.benchmarks.pvsg.statistics import slice_statistics

        return slice_statistics(table, protocol, k=k or DEFAULT_K, thresholds=thresholds, by=by)

    def comparable_to(
        self, protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> str | None:
        """The paper's numbers, for a run that scored the whole test split with its own tubes and relations.

        The published headline is at K = 20, and that of `official` at overlap 0.5.
        """
        chosen = PROTOCOLS[protocol]
        thresholds, ranks = settings.get("thresholds"), settings.get("k") or DEFAULT_K
        whole = dataset.get("split") in ("test", "val") and len(scored) == self.source.rows["test"]
        own = not any(scored["oracle"].to_pylist())
        named = DEFAULT_K[0] in ranks and (chosen.weak or thresholds is None or 0.5 in thresholds)
        return chosen.comparable_to if whole and own and named else None

    def likely_causes(self, table: pa.Table, features: Features) -> list[str]:
        """Likely causes of a score near zero."""
        from bench_datasets.benchmarks.pvsg.hints import likely_causes

        return likely_causes(table, features)

    def explain(self, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
        """Each relation with the triplet that hits it."""
        from bench_datasets.benchmarks.pvsg.explain import explain

        return explain(row, prediction, protocol)

    def error_kinds(self, table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None, **options: Any) -> Errors:
        """The stage in which each relation was lost."""
        from bench_datasets.benchmarks.pvsg.errors import find

        return find(table, protocol, rows, **options)

    def show_row(self, row: Mapping[str, Any], frame: int | None = None) -> Shown | None:
        """A video: one frame with its objects, and the relations."""
        from bench_datasets.benchmarks.pvsg.show import show_video

        return show_video(row, frame) if "tubes" in row else None

    def write_other_formats(self, model: str, folder: Path) -> None:
        """The output of the OpenPVSG code, in the folder `work_dirs`."""
        import shutil

        from bench_datasets.samples import pvsg_sample_predictions

        shutil.copytree(pvsg_sample_predictions(model, "research"), folder / "work_dirs", dirs_exist_ok=True)

    def dataset_form(self) -> DatasetForm:
        """Configs, columns, counts and preview of the published dataset."""
        from bench_datasets.benchmarks.pvsg.publish import FORM

        return FORM

    def sample_dir(self) -> str:
        """The folder of the built-in sample, in the source's layout."""
        from bench_datasets.samples import pvsg_sample_dir

        return str(pvsg_sample_dir())

    def sample_predictions(self, model: str) -> str:
        """The file of a sample model's predictions."""
        from bench_datasets.samples import pvsg_sample_predictions

        return str(pvsg_sample_predictions(model))

    def report_section(self) -> Section:
        """The benchmark's part of a report page."""
        from bench_datasets.benchmarks.pvsg.report import SECTION

        return SECTION


BENCHMARK = PVSG()
