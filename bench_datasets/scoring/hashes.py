"""Content hashes of a row's labels and masks, and of many rows, independent of the format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    for row, fields in enumerate(labels.to_pylist() if isinstance(labels, pa.Table) else labels):
        digest = hashlib.sha256(canonical_json(fields))
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


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
