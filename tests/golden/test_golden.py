"""Golden values: score tables, results, rows and fault codes that must not change unnoticed.

They were written before the package was rebuilt. Only public names and the command line are used, so that the same file
runs on any version. Prose may change: of texts only the numbers, keys and codes count. A difference that is meant is
recorded with `python tests/golden/test_golden.py --update` and named in the changelog. Rows that change need a higher
version of their builder first; `--update` refuses them otherwise.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import html
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets.config
import huggingface_hub.constants
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Version, load_dataset
from PIL import Image
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
    "pbench": {"boundary": ["--boundary"], "by": ["--by", "level"]},
    "instancebench": {"boundary": ["--boundary"], "by": ["--by", "category"]},
    "pvsg": {
        "ranks": ["--k", "5,10"],
        "tubes": ["--oracle", "tubes"],
        "relations": ["--oracle", "relations"],
    },
}
"""Further options of `score`, under each benchmark's default protocol."""

Golden = dict[str, Any]


def command(*args: object, code: int = 0) -> str:
    """The output of a command that must end with an exit code."""
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "160"})
    assert done.exit_code == code, f"{args}: {done.output}"
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


VOLATILE = {"created", "packages", "version_of_package", "place_read", "size", "written", "sample", "predictions_path"}
"""Names in JSON outputs whose values differ between installations, or with the length of prose."""


