"""Where a dataset came from, written into its `DatasetInfo` so that it lasts.

The description's last line is a JSON object behind a fixed mark. Descriptions go through the datasets cache,
`save_to_disk`, streaming, `select`, `filter`, `map` and `take`; Parquet loses them.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from typing import Any

_MARK = "Provenance: "

_INNER = ("file", "zip", "tar", "memory", "github", "local")
"""Protocols whose addresses hold no user and no token."""


def without_secrets(source: str) -> str:
    """A source without user names, passwords and queries, which may hold tokens; chained URLs part by part.

    Example:
        >>> without_secrets("https://me:secret@example.org/truth/?token=abc")
        'https://example.org/truth/'
        >>> without_secrets("zip://truth::s3://key:secret@bucket/a.zip"), without_secrets("/data/a@b?c")
        ('zip://truth::s3://bucket/a.zip', '/data/a@b?c')
    """
    return "::".join(_without_secrets(part) for part in source.split("::"))


def _without_secrets(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if not found or scheme.lower() in _INNER:
        return url
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


def public_name(source: str) -> str:
    """Public name of a source: a local folder without its path, a URL without secrets.

    Example:
        >>> public_name("/home/ada/rows/"), public_name("https://me:secret@example.org/rows"), public_name("acme/rows")
        ('rows', 'https://example.org/rows', 'acme/rows')
    """
    if "://" in source:
        url = without_secrets(source.split("::")[-1])
        return posixpath.basename(url.rstrip("/")) if url.startswith(("file://", "local://")) else url
    local = os.path.isabs(source) or re.match(r"[A-Za-z]:", source)
    return posixpath.basename(source.replace("\\", "/").rstrip("/")) if local else source


def describe(text: str, facts: dict[str, Any]) -> str:
    """A description that holds `facts` in its last line; of their source, no user name, password or query.

    Example:
        >>> print(describe("PBench.", {"benchmark": "pbench", "source": "sample"}))
        PBench.
        Provenance: {"benchmark": "pbench", "source": "sample"}
    """
    if isinstance(source := facts.get("source"), str):
        facts = {**facts, "source": without_secrets(source)}
    return f"{text}\n{_MARK}{json.dumps(facts, ensure_ascii=False)}"


def provenance(data: Any) -> dict[str, Any] | None:
    """The origin that a built or streaming dataset records.

    Args:
        data: a `Dataset`, `IterableDataset`, a dict of them (its first), or anything else with an `info`.

    Returns:
        `{"benchmark", "source", "revision", "config", "split", "rows"}`: `source` is a Hub dataset id, a folder, a URL
        or "sample"; `revision` the Hub's commit or None; `split` as the dataset names it (`test`, `test[:5]`); `rows`
        the rows that the source holds by part, as its footers say, whichever of its parts `data` is. None where nothing
        is said, or where parts of different sources were put together.

    Example:
        >>> from datasets import Dataset
        >>> provenance(Dataset.from_dict({"id": [1]})) is None
        True
    """
    if isinstance(data, dict) and data:
        data = next(iter(data.values()))
    description = getattr(getattr(data, "info", None), "description", None) or ""
    found: list[dict[str, Any]] = []
    for line in description.splitlines():
        if line.startswith(_MARK):
            try:
                facts = json.loads(line[len(_MARK) :])
            except ValueError:
                continue
            if isinstance(facts, dict) and facts not in found:
                found.append(facts)
    if not found:
        return None
    origins = {(facts.get("source"), facts.get("revision"), facts.get("benchmark")) for facts in found}
    if len(origins) > 1 or any(facts.get("rows") != found[0].get("rows") for facts in found):
        return None
    split = getattr(data, "split", None)
    return {
        "benchmark": found[0].get("benchmark"),
        "source": found[0].get("source"),
        "revision": found[0].get("revision"),
        "config": found[0].get("config") if len(found) == 1 else None,
        "split": None if split is None else str(split),
        "rows": found[0].get("rows"),
    }
