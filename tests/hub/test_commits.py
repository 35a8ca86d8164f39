"""Commits: atomic, once, planned anew under races; after failures gone on with, or told in one line."""

from __future__ import annotations

import errno
import logging
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench_datasets.faults import BenchError
from bench_datasets.hub import client
from bench_datasets.hub.commits import CommitResult, Head, Plan, commit

REPO = "acme/results"
BINARY = bytes(range(256)) * 400


def publish(files: Any, message: str = "Add files", repo: str = REPO, **options: Any) -> CommitResult:
    done = commit(repo, "dataset", files, message, **{"create": True, **options})
    assert isinstance(done, CommitResult)
    return done


def refused(files: Any, repo: str = REPO, **options: Any) -> str:
    with pytest.raises(BenchError) as caught:
        publish(files, repo=repo, **options)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert "hf_alicetoken" not in text
    return text


def test_a_commit_holds_all_and_a_second_one_is_not_made(hub: Any, tmp_path: Path) -> None:
    local = tmp_path / "scores.parquet"
    local.write_bytes(BINARY)
    files = {"README.md": "---\nlicense: mit\n---\n# é\n", "data/scores.parquet": local, "more.json": b"{}\n"}
    done = publish(files, private=True)
    assert done.created
    assert set(done.paths) == set(files)
    assert hub.read(REPO, "data/scores.parquet") == BINARY
    assert hub.read(REPO, "README.md").decode() == files["README.md"]
    assert hub.api().dataset_info(REPO).private
    again = publish(files)
    assert (again.paths, again.sha, again.created) == ((), done.sha, False)
    assert hub.commits(REPO) == ["Add files", "initial commit"]
    changed = publish({**files, "more.json": b"{} \n"}, "Change one")
    assert changed.paths == ("more.json",)
    # The server's repos are git's own.
    log = ["git", "-C", str(hub.root / "hub" / "repos" / "datasets" / REPO), "log", "--format=%s", "main"]
    assert subprocess.run(log, capture_output=True, text=True, check=True).stdout.split("\n")[0] == "Change one"


def test_deleting(hub: Any) -> None:
    publish({"a/1.txt": "1", "a/2.txt": "2", "b.txt": "b", "ab.txt": "ab"})
    done = publish({"a/2.txt": "2"}, "Tidy", delete=["a/", "b.txt", "absent.txt"])
    assert set(done.paths) == {"a/1.txt", "b.txt"}
    assert set(hub.api().list_repo_files(REPO, repo_type="dataset")) == {".gitattributes", "a/2.txt", "ab.txt"}


def test_a_dry_run_writes_nothing(hub: Any) -> None:
    plan = commit(REPO, "dataset", {"a.txt": "one\n"}, "Add", create=True, dry_run=True)
    assert isinstance(plan, Plan)
    assert plan.parent is None
    assert not hub.api().repo_exists(REPO, repo_type="dataset")
    publish({"a.txt": "one\n", "b.bin": BINARY, "c.txt": "c"})
    before = hub.commits(REPO)
    files = {"a.txt": "one\ntwo\n", "b.bin": BINARY[::-1], "new.txt": "n\n"}
    plan = commit(REPO, "dataset", files, "Change", delete=["c.txt"], dry_run=True)
    assert isinstance(plan, Plan)
    found = {change.path: (change.action, change.size) for change in plan.changes}
    assert found == {
        "a.txt": ("change", 8), "b.bin": ("change", len(BINARY)), "new.txt": ("add", 2), "c.txt": ("delete", 0)
    }  # fmt: skip
    text = str(plan)
    assert "@@ -1 +1,2 @@\n one\n+two" in text
    assert "+++ b/b.bin" not in text
    assert hub.commits(REPO) == before
    assert "nothing" in str(commit(REPO, "dataset", {"c.txt": "c"}, "Same", dry_run=True))


def test_files_are_made_from_what_is_there(hub: Any) -> None:
    def longer(head: Head) -> dict[str, str]:
        return {"list.txt": (head.text("list.txt") or "") + f"{len(head.files)}\n"}

    publish(longer)
    publish(longer, "More")
    assert hub.read(REPO, "list.txt") == b"1\n2\n"


