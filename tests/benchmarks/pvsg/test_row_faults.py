"""What is wrong with a row: who is named, what stops, what is noted, and that nothing goes in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.benchmarks.pvsg.schema import PREDICTION_COLUMNS
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.scoring.options import ScoreOptions

from ...support.dense_pvsg import Video
from ...support.pvsg_rows import batch, encode, prediction, summed_up, truth_row


@pytest.fixture
def video() -> Video:
    labels = np.zeros((4, 2, 6), int)
    labels[:, :, :2], labels[:, :, 3:5] = 1, 2
    tubes = [(name, {f: labels[f] == i for f in range(4)}) for i, name in ((1, "adult"), (2, "table"))]
    return Video(labels, [(1, "adult"), (2, "table")], [(1, 2, "on", [[0, 3]])], tubes, [(0, 1, "on", 0.9, [[0, 3]])])


def scored(video: Video, answer: Any, **options: Any) -> dict[str, Any]:
    row: dict[str, Any] = BENCHMARK.score_table(
        batch([truth_row(video, "clip")], [answer]), ScoreOptions("official", **options)
    ).to_pylist()[0]
    return row


def changed(video: Video, place: str, **fields: Any) -> dict[str, Any]:
    answer = prediction(video)
    answer[place][0] |= fields
    return answer


WRONG = {
    "counts": ("malformed_mask", "tubes", {"frames": [0], "masks": [{"size": [2, 6], "counts": "0"}]}),
    "null mask": ("malformed_mask", "tubes", {"frames": [0], "masks": [None]}),
    "too few masks": ("malformed_mask", "tubes", {"frames": [0, 1], "masks": [encode(np.ones((2, 6)))]}),
    "frame twice": ("malformed_mask", "tubes", {"frames": [1, 1], "masks": [encode(np.ones((2, 6)))] * 2}),
    "frame as text": ("malformed_mask", "tubes", {"frames": ["one"], "masks": [encode(np.ones((2, 6)))]}),
    "size": ("size_mismatch", "tubes", {"frames": [0], "masks": [encode(np.ones((6, 2)))]}),
    "id": ("duplicate_prediction", "tubes", {"tube_id": 1}),
    "score": ("bad_score", "triplets", {"score": float("nan")}),
    "no score": ("bad_score", "triplets", {"score": None}),
    "reversed span": ("bad_span", "triplets", {"spans": [[3, 1]]}),
    "half a span": ("bad_span", "triplets", {"spans": [[3]]}),
    "span from below 0": ("bad_span", "triplets", {"spans": [[-3, 2]]}),
    "span past all frames": ("bad_span", "triplets", {"spans": [[0, 2**31]]}),
    "frame below 0": ("malformed_mask", "tubes", {"frames": [-1], "masks": [encode(np.ones((2, 6)))]}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_stops_names_the_video(video: Video, name: str) -> None:
    code, place, fields = WRONG[name]
    answer = changed(video, place, **fields)
    with pytest.raises(FaultError, match="clip") as error:
        scored(video, answer)
    assert (error.value.code, error.value.key) == (code, "clip")
    row = scored(video, answer, on_fault="skip-and-report")
    assert (row["faults"], row["skipped"]) == ([code], True)
    assert row["relation_predicate"] == []
    assert len(row["row_sha256"]) == 64


NOTED = {
    "unknown_category": ("tubes", {"category": "adlut"}),
    "unknown_tube": ("triplets", {"object_id": 77}),
    "tube_without_masks": ("tubes", {"frames": [], "masks": []}),
    "unknown_predicate": ("triplets", {"predicate": "onto"}),
}


@pytest.mark.parametrize("code", NOTED)
def test_what_is_noted_cannot_hit(video: Video, code: str) -> None:
    place, fields = NOTED[code]
    answer = changed(video, place, **fields)
    row = scored(video, answer)
    assert (row["faults"], row["skipped"], row["triplets"]) == ([code], False, 1)
    table = BENCHMARK.score_table(batch([truth_row(video)], [answer]), ScoreOptions("official"))
    found, _ = summed_up(table)
    assert (found["R@20/0.5"].value, found["R@20/0.5"].n) == (0, 1)


def test_ids_may_be_words_or_numbers(video: Video) -> None:
    answer = prediction(video)
    answer["triplets"][0] |= {"subject_id": "0", "object_id": "1"}
    assert scored(video, answer)["pair_frames"] == [4]


def test_a_missing_prediction(video: Video) -> None:
    with pytest.raises(FaultError, match='missing="empty"') as error:
        scored(video, None)
    assert error.value.code == "missing_prediction"
    row = scored(video, None, missing="empty")
    assert (row["skipped"], row["triplets"], row["tube_area"]) == (False, 0, [])
    assert scored(video, {"tubes": [], "triplets": []})["skipped"] is False


def test_faults_of_the_truth(video: Video) -> None:
    row = truth_row(video, "clip")
    row["tubes"][1]["masks"][2] = {"size": [2, 6], "counts": "zz"}
    columns = batch([row], [prediction(video)])
    with pytest.raises(FaultError, match=r"clip: tubes \(ground truth\), tube 1, frame 2") as error:
        BENCHMARK.score_table(columns, ScoreOptions("official"))
    assert error.value.code == "malformed_mask"
    found = BENCHMARK.score_table(columns, ScoreOptions("official", on_fault="skip-and-report")).to_pylist()[0]
    assert (found["skipped"], found["row_sha256"]) == (True, "")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("objects", [], "expected one an object"),
        ("relations", [{"subject_id": 1, "object_id": 2, "predicate": "onto", "spans": []}], "predicate of the truth"),
        ("frames_present", 10**9, "expected frames from 0"),
    ],
)
def test_truth_that_is_none(video: Video, name: str, value: Any, message: str) -> None:
    row = truth_row(video, "clip") | {name: value}
    with pytest.raises(BenchError, match=f"clip.*{message}"):
        BENCHMARK.score_table(batch([row], [prediction(video)]), ScoreOptions("official"))


def test_absent_columns(video: Video) -> None:
    with pytest.raises(BenchError, match="pred_triplets"):
        BENCHMARK.score_table(
            {"key": ["v"], "objects": [[]], "tubes": [[]], "relations": [[]]}, ScoreOptions("official")
        )


def test_an_unknown_oracle() -> None:
    with pytest.raises(BenchError, match="oracle: expected one of tubes, relations"):
        ScoreOptions("official", oracle="objects")


def test_the_table_is_as_its_features_say(video: Video) -> None:
    for options in (ScoreOptions("official"), ScoreOptions("volume", oracle="tubes")):
        table = BENCHMARK.score_table(batch([truth_row(video)], [prediction(video)]), options)
        assert table.schema.equals(BENCHMARK.score_features().arrow_schema.remove_metadata())
    empty = BENCHMARK.score_table(
        pa.table(batch([truth_row(video)], [prediction(video)])).slice(0, 0), ScoreOptions("official")
    )
    assert len(empty) == 0


def test_predictions_for_other_videos(video: Video) -> None:
    truth = Dataset.from_list([truth_row(video, "clip")])
    answers = [{"key": key, **{f"pred_{k}": v for k, v in prediction(video).items()}} for key in ("clip", "other")]
    predictions = bd.read_predictions("pvsg", Dataset.from_list(answers))
    assert set(PREDICTION_COLUMNS) <= set(predictions.column_names)
    with pytest.raises(FaultError, match="other"):
        bd.score("pvsg", truth, predictions)
    result = bd.summarize("pvsg", bd.score("pvsg", truth, predictions, on_fault="skip-and-report"), draws=0)
    assert result.metrics["R@20/0.5"].value == 1
    assert list(result.faults) == ["unknown_row"]
