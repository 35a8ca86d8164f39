"""A model's function for `map`, wrapped so that it may give arrays; streams, whose model runs once per row."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Features, IterableDataset, List, Value
from datasets.fingerprint import Hasher
from PIL import Image
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.masks import MASK_FEATURE

FULL = np.ones((3, 4), bool)
LEFT = FULL & (np.arange(4) < 2)
TRUTH = Features(
    {
        "id": Value("int64"), "level": Value("string"), "masks": List(MASK_FEATURE), "height": Value("int32"),
        "width": Value("int32"),
    }
)  # fmt: skip


def rle(mask: np.ndarray[Any, Any]) -> dict[str, Any]:
    """By pycocotools."""
    found = coco.encode(np.asfortranarray(mask, np.uint8))
    return {"size": list(found["size"]), "counts": found["counts"].decode()}


def truth(n: int = 3) -> Dataset:
    """Rows of one level, each with the whole of its image as the mask."""
    rows = [{"id": k, "level": "level_0", "masks": [rle(FULL)], "height": 3, "width": 4} for k in range(n)]
    return Dataset.from_list(rows, features=TRUTH)


RUNS = {"size": [3, 4], "counts": [0, 6, 6]}
FORMS = {
    "bool": [LEFT],
    "array": LEFT[None],
    "array_of_1_and_0": np.stack([LEFT, LEFT]).astype(np.int64)[:1],
    "array_with_a_channel": LEFT[None, None],
    "image": [Image.fromarray(LEFT)],
    "grey_image": [Image.fromarray(LEFT.astype(np.uint8) * 255)],
    "bytes": [{"size": [3, 4], "counts": rle(LEFT)["counts"].encode()}],
    "runs": [RUNS],
    "text": [rle(LEFT)],
    "polygon": [[[0, 0, 2, 0, 2, 3, 0, 3]]],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batched", [False, True])
def test_predictor_any_form_of_mask_becomes_pycocotools_rle(form: str, batched: bool) -> None:
    def model(row: Any) -> dict[str, Any]:
        return {"pred_masks": [FORMS[form]] * len(row["id"]) if batched else FORMS[form]}

    features = bd.answer_features("pbench", truth())
    rows = truth().map(bd.predictor("pbench", model), features=features, batched=batched)
    assert rows["pred_masks"][:] == [[rle(LEFT)]] * 3
    assert rows.features == Features({**TRUTH, "pred_masks": List(MASK_FEATURE)})


def test_predictor_mixed_forms_in_one_batch_are_scored() -> None:
    forms = list(FORMS.values())

    def model(row: Any, index: int) -> dict[str, Any]:
        return {"pred_masks": [*forms[index % len(forms)], FULL], "pred_scores": np.float32([0.5, 1.0])}

    features = bd.answer_features("pbench", truth(10), "pred_masks", "pred_scores")
    rows = truth(10).map(bd.predictor("pbench", model), with_indices=True, features=features)
    assert rows["pred_masks"][:] == [[rle(LEFT), rle(FULL)]] * 10
    assert rows["pred_scores"][:] == [[0.5, 1.0]] * 10
    assert bd.summarize("pbench", bd.map_score(rows, "pbench"), draws=0).metrics["il_tp/level_0"].value == 10


def test_predictor_instancebench_keeps_expressions_without_a_mask() -> None:
    model = bd.predictor("instancebench", lambda row: {"pred_masks": [None, LEFT], "pred_boxes": np.eye(2, 4)})
    found = model({"key": "a"})
    assert found == {"pred_masks": [None, rle(LEFT)], "pred_boxes": [[1, 0, 0, 0], [0, 1, 0, 0]]}


def test_predictor_pvsg_encodes_tubes_and_names() -> None:
    def model(row: Any) -> dict[str, Any]:
        tube = {"tube_id": np.int64(1), "category": "adult", "frames": range(2), "masks": np.stack([LEFT, FULL])}
        triplet = {"subject_id": 1, "object_id": "b", "predicate": "over", "score": np.float32(0.5), "spans": [(0, 1)]}
        return {"pred_tubes": [tube], "pred_triplets": [triplet]}

    found = bd.predictor("pvsg", model)({"key": "v"})
    assert found["pred_tubes"] == [
        {"tube_id": "1", "category": "adult", "frames": [0, 1], "masks": [rle(LEFT), rle(FULL)]}
    ]
    assert found["pred_triplets"] == [
        {"subject_id": "1", "object_id": "b", "predicate": "over", "score": 0.5, "spans": [[0, 1]]}
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pred_masks": [LEFT * 0.5]}, "level_0/7: predictor: pred_masks, mask 0: .*float64; cut probabilities"),
        ({"pred_masks": [FULL, np.arange(12).reshape(3, 4)]}, "pred_masks, mask 1: .*0 and one other value, found 12"),
        ({"pred_masks": LEFT}, r"pred_masks: expected a list of masks.*shape \(3, 4\); put a single mask into a list"),
        ({"pred_masks": np.zeros((2, 3, 4, 3), bool)}, r"mask 0: .*\(height, width\), found one of shape \(3, 4, 3\)"),
        ({"pred_masks": [{"size": [3, 4], "counts": [5]}]}, "mask 0: the runs do not sum"),
        ({"pred_masks": [LEFT], "pred_scores": 5}, "level_0/7: predictor: pred_scores: expected a list, found int 5"),
        ({"masks": [LEFT]}, "expected a dictionary with pred_masks or .*, found masks"),
        ([LEFT], "expected a dictionary with pred_masks .* from the model's function, found list"),
        (None, "found null"),
    ],
)
def test_predictor_unusable_output_is_refused_by_row(given: Any, words: str) -> None:
    with pytest.raises(bd.BenchError, match=words):
        bd.predictor("pbench", lambda row: given)({"key": "level_0/7", "height": 3, "width": 4})


def test_predictor_batch_of_another_length_is_refused() -> None:
    with pytest.raises(bd.BenchError, match="expected 2 predictions for a batch of 2 rows, found pred_masks: 1"):
        bd.predictor("pbench", lambda rows: {"pred_masks": [[LEFT]]})({"key": ["a", "b"]})
    with pytest.raises(bd.BenchError, match="expected the model's function, found list"):
        bd.predictor("pbench", [])  # type: ignore[arg-type]


def _nothing(row: Any) -> dict[str, Any]:
    return {"pred_masks": []}


def test_predictor_travels_to_workers_and_is_remembered_by_map() -> None:
    model = bd.predictor("pbench", _nothing)
    assert pickle.loads(pickle.dumps(model))({"id": 1}) == {"pred_masks": []}
    assert Hasher.hash(model) == Hasher.hash(bd.predictor("pbench", _nothing))


@pytest.mark.parametrize("declared", [True, False])
def test_stream_model_runs_once_per_row_for_summary_and_run(declared: bool, tmp_path: Path) -> None:
    calls: list[int] = []

    def model(row: Any) -> dict[str, Any]:
        calls.append(row["id"])
        return {"pred_masks": [LEFT]}

    features = bd.answer_features("pbench", TRUTH) if declared else None
    stream = truth(70).to_iterable_dataset().map(bd.predictor("pbench", model), features=features)
    scores = bd.map_score(stream, "pbench")
    result = bd.summarize("pbench", scores, draws=0)
    bd.write_run(scores, result, tmp_path)
    assert calls == list(range(70))
    assert scores.features == bd.score_features("pbench")
    assert bd.read_scores(tmp_path)[:] == scores[:]
    whole = truth(70).map(bd.predictor("pbench", model), features=bd.answer_features("pbench", TRUTH))
    assert bd.map_score(whole, "pbench")[:] == scores[:]


def test_write_run_takes_a_streaming_score_table(tmp_path: Path) -> None:
    rows = truth().add_column("pred_masks", [[rle(LEFT)]] * 3, feature=List(MASK_FEATURE))
    stream = rows.to_iterable_dataset().map(
        bd.scorer("pbench"), batched=True, remove_columns=rows.column_names, features=bd.score_features("pbench")
    )
    assert isinstance(stream, IterableDataset)
    bd.write_run(stream, bd.summarize("pbench", stream, draws=0), tmp_path)
    assert bd.read_scores(tmp_path)[:] == bd.map_score(rows, "pbench")[:]


def test_map_score_list_with_an_unsound_mask_is_skipped_like_any_other() -> None:
    rows = [{**row, "pred_masks": [LEFT if k else LEFT * 0.5]} for k, row in enumerate(truth())]
    with pytest.raises(bd.FaultError, match=r"level_0/0.*malformed_mask|malformed_mask.*level_0/0"):
        bd.map_score(rows, "pbench")
    scores = bd.map_score(rows, "pbench", on_fault="skip-and-report")
    assert list(scores["skipped"]) == [True, False, False]


def test_single_values_and_no_rows_are_understood() -> None:
    rows = [{**row, "pred_masks": [LEFT]} for row in truth()]
    scores = bd.map_score(rows, "pbench")
    by_text, by_list = (bd.summarize("pbench", scores, by=by, draws=0) for by in ("true_count", ["true_count"]))
    assert by_text.slices == by_list.slices
    assert by_text.slices
    one = bd.summarize("pbench", scores, thresholds=0.5, draws=0)
    assert one.settings["thresholds"] == [0.5]
    assert one.metrics["macro_f1/level_0"].value == 1.0  # IoU .5 reaches the one threshold
    none = bd.map_score(truth().add_column("pred_masks", [[]] * 3, feature=List(MASK_FEATURE)).select([]), "pbench")
    assert none.features == bd.score_features("pbench")
    with pytest.raises(bd.BenchError, match="the table holds no rows"):
        bd.summarize("pbench", none)


def test_splits_are_named_where_several_could_be_meant() -> None:
    both = DatasetDict(val=truth(), test=truth())
    calls = [
        lambda: bd.score("pbench", both, [{"id": 0, "masks": []}]),
        lambda: bd.check("pbench", [{"id": 0, "masks": []}], both),
        lambda: bd.map_score(both, "pbench"),
    ]
    for call in calls:
        with pytest.raises(bd.BenchError, match=r"expected one split, found a DatasetDict of 2: val, test; choose one"):
            call()
    assert bd.answer_features("pbench", both) == bd.answer_features("pbench", TRUTH)


@pytest.mark.parametrize("form", ["list", "by_id", "dataset", "masks"])
def test_explain_takes_predictions_in_any_form(form: str) -> None:
    lines = [{"id": k, "masks": [LEFT if k else FULL]} for k in range(3)]
    given = {"list": lines, "by_id": {k: [LEFT] for k in range(3)}, "masks": [LEFT]}
    given |= {"dataset": bd.read_predictions("pbench", lines)}
    assert bd.explain("pbench", truth()[1], given[form]).facts["union_iou"] == 0.5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "predictions: expected a path, a Dataset, a list of dictionaries, .* found int 5"),
        ([], "expected at least one prediction, found none"),
        ([[LEFT]], "predictions: row 0: expected a dictionary of the row's fields, found list"),
        ({"id": 7, "masks": [LEFT]}, "not columns of one length .*put a single row into a list"),
        ({7: {"id": 8, "masks": []}}, r"predictions\[7\]: expected id 7 in its prediction, or none, found 8"),
    ],
)
def test_predictions_of_other_kinds_are_refused_with_advice(given: Any, words: str) -> None:
    for call in (lambda: bd.read_predictions("pbench", given), lambda: bd.score("pbench", truth(), given)):
        with pytest.raises(bd.BenchError, match=words):
            call()
