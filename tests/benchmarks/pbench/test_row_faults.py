"""What is wrong with a row stops the scoring with its key, or is left out, counted and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, IterableDataset

import bench_datasets as bd
from bench_datasets.masks import MASK_TYPE

from ...support.dense_pbench import Row
from ...support.pbench_rows import JOINED, TRUTH, encode, joined, line, predictions_of, same, truth_of, values

A, B = line((0, 10)), line((50, 70))
BROKEN = {"size": [1, 100], "counts": "d0n0bQ"}
ROWS = [
    Row(0, "level_0", [A], [A]),
    Row(1, "level_0", [A, B], [A]),
    Row(2, "level_0", [B], []),
    Row(3, "level_0", [], [A]),
]


def outcome(truth: Dataset, predictions: Dataset, code: str, key: str, protocol: str = "released") -> bd.Result:
    """It stops with this code and key; asked to go on, it leaves exactly this row out."""
    with pytest.raises(bd.FaultError) as stopped:
        bd.score("pbench", truth, predictions, protocol)
    assert (stopped.value.code, stopped.value.key) == (code, key)
    assert key in str(stopped.value)
    scores = bd.score("pbench", truth, predictions, protocol, on_fault="skip-and-report")
    assert [row["key"] for row in scores if row["skipped"]] == [key]
    assert [row["faults"] for row in scores if row["skipped"]] == [[code]]
    result = bd.summarize("pbench", scores, draws=0)
    assert result.faults[code]["count"] == 1
    assert key in result.faults[code]["examples"]
    assert result.dataset["rows"]["scored"] == len(truth) - 1
    assert result.comparable_to is None
    kept = [k for k, name in enumerate(scores["key"]) if name != key]
    assert scores.select(kept)["skipped"][:] == [False] * len(kept)
    return result


def test_no_prediction(tmp_path: Path) -> None:
    predictions = predictions_of([ROWS[0], *ROWS[2:]], tmp_path)
    result = outcome(truth_of(ROWS), predictions, "missing_prediction", "level_0/1")
    assert values(result)["macro_f1/level_0"] == 0.5
    scores = bd.score("pbench", truth_of(ROWS), predictions, missing="empty")
    counted = bd.summarize("pbench", scores, draws=0)
    assert values(counted)["macro_f1/level_0"] == pytest.approx(1 / 3)
    assert counted.predictions["missing"] == 1
    assert counted.settings["missing"] == "empty"
    assert "1 row without a prediction: counted as empty predictions" in str(counted)


def test_two_predictions(tmp_path: Path) -> None:
    predictions = predictions_of([*ROWS, ROWS[1]], tmp_path)
    outcome(truth_of(ROWS), predictions, "duplicate_prediction", "level_0/1")


def test_a_prediction_for_no_row(tmp_path: Path) -> None:
    predictions = predictions_of([*ROWS, Row(9, "level_0", [], [A])], tmp_path)
    with pytest.raises(bd.FaultError, match="level_0/9"):
        bd.score("pbench", truth_of(ROWS), predictions)
    result = bd.summarize(
        "pbench", bd.score("pbench", truth_of(ROWS), predictions, on_fault="skip-and-report"), draws=0
    )
    assert result.faults["unknown_row"] == {"count": 1, "examples": ["level_0/9"]}
    assert result.dataset["rows"]["scored"] == 4
    assert result.comparable_to is None


def test_malformed_prediction(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    predictions_of(ROWS, tmp_path)
    text = path.read_text().replace(encode(A)["counts"], BROKEN["counts"], 1)
    path.write_text(text)
    outcome(truth_of(ROWS), bd.read_predictions("pbench", path), "malformed_mask", "level_0/0")


def test_malformed_prediction_in_a_dataset_of_ones_own(tmp_path: Path) -> None:
    predictions = predictions_of(ROWS, tmp_path)
    rows = predictions.to_list()
    rows[1]["pred_masks"] = [encode(A), BROKEN]
    outcome(truth_of(ROWS), Dataset.from_list(rows, features=predictions.features), "malformed_mask", "level_0/1")


def with_truth(masks: list[dict[str, Any]]) -> Dataset:
    rows = truth_of(ROWS).to_list()
    rows[1]["masks"] = masks
    return Dataset.from_list(rows, features=TRUTH)


def test_malformed_truth(tmp_path: Path) -> None:
    truth = with_truth([encode(A), BROKEN])
    outcome(truth, predictions_of(ROWS, tmp_path), "malformed_mask", "level_0/1")
    scores = bd.score("pbench", truth, predictions_of(ROWS, tmp_path), on_fault="skip-and-report")
    assert [row["row_sha256"] == "" for row in scores] == [False, True, False, False]


def test_truth_of_several_sizes(tmp_path: Path) -> None:
    truth = with_truth([encode(A), encode(line((0, 10), width=50))])
    outcome(truth, predictions_of(ROWS, tmp_path), "image_size_mismatch", "level_0/1")


def test_predictions_of_several_sizes_without_truth(tmp_path: Path) -> None:
    rows = [*ROWS[:3], Row(3, "level_0", [], [A, line((0, 10), width=50)])]
    predictions = predictions_of(rows, tmp_path)
    outcome(truth_of(rows), predictions, "size_mismatch", "level_0/3", "card")
    for protocol in ("released", "paper"):
        assert not any(bd.score("pbench", truth_of(rows), predictions, protocol)["skipped"])


def test_bad_scores(tmp_path: Path) -> None:
    predictions = predictions_of(ROWS, tmp_path, scores={1: [0.5, 0.5]})
    outcome(truth_of(ROWS), predictions, "bad_score", "level_0/1")


def test_through_map() -> None:
    """The same faults where predictions stand beside the truth."""
    table = joined(ROWS)
    rows = table.to_list()
    rows[1]["pred_masks"] = [encode(A), BROKEN]
    rows[2]["pred_masks"] = None
    beside = Dataset.from_list(rows, features=JOINED)
    with pytest.raises(bd.FaultError, match=r"level_0/1.*mask 1"):
        bd.map_score(beside, "pbench")
    with pytest.raises(bd.FaultError, match=r"level_0/2.*missing_prediction"):
        bd.map_score(beside.select([0, 2, 3]), "pbench")
    scores = bd.map_score(beside, "pbench", on_fault="skip-and-report")
    assert list(scores["skipped"]) == [False, True, True, False]
    assert [list(codes) for codes in scores["faults"]] == [[], ["malformed_mask"], ["missing_prediction"], []]
    empty = bd.map_score(beside, "pbench", on_fault="skip-and-report", missing="empty")
    assert list(empty["skipped"]) == [False, True, False, False]
    with pytest.raises((bd.FaultError, RuntimeError), match="level_0/1"):
        bd.map_score(beside, "pbench", num_proc=2)


def test_repeated_ids_are_refused_with_advice(tmp_path: Path) -> None:
    rows = [*ROWS, Row(1, "level_0", [B], [B])]
    with pytest.raises(bd.BenchError, match=r"level_0/1.*load_dataset"):
        bd.score("pbench", truth_of(rows), predictions_of(ROWS, tmp_path))
    with pytest.raises(bd.BenchError, match=r"level_0/1.*load_dataset"):
        bd.summarize("pbench", bd.map_score(joined(rows), "pbench"))


def test_one_id_on_two_levels_is_two_rows(tmp_path: Path) -> None:
    rows = [Row(1, "level_0", [A], [A]), Row(1, "dense", [B], [A])]
    found = values(bd.summarize("pbench", bd.score("pbench", truth_of(rows), predictions_of(rows, tmp_path)), draws=0))
    assert (found["macro_f1/level_0"], found["macro_f1/dense"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"missing": "zero"}, "error, empty"),
        ({"on_fault": "ignore"}, "stop, skip-and-report"),
        ({"protocol": "official"}, "released, paper, card"),
        ({"level": "level_9"}, "level_0"),
        ({"engine": "cuda"}, "engine"),
    ],
)
def test_choices(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    truth = truth_of(ROWS).remove_columns("level") if "level" in options else truth_of(ROWS)
    with pytest.raises(bd.BenchError, match=words):
        bd.score("pbench", truth, predictions_of(ROWS, tmp_path), **options)


def test_columns_that_are_absent(tmp_path: Path) -> None:
    with pytest.raises(bd.BenchError, match="pred_masks"):
        bd.map_score(truth_of(ROWS), "pbench")
    with pytest.raises(bd.BenchError, match="masks"):
        bd.map_score(joined(ROWS).remove_columns("masks"), "pbench")
    with pytest.raises(bd.BenchError, match="id"):
        bd.score("pbench", truth_of(ROWS).remove_columns("id"), predictions_of(ROWS, tmp_path))
    with pytest.raises(bd.BenchError, match="score table"):
        bd.summarize("pbench", truth_of(ROWS))
    with pytest.raises(bd.BenchError, match="no rows"):
        bd.summarize("pbench", bd.map_score(joined(ROWS), "pbench").select([]))
    with pytest.raises(bd.BenchError, match="pbench"):
        bd.score("nobench", truth_of(ROWS), predictions_of(ROWS, tmp_path))


def test_mixed_protocols_are_not_summed_up() -> None:
    from datasets import concatenate_datasets

    mixed = concatenate_datasets(
        [bd.map_score(joined(ROWS[:2]), "pbench"), bd.map_score(joined(ROWS[2:]), "pbench", "card")]
    )
    with pytest.raises(bd.BenchError, match="card@1, released@1"):
        bd.summarize("pbench", mixed)


def test_null_lists_of_truth_are_rows_without_truth() -> None:
    rows = joined(ROWS[:1]).to_list()
    rows[0]["masks"] = None
    scores = bd.map_score(Dataset.from_list(rows, features=JOINED), "pbench")
    assert scores["true_count"][:] == [0]


def test_a_hidden_mask_behind_a_null_row_is_not_read() -> None:
    """Arrow may hold items under a null list; they belong to no row."""
    table = joined(ROWS[:3]).with_format("arrow")[:]
    masks = pa.array([encode(A), BROKEN, encode(B)], MASK_TYPE)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), masks, mask=pa.array([False, True, False]))
    table = table.set_column(table.column_names.index("pred_masks"), "pred_masks", lists)
    scores = bd.scorer("pbench", missing="empty")(table)
    assert scores["raw_count"].to_pylist() == [1, 0, 1]
    assert np.sum(scores["skipped"].to_pylist()) == 0


@pytest.mark.parametrize("names", [("key",), ("id",), ("id", "split")])
def test_predictions_may_be_a_dataset_of_ones_own(tmp_path: Path, names: tuple[str, ...]) -> None:
    rows = [
        {
            "key": f"{row.level}/{row.id}",
            "id": row.id,
            "split": row.level,
            "pred_masks": list(map(encode, row.predicted)),
        }
        for row in ROWS
    ]
    own = Dataset.from_list([{name: row[name] for name in (*names, "pred_masks")} for row in rows])
    found = bd.summarize("pbench", bd.score("pbench", truth_of(ROWS), own), draws=0)
    read = bd.summarize("pbench", bd.score("pbench", truth_of(ROWS), predictions_of(ROWS, tmp_path)), draws=0)
    assert same(values(found), values(read))
    assert found.predictions == read.predictions


def test_rows_in_any_format() -> None:
    """Streams that do not know their columns, and arrays in place of lists."""
    plain = bd.map_score(joined(ROWS), "pbench")
    stream = IterableDataset.from_generator(lambda: iter(joined(ROWS).to_list()))
    scored = list(bd.map_score(stream, "pbench"))
    assert set(scored[0]) == set(plain.column_names)
    assert scored == plain.to_list()
    arrays = joined(ROWS).with_format("numpy")
    options = {"batched": True, "remove_columns": arrays.column_names, "features": bd.score_features("pbench")}
    assert arrays.map(bd.scorer("pbench"), **options).with_format(None)[:] == plain[:]
    assert bd.map_score(arrays, "pbench")[:] == plain[:]


def test_rows_without_a_name_or_a_level() -> None:
    columns = {"id": [1], "level": ["level_0"], "masks": [[encode(A)]], "pred_masks": [[encode(A)]]}
    for wrong, words in (({"id": [None]}, "id"), ({"level": [True]}, "level"), ({"level": [6]}, "level")):
        with pytest.raises(bd.BenchError, match=words):
            bd.scorer("pbench")({**columns, **wrong})
