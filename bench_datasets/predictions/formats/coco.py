"""COCO results JSON: flat lists (or lines) of `{image_id, segmentation, score, category_id?}`, grouped into rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets._util.untrusted import load_text
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE, parse_masks
from bench_datasets.predictions.coerce import (
    ABSENT,
    MAX_MASKS,
    Found,
    Name,
    image_size,
    level_of,
    mask_faults,
    pick,
    read_name,
    read_number,
    show,
    show_fields,
    too_many,
)
from bench_datasets.predictions.files import Location, files_in
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark, refuse_other_tools
from bench_datasets.predictions.json_records import blocks_of_objects, records
from bench_datasets.predictions.mask_blocks import LONGEST_BLOCK, PLAIN_TYPES, Rle, column_of, first_line
from bench_datasets.predictions.mask_lines import ENDINGS, named_by_file
from bench_datasets.predictions.mask_rows import BATCH, SCHEMA, faults_array, weight
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE
from bench_datasets.predictions.spool import Spool

IDS = ("image_id", "id")
"""Fields that may hold the truth's id, the first that is there counts."""

_FLAT = pa.schema(
    [
        ("row", pa.int64()),
        ("mask", MASK_TYPE),
        ("problem", pa.string()),
        ("dropped", pa.string()),
        ("score", pa.float64()),
        ("bad_score", pa.string()),
    ]
)
_MASKS = 4096


class _Item(NamedTuple):
    row: int
    mask: Any
    size: tuple[int | None, int | None]
    score: float | None
    bad_score: str | None
    missing: str | None


def read_unvalidated(location: Location) -> Iterator[pa.RecordBatch]:
    """The same as `read`, but invalid masks may stay as they are; for callers that validate every mask themselves."""
    return read(location, validate=False)


def read(location: Location, *, validate: bool = True) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a results file; a row's masks keep their order in the file.

    A row without any mask cannot be written in this format: such rows are missing from what is read.

    Args:
        location: a results file (a list, or an object per line), or a folder of such files, which are read as one.
        validate: whether every mask is validated here.

    Raises:
        BenchError: the file is no JSON list of objects, or an object names no row.
    """
    found = _Results()
    with Spool(_FLAT) as spool:
        files = results(location, _Blocks(found, spool, validate=validate))
        found.collect(
            ((file.name, file.shown, line and f"{file.shown}:{line}", record) for file, line, record in files), spool
        )
        yield from found.batches(location.shown, spool)


def from_rows(rows: Iterable[Mapping[str, Any]], shown: str, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of results that are Python values already, one per mask.

    Args:
        rows: the results.
        shown: how messages call them.
        name: of their split, which may speak of a level.
    """
    found = _Results()
    with Spool(_FLAT) as spool:
        found.collect(((name, shown, f"{shown}, row {i}", dict(record)) for i, record in enumerate(rows)), spool)
        yield from found.batches(shown, spool)


def is_result(record: Mapping[str, Any]) -> bool:
    """Whether a record is one mask as COCO results hold it, and not a row with a list of masks.

    Example:
        >>> is_result({"image_id": 7, "segmentation": {}}), is_result({"id": 7, "masks": []})
        (True, False)
    """
    return "segmentation" in record and not {"masks", "pred_masks"} & set(record)


