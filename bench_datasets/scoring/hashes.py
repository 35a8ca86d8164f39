"""Content hashes of a row's labels and masks, and of many rows, independent of the format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.masks import MaskColumn


def row_hashes(
    labels: Sequence[Mapping[str, Any]] | pa.Table, masks: MaskColumn, groups: NDArray[np.int64]
) -> list[str]:
    """SHA-256 of each row, as hexadecimal text.

    What is hashed is the row's labels as canonical UTF-8 JSON (sorted names, no spaces, no escapes), followed by each
    mask as little-endian uint32: height, width, number of runs, runs (zero-length runs merged).

    Args:
        labels: n rows' fields without masks, as mappings or as a table.
        masks: the rows' masks, all sound.
        groups: `(n + 1,) int64`, where each row's masks begin.
    """
    words, begin = masks.words()
    bounds = begin[groups] * 4
    data = words.view(np.uint8).data
    result = []
    texts = table_json(labels) if isinstance(labels, pa.Table) else map(canonical_json, labels)
    for row, text in enumerate(texts):
        digest = hashlib.sha256(text)
        digest.update(data[bounds[row] : bounds[row + 1]])
        result.append(digest.hexdigest())
    return result


def sound_hashes(labels: Sequence[Mapping[str, Any]] | pa.Table, lists: Any, unsound: Collection[int]) -> list[str]:
    """As `row_hashes`; empty text for a row with an unsound mask, which has no content to speak of.

    Args:
        labels: n rows' fields without masks, as mappings or as a table.
        lists: the rows' masks, `MaskLists` or `TubeLists`.
        unsound: rows with an unsound mask: the keys of `lists.problems()`.
    """
    if not unsound:
        return row_hashes(labels, lists.masks, lists.groups)
    found, index = [""] * len(labels), [row for row in range(len(labels)) if row not in unsound]
    some = lists.take(np.array(index, np.int64))
    fields = (
        labels.take(pa.array(index, pa.int64())) if isinstance(labels, pa.Table) else [labels[row] for row in index]
    )
    for row, digest in zip(index, row_hashes(fields, some.masks, some.groups), strict=True):
        found[row] = digest
    return found


def content_hash(hashes: Iterable[str]) -> str:
    """SHA-256 over the rows' hashes, sorted, one a line: the content of a set of rows in any order.

    Example:
        >>> content_hash(["b", "a"]) == content_hash(["a", "b"])
        True
    """
    return hashlib.sha256("".join(f"{item}\n" for item in sorted(hashes)).encode()).hexdigest()


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted names, no spaces and no escapes beyond JSON's own.

    Example:
        >>> canonical_json({"b": 1, "a": "ö"}).decode()
        '{"a":"ö","b":1}'
    """
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def table_json(table: pa.Table) -> Iterator[bytes]:
    """`canonical_json` of each row of a table.

    Example:
        >>> list(table_json(pa.table({"b": [1, None], "a": ["x", "y"]})))
        [b'{"a":"x","b":1}', b'{"a":"y","b":null}']
    """
    names = sorted(table.column_names)
    if not names:
        return iter([b"{}"] * len(table))
    fields = (f"{_ENCODER.encode(name)}:".replace("%", "%%") + "%s" for name in names)
    form = f"{{{','.join(fields)}}}"
    rows = zip(*(_encoded(table[name]) for name in names), strict=True)
    return ((form % row).encode("utf-8", "surrogatepass") for row in rows)


def _encoded(column: pa.ChunkedArray) -> list[str]:
    """Each value of a column as JSON; of values that stand there many times, each once."""
    if column.null_count == len(column):
        return ["null"] * len(column)
    if not pa.types.is_string(column.type) or isinstance(column.type, pa.BaseExtensionType):
        return [_ENCODER.encode(value) for value in column.to_pylist()]
    known: dict[str | None, str] = {None: "null"}
    return [known.get(value) or known.setdefault(value, _ENCODER.encode(value)) for value in column.to_pylist()]


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
