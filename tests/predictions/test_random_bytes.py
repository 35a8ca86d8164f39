"""Rubbish in any format gives an error of ours, or rows with faults: never another exception."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.predictions import check, read_predictions

STARTS = [b"", b"PAR1", b"ARROW1\0\0", b"PK\x03\x04", b"{", b'[{"a": ', b"\x1f\x8b", b"\xff\xff\xff\xff", b"1 1 0 2 2 "]
BENCHMARKS = ("instancebench", "pvsg")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=64), data=st.data())
def test_bytes(tmp_path: Path, benchmark: str, start: bytes, rest: bytes, data: st.DataObject) -> None:
    format = data.draw(st.sampled_from([None, *get_benchmark(benchmark).prediction_form().readers]))
    names = ["out", "v/masks.txt", "v/tubes.json", "v/panoptic.json", "v/relations.json", "v/0.png", "v/a.npz"]
    name = data.draw(st.sampled_from(names))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(start + rest)
    for door in (path, tmp_path):
        with contextlib.suppress(BenchError):
            read_predictions(benchmark, door, format=format)
    path.unlink()


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)
FIELDS = {
    "instancebench": (
        "expression_id",
        "mask",
        "segmentation",
        "box",
        "candidate_id",
        "run",
        "condition",
        "size",
        "height",
    ),
    "pvsg": ("video_id", "key", "tubes", "triplets", "pred_tubes", "pred_triplets", "height", "width"),
}
MASK = st.one_of(JSON, st.fixed_dictionaries({"size": JSON, "counts": JSON}))
TUBE = st.fixed_dictionaries({}, optional={"tube_id": JSON, "category": JSON, "frames": JSON, "masks": st.lists(MASK)})
TRIPLET = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("subject_id", "object_id", "predicate", "score", "spans"), JSON)
)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_json_of_any_shape(tmp_path: Path, benchmark: str, data: st.DataObject) -> None:
    values: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(FIELDS[benchmark], JSON)
    for name, own in (
        ("mask", MASK),
        ("tubes", st.lists(TUBE, max_size=2)),
        ("triplets", st.lists(TRIPLET, max_size=2)),
    ):
        if name in values:
            values[name] = st.one_of(JSON, own)
    record = data.draw(st.fixed_dictionaries({}, optional=values))
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with contextlib.suppress(BenchError):
        read = read_predictions(benchmark, path, format="jsonl")
        assert read_predictions(benchmark, read)[:] == read[:]
        check(benchmark, read)
