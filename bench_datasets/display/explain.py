"""The matching behind one row's score, as text and as a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset, IterableDataset
from PIL import Image

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.display.overlay import Seen, overlay
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import resize
from bench_datasets.masks.ragged import read_mask_lists
from bench_datasets.predictions import read_predictions
from bench_datasets.scoring.options import ScoreOptions


@dataclass(frozen=True)
class Explanation(Seen):
    """Why one row has the score it has.

    Attributes:
        key: the row's key.
        text: the matching, line by line.
        picture: truth and prediction over the image, or over a plain ground where the row has none.
        facts: the same as plain values.
    """

    facts: dict[str, Any]


def explain(benchmark: str, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
    """The matching behind one row's score.

    Args:
        benchmark: its name.
        row: a truth row, with or without its image.
        prediction: anything that `read_predictions` takes or gives, of which the row's own prediction is taken; or
            that alone: a row of it, or PBench's list of predicted masks, or PVSG's `{"tubes": ..., "triplets": ...}`.
            InstanceBench takes one prediction per expression: rows of `read_predictions` of one run, a mapping from
            each `expression_id` to its mask or row, or masks aligned with the row's expressions.
        protocol: a protocol's name; the benchmark's default for `None`.

    Raises:
        BenchError: the benchmark or the protocol is unknown, or the prediction names another row.
        FaultError: the row can't be scored; the message says why.

    Example:
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> print(explain("pbench", {"id": 7, "level": "level_0", "masks": [mask]}, [mask]))
        level_0/7 under released: score 1.0000
        1 ground truth mask, 1 predicted, 1 scored
          prediction 0 (5 px): ground truth 0, IoU 1.0000, counts up to threshold 0.95
        union IoU 1.0000
        >>> print(explain("pvsg", truth[0], read_predictions("pvsg", "answers.jsonl")))      # doctest: +SKIP
        >>> print(explain("instancebench", truth[0], {"x-0": mask, "x-1": None}))            # doctest: +SKIP
    """
    metric = get_benchmark(benchmark)
    prediction = _own(benchmark, row, prediction)
    _refuse_others(row, prediction)
    return metric.explain(row, prediction, protocol)


def _own(benchmark: str, row: Mapping[str, Any], prediction: Any) -> Any:
    """A prediction as the metrics take it: predictions that are still to be read are read, one of several by name."""
    names = ("key", "id", "video_id")
    several = isinstance(prediction, (list, tuple)) and any(
        isinstance(p, Mapping) and {*names} & {*p} for p in prediction
    )
    if isinstance(prediction, Mapping):
        splits = any(isinstance(part, (Dataset, IterableDataset)) for part in prediction.values())
        named = [row[name] for name in names if row.get(name) is not None and row[name] in prediction]
        if named and not splits:
            return prediction[named[0]]
        several = splits
    elif isinstance(prediction, (str, os.PathLike, IterableDataset)) or hasattr(prediction, "__arrow_c_stream__"):
        several = True  # a path, a DataFrame, an Arrow table
    elif isinstance(prediction, Dataset):
        several = "pred_faults" not in prediction.column_names
    return read_predictions(benchmark, prediction) if several else prediction


def picked(row: Mapping[str, Any], prediction: Any, benchmark: Benchmark, protocol: str) -> Any:
    """The row's own prediction if a Dataset of all predictions is given; else the given prediction.

    Args:
        row: a truth row of a benchmark with one prediction a row.
        prediction: a Dataset of predictions, or anything else.
        benchmark: the benchmark.
        protocol: its name.

    Raises:
        FaultError: none is for this row, or two are.
    """
    if not isinstance(prediction, Dataset):
        return prediction
    names = {name: [row[name]] for name in ("key", "id", "level") if row.get(name) is not None}
    if "key" not in names and "video_id" in row:
        names["key"] = [row["video_id"]]
    units = benchmark.pair_units(Dataset.from_dict(names), prediction, ScoreOptions(protocol), False)
    if units.answers[0] < 0:
        raise FaultError("missing_prediction", units.names[0], "none of the predictions is for this row")
    if units.twice[0]:
        raise FaultError("duplicate_prediction", units.names[0], "two of the predictions name this row; choose one")
    return prediction[int(units.answers[0])]


def explain_by_metrics(
    benchmark: Benchmark, row: Mapping[str, Any], prediction: Any, protocol: str | None
) -> Explanation:
    """Explain a row of any benchmark by its metrics over that row alone; see `explain`."""
    chosen = benchmark.protocol(protocol).name
    prediction = picked(row, prediction, benchmark, chosen)
    given = prediction if isinstance(prediction, Mapping) else {"pred_masks": prediction}
    batch = {name: [row[name]] for name in benchmark.truth_columns if name in row}
    batch |= {name: [given[name]] for name in benchmark.prediction_columns if name in given}
    table = benchmark.score_table(batch, ScoreOptions(chosen))
    metrics, _ = benchmark.summarize_table(table, chosen)
    key = str(table["key"][0].as_py())
    numbers = {name: found.value for name, found in metrics.items() if math.isfinite(found.value)}
    lines = [f"{key} under {chosen}: the metrics of this row alone"]
    lines += [f"  {name}: {value:.4f}" for name, value in numbers.items()]
    return Explanation(
        key, "\n".join(lines), _picture(row, given), {"key": key, "protocol": chosen, "metrics": numbers}
    )


def _picture(row: Mapping[str, Any], given: Mapping[str, Any]) -> Image.Image:
    """Masks over the image, as far as truth and predictions have any; those of another size are fitted to the truth."""
    true, found = ([m for m in one or () if m is not None] for one in (row.get("masks"), given.get("pred_masks")))
    truth, predicted = (read_mask_lists([masks]).masks for masks in (true, found))
    if not len(truth):
        return overlay(row.get("image"), None, truth, None)
    size = (int(truth.heights[0]), int(truth.widths[0]))
    fitted = resize(predicted, np.full(len(predicted), size[0]), np.full(len(predicted), size[1]))
    return overlay(row.get("image"), size, truth, fitted)


def _refuse_others(row: Mapping[str, Any], prediction: Any) -> None:
    """A prediction that bears a name is for the row of that name.

    Raises:
        BenchError: it names another; the message has both names.
    """
    if not isinstance(prediction, Mapping):
        return
    for names in (("key", "video_id", "tces_id"), ("id",)):
        own, other = (next((one[n] for n in names if one.get(n) is not None), None) for one in (row, prediction))
        if own is not None and other is not None and str(own) != str(other):
            raise BenchError(
                f"explain: expected a prediction for the row {own}, got the one for {other}; choose the row and the"
                " prediction that belong together"
            )
