"""Code that is run where the package can't be imported: what everybody else sees of a published dataset."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from packaging.version import Version

PLAIN = """
import sys
sys.modules["bench_datasets"] = None    # whatever is installed: it cannot be imported here
import json
from datasets import load_dataset
from pycocotools import mask as coco
repo, *splits = sys.argv[1:]
def masks(row):
    if "candidates" in row:
        return [candidate["mask"] for candidate in row["candidates"]]
    return row["masks"] if "masks" in row else [mask for tube in row["tubes"] for mask in tube["masks"]]
found = {}
for split in splits:
    whole = load_dataset(repo, split=split)
    stream = load_dataset(repo, split=split, streaming=True)
    assert whole.features == stream.features, (whole.features, stream.features)
    kinds = {type(feature).__module__.partition(".")[0] for feature in whole.features.values()}
    assert kinds == {"datasets"}, kinds
    areas = [[int(coco.area(mask)) for mask in masks(row)] for row in whole]
    assert areas == [[int(coco.decode(mask).sum()) for mask in masks(row)] for row in stream]
    found[split] = {"areas": areas, "columns": whole.column_names}
print(json.dumps(found))
"""
"""Loads splits of a dataset, streaming and not, and reads every mask with pycocotools alone; prints their areas."""


def plainly(hub: Any, code: str, *args: str) -> str:
    """Run code where the package can't be imported and nobody's PYTHONPATH counts; gives what it prints."""
    env = {name: value for name, value in hub.env.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *args], env=env, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def areas_of(row: dict[str, Any]) -> list[int]:
    """Pixels of each mask, counted from the run lengths by hand: every second run of the RLE is foreground."""
    if "candidates" in row:
        masks = [candidate["mask"] for candidate in row["candidates"]]
    else:
        masks = row["masks"] if "masks" in row else [mask for tube in row["tubes"] for mask in tube["masks"]]
    return [sum(runs(mask["counts"])[1::2]) for mask in masks]


def runs(text: str) -> list[int]:
    """COCO's compressed counts, decoded as its documentation says: base 32, deltas to two runs before."""
    found: list[int] = []
    at = 0
    while at < len(text):
        value = shift = 0
        while True:
            code = ord(text[at]) - 48
            at += 1
            value |= (code & 31) << (5 * shift)
            shift += 1
            if not code & 32:
                if code & 16:
                    value |= -1 << (5 * shift)
                break
        found.append(value + found[-2] if len(found) > 2 else value)
    return found


def needs(package: str, version: str, reason: str) -> pytest.MarkDecorator:
    """Skip a test where a package is older than the version that does what the test asks for."""
    found = metadata.version(package)
    return pytest.mark.skipif(Version(found) < Version(version), reason=f"{package} {found} {reason}")
