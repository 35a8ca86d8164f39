"""Every known malformed mask, through every door, in a process that may not hang or crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..support.dense_masks import decode
from ..support.malformed_masks import cases, mask_of, typed

READ = """
import json, sys
from bench_datasets.predictions import read_predictions
rows = {}
for row in read_predictions("pbench", sys.argv[1]):
    rows[row["id"]] = [row["pred_masks"], row["pred_faults"]]
print(json.dumps(rows))
"""


def write(path: Path, door: str, given: dict[int, dict[str, Any]]) -> None:
    if door == "jsonl":
        lines = ({"id": i, "masks": [mask_of(case, True)]} for i, case in given.items())
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    elif door == "coco":
        path.write_text(json.dumps([{"image_id": i, "segmentation": mask_of(case, True)} for i, case in given.items()]))
    elif door == "text in parquet":
        masks = [[json.dumps(mask_of(case, True))] for case in given.values()]
        pq.write_table(pa.table({"id": list(given), "masks": masks}), path)
    else:
        kind = pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.binary())]))
        masks = [[mask_of(case, False)] for case in given.values()]
        table = pa.table({"id": pa.array(list(given)), "masks": pa.array(masks, kind)})
        if door == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)


@pytest.mark.parametrize("door", ["jsonl", "coco", "text in parquet", "parquet", "arrow"])
def test_malformed_masks_of_pbench_are_refused_in_every_format(shared: Path, tmp_path: Path, door: str) -> None:
    everything = cases(shared)
    binary = door in ("parquet", "arrow")
    given = {i: case for i, case in enumerate(everything) if not binary or typed(case)}
    assert len(given) > 15
    path = tmp_path / "out"
    write(path, door, given)
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", READ, str(path)], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    read = {int(key): value for key, value in json.loads(ran.stdout).items()}
    assert list(read) == list(given)
    for i, case in given.items():
        (mask,), faults = read[i]
        if case["expect"] == "ok":
            assert faults == [], case["name"]
            assert mask["size"] == case["size"]
            assert decode(mask).sum() == case["area"], case["name"]
        else:
            assert mask is None, case["name"]
            assert [fault["code"] for fault in faults] == ["malformed_mask"], case["name"]
            assert faults[0]["text"].startswith("mask 0: ")
