"""From a batch of PVSG rows to its score rows: a pure function, masks in, small integers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pvsg import BENCHMARK, panoptic
from bench_datasets.benchmarks.pvsg.batch import (
    Prediction,
    Row,
    Truth,
    label_fields,
    read_prediction,
    read_rows,
    read_truth,
)
from bench_datasets.benchmarks.pvsg.oracle import with_oracle
from bench_datasets.benchmarks.pvsg.overlaps import Twins, measure
from bench_datasets.benchmarks.pvsg.protocol import get_protocol
from bench_datasets.benchmarks.pvsg.schema import VOID
from bench_datasets.benchmarks.pvsg.tubes import TubeLists, frame_overlaps
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.faults import FAULTS, Fault, stops
from bench_datasets.predictions.arrow_types import size_advice
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import row_hashes
from bench_datasets.scoring.options import ScoreOptions

_NAMES = np.array([*CATEGORIES, ""], dtype=object)


def score_table(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> pa.Table:
    """Score a batch.

    Args:
        batch: rows with `pred_tubes` and `pred_triplets` beside the truth, as an Arrow table or as columns by name.
        options: how; the protocol, the oracle, and what to do about faults.

    Returns:
        One score row a video, in the batch's order, with the columns of `SCORE_COLUMNS`.

    Raises:
        FaultError: a row has a fault and the options say to stop.
        BenchError: a column is absent, or the truth is not PVSG's.
    """
    protocol = get_protocol(options.protocol)
    schema = BENCHMARK.score_features().arrow_schema.remove_metadata()
    rows = [
        {"protocol": f"{protocol.name}@{protocol.version}", "oracle": options.oracle or "", **_score_row(row, options)}
        for row in read_rows(batch)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def row_faults(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Faulty:
    """The videos of a batch that can't be scored as they are; see `metrics.pbench.score.row_faults`."""
    faulty = Faulty(options)
    for i, row in enumerate(read_rows(batch)):
        _judge(row, faulty, i)
        if i not in faulty.left_out:
            label_fields(row)
            read_truth(row)
    return faulty


def _score_row(row: Row, options: ScoreOptions) -> dict[str, Any]:
    """One video's score row; without its lists where a fault keeps it from being scored."""
    result: dict[str, Any] = {
        "key": row.key, "cluster": row.key, "row_sha256": "", "source": row.values["source"], "skipped": False,
        **{field.name: [] for field in BENCHMARK.score_features().arrow_schema if pa.types.is_list(field.type)},
    }  # fmt: skip
    if not _truth_mask_faults(row):
        fields, groups = label_fields(row), np.array([0, len(row.true.masks)])
        result["row_sha256"] = row_hashes([fields], row.true.masks, groups)[0]
    faulty = Faulty(options)
    prediction, noted = _judge(row, faulty, 0)
    if faulty.wrong:
        prediction, _, _ = read_prediction(row.without_prediction())
    result["faults"] = sorted({*(row.values["faults"] or []), *noted, *faulty.codes(0)})
    if faulty.left_out or prediction is None:
        return {**result, "skipped": True}
    return {**result, **_measured(read_truth(row), prediction, options)}


def _judge(row: Row, faulty: Faulty, i: int) -> tuple[Prediction | None, set[str]]:
    """Find a video's faults.

    Args:
        row: the video.
        faulty: takes its faults.
        i: its place in the batch.

    Returns:
        The prediction, `None` if it has a fault, and the codes that are noted of it.

    Raises:
        FaultError: there is a fault, and the options say to stop.
    """
    truth, wrong, noted = _truth_faults(row), _prediction_faults(row, faulty.options), set[str]()
    prediction: Prediction | None = None
    if not truth and not wrong:
        prediction, texts, found = read_prediction(row)
        wrong = [Fault(code, row.key, f"prediction, {text}; `check` lists all that is wrong") for code, text in texts]
        noted = set() if wrong else {code for code, _ in (*found, *row.reading)}
    faulty.add(i, truth, wrong)
    return None if wrong else prediction, noted


def _truth_faults(row: Row) -> list[Fault]:
    """Faults of the ground truth that end the scoring: those of its masks, and those that the builder noted."""
    noted = sorted(code for code in row.values["faults"] or [] if code in FAULTS and stops(code))
    found = [Fault(code, row.key, f"ground truth: {FAULTS[code].meaning}") for code in noted]
    return _truth_mask_faults(row) + found


