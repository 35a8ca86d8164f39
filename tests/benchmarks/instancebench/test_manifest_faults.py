"""What is wrong with a manifest: faults that a row bears, and mistakes that end the reading, with their place."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench.images import relative
from bench_datasets.benchmarks.instancebench.manifest import read_lines
from bench_datasets.data.source import Access
from bench_datasets.faults import FAULTS, BenchError

from ...support.manifests import candidate, expression, load, runs, tces, write
from ...support.small_sources import jpeg

SHORT_PART = [[0, 0, 5, 0, 5, 1, 0, 1], [7, 0, 9, 1]]
"""A rectangle of five pixels, and a part of two points."""

CORE = [expression("t-0", "minimal"), expression("t-1", "variant")]


@pytest.mark.parametrize(
    ("fields", "faults", "target", "kept"),
    [
        ({"target": "z"}, ["target_missing"], -1, "ab"),
        ({"target": None}, ["target_missing"], -1, "ab"),
        ({"candidates": []}, ["target_missing"], -1, ""),
        ({"candidates": [candidate("a", iscrowd=1), candidate("b")]}, ["target_missing", "crowd_candidate"], -1, "ab"),
        ({"candidates": [candidate("b"), candidate("a", length=0)]}, ["target_empty"], 1, "ba"),
        ({"candidates": [candidate("b", length=0), candidate("a")]}, ["candidate_without_mask"], 0, "a"),
        ({"candidates": [candidate("b", segmentation=None), candidate("a")]}, ["candidate_without_mask"], 0, "a"),
        ({"candidates": [{"instance_id": "b"}, candidate("a")]}, ["candidate_without_mask"], 0, "a"),
        (
            {"candidates": [candidate("a", segmentation={"size": [1, 20], "counts": "\u00e9\ud800"}), candidate("b")]},
            ["target_missing", "candidate_without_mask"],
            -1,
            "b",
        ),
        (
            {"candidates": [candidate("b", segmentation=runs(0, 5, 21)), candidate("a")]},
            ["size_mismatch"],
            0,
            "a",
        ),
        (
            {"candidates": [candidate("a", segmentation=runs(0, 5, 21)), candidate("b")]},
            ["target_missing", "size_mismatch"],
            -1,
            "b",
        ),
        ({"candidates": [candidate("a"), candidate("c", iscrowd=1)]}, ["crowd_candidate"], 0, "ac"),
        (
            {"candidates": [candidate("a", segmentation=SHORT_PART), candidate("b")]},
            ["polygon_part_dropped"],
            0,
            "ab",
        ),
        (
            {"candidates": [candidate("a", segmentation=SHORT_PART[1:]), candidate("b")]},
            ["target_missing", "candidate_without_mask"],
            -1,
            "b",
        ),
        (
            {
                "height": 20,
                "width": 10,
                "candidates": [
                    candidate("a", segmentation=[[0, 0, 15, 0, 15, 8, 0, 8]]),
                    candidate("b", segmentation=[[0, 0, 5, 0, 5, 5]]),
                ],
            },
            ["sides_exchanged"],
            0,
            "ab",
        ),
        ({"expressions": [CORE[0], CORE[1], expression("t-1", "extra")]}, ["repeated_expression"], 0, "ab"),
        ({"expressions": [CORE[0], expression("t-1", "variant", "magic")]}, ["unknown_operation"], 0, "ab"),
        ({"expressions": CORE[:1]}, ["core_role_missing"], 0, "ab"),
        ({"expressions": []}, ["core_role_missing"], 0, "ab"),
        ({"expressions": [*CORE, expression("t-2", "minimal")]}, ["core_role_repeated"], 0, "ab"),
    ],
)
def test_faults_of_a_row(
    fields: dict[str, Any], faults: list[str], target: int, kept: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="bench_datasets"):
        data = load(write(tmp_path / "s", {"test.jsonl": [tces("t", **fields), tces("sound")]}))
    assert data["faults"][:] == [faults, []]
    assert data[0]["target"] == target
    assert "".join(c["instance_id"] for c in data[0]["candidates"]) == kept
    assert all(code in FAULTS and code in caplog.text for code in faults)
    assert "e.g. t (" in caplog.text
    assert "sound" not in caplog.text


def test_an_unknown_operation_leaves_the_track_open(tmp_path: Path) -> None:
    made = [expression("t-0", "minimal", "x"), expression("t-1", "variant", "x"), expression("t-2", "paraphrase", "x")]
    row = load(write(tmp_path / "s", {"test.jsonl": [tces("t", expressions=made)]}))[0]
    assert [(e["operation"], e["family"]) for e in row["expressions"]] == [(None, None)] * 3
    assert [e["track"] for e in row["expressions"]] == [0, None, 1]
    assert [e["tags"] for e in row["expressions"]] == [["operation_found:'x'"]] * 3


def test_scoring_names_the_word_that_is_no_operation(tmp_path: Path) -> None:
    made = [expression("t-0", "minimal"), expression("t-1", "variant", "magic")]
    data = load(write(tmp_path / "s", {"test.jsonl": [tces("t", expressions=made)]}))
    (tmp_path / "p.jsonl").write_text('{"expression_id": "t-0", "mask": null}\n{"expression_id": "t-1", "mask": null}')
    answers = bd.read_predictions("instancebench", tmp_path / "p.jsonl")
    said = r"t: faults: operation: expected one of ordinal, .*negation_or_exclusion; found at t-1 'magic'; mend"
    with pytest.raises(bd.FaultError, match=said):
        bd.score("instancebench", data, answers)
    raw = {name: [value] for name, value in data[0].items() if name != "faults"}
    raw["expressions"][0][1] |= {"operation": "magic", "tags": []}
    with pytest.raises(bd.FaultError, match=r"t: operation: expected one of .* found at t-1 'magic'; mend"):
        bd.scorer("instancebench")({**raw, "pred_masks": [[None, None]]})


def test_an_expression_id_is_looked_for_in_the_whole_split(tmp_path: Path) -> None:
    other = tces("u", expressions=[expression("t-0", "minimal"), expression("u-1", "variant")])
    root = write(tmp_path / "s", {"test-0.jsonl": [tces("t")], "test-1.jsonl": [tces("v"), other]})
    for kwargs in ({}, {"num_proc": 2, "download_mode": "force_redownload"}, {"streaming": True}):
        found = {row["key"]: row["faults"] for row in load(root, **kwargs)}
        assert found == {"t": ["repeated_expression"], "v": [], "u": ["repeated_expression"]}


def test_a_repeated_set(tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test-0.jsonl": [tces("t"), tces("u")], "test-1.jsonl": [tces("v"), "", tces("t")]})
    for kwargs in ({}, {"streaming": True}):
        with pytest.raises(BenchError, match=r"test-1\.jsonl:3: field 'tces_id': .*'t'.*test-0\.jsonl:1 already"):
            load(root, **kwargs)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", r"column 2: expected one JSON object"),
        ("[1]", r"expected one JSON object, found list of 1"),
        ("[" * 100_000, r"nested too deeply"),
        ('{"tces_id": ' + "9" * 5000 + "}", r"expected one JSON object"),
        *(
            (json.dumps({k: v for k, v in tces("t").items() if k != name}), rf"field '{name}': .*no such field")
            for name in ("tces_id", "image_id", "source", "category", "height", "width", "target", "candidates")
        ),
        (tces(""), r"field 'tces_id': .*an empty text"),
        (tces("\ud800"), r"field 'tces_id': .*surrogate"),
        (tces("t", tces_id=10**30), r"field 'tces_id': .*beyond 64 bits"),
        (tces("t", source=3), r"field 'source': expected a text, found int 3"),
        (tces("t", height=0), r"field 'height': expected a positive number of pixels, found int 0"),
        (tces("t", width=2**31), r"field 'width': expected a positive number"),
        (tces("t", width=True), r"field 'width': expected a positive number"),
        (tces("t", target=[1]), r"field 'target': expected an id"),
        (tces("t", candidates={}), r"field 'candidates': expected a list, found dict of 0"),
        (tces("t", candidates=[3]), r"field 'candidates\[0\]': expected a JSON object, found int 3"),
        (tces("t", candidates=[{}]), r"field 'candidates\[0\]\.instance_id'"),
        (tces("t", candidates=[candidate("a", iscrowd=2)]), r"field 'candidates\[0\]\.iscrowd': expected 0 or 1"),
        (tces("t", expressions=[*CORE, {}]), r"field 'expressions\[2\]\.role'"),
        (tces("t", expressions=[expression("t-0", "main")]), r"field 'expressions\[0\]\.role': .*found str 'main'"),
        (tces("t", expressions=[{**CORE[0], "text": None}]), r"field 'expressions\[0\]\.text': expected a text"),
        (tces("t", expressions=[{**CORE[0], "tags": "x"}]), r"field 'expressions\[0\]\.tags': expected a list"),
        (tces("t", expressions=[{**CORE[0], "tags": ["x", 1]}]), r"field 'expressions\[0\]\.tags\[1\]'"),
    ],
)
def test_a_malformed_line(line: Any, words: str, tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test.jsonl": [tces("sound"), line]})
    for kwargs in ({}, {"streaming": True}):
        with pytest.raises(BenchError, match=rf"test\.jsonl:2: .*{words}"):
            list(load(root, **kwargs))


def test_two_candidates_of_one_id(tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test.jsonl": [tces("t", candidates=[candidate("a"), candidate("a")])]})
    with pytest.raises(BenchError, match=r"test\.jsonl:1: field 'candidates': .*'a' twice in 't'"):
        load(root)


def test_numbers_are_ids_too(tmp_path: Path) -> None:
    made = tces("t", tces_id=7, image_id=8, target=9, candidates=[candidate("a"), candidate("x", instance_id=9)])
    row = load(write(tmp_path / "s", {"test.jsonl": [made]}))[0]
    assert (row["key"], row["image_id"], row["target"], row["candidates"][1]["instance_id"]) == ("7", "8", 1, "9")


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test.jsonl": [tces("t")]})
    (root / "test.jsonl").write_bytes(b'{"tces_id": "\xff"}\n')
    with pytest.raises(BenchError, match=r"test\.jsonl:1: expected UTF-8 text, found byte 0xff"):
        load(root)


def test_lines_are_split_wherever_the_pieces_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_datasets.benchmarks.instancebench import manifest

    file = tmp_path / "f.jsonl"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\n  \ntwo\nthree and more")
    for size in (3, 4, 7, 1 << 20):
        monkeypatch.setattr(manifest, "_CHUNK", size)
        found = [(number, line.strip()) for number, line in read_lines(str(file), Access())]
        assert found == [(1, b"one"), (4, b"two"), (5, b"three and more")], size
    monkeypatch.setattr(manifest, "_CHUNK", 2)
    monkeypatch.setattr(manifest, "MAX_LINE", 8)
    with pytest.raises(BenchError, match=r"f\.jsonl:5: the line is longer than 8 bytes"):
        list(read_lines(str(file), Access()))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="expected one set of expressions a line, found no line"):
        load(write(tmp_path / "empty", {"test.jsonl": [""]}))
    (tmp_path / "folder" / "test.jsonl").mkdir(parents=True)
    with pytest.raises(BenchError, match="found a folder, device or pipe"):
        load(tmp_path / "folder")
    if hasattr(os, "mkfifo"):
        (tmp_path / "pipe").mkdir()
        os.mkfifo(tmp_path / "pipe" / "test.jsonl")
        with pytest.raises(BenchError, match="found a folder, device or pipe"):
            load(tmp_path / "pipe")


def test_images(tmp_path: Path) -> None:
    def line(name: str, image: str | None, **size: int) -> dict[str, Any]:
        side = {"height": 10, "width": 10, **size}
        mask = {"size": list(side.values()), "counts": [0, 5, side["height"] * side["width"] - 5]}
        return tces(name, image=image, candidates=[candidate("a", segmentation=mask)], **side)

    lines = [
        line("here", "images/1.jpg"),
        line("again", "./images/1.jpg"),
        line("turned", "images/1.jpg", width=12),
        line("none", None),
        line("absent", "images/2.jpg"),
        line("broken", "images/3.jpg"),
        line("folder", "images"),
    ]
    root = write(tmp_path / "s", {"test.jsonl": lines})
    (root / "images").mkdir()
    (root / "images" / "1.jpg").write_bytes(jpeg())
    (root / "images" / "3.jpg").write_bytes(b"no image")
    data = load(root, images=True)
    missing = ["image_missing"]
    expected = [[], [], ["image_size_mismatch"], [], missing, missing, missing]
    assert data["faults"][:] == expected
    assert [value is not None for value in data["image_sha256"]] == [True, True, True, False, False, False, False]
    assert [value is not None for value in data["image"]] == [value is not None for value in data["image_sha256"]]
    assert load(root)["faults"][:] == [[]] * 7
    assert [row["faults"] for row in load(root, images=True, streaming=True)] == expected


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "../1.jpg", "images/../../1.jpg", "..", "", " ", "~/1.jpg", "C:/1.jpg", "a\\..\\1.jpg"),
        *("https://host/1.jpg", "file:///1.jpg", "zip://1.jpg::a.zip", "x::y", "a\n.jpg"),
    ],
)
def test_image_paths_stay_in_the_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_bytes(jpeg())
    root = write(tmp_path / "s", {"test.jsonl": [tces("t", image=path)]})
    with pytest.raises(BenchError, match=r"test\.jsonl:1: field 'image': expected a path below the manifest's folder"):
        load(root, images=True)
    with pytest.raises(BenchError, match="below the manifest's folder"):
        relative(path, "here:1")
