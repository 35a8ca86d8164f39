"""Golden values: score tables, results, rows and fault codes that must not change unnoticed.

They were written before the package was rebuilt. Only public names and the command line are used, so that the same file
runs on any version. A difference that is meant is recorded with `python tests/golden/test_golden.py --update` and named
in the changelog.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app

FILE = Path(__file__).with_name("golden.json")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

PROTOCOLS = {
    "pbench": ("released", "paper", "card"),
    "instancebench": ("default",),
    "pvsg": ("official", "volume", "card", "weak_official", "step"),
}
MORE = {
    "pbench": {"boundary": ["--boundary"], "by": ["--by", "level"], "paper skip": ["--protocol", "paper"]},
    "instancebench": {"boundary": ["--boundary"], "by": ["--by", "category"]},
    "pvsg": {
        "ranks": ["--k", "5,10"],
        "tubes": ["--oracle", "tubes"],
        "relations": ["--oracle", "relations"],
    },
}
"""Further options of `score`, under each benchmark's default protocol."""

Golden = dict[str, Any]


def command(*args: object) -> str:
    """The output of a command that must end well."""
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "160"})
    assert done.exit_code == 0, f"{args}: {done.output}"
    return done.stdout


def sha256(value: Any) -> str:
    """SHA-256 of a value as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=plain).encode()).hexdigest()[:32]


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)


def tokens(text: str) -> list[str]:
    """Numbers, metric keys, fault codes and column names of a text, in order; prose may change."""
    return re.findall(r"-?\d[\d,.]*|\b[a-z]+_[a-z_0-9]+\b|\b[\w@.]+/[\w@./]+\b", re.sub(r"/\S*/", " ", text))


def run_of(folder: Path) -> Golden:
    """A run's score table, column by column, and its result without what differs between installations."""
    table = pq.read_table(folder / "scores.parquet")
    result = json.loads((folder / "result.json").read_text())
    for name in ("created", "packages"):
        result.pop(name)
    found = {name: sha256([str(table.schema.field(name).type), table[name].to_pylist()]) for name in table.column_names}
    file = hashlib.sha256((folder / "scores.parquet").read_bytes()).hexdigest()[:32]
    return {"columns": found, "bytes": file, "result": sha256(result), "metrics": sha256(result["metrics"])}


def predictions_of(benchmark: str, demo: Path) -> dict[str, Path]:
    """The sample models' predictions, as `demo` writes them."""
    return {path.stem: path for path in sorted((demo / benchmark).glob("*.jsonl"))}


def scorings(demo: Path) -> Iterator[tuple[str, list[Any]]]:
    """Names and arguments of all scorings of the samples and of the mini data."""
    sources = [
        (benchmark, f"sample {model}", ["--data", "sample", "--predictions", path])
        for benchmark in PROTOCOLS
        for model, path in predictions_of(benchmark, demo).items()
    ]
    if SHARED.is_dir():
        for benchmark, answers in (
            ("pbench", SHARED / "predictions_a" / "pbench.jsonl"),
            ("instancebench", SHARED / "predictions_a" / "instancebench.jsonl"),
            ("pvsg", SHARED / "pvsg_mini" / "predictions"),
        ):
            sources.append((benchmark, "mini", ["--data", SHARED / f"{benchmark}_mini", "--predictions", answers]))
    for benchmark, name, args in sources:
        for protocol in PROTOCOLS[benchmark]:
            yield f"{benchmark} {name} {protocol}", ["score", benchmark, *args, "--protocol", protocol]
        for option, more in MORE[benchmark].items():
            yield f"{benchmark} {name} {option}", ["score", benchmark, *args, *more]


MASK = {"size": [40, 60], "counts": "zz"}

FAULTY: dict[str, dict[str, Any]] = {
    "pbench": {
        "mask": {"id": 0, "masks": [MASK]},
        "scores": {"id": 0, "masks": [], "scores": [0.5]},
        "unknown": {"id": 999_999, "masks": []},
        "nothing": {"id": 0},
    },
    "instancebench": {
        "mask": {"expression_id": "x", "mask": MASK},
        "box": {"expression_id": "x", "box": [0, 0, -1, 4]},
        "nothing": {"expression_id": "x"},
    },
    "pvsg": {
        "span": {"video_id": "v", "tubes": [], "triplets": [
            {"subject_id": 1, "object_id": 2, "predicate": "on", "score": 0.5, "spans": [[5, 1]]}]},
        "mask": {"video_id": "v", "tubes": [
            {"tube_id": 1, "category": "dog", "frames": [0], "masks": [MASK]}], "triplets": []},
        "nothing": {"video_id": "v"},
    },
}  # fmt: skip