class _Results:
    """Results that are collected by row.

    Attributes:
        rows: numbers of the rows by name.
        counts: masks per row, those beyond `MAX_MASKS` among them.
        homes: the files of each row.
    """

    def __init__(self) -> None:
        self.rows: dict[Name, int] = {}
        self.counts: list[int] = []
        self.homes = _Homes()

    def collect(self, records: Iterable[tuple[str, str, Any, dict[str, Any]]], spool: Spool) -> None:
        """Add records: name of their file or split, what messages call it, their place (none for no mask), fields."""
        pending: list[_Item] = []
        held = 0
        for named, shown, place, record in records:
            if not place:
                name = read_name(named_by_file(record, named), level_of(named), IDS)
                if not name.empty and self.rows.setdefault(name, len(self.rows)) == len(self.counts):
                    self.counts.append(0)
                continue
            item = _item(named_by_file(record, named), self.rows, place, level_of(named))
            if item.row == len(self.counts):
                self.counts.append(0)
            self.counts[item.row] += 1
            self.homes.add(item.row, shown)
            if self.counts[item.row] > MAX_MASKS:
                continue
            pending.append(item)
            held += weight(item.mask)
            if len(pending) >= _MASKS or held >= BATCH:
                spool.write(_flat(pending))
                pending, held = [], 0
        spool.write(_flat(pending))

    def batches(self, shown: str, spool: Spool) -> Iterator[pa.RecordBatch]:
        """All rows.

        Raises:
            BenchError: there are none.
        """
        if not self.rows:
            raise BenchError(f"{shown}: expected at least one result, found an empty list")
        yield from _grouped(spool.table(), list(self.rows), self.counts, self.homes.several)


class _Homes:
    """The file of each row's results, and the files of rows with results in several."""

    def __init__(self) -> None:
        self._first: dict[int, str] = {}
        self.several: dict[int, list[str]] = {}

    def add(self, row: int, file: str) -> None:
        """Note that a row has results in a file."""
        first = self._first.setdefault(row, file)
        if first != file and file not in self.several.setdefault(row, [first]):
            self.several[row].append(file)


class _Blocks:
    """Reads blocks of results in the usual form: an id, a compressed RLE and a score, the same fields in each.

    Args:
        found: gets the rows, their counts and files.
        spool: gets the items.
        validate: whether to leave blocks with invalid masks to the careful reader.
    """

    def __init__(self, found: _Results, spool: Spool, *, validate: bool) -> None:
        self._rows, self._counts, self._homes = found.rows, found.counts, found.homes
        self._spool, self._validate = spool, validate

    def read(self, file: Location) -> tuple[int, bool]:
        """Read the results of a file from its beginning, as long as they have the usual form.

        Returns:
            Number of results that were read, and whether these are all of the file.
        """
        done, decoder, fields, whole = 0, None, list[str](), False
        for block, last in blocks_of_objects(file):
            if not done:
                first = first_line(block) or {}
                decoder, fields = _decoder_of(first), list(first)
            read = None if decoder is None else self._add(block, decoder, fields, file)
            if read is None:
                return done, False
            done, whole = done + read, last
        return done, whole

    def _add(self, block: bytes, decoder: msgspec.json.Decoder[Any], fields: list[str], file: Location) -> int | None:
        """Add the results of a block, one per line; `None` if they need the careful reader."""
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        if len(block) > LONGEST_BLOCK or block.count(b"}\n{") != lines - 1:
            return None
        try:
            items = decoder.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return None
        values = {
            name: [getattr(item, f"field_{k}") for item in items] for k, name in enumerate(fields) if name in _KNOWN
        }
        nothing: list[Any] = [None] * lines
        keys, stated = (values.get(name, nothing) for name in ("key", "split"))
        texts = lines * (1 + sum(decoder.type.__annotations__[f"field_{k}"] is str for k in range(len(fields))))
        texts += 2 * lines - keys.count(None) - stated.count(None)
        # With fewer names than that, or more quotation marks, a name stands twice in an object.
        if len(items) != lines or block.count(b'"') != 2 * ((len(fields) + 2) * lines + texts):
            return None
        ids = values.get("image_id") or values["id"]
        if "" in keys or "" in stated or min(ids) < -(2**63) or max(ids) >= 2**63:
            return None
        split = level_of(file.name)
        if split is not None and any(value not in (None, split) for value in stated):
            return None
        column = column_of(values["segmentation"])
        if column is None or (self._validate and column.problems()):
            return None
        names = list(zip(keys, ids, stated, strict=True))
        number_of = {
            (key, number, own): self._rows.setdefault(Name(key, number, split if own is None else own), len(self._rows))
            for key, number, own in dict.fromkeys(names)
        }
        numbers = [number_of[name] for name in names]
        added = np.bincount(numbers, minlength=len(self._counts)).tolist()
        counts = [a + b for a, b in zip_longest(self._counts, added, fillvalue=0)]
        if max(counts) > MAX_MASKS:
            return None
        self._counts[:] = counts
        for number in number_of.values():
            self._homes.add(number, file.shown)
        texts_of_none = pa.nulls(lines, pa.string())
        columns = [
            pa.array(numbers, pa.int64()), column.to_arrow(), texts_of_none, texts_of_none,
            pa.array(values.get("score", nothing), pa.float64()), texts_of_none,
        ]  # fmt: skip
        self._spool.write(pa.RecordBatch.from_arrays(columns, schema=_FLAT))
        return lines


