"""Tables that unpack to far more than their file: refused by name; large ones with good reason are read."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from bench_datasets import read_predictions
from bench_datasets._util import untrusted_tables as bounds
from bench_datasets.data.parquet import LabelFile
from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense

MASK = pa.struct([("size", pa.list_(pa.int32())), ("counts", pa.string())])
TINY = {"size": [2, 3], "counts": "15"}


def table(masks: pa.Array, rows: int) -> pa.Table:
    """A table of predictions: so many rows, which share the masks evenly."""
    ends = np.linspace(0, len(masks), rows + 1).astype(np.int32)
    return pa.table({"id": pa.array(range(rows)), "pred_masks": pa.ListArray.from_arrays(pa.array(ends), masks)})


def repeated(text: str, times: int) -> pa.Array:
    """Masks that all have one text of counts, which is stored once."""
    counts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(times, np.int32)), pa.array([text]))
    return pa.StructArray.from_arrays([pa.array([[10, 10]] * times, pa.list_(pa.int32())), counts], ["size", "counts"])


def write(path: Path, content: pa.Table) -> None:
    """Write a table in the format that the path's ending names, packed."""
    if path.suffix == ".parquet":
        pq.write_table(content, path, compression="zstd")
        return
    with pa.ipc.new_file(path, content.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(content)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_read_tables_million_null_masks_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"p.{ending}"
    write(path, table(pa.nulls(4_000_000, MASK), 1))
    assert path.stat().st_size < 10_000
    with pytest.raises(BenchError, match=rf"p\.{ending}: expected at most .* values .* found 4,000,000"):
        read_predictions("pbench", path)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_read_tables_repeated_long_text_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"p.{ending}"
    write(path, table(repeated("0" * 1_000_000, 8192), 256))
    with pytest.raises(BenchError, match=rf"p\.{ending}: expected a file that unpacks to at most 256 times its size"):
        read_predictions("pbench", path)


@pytest.mark.parametrize("form", ["file", "stream", "saved"])
def test_read_arrow_compressed_body_refused_before_it_is_unpacked(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 1 << 20)
    masks = pa.array([{"size": [9, 9], "counts": "0" * (1 << 24)}], MASK)
    content = table(masks, 1)
    path: Path = tmp_path / "p.arrow"
    if form == "saved":
        path = tmp_path / "saved"
        Dataset.from_list([{"id": 1, "pred_masks": [TINY]}]).save_to_disk(path)
    (file,) = path.glob("*.arrow") if form == "saved" else [path]
    make = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    # The other codec, LZ4, packs 255 to 1 at best.
    with make(file, content.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(content)
    before = pa.total_allocated_bytes()
    monkeypatch.setattr(pa.ipc, "open_file", None)  # must not be reached
    monkeypatch.setattr(pa.ipc, "open_stream", None)
    with pytest.raises(BenchError, match=rf"{file.name}: expected a file that unpacks to at most 256 times its size"):
        read_predictions("pbench", path)
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_check_arrow_counts_bytes_that_arrow_unpacks(make: Any, compression: str | None) -> None:
    column = pa.array(["x" * 1000, "y" * 3000] * 40).dictionary_encode()
    content = pa.record_batch({"a": column, "b": pa.array(range(80), pa.int64())})
    sink = io.BytesIO()
    with make(sink, content.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(content)
    spent: list[int] = []

    class Counter(bounds.Budget):
        def spend(self, held: int) -> None:
            spent.append(held)

    data = sink.getvalue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "Budget", Counter)
        bounds.check_arrow(io.BytesIO(data), Counter(len(data), "p"))
    if compression is None:
        assert sum(spent) == 0
    else:  # 4,000 letters and 3 offsets; 80 indices of 4 bytes and 80 numbers of 8, padded by a few bytes
        assert 4012 + 960 <= sum(spent) <= 4012 + 960 + 256


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_check_arrow_changed_bytes_end_in_value_error_at_most(make: Any) -> None:
    sink = io.BytesIO()
    content = table(pa.array([TINY] * 4, MASK), 2)
    with make(sink, content.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(content)
    data, rng = sink.getvalue(), np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.integers(8, len(data))] = rng.integers(256)
        with contextlib.suppress(ValueError):  # whatever is left, the check ends, by a ValueError at most
            bounds.check_arrow(io.BytesIO(bytes(changed)), bounds.Budget(len(data), "p"))


def test_read_tables_list_of_untyped_nulls_refused(tmp_path: Path) -> None:
    write(tmp_path / "p.arrow", table(pa.nulls(2**31 - 1), 1))
    with pytest.raises(BenchError, match="found 2,147,483,647"):
        read_predictions("pbench", tmp_path / "p.arrow")


def test_read_saved_dataset_of_null_masks_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    Dataset.from_list([{"id": 1, "pred_masks": [TINY]}]).save_to_disk(folder)
    (name,) = folder.glob("*.arrow")
    content = table(pa.nulls(3_000_000, MASK), 1)
    with pa.ipc.new_stream(name, content.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(content)
    with pytest.raises(BenchError, match=r"saved: expected "):
        read_predictions("pbench", folder)


@pytest.mark.parametrize("named", ["../other/data-00000-of-00001.arrow", "/etc/hostname", "gone.arrow", 7])
def test_read_saved_state_that_names_other_files_refused(named: object, tmp_path: Path) -> None:
    for name in ("saved", "other"):
        Dataset.from_list([{"id": 1, "pred_masks": [TINY]}]).save_to_disk(tmp_path / name)
    assert read_predictions("pbench", tmp_path / "saved")["id"] == [1]
    state = json.loads((tmp_path / "saved" / "state.json").read_text())
    state["_data_files"] = [{"filename": named}]
    (tmp_path / "saved" / "state.json").write_text(json.dumps(state))
    with pytest.raises(BenchError, match=r"state\.json: expected the names of Arrow files in the same folder, found"):
        read_predictions("pbench", tmp_path / "saved")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "dataset", "json texts"])
def test_read_tables_row_of_too_many_masks_noted_once(kind: str, tmp_path: Path) -> None:
    n = 16_385
    masks: list[Any] = [json.dumps(TINY) if kind == "json texts" else TINY]
    rows = {"id": [1, 2], "pred_masks": [masks * n, masks], "pred_scores": [[0.5] * n, [0.5]]}
    where: Any = tmp_path / f"p.{'arrow' if kind == 'arrow' else 'parquet'}"
    write(where, pa.table(rows))
    read = read_predictions("pbench", Dataset.from_dict(rows) if kind == "dataset" else where)
    assert read["pred_masks"] == [[], [TINY]]
    texts = [fault["text"] for fault in read["pred_faults"][0]]
    assert texts == ["masks: expected at most 16,384 masks in one row, found 16,385; none of them is read"]
    assert read["pred_faults"][1] == []


def test_read_tables_many_unsound_masks_named_up_to_twenty() -> None:
    rows = [{"id": 1, "pred_masks": [None] * 30 + [TINY]}, {"id": 2, "pred_masks": [TINY, None]}]
    read = read_predictions("pbench", Dataset.from_list(rows))
    texts = [[fault["text"] for fault in faults] for faults in read["pred_faults"]]
    assert texts[0] == [*(f"mask {i}: the mask is null" for i in range(20)), "and 10 more masks of this row"]
    assert texts[1] == ["mask 1: the mask is null"]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 4, "data_page_size": 256}])
