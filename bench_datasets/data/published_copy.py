"""A published copy of a benchmark as a source: what every builder asks of the Parquet that `publish dataset` writes.

A copy is a folder or Hub dataset with the builder's own rows, a column of their origin beside the labels, and the
pixels or no more than their hashes. Its rows are read again as those of any source: nothing in them is taken on trust.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa
from datasets import ClassLabel, Features, LargeList, List, Value

from bench_datasets.data.parquet import LabelFile
from bench_datasets.data.source import Access, Listing, SourceFile
from bench_datasets.faults import FAULTS, BenchError

logger = logging.getLogger(__name__)

ORIGIN = ("source_dataset", "source_revision", "source_split", "source_id")
"""Columns that a published copy adds."""

IMAGE, HASH = "image", "image_sha256"
_PIXELS = (IMAGE, HASH)
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class CopyShard(NamedTuple):
    """One file of a copy.

    Attributes:
        path: what is read: the file itself, or its copy in the download cache.
        name: what messages call it.
    """

    path: str
    name: str


class Beside(NamedTuple):
    """Columns of a published copy besides the labels.

    Attributes:
        image: its pixels (their hashes are then taken of them).
        hashes: the column `image_sha256`, in place of pixels.
    """

    image: bool
    hashes: bool

    def features(self, labels: Features) -> Features:
        """The rows' columns: the labels', and the hashes where pixels are not read."""
        return Features({**labels, HASH: Value("string")}) if self.hashes else labels


class Survey(NamedTuple):
    """Facts about a source's Parquet files that are known before rows are read.

    Attributes:
        rows: how many the source holds, by part.
        sizes: bytes of each file that was looked at, by URL.
        schema: the columns of the file that stands for all.
    """

    rows: dict[str, int]
    sizes: dict[str, int]
    schema: pa.Schema


def survey(
    files: Mapping[str, Sequence[SourceFile]],
    access: Access,
    check: Callable[[pa.Schema, str, str], None],
    *,
    stands: SourceFile | None = None,
    declared: Mapping[str, int] | None = None,
) -> Survey:
    """Read the footers of a source's Parquet.

    Args:
        files: by part.
        access: token and storage options.
        check: called with each footer's schema, the file's name and its part; raises where it is not what it should be.
        stands: the file that stands for all; the first where None.
        declared: rows by part, where they are known already; no other footer is then read.
    """
    listed = [(part, file) for part, found in files.items() for file in found]
    stands = stands or listed[0][1]
    if declared is not None:
        listed = [(part, file) for part, file in listed if file == stands][:1]
    with ThreadPoolExecutor(min(16, len(listed))) as pool:
        opened = list(pool.map(lambda item: LabelFile(item[1].url, access), listed))
    rows = dict.fromkeys(files, 0)
    sizes: dict[str, int] = {}
    schema = opened[0].schema
    for (part, file), labels in zip(listed, opened, strict=True):
        check(labels.schema, file.url, part)
        rows[part] += labels.num_rows
        sizes[file.url] = labels.size
        if file == stands:
            schema = labels.schema
    return Survey(rows if declared is None else dict(declared), sizes, schema)


def declared_rows(listing: Listing, config: str) -> dict[str, int] | None:
    """Rows by part as the card of a Hub dataset has them: parts are splits of `config`, or configs of their own.

    Example:
        >>> files = {"train": (), "test": ()}
        >>> declared_rows(Listing("acme/x", None, files, {"default": {"train": 4, "test": 2}}), "default")
        {'train': 4, 'test': 2}
        >>> declared_rows(Listing("acme/x", None, files, {"train": {"test": 4}}), "default") is None
        True
    """
    splits, configs = listing.declared.get(config, {}), listing.declared
    if set(listing.parts) <= set(splits):
        return {part: splits[part] for part in listing.parts}
    if set(listing.parts) <= set(configs):
        return {part: sum(configs[part].values()) for part in listing.parts}
    return None


def is_copy(schema: pa.Schema) -> bool:
    """Whether a file's rows bear their origin, as published copies' do."""
    return set(ORIGIN) <= set(schema.names)


def beside(schema: pa.Schema, source: str, *, images: bool) -> Beside:
    """Find the columns of a published copy besides its labels.

    Args:
        schema: of its files.
        source: what messages call it.
        images: whether pixels are wanted; that there are none is told in a warning.

    Raises:
        BenchError: the columns of images are of another kind.
    """
    for name, expected in ((IMAGE, _IMAGE), (HASH, pa.string())):
        if name in schema.names and not _alike(schema.field(name).type, expected):
            raise BenchError(f"{source}: column {name!r}: expected {expected}, found {schema.field(name).type}")
    has_image = IMAGE in schema.names
    if images and not has_image:
        logger.warning(
            "%s: a copy that was published without its images; the rows have their labels%s alone",
            source,
            " and the images' hashes" if HASH in schema.names else "",
        )
    return Beside(images and has_image, HASH in schema.names and not (images and has_image))


def check_columns(schema: pa.Schema, labels: Features, file: str) -> None:
    """Refuse a file whose label columns are of another kind, or whose class labels mean something else.

    Args:
        schema: of the file.
        labels: the columns that it must have.
        file: what messages call it.

    Raises:
        BenchError: the message names the column, what was expected and what was found.
    """
    stored = _stored(schema)
    for name, feature in labels.items():
        if name in _PIXELS:
            continue
        if name not in schema.names:
            raise BenchError(
                f"{file}: expected column {name!r}, found {', '.join(schema.names) or 'no columns'}; is this a copy "
                f"that `bench-datasets publish dataset` wrote?"
            )
        expected, found = labels.arrow_schema.field(name).type, schema.field(name).type
        if not _alike(found, expected):
            shown = [text if len(text := str(kind)) <= 160 else text[:157] + "..." for kind in (expected, found)]
            raise BenchError(f"{file}: column {name!r}: expected {shown[0]}, found {shown[1]}; is the copy whole?")
        if (names := _names(stored.get(name))) and names != _names(feature):
            raise BenchError(
                f"{file}: column {name!r}: its class labels have other names than this version's; it was published by "
                f"another version, publish it again"
            )


def _stored(schema: pa.Schema) -> Mapping[str, Any]:
    """The features that a file's metadata names; none where it is no such metadata."""
    try:
        return dict(Features.from_arrow_schema(schema))
    except Exception:  # anybody's text, read by code that expects its own
        return {}