_KNOWN: dict[str, Any] = {
    "image_id": int, "id": int, "key": str | None, "split": str | None, "segmentation": Rle, "score": float,
    "bbox": list[float],
}  # fmt: skip
"""Fields of a result in the usual form, and their types."""


def _decoder_of(first: Mapping[str, Any]) -> msgspec.json.Decoder[Any] | None:
    """A decoder of results with exactly these fields; `None` if such results need the careful reader."""
    if "segmentation" not in first or not set(first) & set(IDS) or set(first) & {"mask", "mask_rle", "level", "image"}:
        return None
    if any(type(value) not in PLAIN_TYPES for name, value in first.items() if name not in _KNOWN):
        return None
    try:
        refuse_other_tools(set(first), "")
    except BenchError:
        return None
    fields = [(f"field_{k}", _KNOWN.get(name) or type(first[name])) for k, name in enumerate(first)]
    names = {f"field_{k}": name for k, name in enumerate(first)}
    return msgspec.json.Decoder(msgspec.defstruct("Result", fields, rename=names, forbid_unknown_fields=True))


def results(location: Location, blocks: _Blocks | None = None) -> Iterator[tuple[Location, int, dict[str, Any]]]:
    """The objects of a results file, or of every results file of a folder: file, line and fields.

    A folder may be what several processes wrote, a file each. Boxes (`<name>.bbox.json`) beside masks
    (`<name>.segm.json`) are passed over. An empty list gives line 0 without fields. What `blocks` reads of a file is
    left out.
    """
    if location.kind != "directory":
        files = [location]
    else:
        files = files_in(location, ENDINGS)
        names = {file.name for file in files}
        boxes = {name for name in names if name.replace(".bbox.json", ".segm.json") in names - {name}}
        files = [file for file in files if file.name not in boxes]
    for file in files:
        done, whole = (0, False) if blocks is None else blocks.read(file)
        if whole:
            continue
        empty = True
        for number, (line, record) in enumerate(records(file)):
            empty = False
            if number >= done:
                yield file, line, record
        if empty:
            yield file, 0, {}


def _item(record: Mapping[str, Any], rows: dict[Name, int], place: str, split: str | None) -> _Item:
    refuse_other_tools(record, place)
    if not set(record) & {"key", *IDS}:
        refuse_other_benchmark(record, place, MASK_SIGNATURE)
    name = read_name(record, split, IDS)
    if name.empty:
        raise BenchError(f"{place}: expected image_id (the truth's id) or key, found {show_fields(record)}")
    if name.problem:
        name = Name(problem=f"{place}: {name.problem}")
    mask = load_text(pick(record, "segmentation", "mask", "mask_rle"))
    given = pick(record, "score")
    score = None if given is ABSENT else read_number(given)
    bad = None if given is ABSENT or score is not None else f"expected a finite number, found {show(given)}"
    missing = "expected a segmentation, found none (boxes alone are no masks)" if mask is ABSENT else None
    size = image_size(record) if isinstance(mask, list) else (None, None)
    return _Item(rows.setdefault(name, len(rows)), None if missing else mask, size, score, bad, missing)


