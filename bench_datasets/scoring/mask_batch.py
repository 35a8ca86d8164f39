"""`MaskBatch`: rows with a list of ground truth masks and a list of predicted masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.arrow import lists_of
from bench_datasets.benchmark import Benchmark, Protocol
from bench_datasets.faults import BenchError, Fault, stops
from bench_datasets.masks import Decoded, joined
from bench_datasets.masks.ragged import CHUNK_BYTES, MaskLists, parts, read_mask_lists
from bench_datasets.predictions.arrow_types import odd_masks
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.scoring.batch import Batch
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions


@dataclass(frozen=True)
class MaskBatch(Batch):
    """n rows with their predictions, for benchmarks that resize no mask.

    Attributes:
        keys: string, the rows' keys.
        labels: the other truth columns; the row hash covers those that are not nested.
        true: ground truth masks.
        predicted: predicted masks, in the order given; null where a row has no prediction.
        reading: faults found when the predictions were read.
        wrong: `(n,) bool`, rows whose prediction counts as wrong and is empty here.
    """

    keys: pa.Array
    labels: pa.Table
    true: MaskLists
    predicted: MaskLists
    reading: list[list[dict[str, str]] | None]
    wrong: NDArray[np.bool_]

    @classmethod
    def read(cls, benchmark: Benchmark, batch: pa.Table | Mapping[str, Any]) -> MaskBatch:
        """Read a batch.

        Args:
            benchmark: names the columns.
            batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` passes them.

        Raises:
            BenchError: there is no column `key`, `masks` or `pred_masks`.
        """
        names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
        absent = [name for name in ("key", "masks", "pred_masks") if name not in names]
        if absent:
            raise BenchError(
                f"{benchmark.name} rows: expected the columns key, masks and pred_masks, found {', '.join(names)};"
                f" without {absent[0]} they can't be scored (is it another benchmark's file?)"
            )

        def column(name: str) -> pa.Array:
            values = batch[name]
            return joined(values) if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)

        n = len(batch["key"])
        labels = {name: column(name) for name in benchmark.truth_columns if name in names and name != "masks"}
        found = column("pred_faults") if "pred_faults" in names else pa.nulls(n)
        return cls(
            column("key").cast(pa.string()),
            pa.table(labels),
            read_mask_lists(batch["masks"]),
            read_mask_lists(batch["pred_masks"]),
            lists_of(found, FAULTS_TYPE).to_pylist(),
            np.zeros(n, np.bool_),
        )

    @property
    def clusters(self) -> pa.Array:
        """The keys: every row is resampled on its own."""
        return self.keys

    def chunks(self) -> Iterator[MaskBatch]:
        """Parts of bounded bytes of masks."""
        for start, stop in parts((self.true.bytes_a_row() + self.predicted.bytes_a_row()) / CHUNK_BYTES):
            yield replace(
                self,
                keys=self.keys[start:stop],
                labels=self.labels[start:stop],
                true=self.true.slice(start, stop),
                predicted=self.predicted.slice(start, stop),
                reading=self.reading[start:stop],
                wrong=self.wrong[start:stop],
            )

    def use_decoded(self, decoded: Decoded) -> None:
        """Take the predicted masks from an earlier decoding."""
        self.predicted.masks.remember(decoded)

    def label_columns(self) -> Mapping[str, Any]:
        """The truth columns by name, for those that the score table has too."""
        return {name: self.labels[name] for name in self.labels.column_names if name not in ("key", "faults")}

    def row_hashes(self) -> list[str]:
        """The hash of each row's flat labels and ground truth masks."""
        flat = [field.name for field in self.labels.schema if not pa.types.is_nested(field.type)]
        return sound_hashes(self.labels.select(flat), self.true, self.true.problems())

    def find_faults(self, protocol: Protocol, options: ScoreOptions) -> Faulty:
        """Rows with invalid masks, without a prediction, or with masks of another size than the ground truth's."""
        del protocol
        faulty = Faulty(options)
        broken_truth, broken = self.true.problems(), self.predicted.problems()
        for i, key in enumerate(self.keys.to_pylist()):
            truth = [
                Fault("malformed_mask", key, f"masks (ground truth), {text}; correct the source's row")
                for text in broken_truth.get(i, ())
            ]
            found = prediction_faults(
                key, self.reading[i] or (), broken.get(i, ()), bool(self.predicted.present[i]), options.missing
            )
            if not truth and not found:
                found = self._other_size(i, key)
            faulty.add(i, truth, found)
        return faulty

    def _other_size(self, i: int, key: str) -> list[Fault]:
        sizes = []
        for lists in (self.true, self.predicted):
            some = slice(int(lists.groups[i]), int(lists.groups[i + 1]))
            sizes.append(list(zip(lists.masks.heights[some].tolist(), lists.masks.widths[some].tolist(), strict=True)))
        both = [*sizes[0], *sizes[1]]
        other = next((size for size in both if size != both[0]), None)
        if other is None:
            return []
        expected = both[0]
        text = f"pred_masks: expected masks of {expected[0]} x {expected[1]}, the ground truth's size,"
        return [Fault("size_mismatch", key, f"{text} found {other[0]} x {other[1]}; resize them yourself")]

    def fault_codes(self, faulty: Faulty) -> list[list[str]]:
        """Codes of the builder, of reading, of masks that look wrong, and of the faults."""
        noted = self.labels["faults"].to_pylist() if "faults" in self.labels.column_names else [None] * len(self)
        odd: dict[int, set[str]] = {}
        for code, k in odd_masks(self.predicted.masks):
            odd.setdefault(int(self.predicted.row_of[k]), set()).add(code)
        return [
            sorted({
                *(noted[i] or ()),
                *(fault["code"] for fault in self.reading[i] or () if not stops(fault["code"])),
                *faulty.codes(i),
                *(odd.get(i, ()) if i not in faulty.left_out and i not in faulty.wrong else ()),
            })
            for i in range(len(self))
        ]  # fmt: skip

    def scorable(self, faulty: Faulty) -> MaskBatch:
        """The rows that are scored; those that count as wrong have no predicted mask."""
        wrong = np.zeros(len(self), np.bool_)
        wrong[list(faulty.wrong)] = True
        rows = np.flatnonzero([i not in faulty.left_out for i in range(len(self))])
        predicted = self.predicted.emptied(list(faulty.wrong)) if faulty.wrong else self.predicted
        return replace(
            self,
            keys=self.keys.take(pa.array(rows)),
            labels=self.labels.take(pa.array(rows)),
            true=self.true.take(rows),
            predicted=predicted.take(rows),
            reading=[self.reading[i] for i in rows],
            wrong=wrong[rows],
        )


def prediction_faults(key: str, reading: Any, problems: Any, present: bool, missing: str) -> list[Fault]:
    """Faults of one row's prediction: those of reading, else invalid masks, else that there is none.

    Args:
        key: the row's key.
        reading: faults found when the prediction was read, as code and text.
        problems: what is wrong with the predicted masks.
        present: whether there is a prediction.
        missing: `error` if a missing prediction is a fault.
    """
    absent = not present or any(fault["code"] == "missing_prediction" for fault in reading)
    found = [
        Fault(fault["code"], key, f"prediction: {fault['text']}")
        for fault in reading
        if stops(fault["code"]) and fault["code"] != "missing_prediction"
    ]
    if not found:
        advice = "; re-encode the prediction's masks (`check` lists them all)"
        found = [Fault("malformed_mask", key, f"pred_masks, {text}{advice}") for text in problems]
    if not found and absent and missing == "error":
        text = "no prediction for this row; predict it (an empty list of masks where the model found nothing)"
        text += ', or ask for missing="empty" to count it as an empty prediction'
        found = [Fault("missing_prediction", key, text)]
    return found
