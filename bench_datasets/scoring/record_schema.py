"""The schema of `result.json`: what each field holds, and how large the file's parts may be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from bench_datasets.faults import BenchError

MAX_DEPTH = 8
"""Most levels of lists and objects within each other."""

MAX_NAME = 300
"""Most characters of a name: a benchmark, a protocol, a metric key."""

MAX_TEXT = 100_000
"""Most characters of any other text."""

MAX_METRICS = 10_000
"""Most metrics of a result, and of one of its slices."""

MAX_LIST = 1_000
"""Most ranks, thresholds, fault codes, packages or examples of a fault."""

_CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")
_HASH = re.compile(r"[0-9a-f]{1,64}")

Check = Callable[[Any], bool]


def validate_result(content: Mapping[str, Any]) -> None:
    """Check the content of a `result.json` of schema version 1; unknown fields are allowed within the bounds.

    Args:
        content: the parsed JSON object.

    Raises:
        BenchError: a field is missing, of another type, not finite or too large; the message names the field.

    Example:
        >>> validate_result({"benchmark": "pbench", "created": "yesterday"})
        Traceback (most recent call last):
        ...
        bench_datasets.faults.BenchError: created: expected a time in ISO 8601, found 'yesterday'
    """
    _check_values(content)
    _field(content, "benchmark", _is_name, "a name")
    _field(content, "created", lambda v: isinstance(v, str) and bool(_CREATED.fullmatch(v)), "a time in ISO 8601")
    _fields(content, "protocol", {"name": _NAME, "version": _NAME, "comparable_to": _NAME_OR_NULL})
    _fields(content, "dataset", {"source": _TEXT_OR_NULL, "split": _NAME_OR_NULL, "revision": _NAME_OR_NULL})
    if "content_sha256" in content["dataset"]:
        _field(content["dataset"], "content_sha256", _is_hash, "a SHA-256", "dataset.")
    _fields(content["dataset"], "rows", {"scored": _COUNT, "expected": _COUNT_OR_NULL}, "dataset.")
    predictions = {"sha256": (_or_null(_is_hash), "a SHA-256 or null"), "rows": _COUNT_OR_NULL}
    _fields(content, "predictions", {**predictions, "missing": _COUNT_OR_NULL})
    _fields(content, "settings", {})
    for name, (holds, what) in _SETTINGS.items():
        if name in content["settings"]:
            _field(content["settings"], name, holds, what, "settings.")
    _fields(content, "statistics", {})
    for name, (holds, what) in _STATISTICS.items():
        if name in content["statistics"]:
            _field(content["statistics"], name, holds, what, "statistics.")
    _metrics(content, "")
    _field(content, "slices", lambda v: isinstance(v, list), "a list")
    for k, part in enumerate(content["slices"]):
        where = f"slices[{k}]."
        if not isinstance(part, dict):
            raise BenchError(f"slices[{k}]: expected an object, found {_shown(part)}")
        _field(part, "by", *_NAME, where)
        _field(part, "value", lambda v: isinstance(v, str), "a text", where)
        _metrics(part, where)
    _faults(content)
    _fields(content, "packages", {})
    _few(content, "packages")
    for name in content["packages"]:
        _field(content["packages"], name, *_NAME, "packages.")


def validate_provenance(content: Any) -> None:
    """Validate the recorded origin of a score table; parts may be missing, unknown fields are allowed.

    Args:
        content: `dataset`, `predictions`, `settings` and `faults` of the scores.

    Raises:
        BenchError: a field is of another type, not finite or too large; the message names the field.

    Example:
        >>> validate_provenance({"dataset": {"source": "sample", "expected": -1}})
        Traceback (most recent call last):
        ...
        bench_datasets.faults.BenchError: dataset.expected: expected a whole number from 0, or null, found -1
    """
    if not isinstance(content, dict):
        raise BenchError(f"expected an object, found {_shown(content)}")
    _check_values(content)
    for part, fields in _PROVENANCE.items():
        if part in content:
            _fields(content, part, {})
            for name, (holds, what) in fields.items():
                if name in content[part]:
                    _field(content[part], name, holds, what, f"{part}.")
    if "faults" in content:
        _faults(content)


def _check_values(value: Any, depth: int = 0) -> None:
    """Every value within the bounds: finite numbers, whole characters, lengths, depth."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise BenchError(f"expected texts of at most {MAX_TEXT:,} characters, found one of {len(value):,}")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise BenchError(f"expected texts of whole characters, found {_shown(value)}") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise BenchError(f"expected finite numbers, found {value}")
    elif isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise BenchError("expected numbers of at most 64 bits, found a longer one")
    elif isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise BenchError(f"expected at most {MAX_DEPTH} levels of lists and objects, found more")
        for name in value if isinstance(value, dict) else ():
            _check_values(name)
        for item in value.values() if isinstance(value, dict) else value:
            _check_values(item, depth + 1)


