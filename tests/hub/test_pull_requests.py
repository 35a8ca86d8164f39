"""What is proposed to a model's repo: entries beside those of others, a section of its card, one pull request a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub.errors import HfHubHTTPError

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmarks.pbench import PBench
from bench_datasets.data import open_truth
from bench_datasets.faults import BenchError
from bench_datasets.hub import eval_results as result_entries
from bench_datasets.hub.commits import CommitResult, Plan, commit
from bench_datasets.hub.leaderboard import leaderboard
from bench_datasets.hub.model_card import marks, with_section
from bench_datasets.results.result import Result

from ..support.publishing import ENTRIES, MODEL, REPO, SAMPLE, Runs, edit, entries, publish, refused


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


def test_the_benchmarks_own_dataset(hub: Any, model: str, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = "0123456789" * 4
    folder = runs(source="tiiuae/PBench", revision=sha)
    assert "not comparable to published numbers, as the leaderboard of tiiuae/PBench asks for" in refused(folder)
    publish(folder, force=True)
    (entry,) = entries(hub, revision="refs/pr/1")
    assert "forced although: not comparable" in entry.notes
    protocol = {**Result.load(folder).protocol, "comparable_to": "Falcon Perception table"}
    assert "protocol.comparable_to: the result says 'Falcon Perception table', the scores give None" in refused(
        edit(folder, protocol=protocol), run="whole"
    )
    with monkeypatch.context() as patch:
        patch.setattr(PBench, "comparable_to", lambda *_: "Falcon Perception table")
        publish(folder, direct=True, run="whole")
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
    monkeypatch.setattr(PBench, "counted", "")
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
    # An end mark in somebody's text is no mark, and one on a line of its own gives way to the next publication.
    for poison in (f"| x {end} <b> |", f"x\n{end}\n<b>"):
        poisoned = with_section(card, poison, REPO, where="card")
        assert with_section(poisoned, "a\nb", REPO, where="card") == once
    for broken in (begin, end, f"{end}\n{begin}", once + once):
        with pytest.raises(BenchError, match="once each"):
            with_section(broken, "a", REPO, where="card")
