"""The known malformed masks, as text and as bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any


def cases(shared: Path) -> list[dict[str, Any]]:
    return json.loads((shared / "data/malformed_masks.json").read_text())  # type: ignore[no-any-return]


def mask_of(case: dict[str, Any], text: bool) -> dict[str, Any]:
    raw = base64.b64decode(case["counts_base64"]) if "counts_base64" in case else None
    counts = case.get("counts") if raw is None else raw.decode("latin-1") if text else raw
    return {"size": case["size"], "counts": counts}


def typed(case: dict[str, Any]) -> bool:
    """Whether a column of binary counts and integer sizes can hold the case."""
    sound_size = case["size"] is None or all(isinstance(side, int) for side in case["size"])
    return sound_size and not isinstance(case.get("counts"), (int, list))