def facts(value: Any) -> Any:
    """A JSON output without prose: a text with a space is its numbers, keys and codes; paths and times are left out."""
    if isinstance(value, dict):
        return {name: facts(item) for name, item in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [facts(item) for item in value]
    if isinstance(value, str):
        if value.startswith(os.sep) or re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", value):
            return None
        return PROSE if re.search(r"\s", value) else value
    return value


PROSE = "(prose)"


def row_digests(columns: Golden) -> str:
    """Four hex digits of each row's hash, so that a difference is found by its row."""
    names = sorted(columns)
    return "".join(sha256(row)[:4] for row in zip(*(columns[name] for name in names), strict=True))


def run_of(folder: Path) -> Golden:
    """A run's score table by column and by row, its metadata, and its result without what differs between machines."""
    table = pq.read_table(folder / "scores.parquet")
    result = json.loads((folder / "result.json").read_text())
    for name in ("created", "packages"):
        result.pop(name)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    found = {name: sha256([str(table.schema.field(name).type), values]) for name, values in columns.items()}
    kept = json.loads(table.schema.metadata[b"huggingface"])
    source = result["dataset"]["source"]
    for dataset in (result["dataset"], kept["bench_datasets"]["dataset"]):
        dataset["source"] = Path(dataset["source"]).name  # where a folder is differs between machines
    file = hashlib.sha256((folder / "scores.parquet").read_bytes()).hexdigest()[:32]
    return {
        "columns": found,
        "row digests": row_digests(columns),
        "metadata": sha256([table.column_names, kept]),
        **({"bytes": file} if source == "sample" else {}),
        "result": sha256(result),
        "metrics": sha256(result["metrics"]),
    }


def predictions_of(benchmark: str, demo: Path) -> dict[str, Path]:
    """The sample models' predictions, as `demo` writes them."""
    return {path.stem: path for path in sorted((demo / benchmark).glob("*.jsonl"))}


def with_conditions(demo: Path, folder: Path) -> Path:
    """Predictions of InstanceBench with three runs, and with two conditions answered as other models answer."""
    lines = (demo / "instancebench" / "careful.jsonl").read_text().splitlines()
    for condition, model in (("category_only", "hasty"), ("text_swap", "crowd_shy")):
        for line in (demo / "instancebench" / f"{model}.jsonl").read_text().splitlines():
            answer = json.loads(line)
            if answer.setdefault("condition", "original") == "original":
                lines.append(json.dumps({**answer, "condition": condition}))
    file = folder / "conditions.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def refcoco(folder: Path) -> tuple[Path, Path]:
    """A manifest converted from RefCOCO's layout, and predictions: the first mask of each row."""
    manifest = folder / "refcoco" / "test.jsonl"
    source = SHARED / "res_mini" / "refcoco"
    parts = ["--instances", source / "instances.json", "--refs", source / "refs(unc).p", "--split", "val"]
    command("convert", "refcoco", *parts, "--out", manifest)
    known = {item["expression_id"] for line in manifest.read_text().splitlines() for item in expressions(line)}
    file = folder / "refcoco.jsonl"
    with file.open("w") as out:
        for line in (SHARED / "res_mini" / "a" / "predictions.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["key"] in known:
                out.write(
                    json.dumps({"expression_id": row["key"], "mask": next(iter(row["masks"] or ()), None)}) + "\n"
                )
    return manifest, file


def expressions(line: str) -> list[dict[str, Any]]:
    return list(json.loads(line)["expressions"])


def scorings(demo: Path, folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Names and arguments of all scorings of the samples and of the mini data."""
    sources = [
        (benchmark, f"sample {model}", ["--data", "sample", "--predictions", path])
        for benchmark in PROTOCOLS
        for model, path in predictions_of(benchmark, demo).items()
    ]
    path = with_conditions(demo, folder)
    sources.append(("instancebench", "sample conditions", ["--data", "sample", "--predictions", path]))
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
    if SHARED.is_dir():
        manifest, path = refcoco(folder)
        args = ["--data", manifest.parent, "--predictions", path, "--missing", "empty"]
        yield "instancebench mini refcoco", ["score", "instancebench", *args]


MASK = {"size": [40, 60], "counts": "zz"}
OTHER_SIZE = {"size": [4, 6], "counts": [8, 16]}

FAULTY: dict[str, dict[str, dict[str, Any]]] = {
    "pbench": {
        "mask": {"masks": [MASK], "scores": [0.5]},
        "size": {"masks": [OTHER_SIZE], "scores": [0.5]},
        "number of scores": {"masks": [], "scores": [0.5]},
        "score": {"scores": [float("nan")], "masks": [OTHER_SIZE]},
        "unknown row": {"id": 999_999},
        "no masks": {"masks": None},
    },
    "instancebench": {
        "mask": {"mask": MASK},
        "size": {"mask": OTHER_SIZE},
        "box": {"mask": None, "box": [0, 0, -1, 4]},
        "unknown row": {"expression_id": "x"},
        "unknown condition": {"condition": "by heart"},
        "unknown candidate": {"candidate_id": "x"},
    },
    "pvsg": {
        "mask": {"tubes": [{"tube_id": 1, "category": "dog", "frames": [0], "masks": [MASK]}], "triplets": []},
        "size": {"tubes": [{"tube_id": 1, "category": "dog", "frames": [0], "masks": [OTHER_SIZE]}], "triplets": []},
        "frames": {"tubes": [{"tube_id": 1, "category": "dog", "frames": [0, 1], "masks": [MASK]}], "triplets": []},
        "category": {"tubes": [{"tube_id": 1, "category": "zzz", "frames": [], "masks": []}], "triplets": []},
        "span": {"triplets": [
            {"subject_id": 11, "object_id": 12, "predicate": "on", "score": 0.5, "spans": [[5, 1]]}]},
        "tube": {"triplets": [
            {"subject_id": 998, "object_id": 999, "predicate": "on", "score": 0.5, "spans": [[0, 1]]}]},
        "unknown row": {"video_id": "v"},
    },
}  # fmt: skip
"""What the first of the sample's predictions is changed to; the others stay right."""


def faults_of(benchmark: str, truth: Any, lines: list[dict[str, Any]]) -> list[str]:
    """Codes and keys that `check` finds, that the score table holds, and that `score` stops at."""
    try:
        report = bd.check(benchmark, lines, truth)
        groups = [("error", group) for group in report.errors] + [("warning", group) for group in report.warnings]
        found = [f"check {kind} {group.code} {group.count} {group.examples[0].key}" for kind, group in groups]
    except bd.BenchError as error:
        found = [f"check refuses it: {getattr(error, 'code', '')} {getattr(error, 'key', '')}".rstrip()]
    try:
        scores = bd.score(benchmark, truth, lines, on_fault="count-as-wrong")
        held = {
            f"table {code} {key}" for key, codes in zip(scores["key"], scores["faults"], strict=True) for code in codes
        }
    except bd.BenchError as error:
        held = {f"count-as-wrong refuses it: {getattr(error, 'code', '')} {getattr(error, 'key', '')}".rstrip()}
    try:
        bd.score(benchmark, truth, lines)
        stopped = "score goes on"
    except bd.FaultError as error:
        stopped = f"score stops at {error.code} {error.key}"
    except bd.BenchError:
        stopped = "score refuses it"
    return [*sorted(found), *sorted(held), stopped]


def faults(benchmark: str, predictions: Path) -> Golden:
    """Faults of the sample with one faulty prediction, and with each mask of the file of malformed masks in a row."""
    truth = load_dataset(benchmark, "sample", split="test")
    lines = [json.loads(line) for line in predictions.read_text().splitlines()]
    found: Golden = {}
    for name, change in FAULTY[benchmark].items():
        found[f"{benchmark} faulty {name}"] = faults_of(
            benchmark, truth, [{**lines[0], **change}, *copy.deepcopy(lines[1:])]
        )
    file = SHARED / "malformed_masks.json"
    if benchmark != "pvsg" and file.is_file():
        for mask, line in zip(json.loads(file.read_text()), lines, strict=False):
            mask = {name: value for name, value in mask.items() if name in ("size", "counts")}
            line.update({"masks": [mask], "scores": [0.5]} if benchmark == "pbench" else {"mask": mask})
        found[f"{benchmark} mini malformed masks"] = faults_of(benchmark, truth, lines)
    return found


def hashable(name: str, value: Any) -> Any:
    """A column's value; an image is the hash of its pixels, whatever wrote the file."""
    if name != "image" or value is None:
        return value
    image = Image.open(io.BytesIO(value["bytes"]) if value["bytes"] else value["path"])
    return [image.mode, image.size, hashlib.sha256(image.tobytes()).hexdigest()]


VERSION = "version of the builder (raise it when the rows change)"


def rows_of(benchmark: str) -> Golden:
    """The rows of a sample: number, features and content."""
    found: Golden = {}
    for split, rows in load_dataset(benchmark, "sample").items():
        raw = rows.with_format("arrow")[:]
        columns = {name: [hashable(name, value) for value in raw[name].to_pylist()] for name in raw.column_names}
        found[f"sample/{split}"] = {
            "rows": len(rows),
            "columns": {name: sha256(values) for name, values in columns.items()},
            "row digests": row_digests(columns),
            "features": str(rows.features),
            VERSION: str(rows.info.version),
        }
    return found


def report_data(page: Path) -> Any:
    """The JSON in a report's page without pictures, whose bytes depend on the image library."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert text is not None
    data = json.loads(text[1])
    kept = {name: data.pop(name) for name in ("rows", "runs", "groups", "alphabet")}
    del data["images"], data["pictures"]
    return [facts(data), kept]


def collect(folder: Path) -> Golden:
    """All values of this installation."""
    demo = folder / "demo"
    command("demo", "--out", demo)
    found: Golden = {}
    runs: dict[str, list[Path]] = {}
    for number, (name, args) in enumerate(scorings(demo, folder)):
        out = folder / "runs" / str(number)
        text = command(*args, "--out", out, "--draws", 20)
        found[name] = run_of(out) | {"text": sha256(tokens(text.partition("wrote ")[0]))}
        if name.endswith(("sample conditions default", "mini refcoco")):
            runs[name] = [out]
        elif " sample " in name and name.endswith((" released", " default", " official")):
            runs.setdefault(name.split()[0], []).append(out)
    for benchmark in PROTOCOLS:
        folders = runs[benchmark]
        path = next(iter(predictions_of(benchmark, demo).values()))
        names = [arg for name in "abc" for arg in ("--name", name)]
        draws = ["--draws", 20, "--permutations", 200]
        sample = [benchmark, "--data", "sample"]
        outputs: dict[str, list[Any]] = {
            "check": ["check", *sample, "--predictions", path],
            "compare": ["compare", *folders[:2], *names[:4], *draws],
            "explain": ["explain", *sample, "--worst", 2, "--predictions", path],
            "info": ["info", *sample],
            "leaderboard": ["leaderboard", *folders],
        }
        for name, args in outputs.items():
            found[f"{benchmark} text of {name}"] = sha256(tokens(without_times(command(*args))))
            found[f"{benchmark} JSON of {name}"] = sha256(facts(json.loads(command(*args, "--json"))))
        run = ["results", folders[0], "--model", "a/b", "--repo", "a/c", "--force"]
        for name, args in (
            ("results", run),
            ("dataset", ["dataset", *sample, "--repo", "a/b", "--labels-only"]),
            ("metrics", ["metrics", benchmark, "--org", "a"]),
        ):
            text = command("publish", *args, "--dry-run", "--json", code=1)  # 1: the Hub could not be asked
            found[f"{benchmark} publish {name}"] = {"bytes": sha256(diffs(json.loads(text)))}
        found[f"{benchmark} report"] = sha256(report_data(demo / benchmark / "report.html"))
        found[f"{benchmark} rows"] = rows_of(benchmark)
        found |= faults(benchmark, path)
    out = runs["instancebench sample conditions default"][0]
    for option, value, other in (
        ("--run", "1", runs["instancebench"][0]),
        ("--condition", "category_only", out),
    ):
        text = command("compare", out, other, "--name", "a", "--name", "b", option, value, *draws, "--json")
        found[f"instancebench JSON of compare {option}"] = sha256(facts(json.loads(text)))
    if SHARED.is_dir():
        lines = [json.loads(line) for line in (folder / "refcoco" / "test.jsonl").read_text().splitlines()]
        found["instancebench mini refcoco manifest"] = sha256(lines)
    return found


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d([T ][\d:+.]+)?", "", text)


def diffs(value: Any) -> list[Any]:
    """Paths of the files that would be published, and the numbers, keys and codes of their texts; modules may move."""
    if isinstance(value, dict):
        text = re.sub(r"bench_datasets(\.\w+)+", "", without_times(html.unescape(value.get("diff") or "")))
        own = [[value["path"], tokens(text)]] if "path" in value else []
        return own + [change for item in value.values() for change in diffs(item)]
    return [change for item in value for change in diffs(item)] if isinstance(value, list) else []


def differences(expected: Golden, found: Golden, prefix: str = "") -> list[str]:
    """Names of the entries that differ; bytes of files are compared for one version of Arrow only."""
    result = []
    for name in sorted(expected.keys() | found.keys()):
        one, other = expected.get(name), found.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            result += differences(one, other, f"{prefix}{name}: ")
        elif name == "bytes" and expected_arrow() != pa.__version__:
            continue
        elif one != other:
            if name == "row digests" and one and other and len(one) == len(other):
                row = next(row for row in range(0, len(one), 4) if one[row : row + 4] != other[row : row + 4])
                one, other = f"row {row // 4} is {one[row : row + 4]}", other[row : row + 4]
            result.append(f"{prefix}{name}: expected {one}, found {other}")
    return result


def not_raised(expected: Golden, found: Golden) -> list[str]:
    """Samples whose rows changed while the version of their builder is not higher."""
    result = []
    for name in (name for name in expected if name.endswith(" rows") and name in found):
        for split in expected[name].keys() & found[name].keys():
            one, other = dict(expected[name][split]), dict(found[name][split])
            before, after = Version(one.pop(VERSION)), Version(other.pop(VERSION))
            if one != other and not after > before:
                result.append(f"{name}: {split}: the rows changed, but the builder's version is still {after}")
    return sorted(result)


def expected_arrow() -> str:
    return str(json.loads(FILE.read_text())["pyarrow"])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return collect(tmp_path_factory.mktemp("golden"))


def test_golden_values_of_samples_are_unchanged(found: Golden) -> None:
    expected = {name: value for name, value in json.loads(FILE.read_text())["values"].items() if " mini " not in name}
    told = differences(expected, {name: value for name, value in found.items() if " mini " not in name})
    assert not told, "\n".join(told)


def test_golden_values_of_real_data_are_unchanged(found: Golden, shared: Path) -> None:
    expected = {name: value for name, value in json.loads(FILE.read_text())["values"].items() if " mini " in name}
    assert expected
    told = differences(expected, {name: value for name, value in found.items() if " mini " in name})
    assert not told, "\n".join(told)


def test_golden_rows_that_changed_need_a_higher_version_of_the_builder() -> None:
    expected = json.loads(FILE.read_text())["values"]
    found = copy.deepcopy(expected)
    assert not_raised(expected, found) == []
    for name in PROTOCOLS:
        found[f"{name} rows"]["sample/test"]["columns"]["key"] = "other"
    told = not_raised(expected, found)
    assert [line.split(":")[0] for line in told] == ["instancebench rows", "pbench rows", "pvsg rows"]
    for name in PROTOCOLS:
        found[f"{name} rows"]["sample/test"][VERSION] = "99.0.0"
    assert not_raised(expected, found) == []


def test_golden_difference_names_the_column_and_the_row() -> None:
    expected = {"run": {"columns": {"iou": "a", "key": "b"}, "row digests": "000011112222"}}
    found = {"run": {"columns": {"iou": "c", "key": "b"}, "row digests": "000011113333"}}
    told = ["run: columns: iou: expected a, found c", "run: row digests: expected row 2 is 2222, found 3333"]
    assert differences(expected, found) == told
    assert differences({}, {"new": 1}) == ["new: expected None, found 1"]


if __name__ == "__main__":
    huggingface_hub.constants.HF_HUB_OFFLINE = True
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "hf-home"  # rows that earlier code built, under the same version, are not read
        os.environ["HF_HOME"], os.environ["HF_DATASETS_CACHE"] = str(home), str(home / "datasets")
        datasets.config.HF_CACHE_HOME, datasets.config.HF_DATASETS_CACHE = str(home), home / "datasets"
        values = collect(Path(scratch))
    old = json.loads(FILE.read_text())["values"] if FILE.exists() else {}
    if not SHARED.is_dir():  # keep what cannot be computed here
        values |= {name: value for name, value in old.items() if " mini " in name}
    print(*differences(old, values), sep="\n")
    if "--update" in sys.argv:
        if refused := not_raised(old, values):
            sys.exit("\n".join([*refused, "Raise the version in the benchmark's build.py, then update again."]))
        FILE.write_text(json.dumps({"pyarrow": pa.__version__, "values": values}, indent=1, sort_keys=True) + "\n")
