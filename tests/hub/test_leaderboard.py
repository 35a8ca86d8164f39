"""Leaderboards: what may not be compared stands apart, and what anybody wrote is shown and no more."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS
from bench_datasets.cli import app
from bench_datasets.faults import BenchError
from bench_datasets.hub import runs as hub_runs
from bench_datasets.hub.commits import commit
from bench_datasets.hub.leaderboard import Board, Group, group, leaderboard
from bench_datasets.hub.leaderboard_view import as_csv, as_html, as_json, grid
from bench_datasets.hub.results import publish_results
from bench_datasets.hub.runs import Run
from bench_datasets.results.result import Metric, Result

Runs = Callable[..., Path]


@pytest.fixture
def result(runs: Runs) -> Result:
    return Result.load(runs())


def valued(result: Result, value: float, *, name: str = "", model: str = "acme/net", **fields: Any) -> Run:
    """A run whose headline number is another one."""
    metrics = {**result.metrics, "average": Metric(value, 30, (value - 0.1, value + 0.1))}
    if math.isnan(value):
        metrics["average"] = Metric(value, 0)
    return Run(model, name, replace(result, **{"metrics": metrics, **fields}), "somewhere")


def order(table: Group) -> list[tuple[int | None, str]]:
    return [(entry.place, entry.run.name) for entry in table.entries]


def test_order(result: Result) -> None:
    values = {"a": 0.25, "b": math.nan, "c": 0.75, "d": 0.5, "e": 0.75, "f": -0.5}
    (table,) = group(valued(result, value, name=name) for name, value in values.items())
    assert order(table) == [(1, "c"), (1, "e"), (3, "d"), (4, "a"), (5, "f"), (None, "b")]
    lower = {"average": Metric(0.25, 30, None, False)}
    worse = {"average": Metric(0.75, 30, None, False)}
    (table,) = group([valued(result, 0, name="w", metrics=worse), valued(result, 0, name="l", metrics=lower)])
    assert order(table) == [(1, "l"), (2, "w")]
    (table,) = group([valued(result, 0, metrics={})])
    assert table.entries[0].place is None


def test_what_may_not_be_compared_stands_apart(result: Result) -> None:
    rows = {"scored": 10, "expected": 35}
    runs = [
        valued(result, 0.1, name="one"),
        valued(result, 0.2, name="two", dataset={**result.dataset, "source": "acme/copy", "revision": "0" * 40}),
        valued(result, 0.3, name="version", protocol={**result.protocol, "version": "2"}),
        valued(result, 0.4, name="rows", dataset={**result.dataset, "content_sha256": "f" * 64}),
        valued(result, 0.5, name="part", dataset={**result.dataset, "content_sha256": "e" * 64, "rows": rows}),
        valued(result, 0.6, name="thresholds", settings={**result.settings, "thresholds": [0.5]}),
        valued(result, 0.7, name="boundary", settings={**result.settings, "boundary": True}),
        valued(result, 0.8, name="protocol", protocol={**result.protocol, "name": "paper"}),
        valued(result, 0.9, name="same rows in part", dataset={**result.dataset, "rows": rows}),
    ]
    tables = group(runs)
    assert [[name for _, name in order(table)] for table in tables] == [
        ["boundary", "two", "one"], ["thresholds"], ["rows"], ["version"], ["protocol"], ["same rows in part"], ["part"]
    ]  # fmt: skip
    assert [table.partial for table in tables] == [False] * 5 + [True] * 2
    assert tables[0].sources == ["acme/copy", "sample"]
    assert "thresholds [0.5]" in tables[1].title
    page = as_html(Board(tables))
    assert page.count("Partial runs scored fewer rows") == 2


def test_what_it_shows(result: Result, runs: Runs) -> None:
    hasty = Result.load(runs("hasty"))
    (table,) = group([Run("acme/net", "r", result, ""), Run("acme/other", "r", hasty, "")])
    shown = grid(table)
    assert shown.head == [
        "", "model", "run", "average", "95 % interval", "n", *(f"level_{k}" for k in range(5)), "dense"
    ]  # fmt: skip
    average = result.metrics["average"]
    assert average.ci95 is not None
    low, high = (100 * bound for bound in average.ci95)
    assert shown.rows[0][:6] == [
        "1", "acme/net", "r", f"{100 * average.value:.2f}", f"[{low:.2f}, {high:.2f}]", str(average.n)
    ]  # fmt: skip
    assert shown.rows[1][6] == f"{100 * hasty.metrics['macro_f1/level_0'].value:.2f}"
    assert "the same 35 rows in every run" in table.caption
    assert "from sample; not comparable" in table.caption
    page = as_html(Board([table]))
    assert "the order may be due to chance" in page
    assert ("scroll sideways" in page) == (len(shown.head) <= 12 or 'class="long"' in page)


def test_intervals_of_different_units_are_told_apart(result: Result) -> None:
    by_row = {**result.statistics, "unit": "row", "clusters": 35}
    by_image = {**result.statistics, "unit": "image", "clusters": 2}
    runs = [
        valued(result, 0.5, name="a", statistics=by_row, dataset={**result.dataset, "source": None}),
        valued(result, 0.25, name="b", statistics=by_image, dataset={**result.dataset, "source": "/home/me/rows"}),
    ]
    (table,) = group(runs)
    shown = grid(table)
    place = shown.head.index("resampled")
    assert [row[place] for row in shown.rows] == ["35 rows", "2 images"]
    assert "a place that was not recorded (1 of 2 runs)" in table.caption
    assert "files of the user's own (1 of 2 runs)" in table.caption
    page = as_html(Board([table]))
    assert "intervals resample different units" in page
    assert "Intervals from only 2 resampled units mean little." in page
    (alike,) = group([replace(run, result=replace(run.result, statistics=by_row)) for run in runs])
    assert "resampled" not in grid(alike).head
    assert alike.warnings == []


def test_csv_and_json_hold_every_number(result: Result) -> None:
    board = Board(group([valued(result, 0.5, name="=cmd()"), valued(result, math.nan, name="-1+1", model="@x")]))
    lines = list(csv.DictReader(io.StringIO(as_csv(board), newline="")))
    assert [line["run"] for line in lines] == ["'=cmd()", "'-1+1"]
    assert lines[1]["model"] == "'@x"
    assert (float(lines[0]["value"]), lines[1]["value"]) == (0.5, "")
    assert float(lines[0]["ci95_low"]) == 0.4
    assert float(lines[0]["giou/dense"]) == result.metrics["giou/dense"].value
    table = json.loads(as_json(board))["groups"][0]
    assert [run["value"] for run in table["runs"]] == [0.5, None]
    assert table["runs"][0]["metrics"]["giou/dense"]["value"] == result.metrics["giou/dense"].value


class Tags(html.parser.HTMLParser):
    """What a page is made of: tags, attributes' names, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_and_runs_nothing(result: Result) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'
    run = valued(result, 0.5, name=evil, model=evil, protocol={**result.protocol, "name": evil, "version": evil})
    page = as_html(Board(group([run]), [evil]))
    found = Tags(page)
    assert not found.tags & {"script", "img", "link", "iframe", "object", "a"}
    assert not found.attributes & {"src", "href", "onerror"}
    assert found.text.count(evil) >= 4
    assert "http" not in page.replace("http-equiv", "")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_folders(runs: Runs, tmp_path: Path) -> None:
    for name in ("careful", "hasty"):
        runs(name).rename(tmp_path / name)
    assert [e.run.model for e in leaderboard([tmp_path]).groups[0].entries] == ["careful", "hasty"]
    # The same folder by two ways: its runs have other names below another root, and the same below the same.
    twice = leaderboard([tmp_path, tmp_path / "careful", str(tmp_path)])
    assert [e.run.model for e in twice.groups[0].entries] == ["careful", "hasty"]
    for place, file in (("results", "result.json"), ("data", "scores.parquet")):
        layout = tmp_path / "copy" / place / "acme" / "net" / "first"
        layout.mkdir(parents=True)
        (tmp_path / "careful" / file).rename(layout / file)
    (entry,) = leaderboard([tmp_path / "copy"]).groups[0].entries
    assert (entry.run.model, entry.run.name) == ("acme/net", "first")