def _flat(items: list[_Item]) -> pa.RecordBatch:
    """Items as a batch; polygons are drawn at the image size that their own item states."""
    places: dict[tuple[int | None, int | None], list[int]] = {}
    for i, item in enumerate(items):
        places.setdefault(item.size, []).append(i)
    parts = [pa.array([], MASK_TYPE)]
    problems = [item.missing for item in items]
    dropped: list[str | None] = [None] * len(items)
    for (height, width), at in places.items():
        noted: dict[int, str] = {}
        masks, wrong = parse_masks([items[i].mask for i in at], height=height, width=width, noted=noted)
        parts.append(masks)
        for i, text in wrong.items():
            problems[at[i]] = problems[at[i]] or text
        for i, text in noted.items():
            dropped[at[i]] = text
    masks = pa.concat_arrays(parts)
    if len(places) > 1:
        masks = masks.take(pa.array(np.argsort(np.concatenate(list(places.values())))))
    columns = [
        pa.array([item.row for item in items], pa.int64()),
        masks,
        pa.array(problems, pa.string()),
        pa.array(dropped, pa.string()),
        pa.array([item.score for item in items], pa.float64()),
        pa.array([item.bad_score for item in items], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_FLAT)


def _grouped(
    table: pa.Table, names: list[Name], counts: list[int], several: Mapping[int, Sequence[str]]
) -> Iterator[pa.RecordBatch]:
    """The flat items by row, in batches of whole rows: at most `_MASKS` masks or `BATCH` bytes, or one row.

    Args:
        table: n items, of every row at most `MAX_MASKS`.
        names: of the rows.
        counts: how many items of each row there were.
        several: files of the rows with items of several files, by row.
    """
    parts = table.to_batches()
    starts = np.cumsum([0, *map(len, parts)])
    row_of = np.concatenate([part.column("row").to_numpy() for part in parts])
    sizes = np.concatenate([pc.binary_length(part.column("mask").field("counts")).fill_null(0) for part in parts])
    order = np.argsort(row_of, kind="stable")
    fits = np.array(counts) <= MAX_MASKS
    order = order[fits[row_of[order]]]
    ends = np.cumsum(np.where(fits, counts, 0))
    held = np.cumsum([0, *sizes[order]], dtype=np.int64)
    first = begin = 0
    while first < len(names):
        last = int(np.searchsorted(ends, begin + _MASKS, side="right"))
        last = max(first + 1, min(last, int(np.searchsorted(held[ends], held[begin] + BATCH, side="right"))))
        end = int(ends[last - 1])
        if held[end] - held[begin] >= 2**31:
            name = names[first].key or names[first].id
            raise BenchError(
                f"{name}: expected less than 2 GiB of counts in one row, found {held[end] - held[begin]:,}"
            )
        items = _gathered(parts, starts, order[begin:end])
        offsets = np.concatenate([[begin], ends[first:last]]) - begin
        batch = _rows(items, names[first:last], offsets.astype(np.int32), counts[first:last])
        repeated = {row - first: several[row] for row in range(first, last) if row in several} if several else {}
        yield _note_repeated(batch, repeated)
        first, begin = last, end


def _note_repeated(batch: pa.RecordBatch, several: Mapping[int, Sequence[str]]) -> pa.RecordBatch:
    """Add a fault to rows of a batch whose results stand in several files, if a mask occurs twice.

    Several processes that share out the rows unevenly, or a merged file beside its parts, write results twice.
    """
    place = batch.schema.get_field_index("pred_faults")
    faults: list[Any] | None = None
    for row, files in several.items():
        masks = [str(mask) for mask in batch.column("pred_masks")[row].as_py()]
        again = len(masks) - len(set(masks))
        if again:
            faults = batch.column(place).to_pylist() if faults is None else faults
            text = f"{again} masks stand twice among the results of {' and '.join(files[:2])}; keep one file for a row"
            faults[row] = [*faults[row], {"code": "duplicate_prediction", "text": text}]
    if faults is None:
        return batch
    columns = [*batch.columns[:place], pa.array(faults, batch.schema.field(place).type), *batch.columns[place + 1 :]]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _gathered(parts: list[pa.RecordBatch], starts: NDArray[np.int64], index: NDArray[np.int64]) -> pa.RecordBatch:
    """The items at `index` of all parts, put together from each part alone: all of them together may pass 2 GiB."""
    if not len(index):
        return parts[0].slice(0, 0)
    part_of = np.searchsorted(starts, index, side="right") - 1
    by_part = np.argsort(part_of, kind="stable")
    used, first = np.unique(part_of[by_part], return_index=True)
    pieces = [
        parts[part].take(pa.array(index[places] - starts[part]))
        for part, places in zip(used.tolist(), np.split(by_part, first[1:]), strict=True)
    ]
    columns = [pa.concat_arrays([piece.column(name) for piece in pieces]) for name in pieces[0].schema.names]
    items = pa.RecordBatch.from_arrays(columns, schema=pieces[0].schema)
    return items if (np.diff(part_of) >= 0).all() else items.take(pa.array(np.argsort(by_part)))


def _rows(items: pa.RecordBatch, names: list[Name], offsets: NDArray[np.int32], counts: list[int]) -> pa.RecordBatch:
    if not any(name.problem for name in names) and (found := _usual(items, offsets)) is not None:
        score_column, faults_column = found
    else:
        score_column, faults_column = _scores_and_faults(items, names, offsets, counts)
    arrays = [
        pa.array([name.key for name in names], pa.string()),
        pa.array([name.id for name in names], pa.int64()),
        pa.array([name.split for name in names], pa.string()),
        pa.nulls(len(names), pa.int64()),
        pa.ListArray.from_arrays(pa.array(offsets), items.column("mask")),
        score_column,
        *(pa.nulls(len(names), SCHEMA.field(name).type) for name in ("pred_centers", "pred_sizes")),
        faults_column,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _usual(items: pa.RecordBatch, offsets: NDArray[np.int32]) -> tuple[pa.Array, pa.Array] | None:
    """Scores and faults by row, if nothing is wrong with any item, and all or none have scores; else `None`."""
    wrong = [items.column(name) for name in ("problem", "dropped", "bad_score")]
    scores, rows = items.column("score"), len(offsets) - 1
    if any(column.null_count < len(items) for column in wrong) or (np.diff(offsets) == 0).any():
        return None
    if scores.null_count not in (0, len(items)):
        return None
    kind = SCHEMA.field("pred_scores").type
    lists = (
        pa.nulls(rows, kind) if scores.null_count else pa.ListArray.from_arrays(pa.array(offsets), scores).cast(kind)
    )
    return lists, faults_array([[]] * rows)


def _scores_and_faults(
    items: pa.RecordBatch, names: list[Name], offsets: NDArray[np.int32], counts: list[int]
) -> tuple[pa.Array, pa.Array]:
    """Scores and faults by row."""
    problems, dropped, scores, bad = (
        items.column(name).to_pylist() for name in ("problem", "dropped", "score", "bad_score")
    )
    score_lists: list[list[float | None] | None] = []
    faults: list[Found] = []
    for name, begin, end, count in zip(names, offsets[:-1].tolist(), offsets[1:].tolist(), counts, strict=True):
        found: Found = [("unknown_row", name.problem)] if name.problem else []
        found += [too_many(count)] if count > end - begin else []
        found += mask_faults((i, text) for i, text in enumerate(problems[begin:end]) if text)
        found += mask_faults(((i, text) for i, text in enumerate(dropped[begin:end]) if text), "polygon_part_dropped")
        found += [("bad_score", f"score {i}: {text}") for i, text in enumerate(bad[begin:end]) if text]
        scored = [scores[i] is not None or bad[i] is not None for i in range(begin, end)]
        if any(scored) and not all(scored):
            found.append(("bad_score", f"scores: expected one per mask ({end - begin}), found {sum(scored)}"))
        score_lists.append(scores[begin:end] if all(scored) else None)
        faults.append(found)
    return pa.array(score_lists, SCHEMA.field("pred_scores").type), faults_array(faults)
