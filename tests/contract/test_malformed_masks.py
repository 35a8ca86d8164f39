"""Malformed masks through `datasets` and `evaluate`: an error that names the row, from a process that lives on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench_datasets.masks import available_engines

COMMON = """
import base64, json, sys
import bench_datasets as bd
cases = [case for case in json.load(open(sys.argv[1]))]
good = {"size": [10, 10], "counts": "d0n0b1"}
def mask(case):
    counts = base64.b64decode(case["counts_base64"]) if "counts_base64" in case else case["counts"]
    return {"size": case["size"], "counts": counts}
def expect(case, door, call, *words):
    print(door, case["name"], flush=True)
    try:
        call()
    except bd.BenchError as error:
        assert case["expect"] == "error", (door, case["name"], str(error))
        assert all(word in str(error) for word in words), (door, case["name"], str(error))
    else:
        assert case["expect"] == "ok", (door, case["name"], "was accepted")
"""

DOORS = {
    "evaluate": """
import evaluate
path = bd.metric_path("pbench")
for case in cases:
    for column in ("predictions", "references"):
        rows = {"predictions": [[good], [good], [good]], "references": [[good], [good], [good]]}
        rows[column][1] = [good, mask(case)]
        sized = case["size"] == [10, 10] or case["expect"] == "error" or column == "predictions"
        if not sized:
            continue
        metric = evaluate.load(path)
        if column == "references":
            expect(case, column, lambda: metric.compute(**rows, levels="level_0"), "row 1", column, "mask 1")
            continue
        ids = {"ids": ["a", "b", "c"]}
        expect(case, column, lambda: metric.add_batch(**rows, **ids, levels=["level_0"] * 3), "row b", column)
for odd in (7, "text", {"size": [10, 10]}, [[1, 2, 3]], [None], good, [good, good["counts"]], [[good]]):
    rows = {"predictions": [[good], odd], "references": [[good], [good]]}
    case = {"name": repr(odd)[:40], "expect": "error"}
    expect(case, "odd", lambda: evaluate.load(path).compute(**rows, levels=0), "row 1")
""",
    "map": """
from datasets import Dataset
for case in cases:
    for column in ("masks", "pred_masks"):
        bad = mask(case)
        if column == "masks" and case["expect"] == "ok" and case["size"] != [10, 10]:
            continue
        def batch(rows):
            rows[column][1] = [good, bad]
            return rows
        columns = {"id": [5, 6, 7], "level": ["level_0"] * 3, "masks": [[good]] * 3, "pred_masks": [[good]] * 3}
        rows = {name: list(values) for name, values in columns.items()}
        scorer = bd.scorer("pbench")
        expect(case, column, lambda: scorer(batch(rows)), "level_0/6", "mask 1")
        dataset = Dataset.from_dict({name: columns[name] for name in ("id", "level")})
        wrapped = lambda part: scorer(batch({**part, "masks": [[good]] * 3, "pred_masks": [[good]] * 3}))
        if column == "pred_masks":
            call = lambda: dataset.map(wrapped, batched=True, remove_columns=["id", "level"],
                                       features=bd.score_features("pbench"), load_from_cache_file=False)
            expect(case, column, call, "level_0/6", "mask 1")
        if isinstance(bad["counts"], str) and bad["size"] and all(isinstance(side, int) for side in bad["size"]):
            table = Dataset.from_dict(batch({name: list(values) for name, values in columns.items()}))
            expect(case, column, lambda: bd.map_score(table, "pbench"), "level_0/6", "mask 1")
            skipping = bd.map_score(table, "pbench", on_fault="skip-and-report")
            assert list(skipping["skipped"]) == [False, case["expect"] == "error", False], case["name"]
        text = {name: list(values) for name, values in columns.items()}
        if isinstance(bad["counts"], str):
            text[column] = [[json.dumps(good)], [json.dumps(good), json.dumps(bad)], [json.dumps(good)]]
            expect(case, column, lambda: bd.map_score(Dataset.from_dict(text), "pbench"), "level_0/6", "mask 1")
""",
}  # fmt: skip


@pytest.mark.parametrize(("door", "engine"), [("evaluate", "pycocotools"), ("map", available_engines()[0])])
def test_malformed_masks(door: str, engine: str, shared: Path, tmp_path: Path) -> None:
    script = tmp_path / "door.py"
    script.write_text(COMMON + DOORS[door] + "print('done')\n")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, str(script), str(shared / "data" / "malformed_masks.json")],
        env={
            **os.environ, "PYTHONPATH": str(root), "BENCH_DATASETS_ENGINE": engine, "HF_HOME": str(tmp_path / "home"),
            "HF_DATASETS_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended after {done.stdout.splitlines()[-1:]}: {done.stderr[-3000:]}"
    assert done.stdout.splitlines()[-1] == "done"
