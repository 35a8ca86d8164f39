"""JSON out of untrusted text: one object a line or one array, in bounded memory, with the place of every mistake."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, NoReturn, cast

import pyarrow as pa

from bench_datasets._util.untrusted import JSON, RepeatedNameError, load_json
from bench_datasets.faults import BenchError, shorten
from bench_datasets.predictions.files import Location

MAX_RECORD = 1 << 28
"""Longest line, or element of an array, that is read: 256 MiB."""

MAX_WEIGHT = 1 << 30
"""Most memory, in bytes, that the values of one JSON record may take once they are parsed: about 1 GiB."""

FREE, RATIO = 1 << 25, 256
"""A gzip file may unpack to 32 MiB, and to 256 times its own size beyond that."""

_CHUNK = 1 << 20

_BLOCK = 1 << 22
"""Bytes of lines that are parsed together."""

_BETWEEN = re.compile(rb"\}\s*,\s*\{")
"""The end of an object in an array and the beginning of the next."""

_TRIES = 4
"""Blocks in a row that can't be parsed at once, after which no more are tried."""

_GZIP = b"\x1f\x8b"


class Record(NamedTuple):
    """One JSON object of a file: the line it begins on (from 1) and its fields."""

    line: int
    fields: dict[str, Any]


class _Whole(io.RawIOBase):
    """A file of any file system, of which no more is asked than `read`: those of fsspec can't limit a line."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.count = 0
        """Bytes that were read so far."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, but for the end of the file."""
        done = 0
        while done < len(buffer) and (piece := self._file.read(len(buffer) - done)):
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        self.count += done
        return done


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, refused if it is far larger than the bytes read of the file."""

    def __init__(self, packed: IO[bytes], source: _Whole, shown: str) -> None:
        super().__init__()
        self._stream, self._source, self._shown = gzip.GzipFile(fileobj=packed), source, shown
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill some of the buffer."""
        piece = self._stream.read1(len(buffer))
        buffer[: len(piece)] = piece
        self._done += len(piece)
        if self._done > FREE + RATIO * self._source.count:
            packed = self._source.count
            raise BenchError(
                f"{self._shown}: expected a gzip file that unpacks to at most {RATIO} times its size, found more than "
                f"{self._done:,} bytes in {packed:,}; unpack it yourself if you trust it"
            )
        return len(piece)


class _Chained(io.RawIOBase):
    """Some bytes and then the rest of the stream that they were read from."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._head, self._rest = io.BytesIO(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, but for the end of the stream."""
        piece = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@contextmanager
