"""The script that turns pickled relations into JSON, on plain results and on hostile ones."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/convert_pvsg_relations.py"
RELATION = {"subject_id": 3, "object_id": 9, "predicate": "on", "score": 0.5, "spans": [[0, 1]]}


def run(tmp_path: Path, content: Any, *options: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "results.pickle"
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content))
    command = [sys.executable, "-I", str(SCRIPT), str(path), "--out", str(tmp_path / "out"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def written(tmp_path: Path, video: str = "v") -> Any:
    return json.loads((tmp_path / "out" / video / "relations.json").read_text())


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ({"v": [RELATION]}, ()),
        ({"v": {"relations": [RELATION]}}, ()),
        ([{"video_id": "v", "relations": [RELATION]}], ()),
        ({"video_id": "v", "relations": (RELATION,)}, ()),
        ([RELATION], ("--video", "v")),
        ({"v": [{"sub": 3, "obj": 9, "rel": "on", "prob": 0.5, "frames": [1, 1, 0]}]}, ()),
        (
            {"v": [{"a": 3, "object": 9, "relation": "on", "confidence": 0.5, "span": ((0, 1),)}]},
            ("--names", "subject=a"),
        ),
        ({"v": [RELATION | {"score": np.float64(0.5), "subject_id": np.int64(3), "spans": np.array([[0, 1]])}]}, ()),
        ({"v": [RELATION | {"spans": np.array([True, True, False])}]}, ()),
    ],
)
def test_results(tmp_path: Path, content: Any, options: tuple[str, ...]) -> None:
    ran = run(tmp_path, content, *options)
    assert (ran.returncode, ran.stdout) == (0, "1 videos, 1 relations\n"), ran.stderr
    assert written(tmp_path) == {"video_id": "v", "relations": [RELATION]}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(tmp_path: Path, protocol: int) -> None:
    content = {"v": [RELATION | {"score": np.float32(0.5), "spans": np.array([[0, 1]])}], "w": []}
    ran = run(tmp_path, pickle.dumps(content, protocol))
    assert ran.returncode == 0, ran.stderr
    assert written(tmp_path) == {"video_id": "v", "relations": [RELATION]}
    assert written(tmp_path, "w")["relations"] == []


def test_predicates_by_index(tmp_path: Path) -> None:
    (tmp_path / "pvsg.json").write_text(json.dumps({"relations": ["beside", "on"]}))
    content = {"v": [RELATION | {"predicate": 1}]}
    assert "needs --vocabulary" in run(tmp_path, content).stderr
    assert run(tmp_path, content, "--vocabulary", str(tmp_path / "pvsg.json")).returncode == 0
    assert written(tmp_path)["relations"] == [RELATION]
    ran = run(tmp_path, {"v": [RELATION | {"predicate": 2}]}, "--vocabulary", str(tmp_path / "pvsg.json"))
    assert "v, relation 0: predicate: expected a name, or an index from 0 to 1, found 2" in ran.stderr


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "out/v").mkdir(parents=True)
    (tmp_path / "out/v/tubes.json").write_text("[]")
    assert run(tmp_path, {"v": [RELATION]}).returncode == 0
    (row,) = read_predictions("pvsg", tmp_path / "out")
    assert row["pred_triplets"] == [RELATION | {"subject_id": "3", "object_id": "9"}]


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch marker'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\ngetattr\n(S'1'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.",
        b"\x80\x02U\x01xQ.",
        b"",
        b"rubbish",
        b"\x80\x04]\x94(",
    ],
)
def test_nothing_of_a_hostile_pickle_is_run(tmp_path: Path, content: bytes) -> None:
    ran = run(tmp_path, content)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "out").exists()


def test_an_object_that_acts_when_built(tmp_path: Path) -> None:
    ran = run(tmp_path, {"v": [Hostile(tmp_path / "marker")]})
    assert "which is not built" in ran.stderr
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"../v": []}, "expected a plain name"),
        ({"..": []}, "expected a plain name"),
        ({"a/b": []}, "expected a plain name"),
        ([RELATION], "--video"),
        (5, "expected {video_id"),
        ({"v": 5}, "expected a list of relations"),
        ({"v": [5]}, "v, relation 0: expected a dictionary"),
        ({"v": [{"subject_id": 1}]}, "expected object as object_id or object"),
        ({"v": [RELATION | {"score": float("nan")}]}, "expected a finite number"),
        ({"v": [RELATION | {"spans": [[2, 1]]}]}, "0 <= first <= last"),
        ({"v": [RELATION | {"spans": [[0, float("inf")]]}]}, "0 <= first <= last"),
        ({"v": [RELATION | {"spans": [0, 4]}]}, "one 0 or 1 a frame"),
        ({"v": [RELATION | {"spans": "x"}]}, "expected a list"),
        ({"v": [RELATION | {"subject_id": 1.5}]}, "expected a track's id"),
    ],
)
def test_what_cannot_be_converted_is_told_before_anything_is_written(tmp_path: Path, content: Any, told: str) -> None:
    ran = run(tmp_path, content)
    assert ran.returncode == 1
    assert told in ran.stderr
    assert not (tmp_path / "out").exists()


def test_options(tmp_path: Path) -> None:
    assert "--names: expected" in run(tmp_path, {"v": []}, "--names", "x=y").stderr
    assert run(tmp_path, {"v": []}, "--vocabulary", str(tmp_path / "absent")).returncode == 1


INDEXED = [
    {"subject_index": 0, "object_index": 1, "relation": 1, "relation_span": np.array([1.0, 1.0, 0.0, 1.0])},
    {"subject_index": 1, "object_index": 0, "relation": 0, "relation_span": np.array([0.0, 0.0, 0.0, 1.0])},
]
"""What the research code's `generate_results` returns: no scores, and places in the list of tubes."""