def _field(content: Mapping[str, Any], name: str, holds: Check, what: str, where: str = "") -> None:
    shown = f"{where}{name if len(name) <= MAX_NAME and name.isprintable() else _shown(name)}"
    if name not in content:
        raise BenchError(f"{shown}: expected {what}, found no such field")
    if not holds(content[name]):
        raise BenchError(f"{shown}: expected {what}, found {_shown(content[name])}")


def _fields(content: Mapping[str, Any], name: str, fields: Mapping[str, tuple[Check, str]], where: str = "") -> None:
    """An object with these fields."""
    _field(content, name, lambda v: isinstance(v, dict), "an object", where)
    for field, (holds, what) in fields.items():
        _field(content[name], field, holds, what, f"{where}{name[:MAX_NAME]}.")


def _faults(content: Mapping[str, Any]) -> None:
    _fields(content, "faults", {})
    _few(content, "faults")
    for code in content["faults"]:
        _fields(content["faults"], code, {"count": _COUNT, "examples": (_is_texts, "a list of texts")}, "faults.")


def _few(content: Mapping[str, Any], name: str) -> None:
    if len(content[name]) > MAX_LIST or not all(map(_is_name, content[name])):
        raise BenchError(f"{name}: expected at most {MAX_LIST:,} names, found {_shown(content[name])}")


def _metrics(content: Mapping[str, Any], where: str) -> None:
    _field(content, "metrics", lambda v: isinstance(v, dict), "an object", where)
    metrics = content["metrics"]
    if len(metrics) > MAX_METRICS:
        raise BenchError(f"{where}metrics: expected at most {MAX_METRICS:,} metrics, found {len(metrics):,}")
    for key, metric in metrics.items():
        if not _is_name(key):
            raise BenchError(f"{where}metrics: expected names of at most {MAX_NAME} characters, found {_shown(key)}")
        if not isinstance(metric, dict):
            raise BenchError(f"{where}metrics.{key}: expected an object, found {_shown(metric)}")
        for field, (holds, what, needed) in _METRIC.items():
            if needed or field in metric:
                _field(metric, field, holds, what, f"{where}metrics.{key}.")


def _shown(value: object) -> str:
    """The beginning of a foreign value for a message."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
    return ascii(value[:60] if isinstance(value, str) else value)


def _or_null(holds: Check) -> Check:
    return lambda value: value is None or holds(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and bool(_HASH.fullmatch(value))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_LIST and all(isinstance(item, str) for item in value)


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _list_of(holds: Check) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= MAX_LIST and all(map(holds, value))


_NAME = (_is_name, f"a text of at most {MAX_NAME} characters")
_NAME_OR_NULL = (_or_null(_is_name), f"a text of at most {MAX_NAME} characters or null")
_TEXT_OR_NULL = (_or_null(lambda value: isinstance(value, str)), "a text or null")
_COUNT = (_is_count, "a whole number from 0")
_COUNT_OR_NULL = (_or_null(_is_count), "a whole number from 0, or null")
_SETTINGS = {
    "missing": _NAME_OR_NULL,
    "on_fault": _NAME_OR_NULL,
    "k": (_or_null(_list_of(lambda v: _is_integer(v) and v >= 1)), "a list of ranks from 1, or null"),
    "boundary": (lambda value: isinstance(value, bool), "true or false"),
    "thresholds": (_or_null(_list_of(_is_number)), "a list of numbers or null"),
    "oracle": _NAME_OR_NULL,
}
_STATISTICS = {
    "seed": (_or_null(_is_integer), "a whole number or null"),
    "draws": _COUNT_OR_NULL,
    "unit": _NAME_OR_NULL,
    "clusters": _COUNT_OR_NULL,
}
_PROVENANCE: dict[str, dict[str, tuple[Check, str]]] = {
    "dataset": {
        "source": _TEXT_OR_NULL,
        "split": _NAME_OR_NULL,
        "revision": _NAME_OR_NULL,
        "expected": _COUNT_OR_NULL,
    },
    "predictions": {
        "sha256": (_or_null(_is_hash), "a SHA-256 or null"),
        "rows": _COUNT_OR_NULL,
        "missing": _COUNT_OR_NULL,
    },
    "settings": {name: _SETTINGS[name] for name in ("missing", "on_fault", "oracle")},
}
_METRIC: dict[str, tuple[Check, str, bool]] = {
    "value": (_or_null(_is_number), "a number or null", True),
    "n": (*_COUNT, True),
    "ci95": (_or_null(_is_interval), "an interval [low, high] or null", True),
    "higher_is_better": (lambda value: isinstance(value, bool), "true or false", True),
    "sd": (_or_null(_is_number), "a number or null", False),
    "runs": (*_COUNT_OR_NULL, False),
}
