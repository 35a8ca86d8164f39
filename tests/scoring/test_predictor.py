"""A model's function for `map`, wrapped so that it may give arrays; streams, whose model runs once per row."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Features, IterableDataset, List, Value, load_dataset
from datasets.fingerprint import Hasher
from PIL import Image
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.faults import BenchWarning
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


def own_answer(row: Mapping[str, Any]) -> dict[str, Any]:
    """A prediction of PVSG with the fields of the ground truth, whose categories and predicates are class labels."""
    tubes = [
        {"tube_id": thing["object_id"], "category": thing["category"], **tube}
        for thing, tube in zip(row["objects"], row["tubes"], strict=True)
    ]
    return {"pred_tubes": tubes, "pred_triplets": [{**item, "score": 1.0} for item in row["relations"]]}


@pytest.fixture(scope="module")
def videos() -> Dataset:
    return load_dataset("pvsg", "sample", split="test")


def recall(rows: Dataset) -> float:
    return float(bd.summarize("pvsg", bd.map_score(rows, "pvsg"), draws=0).metrics["R@20/0.5"].value or 0)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("wrap", [True, False])
def test_class_labels_are_read_as_names_with_and_without_predictor_and_features(
    videos: Dataset, wrap: bool, typed: bool
) -> None:
    model = bd.predictor("pvsg", own_answer) if wrap else own_answer
    rows = videos.map(model, features=bd.answer_features("pvsg", videos) if typed else None)
    assert recall(rows) == 1.0


def test_predictor_without_triplets_in_a_row_scores_like_a_list(videos: Dataset) -> None:
    first = videos["key"][0]

    def model(row: Mapping[str, Any]) -> dict[str, Any]:
        found = own_answer(row)
        return {"pred_tubes": found["pred_tubes"]} if row["key"] == first else found

    expected = bd.score("pvsg", videos, [{"key": row["key"], **model(row)} for row in videos])
    value = bd.summarize("pvsg", expected, draws=0).metrics["R@20/0.5"].value
    assert value is not None
    assert 0 < value < 1
    assert recall(videos.map(bd.predictor("pvsg", model))) == value


def test_predictor_with_other_columns_in_a_later_row_is_refused() -> None:
    model = bd.predictor("pbench", lambda row: {"pred_masks": [LEFT]} | ({"pred_scores": [0.5]} if row["id"] else {}))
    model({"key": "level_0/0", "id": 0})
    with pytest.raises(
        bd.BenchError, match=r"level_0/1: .*columns of the rows before \(pred_masks\), found pred_masks"
    ):
        model({"key": "level_0/1", "id": 1})


def test_predictor_that_changes_ground_truth_is_refused() -> None:
    row = {"key": "level_0/7", "id": 7, "masks": [{"size": [1, 2], "counts": "11"}]}
    other = bd.predictor("pbench", lambda row: {"pred_masks": [LEFT], "masks": [LEFT]})
    with pytest.raises(
        bd.BenchError, match=r"level_0/7: predictor: .*found masks of the ground truth with other values"
    ):
        other(row)
    assert set(bd.predictor("pbench", lambda row: {**row, "pred_masks": [LEFT]})(row)) == {*row, "pred_masks"}


RLE = {"size": [3, 4], "counts": [6, 6]}


@pytest.mark.parametrize(
    ("benchmark", "given", "words"),
    [
        ("pbench", {"pred_masks": [LEFT], "pred_scores": ["0.9"]}, r"pred_scores\[0\]: expected a number, found str"),
        ("pbench", {"pred_masks": [LEFT], "pred_scores": [True]}, r"pred_scores\[0\]: expected a number, found bool"),
        ("pbench", {"pred_masks": [LEFT], "pred_centers": [[1.0]]}, r"pred_centers\[0\]: expected a list of 2"),
        ("pbench", {"pred_masks": [RLE | {"size": [3.5, 4]}]}, r"pred_masks.*size.*3\.5"),
        ("instancebench", {"pred_boxes": [["20", 1, 2, 3]]}, r"pred_boxes\[0\]\[0\]: expected a number, found str"),
        ("instancebench", {"pred_candidate_ids": [True]}, r"pred_candidate_ids\[0\]: expected text or an integer"),
        ("pvsg", {"pred_tubes": [{"tube_id": 0, "category": "adult", "frames": [0.5], "masks": [RLE]}]},
         r"frames\[0\]: expected an integer, found float 0.5"),
        ("pvsg", {"pred_triplets": [{"subject_id": 0, "object_id": 1, "predicate": "on", "score": 1,
                                     "spans": [[0.5, 3.5]]}]}, r"spans\[0\]\[0\]: expected an integer, found float"),
    ],
)  # fmt: skip
def test_predictor_value_that_files_refuse_is_refused(benchmark: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(bd.BenchError, match=f"a/7: predictor: .*{words}"):
        bd.predictor(benchmark, lambda row: given)({"key": "a/7"})


def test_predictor_ids_that_are_whole_floats_are_integers() -> None:
    found = bd.predictor("instancebench", lambda row: {"pred_candidate_ids": [1.0, 2, "x", None]})({"key": "a"})
    assert found == {"pred_candidate_ids": ["1", "2", "x", None]}


@pytest.mark.parametrize(
    "values", [LEFT * 0.8 + 0.1, LEFT * 8.0 - 4, LEFT * 7], ids=["probabilities", "logits", "labels"]
)
def test_nested_lists_of_a_dense_array_are_no_polygons(values: np.ndarray[Any, Any]) -> None:
    array = np.repeat(values, 2, axis=0)
    row = {"key": "level_0/1", "masks": [array.tolist()], "height": array.shape[0], "width": array.shape[1]}
    (found,) = bd.read_predictions("pbench", [row])
    assert found["pred_masks"] == [None]
    assert "looks like a dense array; give" in found["pred_faults"][0]["text"]


def test_evaluate_warns_of_rows_that_are_left_out() -> None:
    mask = bd.read_predictions("pbench", [{"key": "level_0/1", "masks": [LEFT]}])[0]["pred_masks"]
    metric = evaluate.load(bd.metric_path("pbench"))
    inputs = {"references": [mask] * 3, "levels": "level_0", "ids": ["a", "b", "c"]}
    with pytest.warns(BenchWarning, match=r"2 rows scored; faults: missing_prediction 1 \(for example level_0/c"):
        metric.compute(predictions=[mask, mask, None], on_fault="skip-and-report", **inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BenchWarning)
        assert metric.compute(predictions=[mask] * 3, **inputs)["macro_f1/level_0"] == 1.0