def put_json(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"v": {"0": 4, "1": 9}}, ()),
        ({"v": [4, 9]}, ()),
        ([4, 9], ("--video", "v")),
        ({0: 4, 1: 9}, ("--video", "v")),
        ({"v": {0: np.int64(4), 1: np.int64(9)}}, ()),
    ],
)
def test_indexed_relations_without_scores_become_ranked_tracks(tmp_path: Path, keys: Any, options: Any) -> None:
    vocabulary = put_json(tmp_path / "pvsg.json", {"relations": ["beside", "on"]})
    by_name = isinstance(keys, dict) and all(isinstance(key, str) for key in keys)
    if isinstance(keys, list) or (by_name and not isinstance(keys["v"], dict)) or "0" in keys.get("v", {}):
        mapping = put_json(tmp_path / "idx2key.json", keys)
    else:  # what JSON cannot hold: keys that are numbers, NumPy's numbers
        mapping = str(tmp_path / "idx2key.pickle")
        Path(mapping).write_bytes(pickle.dumps(keys))
    content = INDEXED if options else {"v": INDEXED}
    ran = run(tmp_path, content, "--vocabulary", vocabulary, "--idx2key", mapping, *options)
    told = "1 videos, 2 relations\n1 videos without scores: their relations are ranked by their order\n"
    assert (ran.returncode, ran.stdout) == (0, told), ran.stderr
    assert written(tmp_path)["relations"] == [
        {"subject_id": 4, "object_id": 9, "predicate": "on", "score": 2, "spans": [[0, 1], [3, 3]]},
        {"subject_id": 9, "object_id": 4, "predicate": "beside", "score": 1, "spans": [[3, 3]]},
    ]


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (INDEXED, (), "subject_index is a place in a list of tubes, from 0, and no track id"),
        (
            [item | {"score": 0.9} for item in INDEXED],
            ("--names", "subject=subject_index,object=object_index"),
            "subject_index is a place in a list of tubes",
        ),
        ([RELATION, {k: v for k, v in RELATION.items() if k != "score"}], (), "relation 1: expected score"),
        ([{k: v for k, v in RELATION.items() if k != "score"}], ("--names", "score=p"), "expected score as p"),
    ],
)
def test_indices_and_half_scored_lists_are_refused(tmp_path: Path, content: Any, options: Any, told: str) -> None:
    vocabulary = put_json(tmp_path / "pvsg.json", {"relations": ["beside", "on"]})
    ran = run(tmp_path, {"v": content}, "--vocabulary", vocabulary, *options)
    assert ran.returncode == 1
    assert told in ran.stderr
    assert not (tmp_path / "out").exists()


def test_index_that_the_mapping_lacks_is_refused(tmp_path: Path) -> None:
    mapping = put_json(tmp_path / "idx2key.json", {"v": [4]})
    ran = run(tmp_path, {"v": INDEXED}, "--idx2key", mapping)
    assert "v, relation 0: expected an index that --idx2key has (1 of them), found 1" in ran.stderr
    ran = run(tmp_path, {"w": INDEXED}, "--idx2key", mapping)
    assert "w: expected {index: track id} or [track id, ...] in --idx2key, found none" in ran.stderr


def test_track_that_masks_txt_lacks_is_refused(tmp_path: Path) -> None:
    put_json(tmp_path / "out/v/quantitive/masks.txt", "1 3 0 2 3 15\n1 9 0 2 3 15\n")
    assert run(tmp_path, {"v": [RELATION]}).returncode == 0
    ran = run(tmp_path, {"v": [RELATION | {"subject_id": 0}]})
    assert ran.returncode == 1
    assert "v, relation 0: subject_id 0: expected a track of" in ran.stderr
    assert "places in a list (see --idx2key)" in ran.stderr


def test_ranked_relations_keep_their_order_when_read(tmp_path: Path) -> None:
    put_json(tmp_path / "out/v/tubes.json", [])
    unscored = [
        {k: v for k, v in RELATION.items() if k != "score"} | {"predicate": name} for name in ("on", "in", "at")
    ]
    assert run(tmp_path, {"v": unscored}).returncode == 0
    (row,) = read_predictions("pvsg", tmp_path / "out")
    assert [(item["predicate"], item["score"]) for item in row["pred_triplets"]] == [("on", 3), ("in", 2), ("at", 1)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["query_feats.pickle"], "found only query_feats.pickle (the tubes' features); no prediction"),
        (["query_feats.pickle", "relations.pickle"], "relations.pickle (the ground truth matched to the tubes)"),
        (["query_feats.pickle", "results.pkl"], "found results.pkl, a pickle, which is never read"),
    ],
)
def test_pickles_in_the_place_of_relations_are_named(tmp_path: Path, names: list[str], told: str) -> None:
    put_json(tmp_path / "v/quantitive/masks.txt", "1 3 0 2 3 15\n")
    for name in names:
        put_json(tmp_path / "v" / name, "x")
    with pytest.raises(BenchError) as error:
        read_predictions("pvsg", tmp_path)
    assert told in str(error.value)
    assert "scripts/convert_pvsg_relations.py" in str(error.value)
