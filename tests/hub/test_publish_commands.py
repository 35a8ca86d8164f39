"""`publish dataset` and `publish metrics` on the command line, and the scripts that are the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bench_datasets import samples
from bench_datasets.cli import app
from bench_datasets.hub.commits import commit

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run(*args: object) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(app, ["publish", *map(str, args)])


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def test_dataset(hub: Any) -> None:
    args = ["dataset", "instancebench", "--data", "sample", "--repo", "acme/ib"]
    planned = run(*args, "--dry-run", "--with-images")
    assert planned.exit_code == 0, planned.output
    assert "new dataset acme/ib" in planned.stdout
    assert "+# InstanceBench (built-in sample)" in planned.stdout
    assert not hub.api().repo_exists("acme/ib", repo_type="dataset")
    done = run(*args, "--json", "--private")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["created"]
    assert "README.md" in found["paths"]
    assert hub.api().repo_info("acme/ib", repo_type="dataset").private


def test_images_are_asked_for(hub: Any) -> None:
    args = ["dataset", "instancebench", "--repo", "acme/ib", "--with-images", "--data"]
    refused = run(*args, samples.instancebench_sample_dir())
    assert refused.exit_code == 1
    assert "licence: not stated" in refused.stderr.replace("\n", " ")
    assert "add --yes" in refused.stderr
    assert not hub.api().repo_exists("acme/ib", repo_type="dataset")
    done = run(*args, "sample", "--yes")
    assert done.exit_code == 0, done.output
    assert b"dtype: image" in hub.read("acme/ib", "README.md").split(b"config_name: expressions")[0]
    assert run(*args, "sample", "--labels-only").exit_code == 2


def test_what_stands_in_the_way_is_one_line(reading: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = reading
    commit("acme/theirs", "dataset", {"README.md": "---\ntags: [cats]\n---\nCats.\n"}, "cats", create=True)

    def line(what: str, *args: str, token: str = "alice") -> str:
        """What a command that fails says, whichever is published."""
        monkeypatch.setenv("HF_TOKEN", str(hub.token(token) if token in ("alice", "bob", "eve") else token))
        done = run(what, *args)
        assert done.exit_code == 1, done.output
        assert "hf_" not in done.output.replace("hf_***", "")
        (text,) = done.stderr.splitlines()
        assert text.startswith("error: ")
        return str(text)

    def dataset(repo: str = "acme/ib", data: str = "sample", **options: str) -> str:
        return line("dataset", "instancebench", "--data", data, "--repo", repo, **options)

    def metric(**options: str) -> str:
        return line("metrics", "pbench", "--org", "acme", **options)

    for publish in (dataset, metric):
        assert "refuses the token (401)" in publish(token="hf_wrongwrongwrongwrong")
        assert "may only read" in publish(token="eve")
        assert "bob may not write at acme" in publish(token="bob")
    assert "acme/theirs: expected a new repo" in dataset("acme/theirs")
    assert "ORG/NAME" in dataset("net")
    assert "could not be read" in dataset(data="hf://datasets/acme/absent")
    sending = "POST .*/(preupload|commit)/"
    for status, message in ((413, "Too big"), (507, "Disk full")):
        hub.trouble({"match": sending, "status": status, "message": message})
        assert re.search(f"no room for it .*{message}", dataset())
    hub.trouble({"match": "/commit/", "status": 429, "times": 99, "headers": {"Retry-After": "86400"}})
    assert "run it again in 86400 seconds" in dataset()


def test_scripts(hub: Any) -> None:
    for name, args, words in (
        ("publish_dataset", ["instancebench", "--data", "sample", "--repo", "acme/ib", "--dry-run"], "new dataset"),
        ("publish_metrics", ["pvsg", "--org", "acme", "--dry-run"], "new space acme/pvsg"),
    ):
        done = subprocess.run(
            [sys.executable, str(SCRIPTS / f"{name}.py"), *args],
            env={**hub.env, "HF_TOKEN": str(hub.token("alice"))}, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert words in done.stdout


def test_metrics(hub: Any) -> None:
    done = run("metrics", "pbench", "pvsg", "--org", "acme")
    assert done.exit_code == 0, done.output
    assert hub.api().list_repo_files("acme/pvsg", repo_type="space").count("pvsg.py") == 1
    unknown = run("metrics", "pbanch", "--org", "acme")
    assert unknown.exit_code == 2
    assert "Did you mean 'pbench'?" in unknown.stderr.replace("\n", " ")
