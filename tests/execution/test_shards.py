"""Shards: written once, whole, and merged only with those of the same scoring."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_datasets import execution
from bench_datasets.execution import shards
from bench_datasets.faults import BenchError
from bench_datasets.scoring.prepare import Plan, make_plan

from ..support.sample_runs import answers_of, plan_of, truth_of


def write_all(folder: Path, count: int = 3, plan: Plan | None = None) -> list[Path]:
    return [execution.score_shard(plan or plan_of(), index, count, folder) for index in range(count)]


def refuse(self: Plan, *args: object, **more: object) -> pa.Table:
    raise AssertionError("scored again")


def test_a_part_and_its_manifest(tmp_path: Path) -> None:
    file = execution.score_shard(plan_of(), 1, 3, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-1-of-3.json", "part-1-of-3.parquet"]
    manifest, table = shards.read_part(file)
    beside = json.loads((tmp_path / "part-1-of-3.json").read_text())
    assert beside == manifest.__dict__
    assert (manifest.benchmark, manifest.index, manifest.count, manifest.rows) == ("pbench", 1, 3, 35)
    assert table["key"].to_pylist() == sorted(key for key in truth_of("pbench")["key"] if shards.part_of(key, 3) == 1)


def test_a_part_that_is_there_is_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = execution.score_shard(plan_of(), 0, 3, tmp_path)
    before = file.stat().st_mtime_ns, file.read_bytes()
    file.with_suffix(".json").unlink()  # as if it had been stopped between the two
    monkeypatch.setattr(Plan, "score", refuse)
    assert execution.score_shard(plan_of(), 0, 3, tmp_path) == file
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before
    assert file.with_suffix(".json").is_file()


@pytest.mark.parametrize("change", ["truth", "predictions", "protocol", "missing", "boundary", "fault"])
def test_a_part_of_other_inputs_is_refused(change: str, tmp_path: Path) -> None:
    truth, answers = truth_of("pbench"), answers_of("pbench")
    execution.score_shard(make_plan("pbench", truth, answers), 0, 3, tmp_path)
    options = {"protocol": {"protocol": "card"}, "missing": {"missing": "empty"}, "boundary": {"boundary": True}}
    if change == "truth":
        truth = truth.map(lambda row: {"expression": row["expression"].upper()})
    elif change == "predictions":
        answers = answers.map(lambda row: row if row["id"] != truth[0]["id"] else {**row, "pred_masks": []})
    elif change == "fault":
        options["fault"] = {"on_fault": "skip-and-report"}
    other = make_plan("pbench", truth, answers, **options.get(change, {}))
    before = (tmp_path / "part-0-of-3.parquet").read_bytes()
    with pytest.raises(BenchError, match=r"part-0-of-3\.parquet: this part was made from other inputs .* delete it"):
        execution.score_shard(other, 0, 3, tmp_path)
    assert (tmp_path / "part-0-of-3.parquet").read_bytes() == before
    execution.score_shard(other, 1, 3, tmp_path)
    execution.score_shard(make_plan("pbench", truth_of("pbench"), answers_of("pbench")), 2, 3, tmp_path)
    with pytest.raises(
        BenchError,
        match=r"part-1-of-3\.parquet does not belong to .*part-0-of-3\.parquet: it was scored from other pred",
    ):
        execution.merge([tmp_path])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 10**15, "index": 10**14}, "parts are missing"),
        ({"index": -1}, "found part -1 of 3"),
        ({"index": 3}, "found part 3 of 3"),
        ({"index": True}, "index: found True"),
        ({"rows": [1]}, r"rows: found \[1\]"),
        ({"record": "x"}, "record: found 'x'"),
        ({"benchmark": "../x"}, "unknown benchmark|expected one of"),
        ({"content": "x" * (1 << 20)}, "manifest is of another version of this package, or broken"),
    ],
)
def test_merge_hostile_manifest_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    manifest, table = shards.read_part(execution.score_shard(plan_of(), 0, 3, tmp_path / "a"))
    file = tmp_path / "part-0-of-3.parquet"
    fields = json.dumps(manifest.__dict__ | change).encode()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"bench_datasets.part": fields}), file)
    with pytest.raises(BenchError, match=words) as error:
        execution.merge([file])
    assert len(str(error.value)) < 4_000


def test_merge_part_that_unpacks_to_far_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    manifest, table = shards.read_part(execution.score_shard(plan_of(), 0, 3, tmp_path / "a"))
    file = tmp_path / "part-0-of-3.parquet"
    bomb = pa.table({"key": pa.array(["x" * 1_000_000] * 1_000)}).replace_schema_metadata(
        {**table.schema.metadata, b"bench_datasets.part": manifest.to_json().encode()}
    )
    pq.write_table(bomb, file, compression="zstd")
    with pytest.raises(BenchError, match="unpacks to at most 256 times its size"):
        execution.merge([file])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_merge_named_pipe_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "part-0-of-3.parquet"
    os.mkfifo(file)
    with pytest.raises(BenchError, match="expected a regular file, found a"):
        execution.merge([file])


def test_faults_of_another_kind_are_other_inputs(tmp_path: Path) -> None:
    """Unsound predictions stand in no hash of the record, and yet they are told apart."""
    answers = answers_of("pbench")

    def broken(code: str) -> Plan:
        def change(row: dict[str, object], index: int) -> dict[str, object]:
            return row if index else {**row, "pred_masks": [None], "pred_faults": [{"code": code, "text": "mask 0: x"}]}

        changed = answers.map(change, with_indices=True, features=answers.features)
        return make_plan("pbench", truth_of("pbench"), changed, on_fault="skip-and-report")

    execution.score_shard(broken("malformed_mask"), 0, 1, tmp_path)
    execution.score_shard(broken("malformed_mask"), 0, 1, tmp_path)
    with pytest.raises(BenchError, match="other inputs"):
        execution.score_shard(broken("bad_score"), 0, 1, tmp_path)


def test_missing_parts_are_named(tmp_path: Path) -> None:
    write_all(tmp_path, 4)
    (tmp_path / "part-2-of-4.parquet").unlink()
    with pytest.raises(BenchError, match=r"1 of 4 parts are missing: part-2-of-4\.parquet; score them \(--shard I/4\)"):
        execution.merge([tmp_path])
    with pytest.raises(BenchError, match=r"expected files part-I-of-N\.parquet in .*, found none"):
        execution.merge([make(tmp_path / "empty")])
    with pytest.raises(BenchError, match=r"part-2-of-4\.parquet: expected a part or a folder of parts, found no such"):
        execution.merge([tmp_path / "part-2-of-4.parquet"])


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_parts_of_another_number_do_not_belong(tmp_path: Path) -> None:
    write_all(tmp_path, 2)
    execution.score_shard(plan_of(), 0, 3, tmp_path)
    with pytest.raises(BenchError, match=r"does not belong to .* its count is [23], not [32]"):
        execution.merge([tmp_path])


def test_a_part_twice(tmp_path: Path) -> None:
    files = write_all(tmp_path / "a", 2)
    copy = Path(shutil.copy(files[0], tmp_path / "copy.parquet"))
    assert len(execution.merge([*files, copy])) == 35
    manifest, table = shards.read_part(files[0])
    changed = table.set_column(table.column_names.index("skipped"), "skipped", pa.array([True] * len(table)))
    shards.write_part(changed, manifest, tmp_path / "b")
    with pytest.raises(BenchError, match="part 0 is there twice, with different content"):
        execution.merge([tmp_path / "a", tmp_path / "b"])


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def edited(file: Path) -> None:
    table = pq.read_table(file)
    at = table.column_names.index("true_count")
    pq.write_table(
        table.set_column(at, table.schema.field(at), pa.array([7] * len(table), table.schema.field(at).type)), file
    )


def stranger(file: Path) -> None:
    pq.write_table(pa.table({"key": ["a"]}), file)


def old(file: Path) -> None:
    table = pq.read_table(file)
    metadata = {**table.schema.metadata, b"bench_datasets.part": b'{"benchmark": "pbench"}'}
    pq.write_table(table.replace_schema_metadata(metadata), file)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "cut short or no Parquet"), (emptied, "cut short or no Parquet"),
        (edited, "rows are not those that the part was written with"), (stranger, "expected a part with its manifest"),
        (old, "manifest is of another version"),
    ],
)  # fmt: skip
def test_a_damaged_part_is_named(damage: object, words: str, tmp_path: Path) -> None:
    files = write_all(tmp_path, 2)
    damage(files[1])  # type: ignore[operator]
    content = files[1].read_bytes()
    for call in (lambda: execution.merge([tmp_path]), lambda: execution.score_shard(plan_of(), 1, 2, tmp_path)):
        with pytest.raises(
            BenchError, match=rf"part-1-of-2\.parquet: .*{words}.*; delete it and score that part again"
        ):
            call()
    assert files[1].read_bytes() == content, "nothing is thrown away unasked"
    files[1].unlink()
    execution.score_shard(plan_of(), 1, 2, tmp_path)
    assert len(execution.merge([tmp_path])) == 35


def test_merge_of_a_file_that_is_no_part_never_advises_to_delete_it(tmp_path: Path) -> None:
    file = tmp_path / "masks.json"
    file.write_text("[]")
    with pytest.raises(BenchError, match=r"masks\.json: .*give the folder that `score --shard` wrote") as refused:
        execution.merge([file])
    assert "delete" not in str(refused.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are named on POSIX only")
def test_merge_of_a_named_pipe_says_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "part-0-of-1.parquet")
    with pytest.raises(BenchError, match=r"part-0-of-1\.parquet: expected a regular file, found a folder, pipe"):
        execution.merge([tmp_path])


def test_a_part_of_another_version_is_refused(tmp_path: Path) -> None:
    file = execution.score_shard(plan_of(), 0, 1, tmp_path)
    manifest, table = shards.read_part(file)
    shards.write_part(table, replace(manifest, version="0.0.1"), tmp_path)
    with pytest.raises(BenchError, match=r"made by version 0\.0\.1 of this package"):
        execution.score_shard(plan_of(), 0, 1, tmp_path)


def test_more_parts_than_rows(tmp_path: Path) -> None:
    plan = plan_of("pvsg")
    assert len(plan.units) < 6
    for index in range(6):
        execution.score_shard(plan, index, 6, tmp_path)
    assert len(execution.merge([tmp_path])) == len(plan.units)


@pytest.mark.parametrize(("index", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_numbers_out_of_range(index: int, count: int, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=re.escape(f"got {index}/{count}")):
        execution.score_shard(plan_of(), index, count, tmp_path)