def _names(feature: Any) -> list[list[str]]:
    """The class labels' names in a feature, in order."""
    if isinstance(feature, ClassLabel):
        return [list(feature.names)]
    if isinstance(feature, (List, LargeList)):
        return _names(feature.feature)
    if isinstance(feature, Mapping):
        return [names for name in sorted(feature) for names in _names(feature[name])]
    return []


def _alike(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values of one type can be read as the other's."""
    kinds = pa.types
    if kinds.is_struct(expected):
        return kinds.is_struct(found) and all(
            found.get_field_index(field.name) >= 0 and _alike(found.field(field.name).type, field.type)
            for field in expected
        )
    if kinds.is_list(expected) or kinds.is_fixed_size_list(expected):
        is_list = kinds.is_list(found) or kinds.is_large_list(found) or kinds.is_fixed_size_list(found)
        return is_list and _alike(found.value_type, expected.value_type)
    if kinds.is_integer(expected):
        return bool(kinds.is_integer(found))
    if kinds.is_floating(expected):
        return bool(kinds.is_floating(found) or kinds.is_integer(found))
    if kinds.is_binary(expected):
        return bool(kinds.is_binary(found) or kinds.is_large_binary(found))
    if kinds.is_string(expected):
        return bool(kinds.is_string(found) or kinds.is_large_string(found))
    return bool(found == expected)


def check_faults(codes: Sequence[Any] | None, place: str) -> list[str]:
    """A row's recorded faults.

    Raises:
        BenchError: one is no code of ours.
    """
    for code in codes or ():
        if code not in FAULTS:
            raise BenchError(f"{place}: field 'faults': expected codes of faults, found {ascii(code)[:60]}")
    return list(codes or ())


def shards_of(files: Sequence[SourceFile], dl_manager: Any, *, whole: bool) -> list[CopyShard]:
    """The files to build from; the Hub's go through its own cache where they are read `whole`."""
    urls = [file.url for file in files]
    fetch = whole and all(url.startswith("hf://") for url in urls)
    return [CopyShard(path, url) for path, url in zip(dl_manager.download(urls) if fetch else urls, urls, strict=True)]


def read_batches(
    shard: CopyShard, labels: Features, reads: Beside, access: Access, *, rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A shard's rows with the columns that are wanted, some at a time, each time with the number of the first.

    Raises:
        BenchError: the file is not what it should be, or cannot be read.
    """
    file = LabelFile(shard.path, access, name=shard.name)
    check_columns(file.schema, labels, shard.name)
    columns = [name for name in labels if name not in _PIXELS] + [HASH] * reads.hashes
    first = 0
    for batch in file.batches(columns, streamed=(IMAGE,) if reads.image else (), batch_rows=rows):
        yield first, batch
        first += len(batch)


def with_hashes(table: pa.Table, hashes: Sequence[Any]) -> pa.Table:
    """The rows with their images' recorded hashes."""
    return table.append_column(HASH, pa.array(hashes, pa.string()))
