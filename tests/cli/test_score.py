from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import read_scores
from bench_datasets.scoring.provenance import provenance_of

# Values that the data's authors worked out by hand with the released scorer.
RELEASED = {
    "macro_f1/level_0": 0.2666667, "macro_f1/level_1": 0.4333333, "macro_f1/level_2": 0.1,
    "macro_f1/level_3": 0.4333333, "macro_f1/level_4": 0.0, "macro_f1/dense": 0.6555556, "average": 0.3148148,
    "mask_redundancy_rate/level_3": 1 / 4, "mask_redundancy_rate/dense": 6 / 36,
}  # fmt: skip
CARD = {
    "accuracy/level_0": 2 / 3, "accuracy/level_1": 2 / 3, "accuracy/level_2": 1.0, "accuracy/level_3": 2 / 3,
    "accuracy/level_4": 0.0, "accuracy/dense": 2 / 3, "accuracy": 8 / 14,
}  # fmt: skip


def values(content: dict[str, Any]) -> dict[str, float]:
    return {key: metric["value"] for key, metric in content["metrics"].items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Two results, but for the time."""
    return {**one, "created": ""} == {**other, "created": ""}


@pytest.mark.parametrize(("protocol", "expected"), [("released", RELEASED), ("card", CARD)])
def test_known_values(run: Callable[..., Any], mini: list[object], protocol: str, expected: dict[str, float]) -> None:
    done = run("score", "pbench", *mini, "--protocol", protocol, "--json")
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    found = values(content)
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-7)
    assert content["dataset"]["rows"] == {"scored": 17, "expected": 17}
    assert content["protocol"]["comparable_to"] is None
    assert done.stderr == ""


@pytest.mark.parametrize("level", ["level_0", "level_3", "dense"])
@pytest.mark.parametrize("stream", [False, True])
def test_one_level(run: Callable[..., Any], mini: list[object], level: str, stream: bool) -> None:
    # The predictions are for all levels; those for others are no fault.
    done = run("score", "pbench", *mini, "--split", level, "--json", *(["--stream"] if stream else []))
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    assert values(content)[f"macro_f1/{level}"] == pytest.approx(RELEASED[f"macro_f1/{level}"], abs=1e-7)
    assert {key.partition("/")[2] for key in content["metrics"]} == {level}
    assert content["dataset"]["rows"] == {"scored": 3, "expected": 17}
    assert content["faults"] == {}


def test_terminal_says_what_it_is(run: Callable[..., Any], mini: list[object]) -> None:
    done = run("score", "pbench", *mini, "--by", "level")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "pbench, protocol released (version 1)"
    assert lines[1].startswith("average 31.48 [")
    assert lines[2] == "17 of 17 rows scored"
    assert lines[3].startswith("not comparable to published numbers: ")
    assert "by level" in lines
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("columns", [60, 80, 100, 160, 240])
def test_fits_the_width(
    run: Callable[..., Any], mini: list[object], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run("score", "pbench", *mini)
    rows = [line for line in done.stdout.splitlines() if line.startswith(("macro_f1", "giou", " ", "─"))]
    assert rows
    assert max(map(len, rows)) <= columns
    if columns >= 80:
        assert any(line.startswith("mask_redundancy_rate ") for line in done.stdout.splitlines())


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_score_legend_wraps_within_its_own_column(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    place = samples.pbench_sample_predictions("careful")
    done = run("score", "pbench", "--data", "sample", "--predictions", place, "--draws", 0)
    lines = done.stdout.splitlines()
    start, end = (
        next(i for i, line in enumerate(lines) if re.match(text, line)) for text in (r"n {2,}number", "Not shown")
    )
    legend = lines[start:end]
    indent = len("mask_redundancy_rate/<level>") + 2
    assert max(map(len, legend)) <= columns
    assert all(line[indent - 2 : indent] == "  " and line[indent] != " " for line in legend)
    words = " ".join(line[indent:] for line in legend)
    assert "further predictions with IoU of at least 0.5 to the same mask" in words


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
def test_score_legend_explains_n(run: Callable[..., Any], benchmark: str) -> None:
    place = getattr(samples, f"{benchmark}_sample_predictions")("careful")
    done = run("score", benchmark, "--data", "sample", "--predictions", place, "--draws", 0)
    assert done.exit_code == 0, done.stderr
    assert any(re.match(r"n {2,}number of rows", line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("flag", ["--every", "--all"])
def test_score_prints_the_main_table_and_names_the_rest(run: Callable[..., Any], flag: str) -> None:
    """The default output is short and explains its keys; nothing is left out without a word."""
    place = samples.instancebench_sample_predictions("careful")
    options = ["instancebench", "--data", "sample", "--predictions", place, "--draws", 20]
    short, whole = (run("score", *options, *more).stdout.splitlines() for more in ([], [flag]))
    assert len(short) < 50 < len(whole)
    keys = [line.split()[0] for line in short if "]" in line and not line.startswith("miou 85")]
    assert keys[0] == "miou"
    assert "effect/ordinal-extremal" not in " ".join(short)
    assert any(line.startswith("effect/ordinal-extremal") for line in whole)
    for key in keys[:-1]:
        pattern = re.sub(r"@[\d.]+", "@<t>", key)
        assert any(line.startswith(f"{pattern} ") for line in short if "]" not in line), key
    titles = ["by source", "by operation", "by source/operation"]
    [first] = [i for i, line in enumerate(short) if line.startswith("Not shown: ")]
    hidden = " ".join(line.strip() for line in short[first:])
    assert all(title in hidden for title in titles)
    assert set(titles) <= set(whole)
    asked = run("score", *options, "--by", "source").stdout.splitlines()
    assert "by source" in asked
    assert "by source, " not in " ".join(line.strip() for line in asked).partition("Not shown: ")[2]


def test_files_keep_everything(run: Callable[..., Any], mini: list[object], tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    done = run("score", "pbench", *mini, "--out", folder)
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["result.json", "scores.parquet"]
    saved = Result.load(folder)
    scores = read_scores(folder)
    origin = provenance_of(scores)
    assert origin is not None
    assert origin["dataset"]["expected"] == 17
    assert same(bd.summarize("pbench", scores, draws=50).to_dict(), saved.to_dict())
    assert saved.predictions["rows"] == 17


def test_same_bytes_again_and_other_files_stay(run: Callable[..., Any], mini: list[object], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "result.json").write_text("of another run")
    assert run("score", "pbench", *mini, "--out", tmp_path).exit_code == 0
    first = (tmp_path / "scores.parquet").read_bytes()
    assert run("score", "pbench", *mini, "--out", tmp_path, "--stream").exit_code == 0
    assert (tmp_path / "scores.parquet").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "result.json", "scores.parquet"]
    assert json.loads((tmp_path / "result.json").read_text())["benchmark"] == "pbench"


def test_nothing_is_written_unasked(
    run: Callable[..., Any], mini: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("score", "pbench", *mini).exit_code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extra", [[], ["--limit", "2"], ["--limit", "1", "--by", "level"], ["--split", "dense"]])
def test_stream_and_workers_change_nothing(run: Callable[..., Any], mini: list[object], extra: list[str]) -> None:
    plain, streamed, shared_out = (
        run("score", "pbench", *mini, "--json", *extra, *more) for more in ([], ["--stream"], ["--num-proc", "2"])
    )
    assert plain.exit_code == streamed.exit_code == shared_out.exit_code == 0, plain.stderr + streamed.stderr
    assert same(json.loads(plain.stdout), json.loads(streamed.stdout))
    assert same(json.loads(plain.stdout), json.loads(shared_out.stdout))


def test_limit_takes_the_first_rows(run: Callable[..., Any], mini: list[object], tmp_path: Path, shared: Path) -> None:
    done = run("score", "pbench", *mini, "--limit", 4, "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "4 of 17 rows scored (partial run)" in done.stdout
    rows = [
        f"{level}/{row}"
        for level in ("level_0", "level_1")
        for row in pq.read_table(shared / f"data/pbench_mini/data/{level}-00000-of-00001.parquet")["id"].to_pylist()
    ]
    assert read_scores(tmp_path)["key"] == sorted(rows[:4])
    assert Result.load(tmp_path).faults == {}


def test_limit_by_takes_some_of_each(run: Callable[..., Any], mini: list[object], tmp_path: Path) -> None:
    done = run("score", "pbench", *mini, "--limit", 1, "--by", "level", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    scores = read_scores(tmp_path)
    assert sorted(scores["level"]) == ["dense", "level_0", "level_1", "level_2", "level_3", "level_4"]
    result = Result.load(tmp_path)
    assert result.partial is True
    assert result.comparable_to is None
    assert {part.value for part in result.slices if part.by == "level"} == set(scores["level"])


def test_limit_by_a_column_of_the_truth(run: Callable[..., Any], mini: list[object]) -> None:
    done = run("score", "pbench", *mini, "--limit", 1, "--by", "count", "--json")
    assert done.exit_code == 0, done.stderr
    whole = json.loads(run("score", "pbench", *mini, "--json").stdout)
    content = json.loads(done.stdout)
    assert 1 < content["dataset"]["rows"]["scored"] < 17
    assert {part["value"] for part in content["slices"]} == {part["value"] for part in whole["slices"]}


def rewrite(source: Path, target: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    target.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))
    return target


@pytest.fixture
def answers(shared: Path) -> Path:
    return shared / "data" / "predictions_a" / "pbench.jsonl"


def test_part_of_the_predictions(run: Callable[..., Any], shared: Path, answers: Path, tmp_path: Path) -> None:
    data = ["--data", shared / "data" / "pbench_mini", "--draws", 0, "--json"]
    some = rewrite(answers, tmp_path / "some.jsonl", lambda lines: lines[:3])
    assert run("score", "pbench", *data, "--predictions", some, "--limit", 3).exit_code == 0
    done = run("score", "pbench", *data, "--predictions", some)
    assert done.exit_code == 1
    assert "[missing_prediction]" in done.stderr
    done = run("score", "pbench", *data, "--predictions", some, "--missing", "empty")
    assert json.loads(done.stdout)["predictions"]["missing"] == 14


@pytest.mark.parametrize("extra", [["--limit", "2"], ["--split", "level_0"], []])
def test_unknown_rows_are_never_passed_over(
    run: Callable[..., Any], shared: Path, answers: Path, tmp_path: Path, extra: list[str]
) -> None:
    odd = rewrite(answers, tmp_path / "odd.jsonl", lambda lines: [*lines, {"id": 987, "masks": []}])
    command = ["score", "pbench", "--data", shared / "data" / "pbench_mini", "--predictions", odd, "--draws", 0, *extra]
    done = run(*command)
    assert done.exit_code == 1
    assert "987" in done.stderr
    assert "[unknown_row]" in done.stderr
    done = run(*command, "--on-fault", "skip-and-report", "--json")
    assert json.loads(done.stdout)["faults"] == {"unknown_row": {"count": 1, "examples": ["987"]}}
    assert json.loads(done.stdout)["protocol"]["comparable_to"] is None


def test_a_limit_keeps_doubles_and_order(run: Callable[..., Any], shared: Path, answers: Path, tmp_path: Path) -> None:
    data = ["--data", shared / "data" / "pbench_mini", "--draws", 0, "--json", "--limit", 1, "--by", "level"]
    twice = rewrite(answers, tmp_path / "twice.jsonl", lambda lines: [*lines, lines[0]])
    done = run("score", "pbench", *data, "--predictions", twice)
    assert done.exit_code == 1
    assert "[duplicate_prediction]" in done.stderr
    twice = rewrite(answers, tmp_path / "twice.jsonl", lambda lines: [*lines, lines[1]])  # of a row that is not taken
    assert run("score", "pbench", *data, "--predictions", twice).exit_code == 0
    # One file a level, in row order, without names.
    by_id = {row["id"]: row for row in map(json.loads, answers.read_text().splitlines())}
    folder = tmp_path / "levels"
    folder.mkdir()
    for file in sorted((shared / "data" / "pbench_mini" / "data").iterdir()):
        rows = [by_id[row] for row in pq.read_table(file)["id"].to_pylist()]
        nameless = [{key: value for key, value in row.items() if key != "id"} for row in rows]
        name = file.name.split("-")[0]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nameless))
    named, ordered = (run("score", "pbench", *data, "--predictions", path) for path in (answers, folder))
    assert ordered.exit_code == 0, ordered.stderr
    assert same(json.loads(named.stdout), json.loads(ordered.stdout))


def test_an_ambiguous_id_stays_ambiguous(run: Callable[..., Any], shared: Path, answers: Path, tmp_path: Path) -> None:
    # The same files as two levels: every id of level_0 then stands in level_1, too.
    source = shared / "data" / "pbench_mini" / "data" / "level_0-00000-of-00001.parquet"
    for level in ("level_0", "level_1"):
        shutil.copyfile(source, tmp_path / f"{level}.parquet")
    ids = set(pq.read_table(source)["id"].to_pylist())
    some = rewrite(answers, tmp_path / "p.jsonl", lambda lines: [line for line in lines if line["id"] in ids])
    data = ["--data", tmp_path, "--predictions", some, "--draws", 0]
    done = run("score", "pbench", *data, "--limit", 2)
    assert done.exit_code == 1
    assert "the id stands in levels level_0, level_1" in done.stderr
    # Of one level alone, the same ids are plain.
    done = run("score", "pbench", *data, "--split", "level_1", "--json")
    assert done.exit_code == 0, done.stderr
    found = values(json.loads(done.stdout))["macro_f1/level_1"]
    assert found == pytest.approx(RELEASED["macro_f1/level_0"], abs=1e-7)


def test_sample_by_name(run: Callable[..., Any]) -> None:
    from bench_datasets.samples import pbench_sample_predictions

    file = pbench_sample_predictions("careful")
    for extra, rows in (([], 35), (["--split", "dense"], 4), (["--limit", "1", "--by", "level"], 6)):
        done = run("score", "pbench", "--data", "sample", "--predictions", file, "--draws", 0, "--json", *extra)
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["dataset"]["rows"] == {"scored": rows, "expected": 35}
        assert json.loads(done.stdout)["dataset"]["source"] == "sample"


@pytest.mark.skipif(os.name != "posix", reason="folders without write permission are POSIX's")
def test_out_that_cannot_be_written(run: Callable[..., Any], mini: list[object], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run("score", "pbench", *mini, "--out", file)
    assert done.exit_code == 1
    assert done.stderr.startswith("error: --out: expected a folder, found the file")
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        done = run("score", "pbench", *mini, "--out", closed)
        assert done.exit_code == 1
        assert "Permission denied" in done.stderr


def test_score_folder_in_use_is_refused_before_reading(run: Callable[..., Any], tmp_path: Path) -> None:
    code = (
        "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire();"
        "print('held', flush=True); sys.stdin.read()"
    )
    (tmp_path / "run" / ".scoring").mkdir(parents=True)
    command = [sys.executable, "-c", code, str(tmp_path / "run" / ".scoring" / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = run("score", "pbench", "--predictions", tmp_path / "absent.jsonl", "--out", tmp_path / "run")
        holder.communicate("")
    assert done.exit_code == 1
    assert "a scoring into this folder is being done already" in done.stderr
