"""Every entry point finds the same faults in one PVSG prediction, and gives the same numbers for a sound one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.faults import FaultError

from ...support.dense_pvsg import Video
from ...support.pvsg_rows import encode, prediction, truth_row

KEY = "R@20/0.5"


@pytest.fixture(scope="module")
def truth() -> Dataset:
    return Dataset.from_list([truth_row(_video(), "clip")])


def _video() -> Video:
    labels = np.zeros((4, 2, 6), int)
    labels[:, :, :2], labels[:, :, 3:5] = 1, 2
    tubes = [(name, {f: labels[f] == i for f in range(4)}) for i, name in ((1, "adult"), (2, "table"))]
    return Video(labels, [(1, "adult"), (2, "table")], [(1, 2, "on", [[0, 3]])], tubes, [(0, 1, "on", 0.9, [[0, 3]])])


def answer(
    tube: dict[str, Any] | None = None, triplet: dict[str, Any] | None = None, frames: Any = None
) -> dict[str, Any]:
    found = prediction(_video())
    found["tubes"] = [item | {"tube_id": str(item["tube_id"])} for item in found["tubes"]]
    found["triplets"] = [
        item | {"subject_id": str(item["subject_id"]), "object_id": str(item["object_id"])}
        for item in found["triplets"]
    ]
    if frames is not None:
        found["tubes"] = [{**item, "frames": frames, "masks": item["masks"][: len(frames)]} for item in found["tubes"]]
    found["tubes"][0] |= tube or {}
    found["triplets"][0] |= triplet or {}
    return found


def rows(truth: Dataset, given: dict[str, Any]) -> Dataset:
    return truth.map(lambda row: {f"pred_{name}": value for name, value in given.items()})


def by_map_score(truth: Dataset, given: dict[str, Any], on_fault: str) -> Any:
    return bd.map_score(rows(truth, given), "pvsg", on_fault=on_fault)


def by_scorer(truth: Dataset, given: dict[str, Any], on_fault: str) -> Any:
    batch = {**truth[:], "pred_tubes": [given["tubes"]], "pred_triplets": [given["triplets"]]}
    found = bd.scorer("pvsg", on_fault=on_fault)(batch)
    return Dataset.from_dict({name: list(values) for name, values in found.items()}, features=bd.score_features("pvsg"))


def by_stream(truth: Dataset, given: dict[str, Any], on_fault: str) -> Any:
    streamed = bd.map_score(rows(truth, given).to_iterable_dataset(), "pvsg", on_fault=on_fault)
    return Dataset.from_list(list(streamed), features=bd.score_features("pvsg"))


def by_score(truth: Dataset, given: dict[str, Any], on_fault: str) -> Any:
    predictions = bd.read_predictions("pvsg", Dataset.from_list([{"key": "clip", **given}]))
    return bd.score("pvsg", truth, predictions, on_fault=on_fault)


WAYS: dict[str, Callable[..., Any]] = {
    "map_score": by_map_score, "scorer": by_scorer, "stream": by_stream, "score": by_score,
}  # fmt: skip

FAULTY: dict[str, tuple[str, dict[str, Any]]] = {
    "span from below 0": ("bad_span", {"triplet": {"spans": [[-3, 3]]}}),
    "span reversed": ("bad_span", {"triplet": {"spans": [[3, 1]]}}),
    "span of three": ("bad_span", {"triplet": {"spans": [[0, 1, 2]]}}),
    "frame below 0": ("malformed_mask", {"tube": {"frames": [-1, 1, 2, 3]}}),
    "frame twice": ("malformed_mask", {"tube": {"frames": [0, 1, 2, 2]}}),
    "masks that are too few": ("malformed_mask", {"tube": {"frames": [0, 1, 2, 3, 4]}}),
    "tube id twice": ("duplicate_prediction", {"tube": {"tube_id": "1"}}),
    "score that is no number": ("bad_score", {"triplet": {"score": float("nan")}}),
    "mask of another size": ("size_mismatch", {"tube": {"frames": [0], "masks": [encode(np.ones((6, 2)))]}}),
}


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("way", WAYS)
def test_faulty_prediction_stops_everywhere(truth: Dataset, way: str, name: str) -> None:
    code, change = FAULTY[name]
    with pytest.raises(FaultError, match="clip") as error:
        list(WAYS[way](truth, answer(**change), "stop"))
    assert (error.value.code, error.value.key) == (code, "clip")
    (row,) = list(WAYS[way](truth, answer(**change), "skip-and-report"))
    assert (row["skipped"], row["faults"], row["relation_predicate"]) == (True, [code], [])


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_prediction_stops_evaluate(truth: Dataset, name: str) -> None:
    code, change = FAULTY[name]
    module = evaluate.load(bd.metric_path("pvsg"))
    with pytest.raises(FaultError, match="clip") as error:
        module.compute(predictions=[answer(**change)], references=[truth[0]])
    assert error.value.code == code


NOTED: dict[str, tuple[list[str], dict[str, Any], float]] = {
    "sound": ([], {}, 1),
    "spans of floats": ([], {"triplet": {"spans": [[0.0, 3.0]]}}, 1),
    "no spans": (["no_spans"], {"triplet": {"spans": []}}, 0),
    "tube with itself": (["self_triplet"], {"triplet": {"object_id": "0"}}, 0),
    "frames without a mask": (["missing_frames"], {"frames": [0, 1]}, 1),
}


@pytest.mark.parametrize("name", NOTED)
@pytest.mark.parametrize("way", WAYS)
def test_suspicious_prediction_is_noted_everywhere(truth: Dataset, way: str, name: str) -> None:
    codes, change, value = NOTED[name]
    table = WAYS[way](truth, answer(**change), "stop")
    (row,) = list(table)
    assert (row["skipped"], row["faults"]) == (False, codes)
    assert bd.summarize("pvsg", table, draws=0).metrics[KEY].value == value


def test_repeated_triplet_is_noted_and_takes_a_rank(truth: Dataset) -> None:
    given = answer()
    given["triplets"] *= 2
    for way in WAYS.values():
        (row,) = list(way(truth, given, "stop"))
        assert (row["faults"], row["triplets"], row["pair_rank"]) == (["repeated_triplet"], 2, [0, 1])


def test_self_triplet_is_expected_where_the_truth_relates_an_object_to_itself() -> None:
    row = truth_row(_video(), "clip")
    row["relations"].append({"subject_id": 1, "object_id": 1, "predicate": "on", "spans": [[0, 3]]})
    truth = Dataset.from_list([row])
    given = answer(triplet={"object_id": "0"})
    for way in WAYS.values():
        (found,) = list(way(truth, given, "stop"))
        assert found["faults"] == []
    predictions = Dataset.from_list([{"key": "clip", **given}])
    assert "self_triplet" not in {group.code for group in bd.check("pvsg", predictions, truth).warnings}


# Values of kinds that JSON, arrays and other programs give: fault code, what changes, and the number of a sound one.
KINDS: dict[str, tuple[str, dict[str, Any], float]] = {
    "score of NumPy": ("", {"triplet": {"score": np.float32(0.5)}}, 1),
    "score that is text": ("bad_score", {"triplet": {"score": "0.9"}}, 0),
    "tube id that is a float": ("", {"tube": {"tube_id": 0.0}}, 1),
    "tube id of null": ("malformed_mask", {"tube": {"tube_id": None}}, 0),
    "tube id that is a truth value": ("malformed_mask", {"tube": {"tube_id": False}}, 0),
    "subject that is a float": ("", {"triplet": {"subject_id": 0.0}}, 1),
    "category by class label": ("", {"tube": {"category": CATEGORIES.index("adult")}}, 1),
    "predicate by class label": ("", {"triplet": {"predicate": np.int64(PREDICATES.index("on"))}}, 1),
    "frames that are floats": ("", {"tube": {"frames": [0.0, 1.0, 2.0, 3.0]}}, 1),
    "frames of NumPy": ("", {"tube": {"frames": np.arange(4)}}, 1),
    "frames of null": ("malformed_mask", {"tube": {"frames": None}}, 0),
    "masks of null": ("malformed_mask", {"tube": {"masks": None}}, 0),
    "masks of NumPy": ("", {"tube": {"masks": [np.arange(12).reshape(2, 6) % 6 < 2] * 4}}, 1),
    "spans of NumPy": ("", {"triplet": {"spans": np.array([[0, 3]])}}, 1),
    "span with half a frame": ("bad_span", {"triplet": {"spans": [[0.5, 3]]}}, 0),
    "spans that are no list": ("bad_span", {"triplet": {"spans": {"a": 1}}}, 0),
}


def by_evaluate(truth: Dataset, given: dict[str, Any], on_fault: str) -> float:
    found = evaluate.load(bd.metric_path("pvsg")).compute(predictions=[given], references=[truth[0]], on_fault=on_fault)
    return float(found[KEY])


def value_of(scores: Any) -> float:
    table = scores if isinstance(scores, Dataset) else Dataset(pa.table(scores, bd.score_features("pvsg").arrow_schema))
    return float(bd.summarize("pvsg", table, draws=0).metrics[KEY].value or 0)


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_values_are_judged_alike_everywhere(truth: Dataset, name: str) -> None:
    """Rows beside the truth and `evaluate` read a prediction as a line of a file is read."""
    code, change, value = KINDS[name]
    line = answer(**change)
    row = {**truth[0], "pred_tubes": line["tubes"], "pred_triplets": line["triplets"]}
    ways: dict[str, Callable[[str], float]] = {
        "score": lambda on_fault: value_of(bd.score("pvsg", truth, [{"key": "clip", **line}], on_fault=on_fault)),
        "map_score": lambda on_fault: value_of(bd.map_score([row], "pvsg", on_fault=on_fault)),
        "scorer": lambda on_fault: value_of(
            bd.scorer("pvsg", on_fault=on_fault)({name: [item] for name, item in row.items()})
        ),
        "evaluate": lambda on_fault: by_evaluate(truth, line, on_fault),
    }
    for way, call in ways.items():
        if code:
            with pytest.raises(FaultError, match="clip") as error:
                call("stop")
            assert (error.value.code, error.value.key) == (code, "clip"), way
        else:
            assert call("stop") == value, way
        assert call("count-as-wrong") == value, way
    assert [group.code for group in bd.check("pvsg", [{"key": "clip", **line}], truth).errors] == [code] * bool(code)


def test_null_tubes_and_triplets_are_a_missing_prediction_everywhere(truth: Dataset) -> None:
    line = {"tubes": None, "triplets": None}
    row = {**truth[0], "pred_tubes": None, "pred_triplets": None}
    ways: dict[str, Callable[..., Any]] = {
        "score": lambda **how: value_of(bd.score("pvsg", truth, [{"key": "clip", **line}], **how)),
        "map_score": lambda **how: value_of(bd.map_score([row], "pvsg", **how)),
        "scorer": lambda **how: value_of(bd.scorer("pvsg", **how)({name: [item] for name, item in row.items()})),
        "evaluate": lambda **how: float(
            evaluate.load(bd.metric_path("pvsg")).compute(predictions=[line], references=[truth[0]], **how)[KEY]
        ),
    }
    for way, call in ways.items():
        with pytest.raises(FaultError, match="clip: no prediction for this video") as error:
            call()
        assert (error.value.code, error.value.key) == ("missing_prediction", "clip"), way
        assert call(on_fault="count-as-wrong") == call(missing="empty") == 0, way
    assert [group.code for group in bd.check("pvsg", [{"key": "clip", **line}], truth).errors] == ["missing_prediction"]


@pytest.mark.parametrize("name", [*FAULTY, *NOTED])
def test_check_agrees_with_score(truth: Dataset, name: str, tmp_path: Path) -> None:
    code, change = FAULTY.get(name) or ("", NOTED[name][1])
    report = bd.check("pvsg", Dataset.from_list([{"key": "clip", **answer(**change)}]), truth)
    assert [group.code for group in report.errors] == ([code] if code else [])
    if name in NOTED:
        assert set(NOTED[name][0]) <= {group.code for group in report.warnings}


@pytest.mark.parametrize("name", FAULTY)
def test_explain_of_a_read_faulty_prediction_raises_its_fault(truth: Dataset, name: str) -> None:
    code, change = FAULTY[name]
    line = {"key": "clip", **answer(**change)}
    for given in (line, bd.read_predictions("pvsg", [line])):
        with pytest.raises(FaultError) as error:
            bd.explain("pvsg", truth[0], given)
        assert (error.value.code, error.value.key) == (code, "clip")
