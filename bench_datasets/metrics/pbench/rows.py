"""A batch of PBench rows as the scoring needs them, whatever they came as: Arrow tables, `map` batches, raw exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks import PBENCH_LEVELS
from bench_datasets.faults import BenchError
from bench_datasets.metrics.masklists import MaskLists, read_mask_lists

LABEL_COLUMNS = ("key", "id", "level", "expression", "masks", "count", "faults", "image_sha256")
ANSWER_COLUMNS = ("pred_masks", "pred_scores", "pred_centers", "pred_sizes", "pred_faults")


@dataclass(frozen=True)
class Rows:
    """n rows of truth with their predictions.

    Attributes:
        keys: the rows' keys.
        levels: the rows' levels, by name.
        labels: the fields that the row hash covers, without the masks.
        clusters: what a row is resampled with: its image's hash, or its key.
        noted: the builder's fault codes.
        true: truth masks.
        predicted: predicted masks, in the order given; null where a row has no prediction.
        centers: `(masks, 2) float64` a row, the predicted centre x, y as fractions of the image, or `None`.
        reading: faults found when the predictions were read.
    """

    keys: list[str]
    levels: list[str]
    labels: list[dict[str, Any]]
    clusters: list[str]
    noted: list[list[str]]
    true: MaskLists
    predicted: MaskLists
    centers: list[NDArray[np.float64] | None]
    reading: list[list[tuple[str, str]]]

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, start: int, stop: int) -> Rows:
        """The rows from `start` to `stop`."""
        part = slice(start, stop)
        return Rows(
            self.keys[part], self.levels[part], self.labels[part], self.clusters[part], self.noted[part],
            self.true.slice(start, stop), self.predicted.slice(start, stop), self.centers[part], self.reading[part],
        )  # fmt: skip

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """The chosen rows."""

        def pick(items: list[Any]) -> list[Any]:
            return [items[i] for i in rows]

        return Rows(
            pick(self.keys), pick(self.levels), pick(self.labels), pick(self.clusters), pick(self.noted),
            self.true.take(rows), self.predicted.take(rows), pick(self.centers), pick(self.reading),
        )  # fmt: skip


def read_rows(batch: pa.Table | Mapping[str, Any], level: str | None, *, predictions: bool = True) -> Rows:
    """Put a batch into shape.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over. Truth columns as the
            builder gives them, or the source's own (`id`, `masks`, `expression`, `count`).
        level: the level of rows that have no `level` column.
        predictions: whether `pred_masks` must be there.

    Raises:
        BenchError: a column is absent, or a level is unknown.
    """
    names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
    needed = ["masks"] + ([] if "key" in names else ["id"]) + (["pred_masks"] if predictions else [])
    absent = [name for name in needed if name not in names]
    if absent:
        raise BenchError(
            f"pbench rows: expected the columns {', '.join(needed)}, found {', '.join(names)}; without {absent[0]} they"
            " can't be scored (is it another benchmark's file?)"
        )

    def column(name: str) -> Any:
        return batch[name] if name in names else None

    def values(name: str, default: Any = None) -> list[Any]:
        found = column(name)
        if found is None:
            return [default] * n
        if isinstance(found, (pa.Array, pa.ChunkedArray)):
            return list(found.to_pylist())
        return list(found.tolist() if isinstance(found, np.ndarray) else found)

    n = len(column("masks"))
    ids = values("id")
    levels = [_level(value, level) for value in values("level")]
    keys = [key or _key(name, row) for key, name, row in zip(values("key"), levels, ids, strict=True)]
    texts = values("expression")
    labels = [
        {"expression": text, "id": row, "level": name} for text, row, name in zip(texts, ids, levels, strict=True)
    ]
    clusters = [image or key for image, key in zip(values("image_sha256"), keys, strict=True)]
    true = read_mask_lists(column("masks"))
    predicted = read_mask_lists(column("pred_masks") if predictions else [None] * n)
    return Rows(
        keys, levels, labels, clusters,
        [[] if codes is None else list(codes) for codes in values("faults")], true, predicted,
        [_centers(value) for value in values("pred_centers")],
        [[(fault["code"], fault["text"]) for fault in found or []] for found in values("pred_faults")],
    )  # fmt: skip


def row_names(
    table: pa.Table | None, level: str | None, columns: Sequence[str]
) -> tuple[list[str], list[int], list[str]]:
    """Keys, ids and levels of rows.

    Args:
        table: their columns `key`, `id`, `level`, as far as they have them.
        level: the level of rows without a `level` column.
        columns: all columns of the rows, for the error.

    Raises:
        BenchError: there is no `id`, or a level is unknown.
    """
    if table is None or "id" not in table.column_names:
        raise BenchError(
            f"pbench rows: expected a column id, found {', '.join(columns)}; is it another benchmark's data?"
        )
    ids = table["id"].to_pylist()
    given = table["level"].to_pylist() if "level" in table.column_names else [None] * len(ids)
    levels = [_level(value, level) for value in given]
    keys = table["key"].to_pylist() if "key" in table.column_names else [None] * len(ids)
    return [key or _key(name, row) for key, name, row in zip(keys, levels, ids, strict=True)], ids, levels


def _key(level: str, number: int | None) -> str:
    if number is None:
        raise BenchError(
            "pbench rows: expected an integer as id of every row, found null; give each row an id or a key"
        )
    return f"{level}/{number}"


def _level(value: object, given: str | None) -> str:
    if value is None:
        value = given
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < len(PBENCH_LEVELS):
        return PBENCH_LEVELS[int(value)]
    if value in PBENCH_LEVELS:
        return str(value)
    if value is None:
        raise BenchError(
            'pbench rows: no column `level`, and none was given; say level="level_0" (the source names its splits so)'
        )
    raise BenchError(f"level: expected one of {', '.join(PBENCH_LEVELS)}, got {value!r}")


def _centers(value: Sequence[Any] | None) -> NDArray[np.float64] | None:
    if value is None:
        return None
    try:
        return np.array([[np.nan, np.nan] if item is None else item for item in value], np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        return np.full((0, 2), np.nan)
