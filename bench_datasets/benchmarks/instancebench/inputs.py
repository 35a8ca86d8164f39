"""Read the predictions of one row's expressions from Python values of any supported form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from bench_datasets.benchmarks.instancebench.prediction_pairing import pair_expressions
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.faults import BenchError, FaultError


def answers_of(row: Mapping[str, Any], prediction: Any) -> dict[str, Any]:
    """The columns of predictions beside a row.

    Args:
        row: a truth row.
        prediction: a Dataset of predictions, of which those of the row's expressions are taken (of the first run, under
            the condition `original`); rows of it; a mapping from each `expression_id` to its mask or row; or masks
            aligned with the expressions, alone or as `pred_masks`.

    Returns:
        `pred_masks`, and `pred_faults` where reading them noted any.

    Raises:
        BenchError: what was given is none of these, or about other expressions.
        FaultError: an expression has no prediction, or two.
    """
    ids = [str(expression.get("expression_id")) for expression in row["expressions"]]
    key = str(row.get("key", row.get("tces_id")))
    if isinstance(prediction, Dataset):
        return _columns(ids, key, _of_dataset(ids, prediction))
    if isinstance(prediction, Mapping):
        if "pred_masks" in prediction:
            return {"pred_masks": prediction["pred_masks"]}
        if "expression_id" in prediction:
            return _columns(ids, key, _by_id([prediction], key))
        return _columns(ids, key, prediction)
    if isinstance(prediction, Sequence) and any(isinstance(p, Mapping) and "expression_id" in p for p in prediction):
        return _columns(ids, key, _by_id(prediction, key))
    return {"pred_masks": prediction}


def _of_dataset(ids: Sequence[str], predictions: Dataset) -> dict[str, Any]:
    found = pair_expressions(ids, predictions, whole=False)
    pair = next(pair for pair in found.conditions if pair[1] == ORIGINAL)
    for name, at, again in zip(ids, found.index[pair], found.twice[pair], strict=True):
        if again:
            raise _twice(name)
        if at < 0:
            raise _none(name)
    return {name: predictions[int(at)] for name, at in zip(ids, found.index[pair], strict=True)}


def _by_id(rows: Sequence[Any], key: str) -> dict[str, Any]:
    """Rows by the expression that they are for; those under a condition of their own are left out."""
    result: dict[str, Any] = {}
    for number, item in enumerate(rows):
        if not isinstance(item, Mapping) or "expression_id" not in item:
            raise BenchError(f"{key}: prediction {number}: expected a row with expression_id, found {_shown(item)}")
        if item.get("condition") not in (None, ORIGINAL):
            continue
        if str(item["expression_id"]) in result:
            raise _twice(str(item["expression_id"]))
        result[str(item["expression_id"])] = item
    return result


def _columns(ids: Sequence[str], key: str, given: Mapping[Any, Any]) -> dict[str, Any]:
    answers = {str(name): value for name, value in given.items()}
    strange = [name for name in answers if name not in ids]
    if strange:
        raise BenchError(
            f"{key}: expected predictions for the expressions {', '.join(ids)}, got one for {strange[0]!r}; give all of"
            " the row's by expression_id"
        )
    masks, faults = [], []
    for name in ids:
        if name not in answers:
            raise _none(name)
        mask, noted = _mask(name, answers[name])
        masks.append(mask)
        faults += noted
    return {"pred_masks": masks, **({"pred_faults": faults} if faults else {})}


def _mask(name: str, value: Any) -> tuple[Any, list[Any]]:
    """A mask, or the mask of a row, with the faults noted when the row was read."""
    if not isinstance(value, Mapping) or "counts" in value:
        return value, []
    if not {"mask", "segmentation"} & set(value):
        raise BenchError(f"{name}: expected a mask or a row with one, found {_shown(value)}")
    return value.get("mask", value.get("segmentation")), list(value.get("pred_faults") or ())


def _shown(value: Any) -> str:
    return f"the fields {', '.join(map(str, value))}" if isinstance(value, Mapping) else type(value).__name__


def _none(name: str) -> FaultError:
    return FaultError("missing_prediction", name, "no prediction for this expression; give one for each of the row's")


def _twice(name: str) -> FaultError:
    return FaultError("duplicate_prediction", name, "two predictions for this expression; give those of one run")