def test_twenty_at_once_all_land(hub: Any) -> None:
    hub.api().create_repo(REPO, repo_type="dataset")

    def one(number: int) -> CommitResult:
        def files(head: Head) -> dict[str, str]:
            lines = (head.text("index.txt") or "").split()
            return {f"runs/{number}.txt": str(number), "index.txt": "\n".join(sorted({*lines, f"run{number:02}"}))}

        return publish(files, f"Add {number}")

    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(one, range(20)))
    assert len({result.sha for result in done}) == 20
    assert hub.read(REPO, "index.txt").decode().split() == [f"run{number:02}" for number in range(20)]
    assert sorted(hub.commits(REPO)) == sorted([*(f"Add {number}" for number in range(20)), "initial commit"])


def test_the_last_commit_may_be_demanded(hub: Any) -> None:
    first = publish({"a.txt": "a"})
    publish({"b.txt": "b"})
    assert first.sha in refused({"c.txt": "c"}, parent=first.sha)


def test_a_pull_request_is_opened_once(hub: Any) -> None:
    hub.api("bob").create_repo("labs/net")

    def propose(text: str) -> CommitResult:
        done = commit("labs/net", "model", {"a.txt": text}, "Add a", create_pr=True)
        assert isinstance(done, CommitResult)
        return done

    first, same, other = propose("1"), propose("1"), propose("2")
    assert first.pr_num == same.pr_num == other.pr_num == 1
    assert first.pr_url == f"{hub.endpoint}/labs/net/discussions/1"
    assert (same.paths, same.sha) == ((), first.sha)
    assert len(list(hub.api().get_repo_discussions("labs/net"))) == 1
    assert "a.txt" not in hub.api().list_repo_files("labs/net")
    hub.api("bob").merge_pull_request("labs/net", 1)
    assert hub.read("labs/net", "a.txt", kind="model") == b"2"
    merged = propose("2")
    assert (merged.paths, merged.pr_num) == ((), None)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_passes_is_waited_for(hub: Any, patient: list[float], status: int) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "POST .*/commit/", "status": status, "times": 2, "headers": {"Retry-After": "7"}})
    assert publish({"b.txt": "b"}).paths == ("b.txt",)
    assert patient == [7.0, 7.0]


def test_conflicts_are_planned_anew(hub: Any, patient: list[float]) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "POST .*/commit/", "status": 412, "times": 8}, {"match": "/commit/", "status": 409})
    assert publish({"b.txt": "b"}).paths == ("b.txt",)
    assert len(patient) == 9
    hub.trouble({"match": "POST .*/commit/", "status": 412, "times": 1000})
    assert "others publish there" in refused({"c.txt": "c"})


def test_failures_that_stay_are_told(hub: Any, patient: list[float]) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "/commit/", "status": 503, "message": "resting", "times": 99})
    assert f"failed {client.ATTEMPTS} times (503: resting)" in refused({"b.txt": "b"})
    hub.trouble({"match": "/commit/", "status": 429, "times": 99, "headers": {"Retry-After": "86400"}})
    assert "run it again in 86400 seconds" in refused({"b.txt": "b"})
    hub.kill()
    assert "can't be reached" in refused({"b.txt": "b"})


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_makes_no_second_commit(hub: Any, patient: list[float], when: str) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "POST .*/commit/", "drop": when})
    publish({"b.txt": "b"}, "Add b")
    assert hub.commits(REPO) == ["Add b", "Add files", "initial commit"]
    hub.trouble({"match": "POST .*/commit/", "drop": when})
    done = publish({"c.txt": "c"}, "Propose c", create_pr=True)
    assert done.pr_num == 1
    assert len(list(hub.api().get_repo_discussions(REPO, repo_type="dataset"))) == 1


