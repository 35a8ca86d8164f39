"""`publish dataset` and `publish metrics` on the command line, and the scripts that are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench_datasets import samples

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def test_dataset(hub: Any) -> None:
    args = ["publish", "dataset", "instancebench", "--data", "sample", "--repo", "acme/ib"]
    planned = hub.run([*args, "--dry-run", "--with-images"])
    assert planned.returncode == 0, planned.stderr
    assert "new dataset acme/ib" in planned.stdout
    assert "+# InstanceBench (built-in sample)" in planned.stdout
    assert not hub.api().repo_exists("acme/ib", repo_type="dataset")
    done = hub.run([*args, "--json", "--private"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["created"]
    assert "README.md" in found["paths"]
    assert hub.api().repo_info("acme/ib", repo_type="dataset").private


def test_images_are_asked_for(hub: Any) -> None:
    args = ["publish", "dataset", "instancebench", "--repo", "acme/ib", "--with-images", "--data"]
    refused = hub.run([*args, samples.instancebench_sample_dir()])
    assert refused.returncode == 1
    assert "licence: not stated" in refused.stderr.replace("\n", " ")
    assert "add --yes" in refused.stderr
    assert not hub.api().repo_exists("acme/ib", repo_type="dataset")
    done = hub.run([*args, "sample", "--yes"])
    assert done.returncode == 0, done.stderr
    assert b"dtype: image" in hub.read("acme/ib", "README.md").split(b"config_name: expressions")[0]
    usage = hub.run([*args, "sample", "--labels-only"])
    assert usage.returncode == 2


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
    done = hub.run(["publish", "metrics", "pbench", "pvsg", "--org", "acme"])
    assert done.returncode == 0, done.stderr
    assert hub.api().list_repo_files("acme/pvsg", repo_type="space").count("pvsg.py") == 1
    unknown = hub.run(["publish", "metrics", "pbanch", "--org", "acme"])
    assert unknown.returncode == 2
    assert "Did you mean 'pbench'?" in unknown.stderr.replace("\n", " ")
