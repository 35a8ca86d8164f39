"""The matching behind one row's score, as text and as a picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError


@dataclass(frozen=True)
class Explanation:
    """Why one row has the score it has.

    Attributes:
        key: the row's key.
        text: what was compared with what, line by line.
        picture: truth and prediction over the image, or over a plain ground where the row has none.
        facts: the same as plain values.
    """

    key: str
    text: str
    picture: Image.Image
    facts: dict[str, Any]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        self.picture.save(buffer, "PNG")
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        label = html.escape(f"truth and prediction of {self.key}")
        return f'<pre>{html.escape(self.text)}</pre><img alt="{label}" src="data:image/png;base64,{data}">'


def explain(benchmark: str, row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
    """The matching behind one row's score.

    Args:
        benchmark: its name.
        row: a truth row, with or without its image.
        prediction: a row of `read_predictions`, or the list of predicted masks.
        protocol: a protocol's name; the benchmark's default for `None`.

    Raises:
        BenchError: the benchmark explains no rows.
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
    result: Explanation = metric.explain(row, prediction, protocol)
    return result
