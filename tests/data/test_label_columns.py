"""Label columns are read without one byte of any other column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from bench_datasets.data.parquet import LabelFile
from bench_datasets.faults import BenchError

from ..support.small_sources import jpeg, table

LABELS = ["expression", "masks", "count", "id"]
Write = Callable[..., Path]


def chunks(path: Path, column: str) -> list[tuple[int, int]]:
    """Where a column's pages lie, from the footer."""
    meta = pq.read_metadata(path)
    spans = []
    for group in range(meta.num_row_groups):
        for i in range(meta.num_columns):
            chunk = meta.row_group(group).column(i)
            if chunk.path_in_schema.split(".")[0] == column:
                start = min(o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o)
                spans.append((start, start + chunk.total_compressed_size))
    return spans


def overlap(reads: list[tuple[str, int, int]], spans: list[tuple[int, int]]) -> int:
    """Bytes that were read of these spans."""
    return sum(max(0, min(end, stop) - max(begin, start)) for _, begin, end in reads for start, stop in spans)


def big_rows(n: int) -> list[dict[str, Any]]:
    return [{"id": i, "image": {"bytes": jpeg(400, 300, i), "path": "x.jpg"}} for i in range(n)]


def test_no_byte_of_the_image_column_is_fetched(write: Write, counted: Any) -> None:
    path = write({"level_0": big_rows(7)}) / "data" / "level_0.parquet"
    counted.files["src/f.parquet"] = path.read_bytes()
    got = pa.Table.from_batches(LabelFile("counted://src/f.parquet").batches(LABELS, batch_rows=3))
    assert got == pq.read_table(path, columns=LABELS).select(LABELS)
    assert overlap(counted.reads, chunks(path, "image")) == 0
    labels = sum(stop - start for column in LABELS for start, stop in chunks(path, column))
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert sum(end - start for _, start, end in counted.reads) == labels + (footer + 8) + 8


@pytest.mark.parametrize("streaming", [True, False])
def test_the_builder_without_images_fetches_none(write: Write, counted: Any, streaming: bool) -> None:
    root = write({f"level_0-0000{i}-of-00003": big_rows(3) for i in range(3)})
    for path in (root / "data").iterdir():
        counted.files[f"src/data/{path.name}"] = path.read_bytes()
    data = load_dataset("pbench", split="test", data_dir="counted://src", images=False, streaming=streaming)
    assert [row["key"] for row in data] == [f"level_0/{i}" + n for n in ("", "#2", "#3") for i in range(3)]
    assert counted.reads
    for path in (root / "data").iterdir():
        reads = [read for read in counted.reads if read[0].endswith(path.name)]
        assert reads
        assert overlap(reads, chunks(path, "image")) == 0


def test_streamed_images_are_read_as_far_as_they_are_taken(write: Write, counted: Any) -> None:
    files = {f"level_0-0000{i}-of-00002": big_rows(3) for i in range(2)}
    root = write(files)
    for path in (root / "data").iterdir():
        counted.files[f"src/data/{path.name}"] = path.read_bytes()
    data = load_dataset("pbench", split="test", data_dir="counted://src", streaming=True)
    rows = list(data.take(2))
    assert rows[1]["image"].size == (300, 400)
    second = root / "data" / "level_0-00001-of-00002.parquet"
    assert overlap([r for r in counted.reads if r[0].endswith(second.name)], chunks(second, "image")) == 0


def test_streamed_columns_stand_beside_the_labels_row_by_row(write: Write) -> None:
    path = write({"level_0": big_rows(7)}, group=3) / "data" / "level_0.parquet"
    got = pa.Table.from_batches(LabelFile(str(path)).batches(["id"], streamed=["image"], batch_rows=2))
    assert got == pq.read_table(path, columns=["id", "image"]).select(["id", "image"])


@pytest.mark.parametrize("options", [{"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_writers_of_other_habits(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table(big_rows(5)), path, row_group_size=2, **options)
    assert pa.Table.from_batches(LabelFile(str(path)).batches(["masks", "id"])) == pq.read_table(
        path, columns=["masks", "id"]
    )


def test_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table([]), path)
    file = LabelFile(str(path))
    assert file.num_rows == 0
    assert sum(len(batch) for batch in file.batches(LABELS)) == 0


def _broken(whole: bytes) -> dict[str, tuple[bytes, str]]:
    footer = int.from_bytes(whole[-8:-4], "little")
    return {
        "empty": (b"", "empty file"),
        "cut": (whole[: len(whole) // 2], "cut off"),
        "short": (b"PAR1", "cut off"),
        "text": (b"<html>404</html>", "begins with b'<html>40'"),
        "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        "length": (whole[:-8] + (2**31).to_bytes(4, "little") + b"PAR1", "footer claims"),
        "garbled": (whole[: -8 - footer] + b"\xff" * footer + whole[-8:], "footer that cannot be read"),
        "encrypted": (whole[:-4] + b"PARE", "encrypted"),
    }


@pytest.mark.parametrize("kind", ["empty", "cut", "short", "text", "pointer", "length", "garbled", "encrypted"])
def test_broken_files_are_named(write: Write, kind: str) -> None:
    path = write({"level_0": big_rows(2)}) / "data" / "level_0.parquet"
    content, words = _broken(path.read_bytes())[kind]
    path.write_bytes(content)
    with pytest.raises(BenchError, match=words) as caught:
        LabelFile(str(path))
    assert "level_0.parquet" in str(caught.value)


def test_pages_that_are_not_what_the_footer_says(write: Write) -> None:
    path = write({"level_0": big_rows(2)}) / "data" / "level_0.parquet"
    content = bytearray(path.read_bytes())
    start, stop = chunks(path, "masks")[-1]
    content[start:stop] = b"\xff" * (stop - start)
    path.write_bytes(content)
    with pytest.raises(BenchError, match=r"level_0\.parquet: row group 0 cannot be read"):
        list(LabelFile(str(path)).batches(LABELS))


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="found a folder"):
        LabelFile(str(tmp_path))
    with pytest.raises(BenchError, match="found none"):
        LabelFile(str(tmp_path / "none.parquet"))


def test_a_missing_column_is_named(write: Write) -> None:
    path = write({"level_0": big_rows(2)}) / "data" / "level_0.parquet"
    with pytest.raises(BenchError, match=r"expected column 'nope', found image, expression"):
        list(LabelFile(str(path)).batches(["nope"]))
