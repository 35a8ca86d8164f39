"""Published runs: there and back again, never twice, never over somebody else's, and refused where they mislead."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.errors import HfHubHTTPError
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmarks import BENCHMARKS
from bench_datasets.builders import open_truth
from bench_datasets.cli import app
from bench_datasets.faults import BenchError
from bench_datasets.hub import entries as result_entries
from bench_datasets.hub.commits import CommitResult, Plan, commit
from bench_datasets.hub.leaderboard import leaderboard
from bench_datasets.hub.model_card import marks, with_section
from bench_datasets.hub.results import Published, publish_results
from bench_datasets.results import Result

Runs = Callable[..., Path]

MODEL, REPO, RUN = "acme/net", "acme/results", "pbench-released"
ENTRIES = ".eval_results/pbench.yaml"
SAMPLE = "acme/pbench-sample"


@pytest.fixture
def model(hub: Any) -> str:
    """A model's repo with a card of its own."""
    hub.api().create_repo(MODEL)
    commit(MODEL, "model", {"README.md": "---\nlicense: mit # mine\n---\n# Net\n\nWords.\n"}, "Card")
    return MODEL


@pytest.fixture
def copy(hub: Any, built: Callable[[str], Any]) -> dict[str, Any]:
    """The sample as a dataset of one's own; gives what a result over it says of its origin."""
    done = commit(SAMPLE, "dataset", built("pbench").files, "Sample", create=True)
    assert isinstance(done, CommitResult)
    return {"source": SAMPLE, "revision": done.sha}


