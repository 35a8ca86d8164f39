"""PBench's `evaluate` module: lists of masks in, every number out, each mask validated before Arrow sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Features, List, Value

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.hf_evaluate.row_metric import RowMetric, check_aligned, is_list
from bench_datasets.masks import MASK_FEATURE, parse_masks
from bench_datasets.results.result import Result
from bench_datasets.results.summarize import summarize
from bench_datasets.scoring.score import scorer

_INPUTS = """
Args:
    predictions: a list of masks a row; a mask is a COCO RLE `{"size": [height, width], "counts": str, bytes or runs}`.
    references: a list of masks a row.
    levels: the level of each row (`level_0` to `level_4`, `dense`), or one for all; with `add_batch`, or with `compute`
        for all rows that were added.
    ids: what errors call each row; its position where not given.
    protocol: `released` (the default), `paper` or `card`.
    missing: `empty` counts a prediction of None as an empty prediction; `error`, the default, refuses it.
    on_fault: `skip-and-report` leaves a faulty row out; `count-as-wrong` counts a faulty or missing prediction as
        wrong; `stop`, the default, refuses it. For rows that are added before, give it to `add` or `add_batch`, too.

Returns:
    Values by metric key, such as `macro_f1/level_0` and `average`; fractions, NaN where undefined.
"""

_MASKS = List(MASK_FEATURE)


class Pbench(RowMetric):
    """PBench's metrics over `compute`, `add_batch`, `add` and `combine`; `levels` goes with every row."""

    BENCHMARK = "pbench"
    DESCRIPTION = "PBench: referring segmentation by level, with the protocols of its paper and scorer."
    INPUTS = _INPUTS
    FEATURES = Features(
        predictions=_MASKS, references=_MASKS, levels=Value("string"), ids=Value("string"), answered=Value("bool")
    )
    COLUMNS = ("levels",)
    OPTIONS = ("protocol", "missing", "on_fault")

    def _validated(
        self, predictions: Any, references: Any, ids: Any, *, strict: bool = True, levels: Any = None, **columns: Any
    ) -> dict[str, list[Any]]:
        n = check_aligned(predictions, references, ids, "a list of masks a row")
        levels = [levels] * n if levels is None or isinstance(levels, (str, int)) else list(levels)
        check_aligned(predictions, references, ids, "a list of masks a row", levels=levels)
        names = [None] * n if ids is None else [str(item) for item in ids]
        called = [f"row {k}" if name is None else f"row {name}" for k, name in enumerate(names)]
        truth, predicted = [], []
        for true_masks, masks, who in zip(references, predictions, called, strict=True):
            truth.append(_masks(true_masks, "references", who, strict))  # of two faults in a row, this one is named
            predicted.append(_masks(masks, "predictions", who, strict))
        return {
            "predictions": predicted,
            "references": truth,
            "levels": [
                None if level is None else _level(level, who) for level, who in zip(levels, called, strict=True)
            ],
            "ids": names,
            "answered": [masks is not None for masks in predictions],
        }

    def _result(
        self,
        predictions: list[Any],
        references: list[Any],
        levels: Sequence[str | None] = (),
        protocol: str | None = None,
        missing: str = "error",
        on_fault: str = "stop",
        **given: Any,
    ) -> Result:
        ids, answered = self.data["ids"][:], self.data["answered"][:]
        levels = self._levels(list(levels))
        rows = {
            "key": [f"{level}/{row or f'row {k}'}" for k, (level, row) in enumerate(zip(levels, ids, strict=True))],
            "id": list(range(len(ids))),
            "level": levels,
            "masks": references,
            "pred_masks": [masks if there else None for masks, there in zip(predictions, answered, strict=True)],
        }
        function = scorer("pbench", protocol, missing=missing, on_fault=on_fault)
        return summarize("pbench", BENCHMARK.score_table(rows, function.options), draws=0)

    def _levels(self, added: list[str | None]) -> list[str]:
        """The level of every row: as it was added, or as `compute` was given it."""
        given = self._late.get("levels")
        late = [given] * len(added) if given is None or isinstance(given, (str, int)) else list(given)
        if len(late) != len(added):
            raise BenchError(f"levels: expected as many as rows were added ({len(added)}), found {len(late)}")
        levels = []
        for k, (level, other) in enumerate(zip(added, late, strict=True)):
            if level is None and other is None:
                raise BenchError(
                    f"levels: expected a level for each of the {len(added)} rows ({', '.join(LEVELS)}), or one"
                    f" for all, found none for row {k}; give levels= to add, add_batch or compute"
                )
            levels.append(_level(other, f"row {k}") if level is None else level)
        return levels


def _masks(masks: Any, column: str, who: str, strict: bool) -> list[dict[str, Any] | None]:
    """The masks of one row; where it is not strict, an unsound one is null, which the scoring finds to be unsound."""
    if masks is None and column == "predictions":
        return []
    masks = load_text(masks)
    if not is_list(masks):
        if not strict:
            return [None]
        raise FaultError("malformed_mask", who, f"{column}: expected a list of masks, found {type(masks).__name__}")
    sound, wrong = parse_masks([load_text(mask) for mask in masks])
    for k, text in wrong.items() if strict else ():
        raise FaultError("malformed_mask", who, f"{column}, mask {k}: {text}; expected a COCO RLE of the row's image")
    return sound.to_pylist()  # type: ignore[no-any-return]


def _level(level: Any, who: str) -> str:
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level < len(LEVELS):
        return LEVELS[level]
    if level not in LEVELS:
        raise BenchError(f"{who}: levels: expected one of {', '.join(LEVELS)}, got {level!r}")
    return str(level)
