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

from bench_datasets.predictions import read_predictions

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/convert_pvsg_relations.py"
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