def open_text(location: Location) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked if it is gzipped, behind a UTF-8 byte order mark.

    Raises:
        BenchError: the file is UTF-16 or UTF-32, or its gzip stream is broken.
    """
    with location.open() as raw:
        source = _Whole(raw)
        plain = io.BufferedReader(source, _CHUNK)
        packed = plain.peek(2)[:2] == _GZIP
        stream = io.BufferedReader(_Unpacked(plain, source, location.shown), _CHUNK) if packed else plain
        try:
            start = stream.peek(3)[:3]
            if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise BenchError(f"{location.shown}: expected UTF-8 text, found UTF-16; save it as UTF-8")
            if start == codecs.BOM_UTF8:
                stream.read(3)
            yield cast("IO[bytes]", stream)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BenchError(
                f"{location.shown}: expected a whole gzip stream, found it broken or cut: {error}"
            ) from error


def records(location: Location) -> Iterator[Record]:
    """Every object of a JSON Lines file, or of a file that is one JSON array of objects.

    Raises:
        BenchError: something is not JSON, or no object, or not UTF-8; the message names file, line and column.
    """
    with open_text(location) as stream:
        number, first = _skip_blanks(stream)
        if first == b"[":
            yield from _array(location.shown, stream, number)
        else:
            yield from _lines_or_object(location.shown, stream, number)


def records_or_batches(
    location: Location, parse: Callable[[bytes], pa.RecordBatch | None]
) -> Iterator[Record | pa.RecordBatch]:
    """The objects of a file as `records` gives them, and batches for the blocks of lines that can be parsed at once.

    Args:
        location: the file.
        parse: makes a batch of a block of whole lines, or `None` where its lines are to be given one by one.

    Raises:
        BenchError: as `records`.
    """
    with open_text(location) as stream:
        number, first = _skip_blanks(stream)
        if first == b"[":
            yield from _array(location.shown, stream, number)
            return
        refused, started = 0, False
        while refused < _TRIES and (block := stream.read(_BLOCK)):
            if not block.endswith(b"\n"):
                block += stream.readline(MAX_RECORD)
            batch = parse(block)
            if batch is None and not started:
                line = block[: block.find(b"\n") + 1]
                if not _is_object(line):  # perhaps one object on several lines
                    rest = io.BufferedReader(_Chained(block, stream), _CHUNK)
                    yield from _lines_or_object(location.shown, cast("IO[bytes]", rest), number)
                    return
            started = True
            if batch is None:
                refused += 1
                yield from _lines(location.shown, io.BytesIO(block), number)
            else:
                refused = 0
                yield batch
            number += block.count(b"\n")
        yield from _lines(location.shown, stream, number)


def blocks_of_objects(location: Location) -> Iterator[tuple[bytes, bool]]:
    """The objects of a file in blocks, one object per line, as far as they are found without parsing.

    In an array, objects end where `}`, a comma and `{` follow each other. That is right for objects without lists of
    objects; other objects are cut in two, which a parser notices. The generator ends early at anything unusual.

    Yields:
        A block, and whether it ends the file.
    """
    with open_text(location) as stream:
        _, first = _skip_blanks(stream)
        if first != b"[":
            while block := stream.read(_BLOCK):
                block += b"" if block.endswith(b"\n") else stream.readline(MAX_RECORD)
                yield block, not cast("io.BufferedReader", stream).peek(1)
            return
        stream.read(1)
        rest = b""
        while piece := stream.read(_BLOCK):
            rest += piece
            cuts = list(_BETWEEN.finditer(rest, max(0, len(rest) - _CHUNK // 16))) or list(_BETWEEN.finditer(rest))
            if cuts:
                end, begin = cuts[-1].start() + 1, cuts[-1].end() - 1
                yield _BETWEEN.sub(b"}\n{", rest[:end].replace(b"\n", b" ").strip()), False
                rest = rest[begin:]
            elif len(rest) > MAX_RECORD:
                return
        last = rest.strip()
        if last.endswith(b"]") and len(last) > 1:
            yield last[:-1].replace(b"\n", b" ").strip(), True


def _lines_or_object(shown: str, stream: IO[bytes], number: int) -> Iterator[Record]:
    line = stream.readline(MAX_RECORD)
    indented = _indented(line, stream, f"{shown}:{number}")
    if indented is not None:
        yield Record(number, indented)
        return
    yield from _lines(shown, stream, number, line)


def _lines(shown: str, stream: IO[bytes], number: int, line: bytes | None = None) -> Iterator[Record]:
    """The objects of the lines of a stream, from line `number` on; `line` was read already."""
    line = stream.readline(MAX_RECORD) if line is None else line
    while line:
        if len(line) >= MAX_RECORD:
            raise BenchError(f"{shown}:{number}: the line is longer than {MAX_RECORD} bytes; split the file")
        if line.strip():
            yield Record(number, _object(shown, number, line))
        number, line = number + 1, stream.readline(MAX_RECORD)


def _is_object(line: bytes) -> bool:
    """Whether a line is a whole JSON object, or too long to be looked at."""
    if len(line) > _CHUNK:
        return True
    try:
        return isinstance(load_json(line), dict)
    except (ValueError, RecursionError):
        return False


def _indented(line: bytes, stream: IO[bytes], place: str) -> dict[str, Any] | None:
    """The one object of a file that is written on several lines, of which `line` is the first; else None.

    The stream is only read on where the line ends within an object.
    """
    if len(line) > _CHUNK or not cast("io.BufferedReader", stream).peek(1):
        return None
    try:
        load_json(line)
    except json.JSONDecodeError as error:
        if error.pos < len(error.doc.rstrip()):
            return None
    except (ValueError, RecursionError):
        return None
    else:
        return None
    data = line + stream.read(MAX_RECORD)
    if len(data) > MAX_RECORD:
        raise BenchError(f"{place}: the object is longer than {MAX_RECORD} bytes; write one JSON object per line")
    _refuse_heavy(data, place)
    try:
        return _checked(place, load_json(data))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            found = f"objects on several lines, the second from line {error.lineno} on"
        else:
            found = f"{_excerpt(error.doc, error.pos)}: {error.msg} (line {error.lineno}, column {error.colno})"
        raise BenchError(f"{place}: expected one JSON object per line, found {found}") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{place}: expected one JSON object per line, found {_unreadable(error)}") from None


def _skip_blanks(stream: IO[bytes]) -> tuple[int, bytes]:
    """Go past blanks; the line that the first other character is on, from 1, and the character (empty at the end)."""
    number = 1
    while piece := cast("io.BufferedReader", stream).peek(1):
        rest = piece.lstrip(b" \t\r\n")
        blanks = stream.read(len(piece) - len(rest))
        number += blanks.count(b"\n")
        if rest:
            return number, rest[:1]
    return number, b""


def first_record(location: Location) -> dict[str, Any] | None:
    """The first object of the file, or None if there is none."""
    found = records(location)
    try:
        return next((record.fields for record in found), None)
    finally:
        found.close()  # type: ignore[attr-defined]


def whole(location: Location) -> Any:
    """The one JSON value that a file holds, on however many lines.

    Raises:
        BenchError: it is no JSON, not UTF-8, or longer than `MAX_RECORD` bytes.
    """
    with open_text(location) as stream:
        data = stream.read(MAX_RECORD + 1)
    if len(data) > MAX_RECORD:
        raise BenchError(f"{location.shown}: expected at most {MAX_RECORD} bytes of JSON, found more")
    _refuse_heavy(data, location.shown)
    try:
        return load_json(data)
    except UnicodeDecodeError as error:
        raise BenchError(f"{location.shown}: expected UTF-8 text, found {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        found = f"{_excerpt(error.doc, error.pos)}: {error.msg}"
        place = f"{location.shown}:{error.lineno}: column {error.colno}"
        raise BenchError(f"{place}: expected JSON, found {found}") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{location.shown}: expected JSON, found {_unreadable(error)}") from None


def _object(shown: str, number: int, line: bytes) -> dict[str, Any]:
    place = f"{shown}:{number}"
    _refuse_heavy(line, place)
    try:
        value = load_json(line.decode("utf-8").rstrip("\r\n"))
    except UnicodeDecodeError as error:
        found = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        raise BenchError(f"{place}: expected UTF-8 text, found {found}") from None
    except json.JSONDecodeError as error:
        cut = "" if line.endswith(b"\n") else " (the last line has no end: was the file cut short?)"
        found = f"{_excerpt(error.doc, error.pos)}: {error.msg}{cut}"
        expected = "expected one JSON object on the line"
        raise BenchError(f"{place}: column {error.colno}: {expected}, found {found}") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{place}: expected one JSON object on the line, found {_unreadable(error)}") from None
    return _checked(place, value)


def _refuse_heavy(text: str | bytes, place: str) -> None:
    """Stop at JSON whose values would take far more memory than its text.

    A number takes about 40 bytes, an empty list 72, an object 240. Brackets within texts are counted, too.

    Raises:
        BenchError: the values would take more than `MAX_WEIGHT` bytes.
    """
    if len(text) < MAX_WEIGHT >> 8:  # too short for it, whatever it holds
        return
    if isinstance(text, str):
        number, lists, objects = text.count(","), text.count("["), text.count("{")
    else:
        number, lists, objects = text.count(b","), text.count(b"["), text.count(b"{")
    if 40 * number + 72 * lists + 240 * objects > MAX_WEIGHT:
        raise BenchError(f"{place}: found a record of {number:,} values, too many to be read at once; split the record")


def _array(shown: str, stream: IO[bytes], line: int) -> Iterator[Record]:
    reader = _ArrayReader(shown, stream, line)
    reader.skip("[")
    if reader.peek() == "]":
        reader.skip("]")
    else:
        while True:
            at, value = reader.value()
            yield Record(at, _checked(f"{shown}:{at}", value))
            if reader.peek() != ",":
                reader.skip("]")
                break
            reader.skip(",")
    if reader.peek():
        reader.fail("the end of the file after the array")


class _ArrayReader:
    """Takes values out of a long JSON text, holding one of them at a time."""

    def __init__(self, shown: str, stream: IO[bytes], line: int) -> None:
        self.shown, self.stream = shown, stream
        self.decode = codecs.getincrementaldecoder("utf-8")()
        self.json = JSON
        self.text, self.position = "", 0
        self.line, self.column, self.told = line, 1, 0  # the place of character number `told`
        self.ended = False

    def peek(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            rest = len(self.text)
            while self.position < rest and self.text[self.position] in " \t\r\n":
                self.position += 1
            if self.position < rest or not self._more():
                return self.text[self.position : self.position + 1]

    def skip(self, expected: str) -> None:
        """Go past one character."""
        if self.peek() != expected:
            self.fail("',' or ']'" if expected == "]" else repr(expected))
        self.position += 1

    def value(self) -> tuple[int, Any]:
        """The next value and the line that it begins on."""
        if self.peek() != "{":
            self.fail("a JSON object")
        while True:
            try:
                value, end = self.json.raw_decode(self.text, self.position)
                break
            except json.JSONDecodeError as error:
                undecided = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - 16
                if not (undecided and self._more()):
                    self.position = min(error.pos, len(self.text))
                    self.fail("the rest of a JSON object")
            except (ValueError, RecursionError) as error:
                place = f"{self.shown}:{self._place()[0]}"
                raise BenchError(f"{place}: expected a JSON object, found {_unreadable(error)}") from None
        line, _ = self._place()
        self.position = end
        return line, value

    def fail(self, expected: str) -> NoReturn:
        """Raise an error that names the place and the expected value."""
        line, column = self._place()
        found = _excerpt(self.text, self.position)
        raise BenchError(f"{self.shown}:{line}: column {column}: expected {expected}, found {found}")

    def _place(self) -> tuple[int, int]:
        newline = self.text.rfind("\n", self.told, self.position)
        self.line += self.text.count("\n", self.told, self.position)
        self.column = self.column + self.position - self.told if newline < 0 else self.position - newline
        self.told = self.position
        return self.line, self.column

    def _more(self) -> bool:
        if self.ended:
            return False
        if len(self.text) - self.position > MAX_RECORD:
            place = f"{self.shown}:{self._place()[0]}"
            raise BenchError(f"{place}: an object is longer than {MAX_RECORD} characters; split the file")
        self._place()
        self.text, self.position, self.told = self.text[self.position :], 0, 0
        _refuse_heavy(self.text, f"{self.shown}:{self.line}")
        self._append(self.stream.read(max(_CHUNK, len(self.text))))
        return True

    def _append(self, data: bytes) -> None:
        self.ended = not data
        try:
            self.text += self.decode.decode(data, final=self.ended)
        except UnicodeDecodeError as error:
            line = self.line + self.text.count("\n") + data[: error.start].count(b"\n")
            raise BenchError(f"{self.shown}: near line {line}: expected UTF-8 text, found {error.reason}") from None


def _checked(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        found = f"{type(value).__name__} {shorten(value, 23)}"
        raise BenchError(f"{place}: expected a JSON object {{...}}, found {found}")
    return value


def _unreadable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "values nested too deeply"
    return str(error) if isinstance(error, RepeatedNameError) else f"a value that cannot be read: {error}"


def _excerpt(text: str, position: int) -> str:
    piece = text[position : position + 20]
    return repr(piece) if piece else "the end of the text"
