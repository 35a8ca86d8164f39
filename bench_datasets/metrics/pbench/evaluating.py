"""PBench's `evaluate` module: lists of masks in, every number out, each mask validated before Arrow sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from bench_datasets.benchmarks import PBENCH_LEVELS, get_benchmark
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import MASK_FEATURE, parse_masks
from bench_datasets.metrics.scoring import scorer
from bench_datasets.metrics.summarizing import summarize

_INPUTS = """
Args:
    predictions: a list of masks a row; a mask is a COCO RLE `{"size": [height, width], "counts": str, bytes or runs}`.
    references: a list of masks a row.
    levels: the level of each row (`level_0` to `level_4`, `dense`), or one for all.
    ids: what errors call each row; its position where not given.
    protocol: `released` (the default), `paper` or `card`.
    missing: `empty` counts a prediction of None as an answer without masks; `error`, the default, refuses it.
    on_fault: `skip-and-report` leaves a row that can't be scored out; `stop`, the default, refuses it.

Returns:
    Values by metric key, such as `macro_f1/level_0` and `average`; fractions, NaN where undefined.
"""

_MASKS = List(MASK_FEATURE)


class Pbench(evaluate.Metric):  # type: ignore[misc]
    """PBench's metrics over `compute`, `add_batch`, `add` and `combine`."""

    def _info(self) -> evaluate.MetricInfo:
        features = Features(
            predictions=_MASKS, references=_MASKS, levels=Value("string"), ids=Value("string"), answered=Value("bool")
        )
        return evaluate.MetricInfo(
            description="PBench: referring segmentation by level, with the protocols of its paper and scorer.",
            citation=get_benchmark("pbench").citation,
            inputs_description=_INPUTS,
            features=features,
        )

    def _feature_names(self) -> list[str]:
        """What callers such as `combine` must hand over; ids may be left out."""
        return ["predictions", "references", "levels"]

    def add_batch(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        levels: Sequence[Any] | str | None = None,
        ids: Sequence[Any] | None = None,
    ) -> None:
        """Add rows, each validated here: later, Arrow would have turned them into something else."""
        rows = _validated(predictions, references, levels, ids)
        if self.writer is None:
            self.selected_feature_format = self.features
            self._init_writer()
        self.writer.write_batch(self.selected_feature_format.encode_batch(rows))

    def add(self, *, prediction: Any = None, reference: Any = None, levels: Any = None, ids: Any = None) -> None:
        """Add one row."""
        Pbench.add_batch(
            self, predictions=[prediction], references=[reference], levels=[levels], ids=None if ids is None else [ids]
        )

    def compute(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        levels: Sequence[Any] | str | None = None,
        ids: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, float] | None:
        """Compute over what was added and what is given here."""
        unknown = set(kwargs) - {"protocol", "missing", "on_fault"}
        if unknown:
            raise BenchError(f"compute: expected protocol, missing or on_fault, got {', '.join(sorted(unknown))}")
        if predictions is not None or references is not None:
            Pbench.add_batch(self, predictions=predictions, references=references, levels=levels, ids=ids)
        elif self.writer is None:
            raise BenchError("compute: expected predictions and references, here or by add_batch before; found none")
        result: dict[str, float] | None = evaluate.Metric.compute(self, **kwargs)
        return result

    def _compute(
        self,
        predictions: list[Any],
        references: list[Any],
        levels: list[str],
        protocol: str | None = None,
        missing: str = "error",
        on_fault: str = "stop",
    ) -> dict[str, float]:
        ids, answered = self.data["ids"][:], self.data["answered"][:]
        rows = {
            "key": [f"{level}/{row or f'row {k}'}" for k, (level, row) in enumerate(zip(levels, ids, strict=True))],
            "id": list(range(len(ids))),
            "level": levels,
            "masks": references,
            "pred_masks": [masks if there else None for masks, there in zip(predictions, answered, strict=True)],
        }
        function = scorer("pbench", protocol, missing=missing, on_fault=on_fault)
        from bench_datasets.metrics.pbench.score import score_table

        result = summarize("pbench", score_table(rows, function.options), draws=0)
        return {key: metric.value for key, metric in result.metrics.items()}


def _validated(predictions: Any, references: Any, levels: Any, ids: Any) -> dict[str, list[Any]]:
    columns = {"predictions": predictions, "references": references}
    for name, column in columns.items():
        if column is None or isinstance(column, (str, bytes, dict)) or not hasattr(column, "__len__"):
            raise BenchError(f"{name}: expected a list with a list of masks a row, found {type(column).__name__}")
    n = len(references)
    if levels is None:
        raise BenchError(f"levels: expected the level of each of {n} rows ({', '.join(PBENCH_LEVELS)}), or one for all")
    levels = [levels] * n if isinstance(levels, (str, int)) else list(levels)
    for name, column in {**columns, "levels": levels, **({"ids": ids} if ids is not None else {})}.items():
        if len(column) != n:
            raise BenchError(f"{name}: expected as many as references ({n}), got {len(column)}")
    names = [None] * n if ids is None else [str(item) for item in ids]
    called = [f"row {k}" if name is None else f"row {name}" for k, name in enumerate(names)]
    return {
        "predictions": [_masks(masks, "predictions", who) for masks, who in zip(predictions, called, strict=True)],
        "references": [_masks(masks, "references", who) for masks, who in zip(references, called, strict=True)],
        "levels": [_level(level, who) for level, who in zip(levels, called, strict=True)],
        "ids": names,
        "answered": [masks is not None for masks in predictions],
    }


def _masks(masks: Any, column: str, who: str) -> list[dict[str, Any]]:
    if masks is None and column == "predictions":
        return []
    if isinstance(masks, (str, bytes, dict)) or not hasattr(masks, "__len__"):
        raise FaultError("malformed_mask", who, f"{column}: expected a list of masks, found {type(masks).__name__}")
    sound, wrong = parse_masks(list(masks))
    for k, text in wrong.items():
        raise FaultError("malformed_mask", who, f"{column}, mask {k}: {text}; expected a COCO RLE of the row's image")
    return sound.to_pylist()  # type: ignore[no-any-return]


def _level(level: Any, who: str) -> str:
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level < len(PBENCH_LEVELS):
        return PBENCH_LEVELS[level]
    if level not in PBENCH_LEVELS:
        raise BenchError(f"{who}: levels: expected one of {', '.join(PBENCH_LEVELS)}, got {level!r}")
    return str(level)
