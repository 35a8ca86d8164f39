"""Where a dataset came from, written into its `DatasetInfo` so that it lasts.

The description's last line is a JSON object behind a fixed mark. Descriptions go through the datasets cache,
`save_to_disk`, streaming, `select`, `filter`, `map` and `take`; Parquet loses them.
"""

from __future__ import annotations

import json
from typing import Any

_MARK = "Provenance: "


def describe(text: str, facts: dict[str, Any]) -> str:
    """A description that says `facts` in its last line.

    Example:
        >>> print(describe("PBench.", {"benchmark": "pbench", "source": "sample"}))
        PBench.
        Provenance: {"benchmark": "pbench", "source": "sample"}
    """
    return f"{text}\n{_MARK}{json.dumps(facts, ensure_ascii=False)}"


def provenance(data: Any) -> dict[str, Any] | None:
    """What a built or streaming dataset says of its origin.

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
