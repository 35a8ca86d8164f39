"""An InstanceBench row as text and picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.benchmarks.instancebench.vocabulary import ROLES
from bench_datasets.display.overlay import overlay
from bench_datasets.display.show import Shown, read_masks, row_size, shorten_lines
from bench_datasets.faults import BenchError


def show_set(row: Mapping[str, Any]) -> Shown:
    """The target over the image, and the expressions.

    Raises:
        BenchError: the target is no candidate, or a mask is invalid.
    """
    key, target = str(row.get("key")), int(row["target"])
    candidates = list(row["candidates"] or ())
    if not 0 <= target < len(candidates):
        raise BenchError(f"{key}: target: expected one of {len(candidates)} candidates, found {target}")
    true = read_masks([candidates[target]["mask"]], "candidates", key)
    given = read_masks(row["pred_masks"], "pred_masks", key) if row.get("pred_masks") is not None else None
    lines = [
        f"{key}: {row.get('category')}, target {candidates[target]['instance_id']} of {len(candidates)} candidates"
    ]
    asked = [f"  {_name(e['role'], ROLES)}: {e['text']!r}" for e in row.get("expressions") or ()]
    lines += shorten_lines(asked, "expressions")
    return Shown(key, "\n".join(lines), overlay(row.get("image"), row_size(true, row), true, given))


def _name(value: Any, names: Any) -> str:
    return str(names[value]) if isinstance(value, int) and 0 <= value < len(names) else str(value)
