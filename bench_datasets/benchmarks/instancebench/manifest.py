"""The lines of an InstanceBench manifest: read one at a time, in bounded memory, and checked field by field."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bench_datasets._util.untrusted import load_json, open_file
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS, ROLES, SYNONYMS
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError

MAX_LINE = 1 << 28
"""Longest line that is read: 256 MiB."""

_CHUNK = 1 << 20
_MAX_SIDE = 2**31 - 1


class Expression(NamedTuple):
    """One expression of a set.

    Attributes:
        expression_id: its id.
        role: one of `ROLES`.
        text: its words.
        operation: one of `OPERATIONS`; None where the manifest's is none of them.
        named: the operation as the manifest names it.
        tags: its tags; a finer name of the operation is among them.
        donor: the id of the expression whose target is asked for in a text swap, or None.
    """

    expression_id: str
    role: str
    text: str
    operation: str | None
    named: str
    tags: list[str]
    donor: str | None


class Candidate(NamedTuple):
    """One annotated instance: its id, its mask as the manifest has it, and whether it is a crowd region."""

    instance_id: str
    segmentation: object
    iscrowd: bool


class Tces(NamedTuple):
    """One line: a target-centric expression set.

    Attributes:
        place: `file:line`, for messages.
        tces_id: the set's id.
        image: path of the image beside the manifest, or None.
        image_id: the image's id.
        source: where the image is from (`coco`, `openimages`).
        category: the target's category.
        height: of the image, pixels.
        width: of the image, pixels.
        target: the instance that every expression means; None where the line says null.
        candidates: the instances of that category.
        expressions: what means the target.
    """

    place: str
    tces_id: str
    image: str | None
    image_id: str
    source: str
    category: str
    height: int
    width: int
    target: str | None
    candidates: list[Candidate]
    expressions: list[Expression]


def read_manifest(path: str, access: Access, *, name: str | None = None) -> Iterator[Tces]:
    """The sets of a manifest file, in order.

    Args:
        path: a local path or any fsspec URL.
        access: token and storage options.
        name: what messages call the file; `path` where None.

    Raises:
        BenchError: a line is no JSON object, or a field is missing or not what it should be; the message names the
            file, the line, the field, what was expected and what was found.
    """
    for number, raw in read_lines(path, access, name=name):
        yield read_tces(raw, f"{name or path}:{number}")


def read_lines(path: str, access: Access, *, name: str | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold anything, with their numbers from 1.

    Raises:
        BenchError: the file is missing or no regular file, or a line is longer than `MAX_LINE` bytes.
    """
    name = name or path
    fs, inner = access.open(path)
    try:
        if fs.info(inner).get("type", "file") != "file":
            raise BenchError(f"{name}: expected a file of JSON Lines, found a folder, device or pipe")
        with open_file(fs, inner, name) as file:
            yield from _split(file, name)
    except FileNotFoundError as error:
        raise BenchError(f"{name}: expected a file of JSON Lines, found none there") from error


def _split(file: Any, name: str) -> Iterator[tuple[int, bytes]]:
    number, parts, held = 1, list[bytes](), 0
    while chunk := file.read(_CHUNK):
        if number == 1 and not parts:
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        held += len(first)
        for piece in rest:
            line = b"".join(parts)
            if line.strip():
                yield number, line
            number, parts, held = number + 1, [piece], len(piece)
        if held > MAX_LINE:
            raise BenchError(f"{name}:{number}: the line is longer than {MAX_LINE} bytes; is this a manifest?")
    line = b"".join(parts)
    if line.strip():
        yield number, line


def read_tces(raw: bytes, place: str) -> Tces:
    """One line of a manifest.

    Args:
        raw: the line, UTF-8.
        place: `file:line`, for messages.

    Raises:
        BenchError: as `read_manifest`.
    """
    try:
        value = load_json(raw)
    except UnicodeDecodeError as error:
        raise BenchError(f"{place}: expected UTF-8 text, found byte 0x{raw[error.start]:02x}") from None
    except json.JSONDecodeError as error:
        raise BenchError(f"{place}: column {error.colno}: expected one JSON object, found {error.msg}") from None
    except (ValueError, RecursionError) as error:
        found = "values nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BenchError(f"{place}: expected one JSON object, found {found}") from None
    if not isinstance(value, dict):
        raise BenchError(f"{place}: expected one JSON object, found {_show(value)}")
    return tces_of(value, place)


