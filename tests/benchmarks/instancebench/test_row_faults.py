"""What can be wrong with sets and answers: stop with the key, or skip, count and compare with nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
from datasets import Dataset, load_dataset

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench.truth import truth_features

from ...support.instancebench_sets import (
    Ask,
    Tces,
    Thing,
    batch_of,
    encode,
    line,
    read_lines,
    row_of,
    simple,
    truth_of,
    values,
)

MASK = encode(line((0, 50)))
BAD = {"size": [1, 100], "counts": "zz"}
SMALL = encode(line((0, 50), width=90))


def answers(*keys: str, mask: Any = MASK) -> list[dict[str, Any]]:
    return [{"expression_id": f"{key}-{k}", "mask": mask} for key in keys for k in (0, 1)]


def both(truth: Dataset, predictions: Dataset, code: str, key: str) -> bd.Result:
    """It stops with the key; told to, it goes on, counts, and is comparable to nothing."""
    with pytest.raises(bd.FaultError, match=key) as error:
        bd.score("instancebench", truth, predictions)
    assert error.value.code == code
    scores = bd.score("instancebench", truth, predictions, on_fault="skip-and-report")
    result = bd.summarize("instancebench", scores, draws=0)
    assert result.faults[code]["count"] == 1
    assert result.comparable_to is None
    return result


PREDICTIONS: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], int]] = {
    "malformed_mask": (lambda lines: lines[2].update(mask=BAD), 1),
    "size_mismatch": (lambda lines: lines[2].update(mask=SMALL), 1),
    "missing_prediction": (lambda lines: lines.pop(2), 1),
    "duplicate_prediction": (lambda lines: lines.append(dict(lines[2])), 1),
    "unknown_row": (lambda lines: lines.append({"expression_id": "b-9", "mask": None}), 2),
    "bad_box": (lambda lines: lines[2].update(box=[1, 2, -3, 4]), 1),
}


@pytest.mark.parametrize("code", PREDICTIONS)
def test_predictions(code: str, tmp_path: Path) -> None:
    break_it, left = PREDICTIONS[code]
    lines = answers("a", "b")
    break_it(lines)
    result = both(truth_of([simple("a"), simple("b")]), read_lines(lines, tmp_path), code, "b")
    assert result.dataset["rows"]["scored"] == left
    assert result.metrics["miou"].value == 1.0


@pytest.mark.parametrize("code", ["malformed_mask", "bad_box"])
def test_a_prediction_is_named_with_its_row(code: str, tmp_path: Path) -> None:
    lines = answers("a", "b")
    PREDICTIONS[code][0](lines)
    with pytest.raises(bd.FaultError, match=r"^b: prediction for b-0, ") as error:
        bd.score("instancebench", truth_of([simple("a"), simple("b")]), read_lines(lines, tmp_path))
    assert error.value.key == "b"


TRUTH: dict[str, Callable[[dict[str, Any]], Any]] = {
    "target_missing": lambda row: row.update(target=7),
    "target_empty": lambda row: row["candidates"][0].update(mask=encode(line())),
    "repeated_expression": lambda row: row["expressions"][1].update(expression_id="b-0"),
    "core_role_missing": lambda row: row["expressions"][1].update(role="extra"),
    "core_role_repeated": lambda row: row["expressions"].append({**row["expressions"][0], "expression_id": "b-2"}),
}


@pytest.mark.parametrize("code", TRUTH)
def test_rows_that_no_builder_has_looked_at(code: str, tmp_path: Path) -> None:
    rows = [row_of(simple("a")), row_of(simple("b"))]
    TRUTH[code](rows[1])
    batch = {name: [row[name] for row in rows] for name in rows[0]} | {
        "pred_masks": [[MASK] * len(row["expressions"]) for row in rows]
    }
    with pytest.raises(bd.FaultError, match="b") as error:
        bd.scorer("instancebench")(batch)
    assert error.value.code == code
    scored = bd.scorer("instancebench", on_fault="skip-and-report")(batch)
    assert scored["skipped"] == [False, True]
    assert code in scored["faults"][1]
    assert scored["areas"][1] == scored["candidate_ids"][1] == []


@pytest.mark.parametrize("value", [-1, None])
def test_target_that_is_none(value: int | None) -> None:
    row = {**row_of(simple("b")), "target": value, "pred_masks": [MASK, MASK]}
    with pytest.raises(bd.FaultError, match="b: target"):
        bd.scorer("instancebench")({name: [item] for name, item in row.items()})


TARGETS = {
    "null": (None, "candidate_without_mask", "the mask is null"),
    "malformed": (BAD, "candidate_without_mask", "the runs do not sum|counts"),
    "other size": (SMALL, "size_mismatch", "a mask of 1 x 90 where 1 x 100 was expected"),
    "sides exchanged": (
        {"size": [100, 1], "counts": MASK["counts"]},
        "size_mismatch",
        "a mask of 100 x 1 where 1 x 100 was expected; height and width are exchanged",
    ),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_target_without_valid_mask_of_the_image_size_stops_with_its_cause(kind: str) -> None:
    mask, noted, cause = TARGETS[kind]
    row = row_of(simple("b"))
    row["candidates"][0]["mask"] = mask
    batch = {name: [item] for name, item in {**row, "pred_masks": [MASK, MASK]}.items()}
    expected = f"b: target: expected a valid mask of the image's size; candidate 0: ({cause})"
    with pytest.raises(bd.FaultError, match=expected) as error:
        bd.scorer("instancebench")(batch)
    assert error.value.code == "target_missing"
    scored = bd.scorer("instancebench", on_fault="skip-and-report")(batch)
    assert (scored["skipped"], scored["faults"]) == ([True], [sorted([noted, "target_missing"])])


@pytest.mark.parametrize(
    ("mask", "code"),
    [(None, "candidate_without_mask"), (BAD, "candidate_without_mask"), (SMALL, "size_mismatch"),
     (encode(line()), "candidate_without_mask")],
    ids=["null", "malformed", "other size", "empty"],
)  # fmt: skip
def test_candidate_without_valid_mask_of_the_image_size_is_left_out_and_noted(mask: Any, code: str) -> None:
    row = row_of(simple("b"))
    whole = bd.scorer("instancebench")({name: [item] for name, item in {**row, "pred_masks": [MASK, MASK]}.items()})
    row["candidates"].insert(0, {**row["candidates"][1], "instance_id": "extra", "mask": mask})
    row["target"] += 1
    found = bd.scorer("instancebench")({name: [item] for name, item in {**row, "pred_masks": [MASK, MASK]}.items()})
    assert found["faults"] == [[code]]
    for name in ("candidate_ids", "target", "areas", "skipped"):
        assert found[name] == whole[name], name


def test_size_of_the_target_decides_where_the_image_size_is_unknown() -> None:
    row = row_of(simple("b"))
    row["candidates"][1]["mask"] = SMALL
    batch = {name: [item] for name, item in {**row, "pred_masks": [MASK, MASK]}.items()} | {"height": [None]}
    assert bd.scorer("instancebench")(batch)["faults"] == [["size_mismatch"]]


@pytest.mark.parametrize("mask", [BAD, SMALL])
def test_donor(mask: dict[str, Any]) -> None:
    row = row_of(simple("b"))
    row["expressions"][1]["donor_mask"] = mask
    with pytest.raises(bd.FaultError, match=r"b: donor_mask, mask 1"):
        bd.scorer("instancebench")({name: [item] for name, item in {**row, "pred_masks": [MASK, MASK]}.items()})


@pytest.mark.parametrize(
    "code",
    ["target_missing", "target_empty", "repeated_expression", "unknown_operation", "core_role_missing",
     "core_role_repeated"],
)  # fmt: skip
def test_what_the_builder_noted(code: str, tmp_path: Path) -> None:
    truth = truth_of([simple("a"), simple("b", faults=[code])])
    result = both(truth, read_lines(answers("a", "b"), tmp_path), code, "b: faults")
    assert result.dataset["rows"]["scored"] == 1


@pytest.mark.parametrize("code", ["candidate_without_mask", "crowd_candidate", "image_missing", "size_mismatch"])
def test_what_is_only_noted(code: str, tmp_path: Path) -> None:
    truth = truth_of([simple("a"), simple("b", faults=[code])])
    result = bd.summarize("instancebench", bd.score("instancebench", truth, read_lines(answers("a", "b"), tmp_path)))
    assert result.faults == {code: {"count": 1, "examples": ["b"]}}
    assert result.dataset["rows"]["scored"] == 2


def test_the_same_expression_in_two_rows(tmp_path: Path) -> None:
    truth = truth_of([simple("a"), simple("b", asks=simple("a").asks)])
    with pytest.raises(bd.BenchError, match="two sets have an expression with the id 'a-0'"):
        bd.score("instancebench", truth, read_lines(answers("a"), tmp_path))


def test_a_row_stands_twice(tmp_path: Path) -> None:
    with pytest.raises(bd.BenchError, match="two truth rows bear one tces_id"):
        bd.score("instancebench", truth_of([simple("a"), simple("a")]), read_lines(answers("a"), tmp_path))


@pytest.mark.parametrize(
    "box", [[1, 2, 3], [1, 2, 3, float("nan")], [1, 2, -1, 4], "box", {"x": 1}, [1, 2, 3, "4"], [1, 2, 3, 10**400], 5]
)
def test_boxes_in_a_map(box: Any) -> None:
    batch = {**batch_of([simple("b")], {}), "pred_boxes": [[None, box]]}
    del batch["pred_masks"]
    with pytest.raises(bd.FaultError, match=r"b: predictions: pred_boxes, box 1") as error:
        bd.scorer("instancebench")(batch)
    assert error.value.code == "bad_box"


@pytest.mark.parametrize("name", ["pred_masks", "pred_boxes", "pred_candidate_ids"])
def test_answers_that_are_not_aligned(name: str) -> None:
    batch = {**batch_of([simple("b")], {}), name: [[None]]}
    words = f"b: predictions: {name}: expected 2 items, one per expression, found 1"
    with pytest.raises(bd.FaultError, match=words) as error:
        bd.scorer("instancebench")(batch)
    assert error.value.code == "unaligned_prediction"
    scores = bd.scorer("instancebench", on_fault="skip-and-report")(batch)
    assert scores["skipped"] == [True]
    assert scores["faults"] == [["unaligned_prediction"]]


@pytest.mark.parametrize("name", ["pred_masks", "pred_boxes", "pred_candidate_ids"])
def test_a_row_without_answers(name: str) -> None:
    batch = batch_of([simple("a"), simple("b")], {})
    for other in ("pred_masks", "pred_answered"):
        del batch[other]
    batch[name] = [[None, None], None]
    with pytest.raises(bd.FaultError, match="b: no predictions for this row") as error:
        bd.scorer("instancebench")(batch)
    assert error.value.code == "missing_prediction"
    assert bd.scorer("instancebench", missing="empty")(batch)["skipped"] == [False, False]


def test_columns_that_are_absent() -> None:
    for name in ("key", "target", "candidates", "expressions", "pred_masks"):
        batch = batch_of([simple("a")], {})
        del batch[name]
        with pytest.raises(bd.BenchError, match=r"instancebench rows: expected the columns"):
            bd.scorer("instancebench")(batch)


def test_evaluate_names_the_position() -> None:
    good = row_of(simple("a"))
    metric = bd.metric_path("instancebench")
    for predictions, references, text in (
        ([[MASK, BAD]], [good], "row 0: predictions, mask 1"),
        ([[MASK]], [good], r"row 0: predictions: expected a list of masks, one per expression \(2\), found 1"),
        ([MASK], [good], "row 0: predictions: expected a list of masks"),
        ([[MASK, MASK]], [{"target": 0}], "row 0: references: expected a row"),
        ([[MASK, MASK]], [None], "row 0: references: expected a row"),
        ([[MASK, MASK]], [{**good, "candidates": None}], "row 0: references"),
        ([[MASK, MASK]], [{**good, "expressions": "abc"}], "row 0: references"),
        ([[MASK, MASK]], [{**good, "candidates": [1]}], "row 0: references"),
        ([[MASK, MASK]], [good, good], "expected as many as references"),
    ):
        with pytest.raises(bd.BenchError, match=text):
            evaluate.load(metric).compute(predictions=predictions, references=references)
    with pytest.raises(bd.FaultError, match="mine: pred_masks"):
        evaluate.load(metric).compute(predictions=[[MASK, SMALL]], references=[good], ids=["mine"])
    odd = {**copy.deepcopy(good), "target": np.int64(0)}
    assert evaluate.load(metric).compute(predictions=[(MASK, None)], references=[odd])["miou"] == 0.5


def test_a_model_that_never_answers(tmp_path: Path) -> None:
    truth = truth_of([simple("a"), simple("b")])
    null = bd.score("instancebench", truth, read_lines(answers("a", "b", mask=None), tmp_path))
    silent = bd.score("instancebench", truth, read_lines(answers("a", "b"), tmp_path).select([]), missing="empty")
    for scores in (null, silent):
        found = values(bd.summarize("instancebench", scores, draws=10))
        wrong = {"miou": 0, "oiou": 0, "p@0.5": 0, "all_target_id": 0, "worst_path_iou": 0, "unresolved@0.7": 1,
                 "identity_error@0.7": 1, "same_class_switch@0.7": 0}  # fmt: skip
        assert {key: found[key] for key in wrong} == wrong
        assert np.isnan([found["retention/variant"], found["conditional_mask_iou"], found["nci/variant"]]).all()
    assert bd.summarize("instancebench", silent, draws=0).predictions["missing"] == 4
    with pytest.raises(bd.FaultError, match="a: predictions: no prediction for the expression a-0") as error:
        bd.score("instancebench", truth, read_lines(answers("b"), tmp_path))
    assert error.value.code == "missing_prediction"


def test_nothing_is_left(tmp_path: Path) -> None:
    truth = truth_of([simple("a", faults=["target_missing"])])
    scores = bd.score("instancebench", truth, read_lines(answers("a"), tmp_path), on_fault="skip-and-report")
    with pytest.raises(bd.BenchError, match=r"none of the 1 rows was scored.*target_missing: 1"):
        bd.summarize("instancebench", scores)


def comparable(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str | None:
    """Of a source of `n` sets that the published one has three of."""
    from bench_datasets.benchmark import BENCHMARKS

    monkeypatch.setitem(BENCHMARKS["instancebench"].source.rows, "test", 3)
    lines = []
    for tces in [simple(key) for key in "abcde"[:n]]:
        row = row_of(tces)
        masks = [{"instance_id": c["instance_id"], "segmentation": c["mask"]} for c in row["candidates"]]
        asks = [{k: x[k] for k in ("expression_id", "role", "text", "operation")} for x in row["expressions"]]
        fields = {k: row[k] for k in ("image_id", "source", "category", "height", "width")}
        lines.append({**fields, "tces_id": row["key"], "image": None, "target": "a", "candidates": masks,
                      "expressions": asks})  # fmt: skip
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / f"{options.get('split', 'test')}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    truth = load_dataset("instancebench", data_dir=str(folder), split=options.get("split", "test"))
    rows = truth.select(range(options.get("take", n)))
    given = answers(*rows["key"])[: options.get("lines")]
    scores = bd.score("instancebench", rows, read_lines(given, tmp_path), missing=options.get("missing", "error"))
    return bd.summarize("instancebench", scores, draws=0).comparable_to


def test_comparable_only_when_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[tuple[int, dict[str, Any], str | None]] = [
        (3, {}, "InstanceBench tables"),
        (3, {"lines": 4, "missing": "empty"}, "InstanceBench tables"),  # the paper counts missing answers as wrong
        (2, {}, None),
        (4, {}, None),
        (4, {"take": 3}, None),
        (3, {"take": 2}, None),
        (3, {"split": "validation"}, None),
    ]
    for k, (n, options, expected) in enumerate(ways):
        folder = tmp_path / str(k)
        folder.mkdir()
        assert comparable(n, folder, monkeypatch, **options) == expected, (n, options)


def test_edges_of_the_candidates(tmp_path: Path) -> None:
    """One candidate, two that are the same, a target that is a crowd, and a prediction of everything."""
    everything = line((0, 100))
    twins = [Thing("a", line((0, 50))), Thing("b", line((0, 50)))]
    crowd = [Thing("a", line((0, 50)), crowd=True), Thing("b", line((50, 100)))]
    cases = {
        "one": (simple("x", things=[Thing("a", line((0, 50)))]), line((0, 50)), (float("nan"), 0)),
        "twins": (simple("x", things=twins), line((0, 50)), (0.0, 1)),
        "crowd": (simple("x", things=crowd), line((0, 50)), (1.0, 1)),
        "union": (simple("x"), everything, (0.0, 1)),
    }  # fmt: skip
    for name, (tces, mask, (value, n)) in cases.items():
        given = read_lines(answers("x", mask=encode(mask)), tmp_path)
        metrics = bd.summarize("instancebench", bd.score("instancebench", truth_of([tces]), given), draws=0).metrics
        assert (metrics["all_target_id"].value, metrics["all_target_id"].n) == (pytest.approx(value, nan_ok=True), n), (
            name
        )
        assert metrics["miou"].value == (0.5 if name == "union" else 1.0)
        if name == "union":
            assert metrics["unresolved@0.7"].value == 1.0
            assert metrics["sensitivity/0.1/0/correct_id_poor_mask"].value == 1.0  # a tie goes to the first


def test_a_track_that_is_absent(tmp_path: Path) -> None:
    scores = bd.score("instancebench", truth_of([simple("a")]), read_lines(answers("a"), tmp_path))
    metrics = bd.summarize("instancebench", scores, draws=10).metrics
    for key in ("retention/paraphrase/matched", "nci/paraphrase", "nci/variant", "delta_nci", "track/paraphrase/miou",
                "exclusion_drop", "tm@0.7/exclusion/dense", "miou/source/openimages", "spearman/source"):  # fmt: skip
        assert (str(metrics[key].value), metrics[key].n, metrics[key].ci95) == ("nan", 0, None), key
    assert metrics["retention/variant"].value == 1.0


def test_derived_terms_need_not_be_given() -> None:
    """Family and track follow from role and operation."""
    asks = [*simple("a").asks, Ask("a-2", "extra", "negation_or_exclusion"), Ask("a-3", "paraphrase", "ordinal")]
    whole = batch_of([simple("a", asks=asks)], dict.fromkeys((ask.name for ask in asks), line((0, 50))))
    bare = copy.deepcopy(whole)
    for item in bare["expressions"][0]:
        del item["family"], item["track"]
    assert repr(bd.scorer("instancebench")(whole)) == repr(bd.scorer("instancebench")(bare))
    assert truth_features(False)["expressions"].feature["track"].names[3] == "exclusion"


def test_no_sound_candidate_in_any_row_stops_with_the_row(tmp_path: Path) -> None:
    bare = Tces("b", [], simple("b").asks, target=-1, faults=["target_missing"])
    predictions = read_lines(answers("b"), tmp_path)
    with pytest.raises(bd.FaultError, match=r"^b: .*\[target_missing\]"):
        bd.score("instancebench", truth_of([bare]), predictions)
    scores = bd.score("instancebench", truth_of([bare]), predictions, on_fault="skip-and-report")
    assert (scores["key"][:], scores["skipped"][:], scores["faults"][:]) == (["b"], [True], [["target_missing"]])
    # The row is judged alike in a part of its own and beside a sound row.
    both_rows = bd.score(
        "instancebench",
        truth_of([simple("a"), bare]),
        read_lines(answers("a", "b"), tmp_path),
        on_fault="skip-and-report",
    )
    assert both_rows["skipped"][:] == [False, True]
    assert both_rows[1]["row_sha256"] == scores[0]["row_sha256"]


def test_a_fault_of_ground_truth_counts_once_whatever_the_runs_and_conditions(tmp_path: Path) -> None:
    crowded = simple("a")
    crowded.faults.append("crowd_candidate")
    lines = [
        {**line, "run": run, "condition": condition}
        for run in "012"
        for condition in ("original", "category_only")
        for line in answers("a", "b")
    ]
    scores = bd.score("instancebench", truth_of([crowded, simple("b")]), read_lines(lines, tmp_path))
    assert len(scores) == 12
    assert sum(codes == ["crowd_candidate"] for codes in scores["faults"]) == 6
    result = bd.summarize("instancebench", scores, draws=0)
    assert result.faults == {"crowd_candidate": {"count": 1, "examples": ["a"]}}
