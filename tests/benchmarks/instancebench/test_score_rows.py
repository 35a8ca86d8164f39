"""Score rows: their hash from its definition, their columns, and what `explain` says of them."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import load_dataset
from pycocotools import mask as coco

import bench_datasets as bd

from ...support.instancebench_sets import Ask, Thing, batch_of, encode, line, row_of, simple, truth_of


def runs_of(mask: dict[str, Any]) -> list[int]:
    """Column by column, background first."""
    pixels = coco.decode({**mask, "counts": mask["counts"].encode()}).ravel(order="F")
    change = np.flatnonzero(np.diff(pixels)) + 1
    bounds = np.concatenate([[0], change, [len(pixels)]])
    return [*([0] if pixels[0] else []), *np.diff(bounds).tolist()]


def digest(row: dict[str, Any]) -> str:
    """SHA-256 of the labels as canonical JSON and of every candidate's runs."""
    expressions = [
        {name: item[name] for name in ("expression_id", "text", "role", "operation", "family", "track", "tags")}
        for item in row["expressions"]
    ]
    labels = {
        "tces_id": row["key"], "image_id": row["image_id"], "source": row["source"], "category": row["category"],
        "target": row["target"], "expressions": expressions,
        "candidates": [{"instance_id": c["instance_id"], "iscrowd": c["iscrowd"]} for c in row["candidates"]],
    }  # fmt: skip
    data = json.dumps(labels, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    for candidate in row["candidates"]:
        if candidate["mask"] is not None:
            runs = runs_of(candidate["mask"])
            data += struct.pack(f"<{3 + len(runs)}I", *candidate["mask"]["size"], len(runs), *runs)
    return hashlib.sha256(data).hexdigest()


def odd_set() -> Any:
    """Words beyond ASCII, tags, a donor, a crowd, and a target that begins at the first pixel."""
    things = [Thing("a", line((0, 50))), Thing("ü", line((10, 20), (30, 99))), Thing("9", line((0, 100)), crowd=True)]
    asks = [
        Ask("k-0", "minimal", "ordinal", 'die "zweite" Tür \\ 二', ("spatial_relation",), line((3, 4))),
        Ask("k-1", "variant", "extremal", ""),
        Ask("k-2", "extra", "negation_or_exclusion", "not it"),
    ]
    return simple("k", things=things, asks=asks, target=1)


def test_the_hash_by_its_definition(shared: Path) -> None:
    tces = odd_set()
    scored = bd.scorer("instancebench")(batch_of([tces], {}))
    assert scored["row_sha256"] == [digest(row_of(tces))]
    truth = load_dataset("instancebench", data_dir=str(shared / "data" / "instancebench_mini"), split="test")
    truth = truth.remove_columns(["image", "image_sha256"])
    fields = truth.features["expressions"].feature
    rows = []
    for row in truth:
        expressions = [
            {**x, **{name: fields[name].int2str(x[name]) for name in ("role", "operation", "family", "track")}}
            for x in row["expressions"]
        ]
        rows.append({**row, "expressions": expressions})
    predictions = bd.read_predictions("instancebench", shared / "data" / "predictions_a" / "instancebench.jsonl")
    scores = bd.score("instancebench", truth, predictions)
    expected = {row["key"]: digest(row) for row in rows}
    assert dict(zip(scores["key"], scores["row_sha256"], strict=True)) == expected
    content = hashlib.sha256("".join(f"{item}\n" for item in sorted(expected.values())).encode()).hexdigest()
    assert bd.summarize("instancebench", scores, draws=0).dataset["content_sha256"] == content


@pytest.mark.parametrize("change", ["text", "mask", "crowd", "target", "tags", "category"])
def test_what_changes_the_hash(change: str) -> None:
    before, after = odd_set(), odd_set()
    {
        "text": lambda: setattr(after.asks[0], "text", "other"),
        "mask": lambda: setattr(after.things[2], "mask", line((0, 99))),
        "crowd": lambda: setattr(after.things[0], "crowd", True),
        "target": lambda: setattr(after, "target", 0),
        "tags": lambda: setattr(after.asks[0], "tags", ()),
        "category": lambda: setattr(after, "category", "other"),
    }[change]()
    hashes = [bd.scorer("instancebench")(batch_of([tces], {}))["row_sha256"] for tces in (before, after)]
    assert hashes[0] != hashes[1]


def test_what_does_not_change_the_hash() -> None:
    tces, other = odd_set(), odd_set()
    other.asks[0].donor = line((7, 9))
    batch = batch_of([tces], {})
    merged = batch_of([tces], {})
    merged["candidates"][0][0]["mask"] = {"size": [1, 100], "counts": [0, 25, 0, 25, 50]}  # a run of zero length
    found = [bd.scorer("instancebench")(x)["row_sha256"] for x in (batch, merged, batch_of([other], {}))]
    assert found[0] == found[1] == found[2]


def test_columns() -> None:
    tces = odd_set()
    answers = {"k-0": line((10, 20)), "k-1": line((0, 60)), "k-2": None}
    row = {name: values[0] for name, values in bd.scorer("instancebench")(batch_of([tces], answers)).items()}
    expected = {
        "key": "k", "cluster": "k", "protocol": "default@1", "pixels": 100, "target": 1, "skipped": False,
        "candidate_ids": ["a", "ü"], "candidate_areas": [50, 79], "roles": ["minimal", "variant", "extra"],
        "tracks": ["minimal", "same_target", "exclusion"], "spatial": [True, False, False], "words": [5, 0, 2],
        "families": ["same_class_selection", "same_class_selection", "negation_or_exclusion"],
        "answered": [True, True, True], "masked": [True, True, False], "areas": [10, 60, 0],
        "intersections": [[10, 10], [50, 40], [0, 0]], "donor_area": [1, -1, -1], "donor_intersection": [0, 0, 0],
        "chosen": [-2, -2, -2], "core_intersection": 10,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert set(row) == set(bd.score_features("instancebench"))


def test_explain_agrees_with_the_scores() -> None:
    things = [Thing("a", line((0, 50))), Thing("b", line((50, 100)))]
    asks = [*simple("k").asks, Ask("k-2", "extra", "ordinal", "whichever")]
    tces = simple("k", things=things, asks=asks)
    masks = [line((0, 40)), line((60, 100)), line((0, 100))]
    found = bd.explain("instancebench", row_of(tces), [encode(mask) for mask in masks])
    facts = {item["expression_id"]: item for item in found.facts["expressions"]}
    assert [facts[f"k-{k}"]["assigned"] for k in range(3)] == ["a", "b", None]
    assert [facts[f"k-{k}"]["iou"] for k in range(3)] == pytest.approx([0.8, 0.0, 0.5])
    assert facts["k-0"]["score"] == pytest.approx(40 / (40 * 50) ** 0.5)
    assert facts["k-2"]["margin"] == 0.0
    assert found.facts["target"] == "a"
    for words in ("k under default: target a among 2 candidates", "IoU 0.8000, matches candidate a, right",
                  "matches candidate b, wrong", "matches no candidate (unresolved), wrong"):  # fmt: skip
        assert words in found.text
    assert found.picture.size == (100, 1)


def test_explain_takes_a_built_row_and_refuses_a_faulty_one() -> None:
    row = truth_of([simple("k")])[0]
    found = bd.explain("instancebench", row, {"pred_masks": [encode(line((0, 50))), None]})
    assert [item["iou"] for item in found.facts["expressions"]] == [1.0, 0.0]
    with pytest.raises(bd.FaultError, match="k: pred_masks, mask 1"):
        bd.explain("instancebench", row, [None, {"size": [1, 100], "counts": "zz"}])
    with pytest.raises(bd.BenchError, match="k: predictions: pred_masks: expected 2 items"):
        bd.explain("instancebench", row, [None])


def test_explain_takes_predictions_as_they_are_at_hand(tmp_path: Path) -> None:
    truth, first, second = truth_of([simple("k"), simple("l")]), encode(line((0, 40))), encode(line((60, 100)))
    lines = [{"expression_id": f"{key}-{n}", "mask": mask} for key in "lk" for n, mask in ((1, second), (0, first))]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    answers = bd.read_predictions("instancebench", tmp_path / "p.jsonl")
    own = [row for row in answers if row["expression_id"].startswith("k")]
    expected = bd.explain("instancebench", truth[0], [first, second]).text
    by_id = {row["expression_id"]: row for row in own}
    for given in (answers, own, by_id, {"k-1": second, "k-0": first}, lines[2:]):
        assert bd.explain("instancebench", truth[0], given).text == expected
    with pytest.raises(bd.FaultError, match="k-1: no prediction for this expression"):
        bd.explain("instancebench", truth[0], own[1])
    with pytest.raises(bd.FaultError, match="k-0: no prediction for this expression"):
        bd.explain("instancebench", truth[0], answers.select([0, 1, 2]))
    with pytest.raises(bd.FaultError, match="k-1: two predictions"):
        bd.explain("instancebench", truth[0], [*own, own[0]])
    with pytest.raises(bd.BenchError, match="k: expected predictions for the expressions k-0, k-1, got one for 'l-1'"):
        bd.explain("instancebench", truth[0], lines)
    with pytest.raises(bd.BenchError, match="k-0: expected a mask or a row with one, found the fields box"):
        bd.explain("instancebench", truth[0], {"k-0": {"box": None}, "k-1": None})