def tces_of(value: Mapping[str, Any], place: str) -> Tces:
    """A line's fields, checked.

    Args:
        value: by name.
        place: `file:line`, for messages.

    Raises:
        BenchError: a field is missing or not what it should be.
    """
    fields = _Fields(value, place)
    image = value.get("image")
    return Tces(
        place,
        fields.name("tces_id"),
        None if image is None else fields.text("image"),
        fields.name("image_id"),
        fields.text("source"),
        fields.text("category"),
        fields.side("height"),
        fields.side("width"),
        None if fields.get("target", "an instance_id") is None else fields.name("target"),
        [_candidate(item) for item in fields.items("candidates")],
        [_expression(item) for item in fields.items("expressions")],
    )


class _Fields:
    """The fields of one JSON object, asked for by name and kind."""

    def __init__(self, values: Mapping[str, Any], place: str, within: str = "") -> None:
        self.values, self.place, self.within = values, place, within

    def fail(self, name: str, expected: str, found: str) -> BenchError:
        return BenchError(f"{self.place}: field {self.within + name!r}: expected {expected}, found {found}")

    def get(self, name: str, expected: str) -> Any:
        if name not in self.values:
            raise self.fail(name, expected, f"no such field (the fields are {_names(self.values)})")
        return self.values[name]

    def text(self, name: str, expected: str = "a text") -> str:
        value = self.get(name, expected)
        if not isinstance(value, str):
            raise self.fail(name, expected, _show(value))
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.fail(name, f"{expected} in Unicode", f"half of a surrogate pair in {_show(value)}") from None
        return value

    def name(self, name: str) -> str:
        """An id: a text that is not empty, or an integer, which becomes its digits."""
        expected = "an id (a text or an integer)"
        value = self.get(name, expected)
        if isinstance(value, int) and not isinstance(value, bool):
            if abs(value) >= 2**63:
                raise self.fail(name, expected, "an integer beyond 64 bits")
            return str(value)
        if not self.text(name, expected):
            raise self.fail(name, expected, "an empty text")
        return str(value)

    def side(self, name: str) -> int:
        expected = "a positive number of pixels"
        value = self.get(name, expected)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_SIDE:
            raise self.fail(name, expected, _show(value))
        return value

    def items(self, name: str) -> Iterator[_Fields]:
        values = self.get(name, "a list")
        if not isinstance(values, list):
            raise self.fail(name, "a list", _show(values))
        for i, value in enumerate(values):
            if not isinstance(value, dict):
                raise self.fail(f"{name}[{i}]", "a JSON object", _show(value))
            yield _Fields(value, self.place, f"{name}[{i}].")


def _candidate(fields: _Fields) -> Candidate:
    crowd = fields.values.get("iscrowd", 0)
    if crowd not in (0, 1) or isinstance(crowd, float):
        raise fields.fail("iscrowd", "0 or 1", _show(crowd))
    return Candidate(fields.name("instance_id"), fields.values.get("segmentation"), bool(crowd))


def _expression(fields: _Fields) -> Expression:
    role = fields.text("role", f"one of {', '.join(ROLES)}")
    if role not in ROLES:
        raise fields.fail("role", f"one of {', '.join(ROLES)}", _show(role))
    named = fields.text("operation", f"one of {', '.join(OPERATIONS)}")
    tags = fields.values.get("tags")
    tags = [] if tags is None else tags
    if not isinstance(tags, list):
        raise fields.fail("tags", "a list of texts", _show(tags))
    own = _Fields({f"[{i}]": tag for i, tag in enumerate(tags)}, fields.place, f"{fields.within}tags")
    kept = list(dict.fromkeys(own.text(f"[{i}]") for i in range(len(tags))))
    if named in SYNONYMS and named not in kept:
        kept.append(named)
    operation = SYNONYMS.get(named, named)
    return Expression(
        fields.name("expression_id"),
        role,
        fields.text("text"),
        operation if operation in OPERATIONS else None,
        named,
        kept,
        None if fields.values.get("donor_expression_id") is None else fields.name("donor_expression_id"),
    )


def _names(values: Mapping[str, Any]) -> str:
    return ", ".join(ascii(name)[1:-1][:40] for name in list(values)[:12]) or "none"


def _show(value: object) -> str:
    """A value for a message: its type and its beginning."""
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return "a very large integer"
    text = ascii(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
