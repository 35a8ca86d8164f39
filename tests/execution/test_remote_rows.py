"""Rows of remote Parquet files: chosen rows and columns, and files that unpack to far more than they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_datasets.execution.remote_rows import Blocks, locate_parquet
from bench_datasets.faults import BenchError


def blocks(folder: Path) -> Blocks:
    return Blocks(*locate_parquet(str(folder)))


def test_blocks_give_chosen_rows_and_columns_of_several_files(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))
    masks = [[{"size": [1, i + 1], "counts": f"{i}"}] * (i % 3) for i in range(20)]
    table = pa.table({"key": [f"level_0/{i}" for i in range(20)], "masks": pa.array(masks, kind)})
    table = table.replace_schema_metadata({"note": "of the writer"})
    pq.write_table(table.slice(0, 13), tmp_path / "a.parquet", row_group_size=4)
    pq.write_table(table.slice(13), tmp_path / "b.parquet", row_group_size=3)
    found = blocks(tmp_path)
    assert [first for _, _, first in found.groups] == [0, 4, 8, 12, 13, 16, 19]
    chosen = np.random.default_rng(3).permutation(20)
    assert found[chosen.tolist()].equals(table.take(pa.array(chosen)))
    assert found.names(["key"]).equals(table.select(["key"]), check_metadata=True)
    assert found.read().equals(table)


@pytest.mark.parametrize("part", ["read", "group"])
def test_blocks_of_a_file_that_unpacks_to_far_more_than_it_holds_are_refused(part: str, tmp_path: Path) -> None:
    bomb = pa.table({"key": pa.array(["x" * 1_000_000] * 1_000)})
    pq.write_table(bomb, tmp_path / "bomb.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    with pytest.raises(BenchError, match=r"bomb\.parquet: expected a file that unpacks to at most 256 times its size"):
        blocks(tmp_path).read() if part == "read" else blocks(tmp_path).group(0)