def test_a_server_that_dies_in_the_middle(hub: Any, patient: list[float]) -> None:
    files = {"data/big.bin": BINARY * 20, "data/other.bin": BINARY[::-1], "README.md": "# x\n"}
    publish({"a.txt": "a"})
    hub.trouble({"match": "PUT /_lfs/", "drop": "exit"})
    assert "can't be reached" in refused(files)
    assert hub.gone()
    hub.kill()
    hub.start()
    assert hub.commits(REPO) == ["Add files", "initial commit"]
    assert set(publish(files, "Again").paths) == set(files)
    assert hub.read(REPO, "data/big.bin") == files["data/big.bin"]


def test_tokens(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    publish({"a.txt": "a"})
    wrong = "hf_wrongwrongwrongwrong"
    text = refused({"b.txt": "b"}, token=wrong)
    assert "refuses the token (401)" in text
    assert wrong not in text
    assert "may only read" in refused({"b.txt": "b"}, token=hub.token("eve"))
    assert "may only read" in refused({"b.txt": "b"}, repo="acme/new", token=hub.token("eve"))
    assert "bob may not write at acme" in refused({"b.txt": "b"}, token=hub.token("bob"))
    monkeypatch.delenv("HF_TOKEN")
    assert "no token was given" in refused({"b.txt": "b"})
    assert hub.commits(REPO) == ["Add files", "initial commit"]


def test_names(hub: Any) -> None:
    assert "no such dataset" in refused({"a.txt": "a"}, create=False)
    hub.api().create_repo("acme/net")
    assert "taken by a model" in refused({"a.txt": "a"}, repo="acme/net")
    assert "acme/net is a model" in refused({"a.txt": "a"}, repo="acme/net", create=False)
    assert "alice may not write at labs" in refused({"a.txt": "a"}, repo="labs/results")
    for name in ("results", "a/b/c", "acme/..", "acme/re sults", ""):
        assert "ORG/NAME" in refused({"a.txt": "a"}, repo=name)


@pytest.mark.parametrize(
    ("status", "message"), [(403, "Private storage limit reached"), (413, "Too big"), (402, "Pay"), (507, "Full")]
)
def test_no_room_on_the_hub(hub: Any, status: int, message: str) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "POST .*/(commit|preupload)/", "status": status, "message": message})
    text = refused({"b.txt": "b"})
    assert "no room" in text
    assert message in text


def test_no_room_on_the_disk(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    publish({"a.txt": "a"})

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")

    monkeypatch.setattr("huggingface_hub.HfApi.hf_hub_download", full)
    assert "/somewhere: no room left on the disk" in refused(lambda head: {"b.txt": head.text("a.txt")})


def test_offline_and_bad_cards(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "refuses" in (text := refused({"README.md": "---\nlicense: [\n---\n"})) or "metadata" in text
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in refused({"a.txt": "a"})


def test_the_store_for_large_files_has_words_of_its_own(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    publish({"a.txt": "a"})

    def store(text: str) -> str:
        def fail(*args: object, **kwargs: object) -> None:
            raise ConnectionError(text)

        monkeypatch.setattr("huggingface_hub.HfApi.create_commit", fail)
        return refused({"b.txt": "b"})

    assert "can't be reached" in store(
        "Network error: Request middleware error: error sending request for url (http://x)"
    )
    text = store("Network error: Request error: HTTP status client error (403 Forbidden), domain: http://x")
    assert "store for large files refuses (403)" in text


def test_commit_storage_that_fails_is_told_at_once_and_given_up(
    hub: Any, patient: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    publish({"a.txt": "a"})
    hub.trouble({"match": "PUT /_lfs/", "status": 500, "times": 99})
    with caplog.at_level(logging.INFO, "bench_datasets.hub"):
        assert f"failed {client.SENDS} times (500" in refused({"data/big.bin": BINARY})
    waits = [record.getMessage() for record in caplog.records if "trying again in" in record.getMessage()]
    assert waits[0].startswith("127.0.0.1")
    assert "answers PUT with 500; trying again in 1 s (1 of 5)" in waits[0]
    assert len(waits) == 5
    assert sum(patient) < 30


def test_commit_token_with_other_characters_is_named(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_café")
    text = refused({"a.txt": "a"})
    assert "token: expected letters, digits and _ alone" in text
    assert "caf" not in text