def test_read_parquet_texts_equal_to_written(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "BATCH", 2000)  # several parts of each batch
    masks = [encode_dense(np.random.default_rng(i % 40).random((20, 30)) < 0.5) for i in range(99)]
    lists = [masks[i : i + 3] for i in range(0, 99, 3)] + [[], None]
    pq.write_table(
        pa.table({"id": range(35), "pred_masks": pa.array(lists, pa.list_(MASK))}), tmp_path / "p", **options
    )
    read = read_predictions("pbench", tmp_path / "p")
    assert read["id"] == list(range(35))
    assert read["pred_masks"] == [*lists[:-1], []]
    assert [len(faults) for faults in read["pred_faults"]] == [0] * 34 + [1]


def truth(rows: int, masks: pa.Array, expression: str = "a") -> pa.Table:
    """PBench's source columns."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([expression]))
    own = table(masks, rows)
    return pa.table(
        {"expression": texts, "masks": own["pred_masks"], "count": pa.array([1] * rows, pa.int32()), "id": own["id"]}
    )


@pytest.mark.parametrize(
    ("rows", "masks", "expression", "told"),
    [
        (1, pa.nulls(4_000_000, MASK), "a", "values"),
        (2000, repeated("0" * 1_000_000, 2000), "a", "256 times its size"),
        (2000, repeated("T3", 2000), "a" * 1_000_000, "256 times its size"),
    ],
    ids=["nulls", "counts", "expression"],
)
def test_label_file_that_unpacks_to_far_more_refused(
    rows: int, masks: pa.Array, expression: str, told: str, tmp_path: Path
) -> None:
    write(tmp_path / "level_0.parquet", truth(rows, masks, expression))
    with pytest.raises(BenchError, match=rf"level_0\.parquet: expected .*{told}"):
        list(LabelFile(str(tmp_path / "level_0.parquet")).batches(["expression", "masks", "count", "id"]))


def test_label_file_texts_equal_to_written(tmp_path: Path) -> None:
    content = truth(50, repeated("T3", 50), "a cat")
    write(tmp_path / "level_0.parquet", content)
    found = list(LabelFile(str(tmp_path / "level_0.parquet")).batches(["expression", "masks"], batch_rows=7))
    assert [len(batch) for batch in found] == [7] * 7 + [1]
    assert pa.Table.from_batches(found).to_pydict() == content.select(["expression", "masks"]).to_pydict()