def publish(folder: Path, **options: Any) -> Published:
    return publish_results(folder, **{"model": MODEL, "repo": REPO, **options})


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(BenchError) as caught:
        publish(folder, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def entries(hub: Any, **options: Any) -> list[Any]:
    text = hub.read(MODEL, ENTRIES, kind="model", **options)
    return parse_eval_result_entries(yaml.safe_load(text))


def edit(folder: Path, **fields: Any) -> Path:
    """A run's result with other fields; its scores stay."""
    replace(Result.load(folder), **fields).save(folder)
    return folder


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


def test_a_second_time_nothing_is_sent(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    folder = runs(**copy)
    publish(folder)
    before = hub.commits(REPO), hub.commits(MODEL, "model")
    edit(folder, created="2030-01-01T00:00:00+00:00", packages={"bench_datasets": "9"})
    done = publish(folder)
    assert isinstance(done.results, CommitResult)
    assert isinstance(done.model, CommitResult)
    assert (done.results.paths, done.model.paths, done.model.pr_num) == ((), (), 1)
    assert (hub.commits(REPO), hub.commits(MODEL, "model")) == before
    hub.api().merge_pull_request(MODEL, 1)
    assert publish(folder).model.pr_num is None  # type: ignore[union-attr]
    assert len(list(hub.api().get_repo_discussions(MODEL))) == 1


def test_proposals_that_stand_in_each_others_way(hub: Any, model: str, tmp_path: Path) -> None:
    folders = []
    for benchmark in ("pbench", "instancebench", "pvsg"):
        answers = bd.read_predictions(benchmark, getattr(samples, f"{benchmark}_sample_predictions")("careful"))
        scores = bd.score(benchmark, open_truth(benchmark, "sample"), answers)
        bd.write_run(scores, bd.summarize(benchmark, scores, draws=0), tmp_path / benchmark)
        folders.append(tmp_path / benchmark)
    api = hub.api()
    assert [publish(folder).model.pr_num for folder in folders] == [1, 2, 3]  # type: ignore[union-attr]
    api.merge_pull_request(MODEL, 1)
    with pytest.raises(HfHubHTTPError, match=r"README\.md"):
        api.merge_pull_request(MODEL, 2)

    def again(folder: Path, fresh: int, stale: int) -> None:
        done = publish(folder).model
        assert isinstance(done, CommitResult)
        assert done.pr_num == fresh
        assert done.paths == ("README.md",)
        assert publish(folder).model.pr_num == fresh  # type: ignore[union-attr]
        old = api.get_discussion_details(MODEL, stale)
        assert old.status == "closed"
        assert f"#{fresh} proposes the same anew" in str([event.__dict__ for event in old.events])
        api.merge_pull_request(MODEL, fresh)

    with pytest.raises(HfHubHTTPError, match=r"README\.md"):
        api.merge_pull_request(MODEL, 3)
    plan = publish(folders[2], dry_run=True).model
    assert isinstance(plan, Plan)
    assert [change.path for change in plan.changes] == ["README.md"]
    again(folders[2], 4, 3)
    # The section tells of every run that is published, so that what the other one proposes is there by now.
    done = publish(folders[1]).model
    assert isinstance(done, CommitResult)
    assert (done.paths, done.pr_num) == ((), None)
    assert "what it proposes is there" in str([e.__dict__ for e in api.get_discussion_details(MODEL, 2).events])
    assert sorted(one.status for one in api.get_repo_discussions(MODEL)) == ["closed", "closed", "merged", "merged"]
    card = hub.read(MODEL, "README.md", kind="model").decode()
    assert all(f"{name}-" in card for name in ("pbench", "instancebench", "pvsg"))


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
        assert sum("can't be reached; trying again in" in line for line in waited) == len(patient) == 4
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
    own = edit(runs(**copy), settings={**Result.load(folder).settings, "thresholds": [0.5]})
    assert "thresholds" in refused(own)


def test_the_benchmarks_own_dataset(hub: Any, model: str, runs: Runs) -> None:
    sha = "0123456789" * 4
    folder = runs(source="tiiuae/PBench", revision=sha)
    assert "not comparable to published numbers, as the leaderboard of tiiuae/PBench asks for" in refused(folder)
    publish(folder, force=True)
    (entry,) = entries(hub, revision="refs/pr/1")
    assert "forced although: not comparable" in entry.notes
    protocol = {**Result.load(folder).protocol, "comparable_to": "Falcon Perception table"}
    publish(edit(folder, protocol=protocol), direct=True, run="whole")
    (entry,) = entries(hub)
    assert (entry.dataset_id, entry.task_id, entry.dataset_revision) == ("tiiuae/PBench", "average", sha)
    assert "forced" not in entry.notes
    done = publish(runs("careful", "card", source="tiiuae/PBench", revision=sha), direct=True)
    assert "has no task for the protocol card" in done.remarks[0]
    assert len(entries(hub)) == 1


def test_rows_from_elsewhere(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    done = publish(runs(), direct=True)
    assert "--dataset ORG/NAME" in done.remarks[0]
    assert ENTRIES not in hub.api().list_repo_files(MODEL)
    done = publish(runs(), dataset=SAMPLE, direct=True)
    assert done.remarks == []
    assert entries(hub)[0].dataset_revision == copy["revision"]
    hub.api().create_repo("acme/empty", repo_type="dataset")
    assert "declares no task released/average" in refused(runs(), dataset="acme/empty", run="b")
    commit("acme/empty", "dataset", {"eval.yaml": hub.read(SAMPLE, "eval.yaml")}, "Tasks only")
    assert "does not name their content" in refused(runs(), dataset="acme/empty", run="b")
    assert "no such dataset" in refused(runs(), dataset="acme/nothing", run="b")


def test_entries_of_others_stay(hub: Any, model: str, copy: dict[str, Any], runs: Runs) -> None:
    theirs = (
        "- dataset: {id: cais/hle, task_id: default}\n  value: 20.9\n  date: 2025-01-15T10:30:00Z\n  more: [1, x]\n"
        "- dataset: {id: tiiuae/PBench, task_id: average}\n  value: 44\n"
    )
    commit(MODEL, "model", {ENTRIES: theirs}, "Theirs")
    publish(runs(**copy), direct=True)
    found = yaml.safe_load(hub.read(MODEL, ENTRIES, kind="model"))
    assert [item["dataset"]["id"] for item in found] == ["cais/hle", "tiiuae/PBench", SAMPLE]
    assert (found[0]["date"], found[0]["more"]) == ("2025-01-15T10:30:00Z", [1, "x"])
    for bad in ("a: b\n", "- 1\n", "- dataset: {id: a}\n  value: 1\n", "[", "\tx"):
        commit(MODEL, "model", {ENTRIES: bad}, "Bad")
        assert "expected a list of evaluation results" in refused(runs(**copy), run="other")
    assert len(leaderboard([REPO]).groups[0].entries) == 1


def test_a_note_of_a_number_that_nobody_said_what_it_counts(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes() -> str:
        return str(result_entries.entry_of(Result.load(folder), place, "", []).notes)

    folder, place = runs(), result_entries.Place(SAMPLE, "released/average", None, True)
    assert "average, n = 33 of 35 rows;" in notes()
    monkeypatch.setattr(result_entries, "get_benchmark", lambda name: replace(BENCHMARKS[name], counted=""))
    assert "average, n = 33; 35 rows scored;" in notes()


def test_a_cards_section() -> None:
    begin, end = marks(REPO)
    card = "# Net\r\n\r\nWords."
    once = with_section(card, "a\nb", REPO, where="card")
    assert once == f"{card}\r\n\r\n{begin}\r\n\r\na\r\nb\r\n\r\n{end}\r\n"
    assert with_section(once, "a\nb", REPO, where="card") == once
    both = with_section(once, "c", "acme/others", where="card")
    assert with_section(both, "a\nb", REPO, where="card") == both
    assert with_section(None, "a", REPO, where="card", title="net").startswith("# net\n\n<!--")
    for broken in (begin, end, end + begin, once + once):
        with pytest.raises(BenchError, match="once each"):
            with_section(broken, "a", REPO, where="card")


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


def test_hostile_runs_of_others(hub: Any, runs: Runs) -> None:
    publish(runs(), scores_only=True)
    result = json.loads(hub.read(REPO, f"results/{MODEL}/{RUN}/result.json"))
    _, end = marks(REPO)
    result["protocol"] |= {"name": f"x {end} <script>", "version": "| a\n# b"}
    files = {
        "results/acme/evil/run/result.json": json.dumps(result),
        "results/acme/deep/run/result.json": "[" * 100_000,
        "results/acme/odd/ru`n|/result.json": "{}",
        "results/acme/none/run/result.json": '{"schema_version": 99}',
    }
    commit(REPO, "dataset", files, "Evil")
    publish(runs("hasty"), model="acme/good", scores_only=True)
    card = hub.read(REPO, "README.md").decode()
    assert card.count(end) == 1
    assert "<script>" not in card
    publish(runs("crowd_shy"), model="acme/better", scores_only=True)
    board = leaderboard([REPO])
    assert len(board.left_out) == 3
    assert sum(len(table.entries) for table in board.groups) == 4