BAD = {
    "empty": "",
    "list": "[]",
    "deep": "[" * 100_000,
    "newer": '{"schema_version": 2}',
    "huge": None,
    "n": '"n": -1',
    "infinite": '"value": 1e999',
    "enormous": f'"value": 1{"0" * 400}',
    "bounds": '"ci95": [1]',
    "words": '"ci95": ["a", "b"]',
}


def test_files_that_are_no_results(result: Result, runs: Runs, tmp_path: Path) -> None:
    runs().rename(tmp_path / "good")
    good = json.loads(result.to_json())
    for name, text in BAD.items():
        content = text
        if text is None:
            content = " " * (33 << 20)
        elif text.startswith('"'):
            key, _, value = text.partition(": ")
            changed = {**good["metrics"]["average"], json.loads(key): "HERE"}
            whole = json.dumps({**good, "metrics": {**good["metrics"], "average": changed}})
            content = whole.replace('"HERE"', value)
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(str(content))
        shutil.copy(tmp_path / "good" / "scores.parquet", tmp_path / name)
    board = leaderboard([tmp_path])
    assert [len(table.entries) for table in board.groups] == [1]
    assert len(board.left_out) == len(BAD)
    for name in BAD:
        assert any(f"{name}/result.json" in line for line in board.left_out)
        with pytest.raises(BenchError, match="found none that can be read"):
            leaderboard([tmp_path / name])


def test_targets_that_are_none(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="expected a folder or a results repo as ORG/NAME"):
        leaderboard([tmp_path / "absent"])
    with pytest.raises(BenchError, match="expected runs"):
        leaderboard([tmp_path])
    with pytest.raises(BenchError, match="no such dataset"):
        leaderboard(["acme/absent"])
    hub.api().create_repo("acme/empty", repo_type="dataset")
    with pytest.raises(BenchError, match="acme/empty: expected runs"):
        leaderboard(["acme/empty"])