def faults_of(benchmark: str, line: dict[str, Any]) -> list[str]:
    """Fault codes that `check` finds in one prediction for the sample, and the one that `score` stops at."""
    truth = load_dataset(benchmark, "sample", split="test", images=False) if benchmark != "pvsg" else load_dataset(
        benchmark, "sample", split="test"
    )  # fmt: skip
    try:
        report = bd.check(benchmark, [line], truth)
        found = [f"{group.code} {group.count}" for group in (*report.errors, *report.warnings)]
    except bd.BenchError:
        found = ["check refuses it"]
    try:
        bd.score(benchmark, truth, [line])
        stopped = "score goes on"
    except bd.FaultError as error:
        stopped = f"score stops at {error.code}"
    except bd.BenchError:
        stopped = "score refuses it"
    return [*sorted(found), stopped]


def rows_of(benchmark: str) -> Golden:
    """The rows of a sample: number, features and content."""
    found: Golden = {}
    for config in {"pbench": ["sample"], "instancebench": ["sample"], "pvsg": ["sample"]}[benchmark]:
        for split, rows in load_dataset(benchmark, config).items():
            raw = rows.with_format("arrow")[:]
            columns = {
                name: sha256(raw[name].to_pylist()) for name in raw.column_names if name not in ("image", "video")
            }
            found[f"{config}/{split}"] = {
                "rows": len(rows),
                "columns": columns,
                "features": sha256(str(rows.features)),
                "version of the builder (raise it when the rows change)": str(rows.info.version),
            }
    return found


def collect(folder: Path) -> Golden:
    """All values of this installation."""
    demo = folder / "demo"
    command("demo", "--out", demo)
    found: Golden = {}
    runs: dict[str, list[Path]] = {}
    for number, (name, args) in enumerate(scorings(demo)):
        out = folder / "runs" / str(number)
        text = command(*args, "--out", out, "--draws", 20)
        found[name] = run_of(out) | {"text": sha256(tokens(text.partition("wrote ")[0]))}
        if " sample " in name and name.endswith((" released", " default", " official")):
            runs.setdefault(name.split()[0], []).append(out)
    for benchmark, folders in runs.items():
        models = predictions_of(benchmark, demo)
        path = next(iter(models.values()))
        texts: dict[str, Callable[[], str]] = {
            "check": lambda b=benchmark, p=path: command("check", b, "--data", "sample", "--predictions", p),
            "compare": lambda f=folders: command("compare", *f[:2], "--draws", 20),
            "info": lambda b=benchmark: command("info", b, "--data", "sample"),
            "explain": lambda b=benchmark, p=path: command(
                "explain", b, "--worst", 2, "--data", "sample", "--predictions", p
            ),
            "leaderboard": lambda f=folders: command("leaderboard", *f),
        }
        for name, call in texts.items():
            found[f"{benchmark} text of {name}"] = sha256(tokens(call()))
        found[f"{benchmark} rows"] = rows_of(benchmark)
        for name, line in FAULTY[benchmark].items():
            found[f"{benchmark} faulty {name}"] = faults_of(benchmark, line)
    return found


def differences(expected: Golden, found: Golden, prefix: str = "") -> list[str]:
    """Names of the entries that differ; bytes of files are compared for one version of Arrow only."""
    result = []
    for name in expected:
        one, other = expected[name], found.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            result += differences(one, other, f"{prefix}{name}: ")
        elif name == "bytes" and expected_arrow() != pa.__version__:
            continue
        elif one != other:
            result.append(f"{prefix}{name}: expected {one}, found {other}")
    return result


def expected_arrow() -> str:
    return str(json.loads(FILE.read_text())["pyarrow"])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return collect(tmp_path_factory.mktemp("golden"))


def test_golden_values_of_samples_are_unchanged(found: Golden) -> None:
    expected = {name: value for name, value in json.loads(FILE.read_text())["values"].items() if " mini " not in name}
    assert differences(expected, found) == []
    assert set(expected) == {name for name in found if " mini " not in name}


def test_golden_values_of_real_data_are_unchanged(found: Golden, shared: Path) -> None:
    expected = {name: value for name, value in json.loads(FILE.read_text())["values"].items() if " mini " in name}
    assert expected
    assert differences(expected, found) == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        values = collect(Path(scratch))
    old = json.loads(FILE.read_text())["values"] if FILE.exists() else {}
    for entry in differences(old, values):
        print(entry)
    print(*(f"new: {name}" for name in values if name not in old), sep="\n")
    if "--update" in sys.argv:
        FILE.write_text(json.dumps({"pyarrow": pa.__version__, "values": values}, indent=1, sort_keys=True) + "\n")
