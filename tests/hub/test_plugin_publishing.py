"""Another package's benchmark on the Hub: its truth, and results on it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from bench_datasets.plugins import GROUP

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin_refcoco"
WRITE = """
import json
from datasets import load_dataset
import bench_datasets
for row in load_dataset("refcoco_toy", "sample", split="test"):
    print(json.dumps({"key": row["key"], "masks": row["masks"]}))
"""


@pytest.fixture
def run(hub: Any, tmp_path: Path) -> Any:
    """Run the command line, or code, where the example is installed; gives what it prints."""
    info = tmp_path / "site" / "bench_refcoco-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench_refcoco\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nrefcoco_toy = bench_refcoco:BENCHMARK\n")
    paths = os.pathsep.join([str(info.parent), str(EXAMPLE), hub.env["PYTHONPATH"]])

    def call(args: Any, code: int = 0) -> Any:
        done = hub.run(args, PYTHONPATH=paths)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


def test_truth_and_results(run: Any, reading: Any, tmp_path: Path) -> None:
    publish = ["publish", "dataset", "refcoco_toy", "--data", "sample", "--repo", "acme/toy", "--json"]
    assert "eval.yaml" in json.loads(run(publish))["paths"]
    assert json.loads(run(publish))["paths"] == []
    rows = load_dataset("acme/toy", split="test", token=reading.token("alice"))
    assert rows["expression"][:] == [f"the {word} square" for word in ("left", "right", "upper", "lower")]
    assert rows["source_id"][:] == ["0", "1", "2", "3"]
    assert set(rows["source_revision"]) == {"bench_refcoco 1.0"}
    card = reading.read("acme/toy", "README.md").decode()
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert metadata["license"] == "apache-2.0"
    assert metadata["task_categories"] == ["image-segmentation"]
    assert {"bench-datasets", "referring-segmentation"} <= set(metadata["tags"])
    assert "| `masks` | list of mask | The mask of the one square that is meant" in card
    assert "| test | 4 | 4 | 0 |" in card
    assert "Masks drawn on a plain ground." in card
    preview = load_dataset("acme/toy", "preview", split="val", token=reading.token("alice"))
    assert preview["count"][:] == [1, 1, 1]
    assert preview[0]["overlay"].size[0] > 1

    (tmp_path / "out.jsonl").write_text(run(WRITE))
    score = ["score", "refcoco_toy", "--data", "sample", "--predictions", tmp_path / "out.jsonl"]
    run([*score, "--out", tmp_path / "run", "--draws", "50"])
    reading.api().create_repo("acme/net")
    results = ["publish", "results", tmp_path / "run", "--model", "acme/net", "--repo", "acme/results"]
    said = json.loads(run([*results, "--dataset", "acme/toy", "--direct", "--json"]))
    assert said["remarks"] == []
    (entry,) = yaml.safe_load(reading.read("acme/net", ".eval_results/refcoco_toy.yaml", kind="model"))
    assert (entry["dataset"]["id"], entry["dataset"]["task_id"], entry["value"]) == ("acme/toy", "default/miou", 100.0)
    assert "; miou, n = 4 of 4 rows;" in entry["notes"]
    folder = "acme/net/refcoco_toy-default"
    stored = json.loads(reading.read("acme/results", f"results/{folder}/result.json"))
    assert stored["metrics"]["miou"]["value"] == 1.0
    table = load_dataset("acme/results", folder.replace("/", "--"), split="test", token=reading.token("alice"))
    assert table["intersection"][:] == [225] * 4
    assert "miou" in run(["leaderboard", "acme/results"])


def test_metrics_are_refused(run: Any) -> None:
    assert "no `evaluate` module" in run(["publish", "metrics", "refcoco_toy", "--org", "acme"], code=1)