def _truth_mask_faults(row: Row) -> list[Fault]:
    return _mask_faults(row, row.true, "tubes (ground truth)", "correct the source's row")


def _prediction_faults(row: Row, options: ScoreOptions) -> list[Fault]:
    """What was found when the prediction was read, and what its masks show."""
    found = [Fault(code, row.key, f"prediction: {text}") for code, text in row.reading if stops(code)]
    if not found:
        found = _mask_faults(row, row.predicted, "pred_tubes", "re-encode the prediction's masks (`check` lists all)")
    if not found and not row.answered and options.missing == "error":
        text = 'no prediction for this video; predict it, or ask for missing="empty" to count it as an empty prediction'
        found = [Fault("missing_prediction", row.key, text)]
    return found


def _mask_faults(row: Row, tubes: TubeLists, column: str, advice: str) -> list[Fault]:
    """Masks that are unsound, or of another size than the video's frames."""
    found = [Fault("malformed_mask", row.key, f"{column}, {text}; {advice}") for text in tubes.problems().get(0, ())]
    if found:
        return found
    height, width = row.values["height"], row.values["width"]
    if height is None or width is None:
        if not len(row.true.masks):
            return []
        height, width = int(row.true.masks.heights[0]), int(row.true.masks.widths[0])
    differ = np.flatnonzero((tubes.masks.heights != height) | (tubes.masks.widths != width))
    if not len(differ):
        return []
    i = int(differ[0])
    tube = int(np.searchsorted(tubes.tubes, i, side="right")) - 1
    text = (
        f"{column}, tube {tube}, frame {tubes.frames[i]}: expected the video's {height} x {width} (height x width),"
        f" found {tubes.masks.heights[i]} x {tubes.masks.widths[i]}"
    )
    found_size = tubes.masks.heights[i], tubes.masks.widths[i]
    text += size_advice(found_size, (height, width), "masks are not resized here")
    return [Fault("size_mismatch", row.key, text)]


def _measured(truth: Truth, given: Prediction, options: ScoreOptions) -> dict[str, Any]:
    """Every integer of a sound video."""
    overlaps = frame_overlaps(truth.tubes, given.tubes, truth.frames)
    prediction, overlaps = with_oracle(options.oracle, truth, given, overlaps)
    twins = Twins(truth, prediction, overlaps)
    relations, pairs = measure(truth, prediction, twins)
    frames = panoptic.read_frames(truth, prediction, overlaps)
    windows = panoptic.windows(truth, prediction, frames)
    quality = panoptic.quality(truth, prediction, frames, get_protocol(options.protocol).stq)
    areas = truth.tubes.areas_by_frame(truth.frames)
    return {
        "height": truth.height,
        "width": truth.width,
        "frames": truth.frames,
        "triplets": len(prediction.subjects),
        "object_category": _NAMES[truth.categories],
        "object_is_thing": truth.things,
        "object_frames": (areas > 0).sum(axis=1),
        "object_area": areas.sum(axis=1),
        "object_id": truth.ids,
        "tube_category": _NAMES[prediction.categories],
        "tube_area": prediction.tubes.total_areas(),
        "twin_object": twins.pairs[:, 0],
        "twin_tube": twins.pairs[:, 1],
        "twin_shared": twins.shared[:-1, -1],
        "relation_subject": truth.subjects,
        "relation_object": truth.objects,
        "relation_predicate": [PREDICATES[k] for k in truth.predicates],
        "relation_span": truth.span_frames,
        "relation_visible": relations.visible,
        "relation_subject_area": relations.subject_area,
        "relation_object_area": relations.object_area,
        "relation_best": relations.best,
        **{f"pair_{name}": values for name, values in pairs._asdict().items()},
        "vpq_window": windows.window,
        "vpq_category": _NAMES[windows.category],
        **{f"vpq_{name}": getattr(windows, name) for name in ("iou", "tp", "fp", "fn")},
        **{name: values for name, values in quality._asdict().items() if name.startswith("track_")},
        "class_category": np.where(quality.category < 0, VOID, _NAMES[quality.category]),
        **{f"class_{name}": getattr(quality, name) for name in ("shared", "predicted", "true")},
    }
