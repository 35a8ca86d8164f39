"""Published metrics: `evaluate.load("org/name")` where the package is, plain words where it is not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.hub.metrics import metric_files, publish_metrics

LOAD = """
import evaluate
for name in ("pbench", "instancebench", "pvsg"):
    metric = evaluate.load("acme/" + name)
    print(name, type(metric).__name__)
    if name == "pbench":
        mask = {"size": [2, 3], "counts": "15"}
        found = metric.compute(predictions=[[mask], []], references=[[mask], [mask]], levels=["level_0"] * 2)
        print(found["macro_f1/level_0"])
"""

WITHOUT = """
import sys
sys.modules["bench_datasets"] = None
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "bench_datasets":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
del sys.modules["bench_datasets"]
sys.meta_path.insert(0, Absent())
import evaluate
try:
    evaluate.load(sys.argv[1])
except ImportError as error:
    print(error)
"""


def test_evaluate_loads_them(hub: Any) -> None:
    done = publish_metrics(org="acme")
    assert [one.repo_id for one in done] == ["acme/pbench", "acme/instancebench", "acme/pvsg"]
    assert hub.api().repo_info("acme/pbench", repo_type="space").sdk == "static"
    found = hub.run(LOAD, HF_UPDATE_DOWNLOAD_COUNTS="0")
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.split() == ["pbench", "Pbench", "0.5", "instancebench", "Instancebench", "pvsg", "Pvsg"]
    env = {name: value for name, value in hub.env.items() if name != "PYTHONPATH"}
    plain = subprocess.run(
        [sys.executable, "-I", "-c", WITHOUT, "acme/pbench"],
        env={**env, "HF_UPDATE_DOWNLOAD_COUNTS": "0"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "PBench metric needs the package bench-datasets: pip install bench-datasets" in plain.stdout, plain.stderr


def test_twice_is_once(hub: Any) -> None:
    publish_metrics(["pvsg"], org="acme")
    commits = hub.commits("acme/pvsg", "space")
    (again,) = publish_metrics(["pvsg"], org="acme")
    assert again.paths == ()
    assert hub.commits("acme/pvsg", "space") == commits


def test_beside_a_dataset_of_that_name(hub: Any) -> None:
    hub.api().create_repo("acme/pvsg", repo_type="dataset")
    (done,) = publish_metrics(["pvsg"], org="acme")
    assert done.created


def test_dry_run_writes_nothing(hub: Any) -> None:
    (plan,) = publish_metrics(["pbench"], org="acme", dry_run=True)
    assert {change.path for change in plan.changes} == {"README.md", "index.html", "pbench.py", "requirements.txt"}
    assert not hub.api().repo_exists("acme/pbench", repo_type="space")


def test_bad_input(hub: Any) -> None:
    with pytest.raises(bd.BenchError, match="expected one of pbench, instancebench, pvsg, got 'coco'"):
        publish_metrics(["coco"], org="acme")
    with pytest.raises(bd.BenchError, match="org: expected the name"):
        publish_metrics(["pbench"], org="acme/pbench")
    with pytest.raises(bd.BenchError, match="may not write at labs"):
        publish_metrics(["pbench"], org="labs")


def test_the_modules_hold_no_code_of_their_own() -> None:
    for name in ("pbench", "instancebench", "pvsg"):
        files = metric_files(name, f"acme/{name}")
        assert len(str(files[f"{name}.py"]).splitlines()) < 20
        compile(str(files[f"{name}.py"]), name, "exec")
        assert f'evaluate.load("acme/{name}")' in str(files["README.md"])
