"""Every known malformed mask through the doors of InstanceBench and PVSG, in a process that may not hang or crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..support.dense_masks import decode
from ..support.malformed_masks import cases, mask_of, typed

READ = """
import json, sys
from bench_datasets.predictions import check, read_predictions
benchmark, path = sys.argv[1:]
rows = {}
for row in read_predictions(benchmark, path):
    if benchmark == "instancebench":
        mask, name = row["mask"], row["expression_id"]
    else:
        (tube,) = row["pred_tubes"] or [{"masks": []}]
        mask, name = (tube["masks"] or [None])[0], row["key"]
    rows[name] = [mask, row["pred_faults"]]
check(benchmark, path)
print(json.dumps(rows))
"""


def lines(benchmark: str, given: dict[int, Any], text: bool) -> Iterator[dict[str, Any]]:
    for i, case in given.items():
        mask = mask_of(case, text)
        if benchmark == "instancebench":
            yield {"expression_id": str(i), "mask": mask}
        else:
            yield {
                "video_id": str(i),
                "tubes": [{"tube_id": 1, "category": "adult", "frames": [0], "masks": [mask]}],
                "triplets": [],
            }


def write(path: Path, benchmark: str, door: str, given: dict[int, Any]) -> Path:
    if door == "jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines(benchmark, given, True)))
    elif door == "research":
        for i, case in given.items():
            mask = mask_of(case, False)
            (path / str(i)).mkdir(parents=True)
            data = f"1 1 0 {mask['size'][0]} {mask['size'][1]} ".encode() + raw(mask["counts"]) + b"\n"
            (path / str(i) / "masks.txt").write_bytes(data)
    else:
        kind = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.binary())])
        tubes = [("tube_id", pa.int64()), ("category", pa.string()), ("frames", pa.list_(pa.int64()))]
        types = {"mask": kind, "tubes": pa.list_(pa.struct([*tubes, ("masks", pa.list_(kind))]))}
        rows = list(lines(benchmark, given, False))
        table = {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0] if name != "triplets"}
        pq.write_table(pa.table(table), path)
    return path


def raw(counts: str | bytes | None) -> bytes:
    return counts.encode() if isinstance(counts, str) else counts or b""


def fits(case: dict[str, Any], door: str) -> bool:
    if door == "jsonl":
        return True
    size, sound = case["size"], typed(case)
    if door == "research":
        counts = raw(mask_of(case, False)["counts"]) if sound else b""
        return size is not None and len(size) == 2 and len(counts.split()) == 1
    return sound


@pytest.mark.parametrize(
    ("benchmark", "door"),
    [
        *(("instancebench", door) for door in ("jsonl", "parquet")),
        *(("pvsg", door) for door in ("jsonl", "parquet", "research")),
    ],
)
def test_malformed_masks_are_refused_in_every_format(shared: Path, tmp_path: Path, benchmark: str, door: str) -> None:
    given = {i: case for i, case in enumerate(cases(shared)) if fits(case, door)}
    assert len(given) >= (12 if door == "research" else 15)
    path = write(tmp_path / "out", benchmark, door, given)
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", READ, benchmark, str(path)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    read = json.loads(ran.stdout)
    assert {int(name) for name in read} == set(given)
    for name, (mask, faults) in read.items():
        case = given[int(name)]
        if case["expect"] == "ok":
            assert faults == [], case["name"]
            assert decode(mask).sum() == case["area"], case["name"]
        else:
            assert mask is None, case["name"]
            assert {fault["code"] for fault in faults} == {"malformed_mask"}, case["name"]
