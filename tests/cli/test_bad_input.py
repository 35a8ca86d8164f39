"""What goes wrong ends as one line and an exit code."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_datasets.faults import BenchError
from bench_datasets.samples import pbench_sample_predictions

from ..support.processes import environment

CASES = Path(__file__).resolve().parents[2] / "../shared/data/malformed_masks.json"
MALFORMED = json.loads(CASES.read_text()) if CASES.is_file() else []


def one_line(text: str) -> bool:
    return text.startswith("error: ") and text.count("\n") == 1 and "Traceback" not in text


@pytest.fixture
def data(shared: Path) -> Path:
    return shared / "data"


DRIVER = """
import contextlib, io, json, sys
from bench_datasets.cli import main

for command in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(command)
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""
"""Runs the command line again and again; what hangs or crashes takes the process with it."""


def with_masks(data: Path, folder: Path, case: dict[str, Any]) -> tuple[Path, int]:
    """The real predictions with a case's mask in the fourth row, and that row's id."""
    counts = case.get("counts")
    if "counts_base64" in case:
        counts = base64.b64decode(case["counts_base64"]).decode("latin-1")
    mask = {"counts": counts} | ({"size": case["size"]} if case["size"] is not None else {})
    rows = [json.loads(line) for line in (data / "predictions_a" / "pbench.jsonl").read_text().splitlines()]
    rows[3] |= {"masks": [mask], "scores": [0.5]}
    file = folder / f"{case['name']}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file, rows[3]["id"]


def test_malformed_masks(data: Path, tmp_path: Path) -> None:
    made = [with_masks(data, tmp_path, case) for case in MALFORMED]
    options = ["score", "pbench", "--data", str(data / "pbench_mini"), "--draws", "0", "--predictions"]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps([[*options, str(file)] for file, _ in made]),
        capture_output=True, text=True, timeout=120, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for case, (_, row), (code, out, err) in zip(MALFORMED, made, answers, strict=True):
        if case["expect"] == "ok":
            assert code == 0, (case, err)
            continue
        assert code == 1, case
        assert one_line(err), (case, err)
        assert f"/{row}: " in err, (case, err)
        assert "[malformed_mask]" in err, (case, err)
        assert out == "", case


def test_check_lists_every_malformed_mask(run: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    bad = [case for case in MALFORMED if case["expect"] == "error" and "counts" in case and case["size"]]
    masks = [{"size": case["size"], "counts": case["counts"]} for case in bad]
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"id": 0, "masks": masks}) + "\n")
    done = run("check", "pbench", "--data", data / "pbench_mini", "--predictions", file, "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert {group["code"]: group["count"] for group in report["errors"]} == {
        "malformed_mask": len(masks),
        "missing_prediction": 16,
    }


@pytest.mark.parametrize("command", ["score", "check"])
@pytest.mark.parametrize("what", ["truncated", "empty", "folder", "absent", "no JSON", "control characters"])
def test_broken_files(run: Callable[..., Any], data: Path, tmp_path: Path, what: str, command: str) -> None:
    path = tmp_path / "p.jsonl"
    if what == "truncated":
        whole = (data / "pbench_mini" / "data" / "level_0-00000-of-00001.parquet").read_bytes()
        path = tmp_path / "p.parquet"
        path.write_bytes(whole[: len(whole) // 2])
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "folder":
        path.mkdir()
    elif what == "no JSON":
        path.write_text("id: 7\n")
    elif what == "control characters":
        path.write_text('{"id": "\\u001b[2J\\n", "masks": []}\n')
    done = run(command, "pbench", "--data", data / "pbench_mini", "--predictions", path)
    assert done.exit_code == 1
    assert "\x1b" not in done.stderr + done.stdout
    if what != "control characters":
        assert one_line(done.stderr), done.stderr
        assert path.name in done.stderr


def test_broken_truth(run: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    answers = data / "predictions_a" / "pbench.jsonl"
    whole = (data / "pbench_mini" / "data" / "level_0-00000-of-00001.parquet").read_bytes()
    (tmp_path / "level_0.parquet").write_bytes(whole[:-100])
    done = run("score", "pbench", "--data", tmp_path, "--predictions", answers)
    assert done.exit_code == 1
    assert one_line(done.stderr)
    assert "cut off" in done.stderr
    done = run("info", "pbench", "--data", tmp_path / "nowhere")
    assert done.exit_code == 1
    assert one_line(done.stderr)
    assert "--data" in done.stderr


def test_other_benchmark(run: Callable[..., Any], data: Path) -> None:
    options = ["--data", data / "pbench_mini", "--predictions", data / "predictions_a" / "instancebench.jsonl"]
    done = run("score", "pbench", *options)
    assert done.exit_code == 1
    assert one_line(done.stderr)
    assert "instancebench" in done.stderr
    done = run("check", "pbench", *options, "--json")
    assert done.exit_code == 1
    assert [group["code"] for group in json.loads(done.stdout)["errors"]] == ["wrong_benchmark"]


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["score", "pbenhc"], "'pbench'"),
        (["info", "PBench"], "'pbench'"),
        (["score", "pbench", "--protocol", "relased"], "'released'"),
        (["score", "pbench", "--split", "level0"], "'level_0'"),
        (["score", "pbench", "--split", "level_0[:2]"], "--limit"),
        (["score", "pbench", "--missing", "emtpy"], "'empty'"),
        (["score", "pbench", "--on-fault", "skip"], "skip-and-report"),
        (["score", "pbench", "--format", "json"], "'jsonl'"),
        (["score", "pbench", "--by", "leve"], "'level'"),
        (["score", "pbench", "--limit", "1", "--data", "sample", "--by", "expresion"], "'expression'"),
        (["score", "pbench", "--limit", "0"], "--limit"),
        (["score", "pbench", "--draws", "-1"], "--draws"),
        (["score", "pbench", "--data", ""], "--data"),
        (["check", "pbench", "--split", "dens"], "'dense'"),
        (["scor"], "score"),
        (["score", "pbench", "--protocl", "card"], "--protocol"),
    ],
)
def test_usage(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, args: list[str], named: str) -> None:
    from bench_datasets.samples import pbench_sample_predictions

    monkeypatch.setenv("COLUMNS", "400")
    needed = ["--predictions", pbench_sample_predictions("careful")] if args[0] in ("score", "check") else []
    done = run(*args, *needed)
    assert done.exit_code == 2, done.stderr
    assert named in done.stderr
    assert done.stdout == ""