def test_repos_and_folders_together(hub: Any, runs: Runs, tmp_path: Path) -> None:
    publish_results(runs(), model="acme/net", repo="acme/one", scores_only=True, private=True)
    publish_results(runs("hasty"), model="labs/net", repo="acme/two", scores_only=True)
    mine = runs("crowd_shy").rename(tmp_path / "mine")
    urls = [f"hf://datasets/acme/two@{'main'}"[: -len("@main")], f"{hub.endpoint}/datasets/acme/two", "acme/two"]
    (table,) = leaderboard(["acme/one", *urls, mine]).groups
    assert [entry.run.model for entry in table.entries] == ["acme/net", "labs/net", "mine"]
    with pytest.raises(BenchError, match="can't see it"):
        leaderboard(["acme/one"], token=hub.token("bob"))
    hub.trouble({"match": "GET /api/datasets/acme/two", "status": 503}, {"match": "resolve", "drop": "before"})
    assert len(leaderboard(["acme/two"]).groups) == 1


def test_the_command(hub: Any, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    folder = runs().rename(tmp_path / "wi\x1b[31mld")
    names = [tmp_path / "board.csv", tmp_path / "board.html"]
    done = CliRunner().invoke(app, ["leaderboard", str(tmp_path), "--csv", str(names[0]), "--html", str(names[1])])
    assert done.exit_code == 0, done.output
    assert "\x1b[31m" not in done.output
    assert "PBench, protocol released (version 1)" in done.stdout
    assert "85.89" in done.stdout
    assert done.stderr.count("wrote ") == 2
    assert all(name.read_text().count("\x1b") == 0 for name in names)
    assert not list(tmp_path.glob(".*"))
    as_data = CliRunner().invoke(app, ["leaderboard", str(folder), "--json"])
    assert json.loads(as_data.stdout)["groups"][0]["runs"][0]["place"] == 1
    for args in (["leaderboard", "acme/absent"], ["leaderboard", str(folder), "--csv", str(tmp_path / "no" / "b.csv")]):
        done = CliRunner().invoke(app, args)
        assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert CliRunner().invoke(app, ["leaderboard"]).exit_code == 2


BRIEF = BENCHMARKS["instancebench"].layout.short_names


@pytest.mark.parametrize(("width", "tables", "heads"), [(80, 2, BRIEF), (110, 1, BRIEF), (120, 1, BRIEF), (320, 1, {})])
def test_no_head_is_broken(
    result: Result,
    runs: Runs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    tables: int,
    heads: dict[str, str],
) -> None:
    """Nine operations with long names, on terminals of several widths: every head and every number stands whole."""
    values = {name: 0.9111 - k / 100 for k, name in enumerate(OPERATIONS)}
    metrics = {"miou": Metric(0.5, 40, (0.25, 0.75))}
    metrics |= {f"miou/operation/{name}": Metric(value, 5) for name, value in values.items()}
    protocol = {**result.protocol, "name": "default"}
    (tmp_path / "instancebench" / "crowd_shy").mkdir(parents=True)
    replace(result, benchmark="instancebench", protocol=protocol, metrics=metrics).save(
        tmp_path / "instancebench" / "crowd_shy"
    )
    shutil.copy(runs() / "scores.parquet", tmp_path / "instancebench" / "crowd_shy")
    monkeypatch.setattr(hub_runs, "reproduce", lambda result, scores, **_: result)  # the numbers are made up
    monkeypatch.setenv("COLUMNS", str(width))
    done = CliRunner().invoke(app, ["leaderboard", str(tmp_path)])
    lines = done.stdout.splitlines()
    assert sum(line.startswith("──") for line in lines) == tables
    row = [line for line in lines if "instancebench/crowd_shy" in line]
    assert len(row) == tables
    at = next(k for k, line in enumerate(lines) if f"{100 * values['ordinal']:.2f}" in line)
    head = lines[at - 2]
    assert len(head.rstrip()) <= width
    named = [heads.get(name, f"operation/{name}") for name in OPERATIONS]
    assert re.search(" +".join(map(re.escape, named)) + "$", head.rstrip())
    assert lines[at].split()[-9:] == [f"{100 * value:.2f}" for value in values.values()]
    assert "50.00" in done.stdout
    assert "[25.00, 75.00]" in done.stdout
    told = " ".join(done.stdout.split())
    assert all(f"{short} {name}" in told for name, short in heads.items())
    assert ("miou/operation: ord ordinal," in told) == bool(heads)


def test_others_files_in_a_repo(hub: Any, runs: Runs) -> None:
    publish_results(runs(), model="acme/net", repo="acme/one", scores_only=True)
    scores = hub.read("acme/one", "data/acme/net/pbench-released/scores.parquet")
    files = {
        "results/acme/net/other/result.json": "{",
        "data/acme/net/other/scores.parquet": scores,
        "results/x.json": "{}",
        "results/a/b/c/d/result.json": "{}",
    }
    commit("acme/one", "dataset", files, "Others")
    board = leaderboard(["acme/one"])
    assert len(board.groups[0].entries) == 1
    assert ["other/result.json" in line for line in board.left_out] == [True]
