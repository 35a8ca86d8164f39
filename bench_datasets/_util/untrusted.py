"""Files that other people wrote: open regular files only, read JSON strictly."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from typing import IO, Any, cast

from bench_datasets._compat import path_in
from bench_datasets.faults import BenchError, shorten


class NotRegularError(BenchError, OSError):
    """A path names a folder, named pipe, socket or device where a file is expected."""


class RepeatedNameError(ValueError):
    """A JSON object holds one name twice."""


# ---------------------------------------------------------------------- files


def open_regular(path: str | os.PathLike[str], shown: str | None = None) -> IO[bytes]:
    """Open a local regular file for reading bytes; a pipe or device is refused and never waited for.

    Args:
        path: a local path; a symbolic link is followed.
        shown: what messages call the file; the path by default.

    Returns:
        The open file, buffered.

    Raises:
        NotRegularError: the path names a folder, named pipe, socket or device.
        OSError: the file is missing or may not be read.

    Example:
        >>> import tempfile
        >>> try:
        ...     open_regular(tempfile.gettempdir(), "result.json")
        ... except NotRegularError as error:
        ...     print(error)
        result.json: expected a regular file, found a folder
    """
    name = shown or os.fspath(path)
    _require_regular(os.stat(path).st_mode, name)
    # A pipe that takes the file's place after the look at it does not block either.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _require_regular(os.fstat(number).st_mode, name)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_regular(path: str | os.PathLike[str], limit: int, shown: str | None = None) -> bytes:
    """Read a local regular file of at most `limit` bytes.

    Args:
        path: a local path.
        limit: most bytes that the file may hold.
        shown: what messages call the file; the path by default.

    Raises:
        NotRegularError: the path names a folder, named pipe, socket or device.
        BenchError: the file holds more than `limit` bytes.
        OSError: the file is missing or may not be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"abc"), file.flush()
        ...     read_regular(file.name, 3)
        b'abc'
    """
    with open_regular(path, shown) as file:
        return _bounded(file, limit, shown or os.fspath(path))


def open_file(fs: Any, path: str, shown: str | None = None, **options: Any) -> IO[bytes]:
    """Open a file of any fsspec file system for reading bytes; on this machine regular files only.

    Args:
        fs: an fsspec file system.
        path: the path in it.
        shown: what messages call the file; the path by default.
        options: keyword arguments of `fs.open`, for file systems of other machines.

    Raises:
        NotRegularError: the path names a folder, named pipe, socket or device of this machine.
        OSError: the file is missing or may not be read.
    """
    if getattr(fs, "local_file", False):
        return open_regular(path_in(fs, path), shown)
    return cast("IO[bytes]", fs.open(path, "rb", **options))


def read_file(fs: Any, path: str, limit: int, shown: str | None = None) -> bytes:
    """Read a file of any fsspec file system, of at most `limit` bytes; on this machine regular files only.

    Raises:
        NotRegularError: the path names a folder, named pipe, socket or device of this machine.
        BenchError: the file holds more than `limit` bytes.
        OSError: the file is missing or may not be read.
    """
    with open_file(fs, path, shown) as file:
        return _bounded(file, limit, shown or path)


def refuse_outside(folder: str, path: str, shown: str) -> None:
    """Stop at a path that leads out of a folder by a symbolic link or `..`.

    Links into the folder itself are followed. So are those of the Hub's cache, whose `snapshots/<commit>` hold links to
    `blobs` of the same repository.

    Args:
        folder: a local folder; it may be a link itself.
        path: a local path that should lie in the folder.
        shown: what the message calls the path.

    Raises:
        BenchError: the path leads out of the folder.

    Example:
        >>> refuse_outside("/data/run", "/data/run/masks/7.png", "masks/7.png")
        >>> refuse_outside("/data/run", "/data/run/../other/7.png", "../other/7.png")
        Traceback (most recent call last):
        ...
        bench_datasets.faults.BenchError: ../other/7.png: the path leads out of the folder; copy the file into it
    """
    root, real = os.path.realpath(folder), os.path.realpath(path)
    allowed = [root]
    before, found, _ = root.partition(f"{os.sep}snapshots{os.sep}")
    if found:
        allowed.append(os.path.join(before, "blobs"))
    if not any(real == base or real.startswith(base.rstrip(os.sep) + os.sep) for base in allowed):
        raise BenchError(f"{shown}: the path leads out of the folder; copy the file into it")


def _require_regular(mode: int, shown: str) -> None:
    if not stat.S_ISREG(mode):
        found = "a folder" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise NotRegularError(f"{shown}: expected a regular file, found {found}")


def _bounded(file: IO[bytes], limit: int, shown: str) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise BenchError(f"{shown}: expected at most {limit:,} bytes, found more")
    return data


# ---------------------------------------------------------------------- JSON


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object's fields, each name once."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise RepeatedNameError(f"the name {shorten(name)} twice in one object; keep one")
            names.add(name)
    return fields


JSON = json.JSONDecoder(object_pairs_hook=_unique)
"""A decoder that refuses an object with a repeated name (`RepeatedNameError`)."""


def load_json(text: str | bytes) -> Any:
    """Parse JSON text; an object with a repeated name is refused, because one of its values would be lost.

    Args:
        text: JSON, as text or as UTF-8 bytes.

    Raises:
        RepeatedNameError: an object holds one name twice (a `ValueError`, like every other mistake).
        json.JSONDecodeError: the text is no JSON.
        UnicodeDecodeError: the bytes are not UTF-8.
        RecursionError: the values are nested too deeply.

    Example:
        >>> load_json('{"id": 7, "masks": []}')
        {'id': 7, 'masks': []}
        >>> load_json('{"id": 7, "id": 8}')
        Traceback (most recent call last):
        ...
        bench_datasets._util.untrusted.RepeatedNameError: the name 'id' twice in one object; keep one
    """
    return json.loads(text if isinstance(text, str) else text.decode("utf-8"), object_pairs_hook=_unique)


def load_text(value: object) -> Any:
    """Parse a value that is JSON text of a list or an object; return any other value as it is.

    Example:
        >>> load_text("[1, 2]"), load_text("[1, 2"), load_text("word"), load_text(3)
        ([1, 2], '[1, 2', 'word', 3)
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return load_json(value)
        except (ValueError, RecursionError):
            return value
    return value