def test_any_other_error_is_one_line(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_datasets.predictions.read as ours

    def fails(error: BaseException) -> Callable[..., Any]:
        def read(*args: object, **options: object) -> None:
            raise error

        return read

    command = ["score", "pbench", "--data", "sample", "--predictions", "x"]
    outer = RuntimeError("while generating")
    outer.__cause__ = BenchError("level_0/7: odd")
    for error, code, text in (
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(28, "No space left on device", "/there"), 1, "error: /there: No space left on device\n"),
        (ValueError("two\nlines"), 1, "error: ValueError: two lines (--debug shows where)\n"),
        (outer, 1, "error: level_0/7: odd\n"),
    ):
        monkeypatch.setattr(ours, "read_for_scoring", fails(error))
        done = run(*command)
        assert (done.exit_code, done.stderr) == (code, text)
    monkeypatch.setattr(ours, "read_for_scoring", fails(ValueError("odd")))
    for where in (["--debug", *command], [*command, "--debug"]):
        assert isinstance(run(*where).exception, ValueError)


@pytest.mark.parametrize("command", ["score", "check", "explain"])
def test_an_option_given_twice(run: Callable[..., Any], command: str) -> None:
    one, other = pbench_sample_predictions("careful"), pbench_sample_predictions("hasty")
    done = run(command, "pbench", "--data", "sample", "--predictions", one, f"--predictions={other}")
    assert done.exit_code == 2
    words = " ".join(done.stderr.replace("│", " ").split())
    assert "'--predictions': expected once, given 2 times" in words
    assert done.stdout == ""


def test_options_that_may_be_given_twice(run: Callable[..., Any]) -> None:
    options = ["--data", "sample", "--predictions", pbench_sample_predictions("careful"), "--draws", 0]
    done = run("score", "pbench", *options, "--by", "count", "--by", "level", "--json", "--json")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize("command", ["score", "check"])
def test_absent_predictions_of_the_sample(run: Callable[..., Any], benchmark: str, command: str) -> None:
    done = run(command, benchmark, "--data", "sample", "--predictions", "absent.jsonl")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    named = done.stderr.split("are in ")[1].strip()
    assert run(command, benchmark, "--data", "sample", "--predictions", named).exit_code == 0
    done = run(command, benchmark, "--data", "elsewhere", "--predictions", "absent.jsonl")
    assert "are in" not in done.stderr


def test_messages_name_options(run: Callable[..., Any], tmp_path: Path) -> None:
    lines = Path(pbench_sample_predictions("careful")).read_text().splitlines(keepends=True)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "out.jsonl").write_text("".join(lines[:20]))
    options = ["--data", "sample", "--predictions", tmp_path / "some"]
    done = run("score", "pbench", *options)
    assert "--missing empty" in done.stderr
    done = run("check", "pbench", *options)
    assert "--missing empty" in " ".join(done.stdout.split())
    assert done.stdout.count("write a line with no masks where the model") == 1
    (tmp_path / "some" / "a.npz").touch()
    assert "say which with --format jsonl" in run("score", "pbench", *options).stderr
    done = run("score", "instancebench", "--data", "sample", "--predictions", tmp_path / "some" / "out.jsonl")
    assert "`score pbench` and `check pbench` take them" in done.stderr
    (tmp_path / "pictures").mkdir()
    done = run("info", "instancebench", "--data", tmp_path / "pictures")
    assert re.search(r"[.!?] On the command line: --data", done.stderr)


def test_an_earlier_run_of_other_inputs(run: Callable[..., Any], tmp_path: Path) -> None:
    def score(model: str, *more: str) -> str:
        options = ["--data", "sample", "--predictions", pbench_sample_predictions(model), "--draws", 0]
        done = run("score", "pbench", *options, "--out", tmp_path / "run", *more)
        assert done.exit_code == 0, done.stderr
        return "".join(line for line in done.stderr.splitlines() if "earlier" in line)

    assert score("careful") == ""
    assert score("careful") == ""
    assert "an earlier run (pbench, released, made " in score("hasty")
    assert "of another protocol is overwritten" in score("hasty", "--protocol", "card")
    assert "of another protocol and predictions is overwritten" in score("careful")
