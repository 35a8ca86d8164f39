"""The matching behind one row's score, as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.metrics.picture import Seen


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
        prediction: a row of `read_predictions`, or the list of predicted masks.
        protocol: a protocol's name; the benchmark's default for `None`.

    Raises:
        BenchError: the benchmark explains no rows, or the prediction names another row.
        FaultError: the row can't be scored; the message says why.

    Example:
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> print(explain("pbench", {"id": 7, "level": "level_0", "masks": [mask]}, [mask]))
        level_0/7 under released: score 1.0000
        1 truth mask, 1 predicted, 1 scored
          prediction 0 (5 px): truth 0, IoU 1.0000, counts up to threshold 0.95
        union IoU 1.0000
    """
    metric = get_benchmark(benchmark).metric_module()
    if not hasattr(metric, "explain"):
        raise BenchError(f"explain: {benchmark} explains no rows")
    _refuse_others(row, prediction)
    result: Explanation = metric.explain(row, prediction, protocol)
    return result


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
