"""Published runs: there and back again, never twice, never over somebody else's, and refused where they mislead."""

from __future__ import annotations

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.cli import app
from bench_datasets.data import open_truth, provenance
from bench_datasets.data.provenance import describe
from bench_datasets.hub.commits import CommitResult, commit
from bench_datasets.hub.leaderboard import leaderboard
from bench_datasets.hub.leaderboard_view import as_csv, as_html, as_json
from bench_datasets.hub.model_card import marks
from bench_datasets.hub.results import Published
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import read_scores

from ..support.publishing import ENTRIES, MODEL, REPO, RUN, SAMPLE, Runs, edit, entries, publish, refused


def test_what_is_published(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    folder = runs(**copy)
    done = publish(folder)
    assert isinstance(done.results, CommitResult)
    assert isinstance(done.model, CommitResult)
    assert set(done.results.paths) == {
        "README.md", f"data/{MODEL}/{RUN}/scores.parquet", f"results/{MODEL}/{RUN}/result.json"
    }  # fmt: skip
    assert set(done.model.paths) == {"README.md", ENTRIES}
    assert hub.read(REPO, f"data/{MODEL}/{RUN}/scores.parquet") == (folder / "scores.parquet").read_bytes()
    assert hub.read(REPO, f"results/{MODEL}/{RUN}/result.json") == (folder / "result.json").read_bytes()
    metadata = hub.api().dataset_info(REPO).card_data
    assert metadata.configs == [
        {
            "config_name": f"acme--net--{RUN}",
            "data_files": [{"split": "test", "path": f"data/{MODEL}/{RUN}/scores.parquet"}],
        }
    ]
    card = hub.read(MODEL, "README.md", kind="model", revision="refs/pr/1").decode()
    assert card.startswith("---\nlicense: mit # mine\n---\n# Net\n\nWords.\n")
    assert "| 1 | acme/net | pbench-released | 85.89 |" in card
    assert "bench-datasets results" not in hub.read(MODEL, "README.md", kind="model").decode()
    # A second publication, of other models and runs, keeps all that is there; words around the tables stay, too.
    text = hub.read(REPO, "README.md").decode() + "\nWords of my own.\n"
    commit(REPO, "dataset", {"README.md": text}, "Words")
    hub.api().create_repo("acme/other")
    publish(runs("hasty", **copy), model="acme/other", direct=True)
    publish(runs("careful", "card", **copy), direct=True)
    configs = hub.api().dataset_info(REPO).card_data.configs
    assert [config["config_name"] for config in configs] == [
        "acme--net--pbench-card", f"acme--net--{RUN}", f"acme--other--{RUN}"
    ]  # fmt: skip
    text = hub.read(REPO, "README.md").decode()
    assert text.endswith("\nWords of my own.\n")
    assert text.index("acme/net | pbench-released | 85.89") < text.index("acme/other | pbench-released | 64.76")
    section = hub.read(MODEL, "README.md", kind="model").decode()
    assert "acme/other" not in section
    assert section.count("| 1 | acme/net |") == 2


def test_a_dry_run_writes_nothing(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    done = CliRunner().invoke(
        app, ["publish", "results", str(runs(**copy)), "--model", MODEL, "--repo", REPO, "--dry-run"]
    )
    assert done.exit_code == 0, done.output
    assert f"new dataset {REPO}" in done.stdout
    assert "more lines" in done.stdout
    assert "+  value: 85.8" in done.stdout
    assert "+  task_id: released/average" in done.stdout.replace("+    task_id", "+  task_id")
    assert not hub.api().repo_exists(REPO, repo_type="dataset")
    assert hub.commits(MODEL, "model") == ["Card", "initial commit"]
    assert list(hub.api().get_repo_discussions(MODEL)) == []


def test_a_dry_run_without_the_hub(hub: Any, model: str, runs: Runs, patient: list[float]) -> None:
    hub.kill()
    folder = str(runs())
    for command in (
        ["publish", "results", folder, "--model", MODEL, "--repo", REPO],
        ["publish", "metrics", "pbench", "--org", "acme"],
        ["publish", "dataset", "pbench", "--data", "sample", "--repo", SAMPLE],
    ):
        patient.clear()
        done = CliRunner().invoke(app, [*command, "--dry-run"])
        assert done.exit_code == 1
        assert "not compared with what is there" in done.stdout
        assert "  add README.md (" in done.stdout
        *waited, last = done.stderr.splitlines()
        assert last.startswith(f"error: could not compare with the Hub: {hub.endpoint}: can't be reached")
        assert sum("can't be reached; trying again in" in line for line in waited) == len(patient) == 2
    found = CliRunner().invoke(
        app, ["publish", "results", folder, "--model", MODEL, "--repo", REPO, "--dry-run", "--json"]
    )
    assert found.exit_code == 1
    plans = json.loads(found.stdout)
    assert "can't be reached" in plans["results"]["unseen"]
    assert "can't be reached" in refused(Path(folder))


def test_another_run_is_not_overwritten(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    publish(runs(**copy), direct=True)
    other = runs("hasty", **copy)
    assert "--overwrite" in refused(other)
    assert "another run" in refused(other, scores_only=True)
    assert entries(hub)[0].value > 80
    publish(other, run="second", scores_only=True)
    assert "holds 85.8" in refused(other, run="second")
    publish(other, overwrite=True, direct=True)
    (entry,) = entries(hub)
    assert entry.value < 70
    found = leaderboard([REPO]).groups
    assert [(e.run.name, e.place) for e in found[0].entries] == [(RUN, 1), ("second", 1)]


def test_partial_runs(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    folder = runs(**copy, rows={"scored": 35, "expected": 6338})
    assert "partial run: 35 of 6,338 rows" in refused(folder)
    text = refused(runs(**copy, rows={"scored": 35, "expected": None}))
    assert "was not recorded; a table out of `map` doesn't know it: score the predictions' file" in text
    assert "'expected': ROWS" in text
    assert not hub.api().repo_exists(REPO, repo_type="dataset")
    publish(folder, force=True, direct=True)
    (entry,) = entries(hub)
    assert "forced although: partial run: 35 of 6,338 rows were scored" in entry.notes
    assert "partial runs" in hub.read(REPO, "README.md").decode()
    own = runs(**copy)
    bd.summarize("pbench", read_scores(own), draws=0, thresholds=[0.5]).save(own)
    assert "thresholds" in refused(own)


def test_a_private_models_name(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    hub.api().update_repo_settings(MODEL, private=True)
    folder, asked = runs(**copy), []

    def answer(text: str) -> bool:
        asked.append(text)
        return len(asked) > 1

    assert f"{MODEL} is private" in refused(folder)
    assert "Nothing was sent" in refused(folder, confirm=answer)
    assert not hub.api().repo_exists(REPO, repo_type="dataset")
    command = ["publish", "results", folder, "--model", MODEL, "--repo", REPO]
    done = hub.run(command)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    publish(folder, private=True)
    assert hub.api().dataset_info(REPO).private
    publish(folder, repo="acme/open", run="open", confirm=answer, scores_only=True)
    assert len(asked) == 2
    assert hub.run([*command[:-1], "acme/shown", "--scores-only", "--yes"]).returncode == 0


def test_twenty_at_once(hub: Any, runs: Runs) -> None:
    folders = [runs(name) for name in samples.SAMPLE_MODELS]

    def one(number: int) -> Published:
        return publish(folders[number % 3], model=f"acme/net{number % 10}", run=f"run{number // 10}", scores_only=True)

    with ThreadPoolExecutor(20) as pool:
        done = [published.results for published in pool.map(one, range(20))]
    assert all(isinstance(result, CommitResult) and result.paths for result in done)
    assert len(hub.commits(REPO)) == 21
    (table,) = leaderboard([REPO]).groups
    assert sorted((e.run.model, e.run.name) for e in table.entries) == sorted(
        (f"acme/net{n}", f"run{k}") for n in range(10) for k in range(2)
    )
    configs = hub.api().dataset_info(REPO).card_data.configs
    assert len({config["config_name"] for config in configs}) == len(configs) == 20
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda _: publish(folders[0], model="acme/x", scores_only=True), range(4)))
    assert sum(bool(published.results.paths) for published in again) == 1  # type: ignore[union-attr]
    assert len(hub.commits(REPO)) == 22


def test_a_server_that_dies(hub: Any, model: str, copy: dict[str, Any], runs: Runs, patient: list[float]) -> None:
    folder = runs(**copy)
    for match in (f"PUT /_lfs/|POST /api/datasets/{REPO}/commit", f"POST /api/models/{MODEL}/commit"):
        hub.trouble({"match": match, "drop": "exit"})
        assert "can't be reached" in refused(folder)
        assert hub.gone()
        hub.kill()
        hub.start()
    done = publish(folder)
    assert isinstance(done.model, CommitResult)
    assert (done.results.paths, done.model.pr_num) == ((), 1)  # type: ignore[union-attr]
    assert hub.read(REPO, f"data/{MODEL}/{RUN}/scores.parquet") == (folder / "scores.parquet").read_bytes()
    assert len(entries(hub, revision="refs/pr/1")) == 1


def test_what_stands_in_the_way(
    hub: Any, model: str, copy: dict[str, Any], runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs(**copy)

    def line(*more: str, token: str | None = "alice", repo: str = REPO, name: str = MODEL) -> str:
        monkeypatch.setenv("HF_TOKEN", str(hub.token(token) if token in ("alice", "bob", "eve") else token))
        args = ["publish", "results", str(folder), "--model", name, "--repo", repo, *more]
        done = CliRunner().invoke(app, args)
        assert done.exit_code == 1, done.output
        assert "hf_" not in done.output.replace("hf_***", "")
        (text,) = done.stderr.splitlines()
        assert text.startswith("error: ")
        return text

    assert "refuses the token (401)" in line(token="hf_wrongwrongwrongwrong")
    assert "may only read" in line(token="eve")
    assert "bob may not write at acme" in line("--scores-only", token="bob")
    assert "no such model" in line(name="acme/absent")
    assert "taken by a model" in line("--scores-only", repo="acme/net", name="acme/elsewhere")
    assert "a dataset with a card of its own" in line(repo=SAMPLE)
    assert "ORG/NAME" in line(name="net")
    assert "--run" in line("--run", "../up")
    hub.trouble({"match": f"datasets/{REPO}/(preupload|commit)", "status": 403, "message": "Storage limit reached"})
    assert "no room for it (Storage limit reached)" in line()
    shutil.rmtree(folder)
    assert "expected the folder of a run" in line()


def test_what_is_no_run(runs: Runs, tmp_path: Path) -> None:
    folder = runs()
    shutil.copy(runs("hasty", "card") / "result.json", folder / "result.json")
    assert "of other scores" in refused(folder)
    (folder / "result.json").write_text('{"schema_version": 1}')
    assert "expected a result file" in refused(folder)
    folder = runs()
    (folder / "scores.parquet").write_bytes(b"PAR1")
    assert "can't be read" in refused(folder)
    folder = runs()
    table = pq.read_table(folder / "scores.parquet")
    pq.write_table(table.slice(1), folder / "scores.parquet")
    assert "of other scores" in refused(folder)
    assert "nothing can be published" in refused(edit(runs(source="tiiuae/PBench"), metrics={}), force=True)


def hostile(hub: Any, name: str, **fields: Any) -> dict[str, Any]:
    """The files of a run that copies the published one's scores and changes parts of its result."""
    result = json.loads(hub.read(REPO, f"results/{MODEL}/{RUN}/result.json"))
    for part, values in fields.items():
        result[part] = {**result[part], **values} if isinstance(values, dict) else values
    scores = hub.read(REPO, f"data/{MODEL}/{RUN}/scores.parquet")
    return {f"results/{name}/run/result.json": json.dumps(result), f"data/{name}/run/scores.parquet": scores}


FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "value": (
        {"metrics": {"average": {"value": 0.999, "n": 33, "ci95": None, "higher_is_better": True}}},
        "average: the result says 0.999, the scores give 0.85",
    ),
    "n": (
        {"metrics": {"giou/dense": {"value": None, "n": 9_999, "ci95": None, "higher_is_better": True}}},
        "giou/dense: the result says none",
    ),
    "rows": ({"dataset": {"rows": {"scored": 6338, "expected": 6338}}}, "dataset.rows: the result says"),
    "comparable": ({"protocol": {"comparable_to": "Falcon Perception table"}}, "protocol.comparable_to: the result"),
    "predictions": ({"predictions": {"sha256": "ab" * 32}}, "predictions.sha256: the result says"),
    "source": ({"dataset": {"source": "tiiuae/PBench"}}, "dataset.source: the result says 'tiiuae/PBench'"),
    "thresholds": ({"settings": {"thresholds": [0.01]}}, "the result says"),
    "missing": ({"settings": {"missing": "empty"}}, "settings.missing: the result says 'empty'"),
    "unit": ({"statistics": {"unit": "image"}}, "statistics.unit: the result says 'image'"),
    "unit_list": ({"statistics": {"unit": [1]}}, "statistics.unit: expected a text"),
    "clusters": ({"statistics": {"clusters": math.nan}}, "expected finite numbers, found nan"),
    "infinite": ({"settings": {"other": math.inf}}, "expected finite numbers, found inf"),
    "surrogate": ({"created": "\ud800"}, "expected texts of whole characters"),
    "created": ({"created": "2026-01-01T00:00:00<b>"}, "created: expected a time in ISO 8601"),
    "many": (
        {"metrics": {f"m{k}": {"value": 1, "n": 1, "ci95": None, "higher_is_better": True} for k in range(20_000)}},
        "metrics: expected at most 10,000 metrics",
    ),
    "benchmark": ({"benchmark": "<b>"}, "benchmark '<b>' is not known here"),
}
"""Changes of an honest result by name, and what is said of each."""


def test_publish_forged_results_refuses_them(runs: Runs) -> None:
    for changes, reason in FORGED.values():
        folder = runs()
        result = json.loads((folder / "result.json").read_text())
        for part, values in changes.items():
            result[part] = {**result[part], **values} if isinstance(values, dict) else values
        (folder / "result.json").write_text(json.dumps(result))
        assert reason in refused(folder, scores_only=True)


def test_leaderboard_forged_results_are_left_out_with_the_reason(hub: Any, runs: Runs) -> None:
    publish(runs(), scores_only=True)
    files: dict[str, Any] = {}
    for name, (changes, _) in FORGED.items():
        files |= hostile(hub, f"evil/{name}", **changes)
    alone = hostile(hub, "evil/alone")
    files |= {path: content for path, content in alone.items() if path.startswith("results/")}
    commit(REPO, "dataset", files, "Evil")
    board = leaderboard([REPO])
    assert [(entry.place, entry.run.model) for group in board.groups for entry in group.entries] == [(1, MODEL)]
    assert len(board.left_out) == len(FORGED) + 1
    for name, (_, reason) in FORGED.items():
        (line,) = [line for line in board.left_out if f"evil/{name}/run/" in line]
        assert reason in line, line
        assert len(line) < 400
    assert any("evil/alone/run/result.json: expected its scores as data/evil/alone/run/" in x for x in board.left_out)
    for text in (as_json(board), as_html(board), as_csv(board)):
        text.encode()
    # Others' bad entries keep nobody from publishing, and their texts stay out of the card.
    publish(runs("hasty"), model="acme/good", scores_only=True)
    card = hub.read(REPO, "README.md").decode()
    assert "evil" not in card
    assert "acme/good" in card
    done = CliRunner().invoke(app, ["leaderboard", REPO, "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["left_out"]) == len(board.left_out)


def test_card_poisoned_before_is_repaired(hub: Any, runs: Runs) -> None:
    publish(runs(), scores_only=True)
    begin, end = marks(REPO)
    evil = f"x {end} <img src=x onerror=alert(1)> [a](http://evil)"
    card = hub.read(REPO, "README.md").decode()
    for poisoned in (card.replace("acme/net | pbench", f"{evil} | pbench"), card.replace(end, f"{end}\n{evil}\n{end}")):
        commit(REPO, "dataset", {"README.md": poisoned}, "Poison")
        publish(runs("hasty"), model="acme/good", scores_only=True, overwrite=True)
        mended = hub.read(REPO, "README.md").decode()
        assert (mended.count(begin), mended.count(end)) == (1, 1)
        assert "onerror" not in mended
        assert "evil" not in mended


def test_hostile_files_of_others(hub: Any, runs: Runs) -> None:
    publish(runs(), scores_only=True)
    files = {
        "results/acme/deep/run/result.json": "[" * 100_000,
        "data/acme/deep/run/scores.parquet": "PAR1",
        "results/acme/odd/ru`n|/result.json": "{}",
        "results/acme/none/run/result.json": '{"schema_version": 99}',
        "data/acme/none/run/scores.parquet": b"PAR1",
        **hostile(hub, "acme/cut"),
        "data/acme/cut/run/scores.parquet": b"PAR1",
    }
    commit(REPO, "dataset", files, "Evil")
    publish(runs("crowd_shy"), model="acme/better", scores_only=True)
    board = leaderboard([REPO])
    assert len(board.left_out) == 4
    assert any("scores.parquet: expected a score table" in line for line in board.left_out)
    assert sum(len(table.entries) for table in board.groups) == 2


def test_publish_local_source_is_not_in_what_is_sent(hub: Any, runs: Runs, tmp_path: Path) -> None:
    secret = "http://ada:hunter2@example.org/rows?token=abc"
    for source in ("/home/ada/private/rows", secret):
        folder = runs(source=source)
        publish(folder, run="local", scores_only=True, overwrite=True)
        paths = [path for path in hub.api().list_repo_files(REPO, repo_type="dataset") if "gitattributes" not in path]
        assert len(paths) == 3
        for path in paths:
            content = hub.read(REPO, path)
            assert not any(word in content for word in (b"ada", b"hunter2", b"example.org", b"private", b"token=")), (
                path
            )
    stored = Result.loads(hub.read(REPO, f"results/{MODEL}/local/result.json"))
    assert stored.dataset["source"] == "copy of pbench"
    assert stored.dataset["content_sha256"] == Result.load(folder).dataset["content_sha256"]
    assert leaderboard([REPO]).left_out == []
    publish(runs(source="/data/rows"), run="asked", scores_only=True, with_source=True)
    assert b'"source": "/data/rows"' in hub.read(REPO, f"results/{MODEL}/asked/result.json")


def test_score_url_with_password_records_neither_it_nor_the_query(tmp_path: Path) -> None:
    truth = open_truth("pbench", "sample")
    facts = {**(provenance(truth) or {}), "source": "http://ada:hunter2@example.org/rows?token=abc#x"}
    truth.info.description = describe("Rows.", facts)
    answers = bd.read_predictions("pbench", samples.pbench_sample_predictions("careful"))
    scores = bd.score("pbench", truth, answers)
    result = bd.summarize("pbench", scores, draws=0)
    assert result.dataset["source"] == "http://example.org/rows"
    bd.write_run(scores, result, tmp_path)
    for file in tmp_path.iterdir():
        assert b"hunter2" not in file.read_bytes()
        assert b"token=abc" not in file.read_bytes()
    # What an older version recorded is not shown either.
    old = json.loads((tmp_path / "result.json").read_text())
    old["dataset"]["source"] = facts["source"]
    (tmp_path / "result.json").write_text(json.dumps(old))
    assert Result.load(tmp_path).dataset["source"] == "http://example.org/rows"
