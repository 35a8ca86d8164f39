"""Where predictions lie: one file or folder on any file system that fsspec knows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from fsspec.implementations.local import LocalFileSystem

from bench_datasets._compat import path_in
from bench_datasets._util.untrusted import open_file, refuse_outside
from bench_datasets.benchmark import known_parts
from bench_datasets.data.provenance import without_secrets
from bench_datasets.data.source import open_url
from bench_datasets.faults import BenchError

DEPTH = 3
"""Folders are looked into down to `<level>/<id>/<k>.png`."""

_LEFT_OUT = (".", "__")
"""How names begin that operating systems and tools leave behind."""


class NothingThereError(BenchError):
    """There is no file or folder of that name."""


@dataclass(frozen=True)
class Location:
    """A file or a folder.

    Attributes:
        fs: its file system.
        path: its path there, without a protocol.
        shown: how messages call it.
    """

    fs: Any
    path: str
    shown: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def kind(self) -> str:
        """`file` or `directory`.

        Raises:
            NothingThereError: there is nothing there.
            BenchError: there is a device or pipe, which is never opened.
        """
        try:
            kind = self.fs.info(self.path)["type"]
        except FileNotFoundError:
            text = f"{self.shown}: expected a file or folder of predictions, found nothing there; check the path"
            raise NothingThereError(text) from None
        if kind not in ("file", "directory"):
            raise BenchError(
                f"{self.shown}: expected a file or folder of predictions, found a device, pipe or socket; write the"
                " predictions to a file first"
            )
        return str(kind)

    @property
    def size(self) -> int:
        """Bytes of a file; 0 where the file system does not say."""
        return int(self.fs.info(self.path).get("size") or 0)

    def open(self) -> IO[bytes]:
        """The file, to be read as bytes.

        Raises:
            NotRegularError: it is a folder, named pipe, socket or device.
        """
        return open_file(self.fs, self.path, self.shown)

    def read(self, limit: int) -> bytes:
        """The first `limit` bytes."""
        with self.open() as file:
            return file.read(limit)

    def inside(self) -> list[tuple[str, Location, bool]]:
        """The content of a folder down to `DEPTH`: relative path, location, is it a folder; in natural order.

        Names that begin with a dot or two underscores (what operating systems leave) are left out.

        Raises:
            BenchError: a symbolic link leads out of the folder.
        """
        root, above = path_in(self.fs, self.path).rstrip("/"), self.shown.rstrip("/")
        entries = []
        for relative, is_folder, is_link in (
            _local(root) if getattr(self.fs, "local_file", False) else self._found(root)
        ):
            path, shown = f"{root}/{relative}", f"{above}/{relative}"
            if is_link:
                refuse_outside(root, path, shown)
            entries.append((relative, Location(self.fs, path, shown), is_folder))
        return sorted(entries, key=lambda entry: natural(entry[0]))

    def _found(self, root: str) -> Iterator[tuple[str, bool, bool]]:
        """Relative path, whether it is a folder, and whether it is a link, on any file system."""
        for path, info in self.fs.find(self.path, maxdepth=DEPTH, withdirs=True, detail=True).items():
            relative = path[len(root) :].strip("/")
            if relative and not any(part.startswith(_LEFT_OUT) for part in relative.split("/")):
                yield relative, info["type"] == "directory", False

    def files(self, *endings: str) -> list[Location]:
        """The files directly inside a folder whose names end so, in natural order."""
        inside = [item for relative, item, folder in self.inside() if not folder and "/" not in relative]
        return [item for item in inside if item.name.lower().endswith(endings)]


def _local(folder: str, above: str = "", depth: int = DEPTH) -> Iterator[tuple[str, bool, bool]]:
    """Result of `_found` for a local folder, listed without fsspec, which is many times slower.

    A link is given before what lies in it is read, so that the caller can stop there.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_LEFT_OUT):
                continue
            is_folder = entry.is_dir()
            yield above + entry.name, is_folder, entry.is_symlink()
            if is_folder and depth > 1:
                yield from _local(entry.path, f"{above}{entry.name}/", depth - 1)


def files_in(location: Location, endings: tuple[str, ...]) -> list[Location]:
    """The files directly in a folder that have one of these endings, in natural order.

    Raises:
        BenchError: there is none; the message names one that lies deeper.
    """
    found = location.files(*endings)
    if found:
        return found
    expected = f"{location.shown}: expected files that end in {', '.join(endings)}"
    deeper = [name for name, item, folder in location.inside() if not folder and item.name.lower().endswith(endings)]
    if deeper:
        raise BenchError(
            f"{expected} directly in the folder, found them only in folders inside it ({deeper[0]}); give one of these "
            "folders, or put the files side by side"
        )
    raise BenchError(f"{expected}, found none in the folder")


def unread_in(location: Location, endings: tuple[str, ...]) -> list[str]:
    """The files of a folder that `files_in` passes over though their names speak of predictions, in natural order.

    These are files with one of the endings that lie deeper, and files directly in the folder whose names go on behind
    one of the endings (`b.jsonl.zst`, `b.jsonl.part`).
    """
    found = []
    for relative, item, is_folder in location.inside():
        name = item.name.lower()
        ends = name.endswith(endings)
        if not is_folder and (ends if "/" in relative else not ends and any(f"{end}." in name for end in endings)):
            found.append(relative)
    return found


def locate(path: str | os.PathLike[str]) -> Location:
    """The location of a path or fsspec URL.

    Raises:
        BenchError: it is no path, or its protocol is unknown or not installed.

    Example:
        >>> locate("memory://runs/out.jsonl").name
        'out.jsonl'
    """
    try:
        text: Any = os.fspath(path)
    except TypeError:
        raise BenchError(f"predictions: expected a path, a URL or a Dataset, found {type(path).__name__}") from None
    if not isinstance(text, str) or not text or "\0" in text:
        raise BenchError(f"predictions: expected a path or URL as text, found {text!r}")
    if "://" not in text:
        fs = LocalFileSystem()
        return Location(fs, path_in(fs, text), text)
    try:
        fs, inner = open_url(text)
    except (ValueError, ImportError) as error:
        raise BenchError(
            f"{without_secrets(text)}: expected a local path or a URL that fsspec can open, found: {error}"
        ) from error
    return Location(fs, inner, without_secrets(text))


def natural(text: str) -> list[tuple[int, int | str]]:
    """Sort key that puts 2 before 10, and parts of a benchmark in their own order.

    Example:
        >>> sorted(["10.png", "2.png", "dense", "level_4"], key=natural)
        ['2.png', '10.png', 'level_4', 'dense']
    """
    parts: list[tuple[int, int | str]] = []
    for name in text.split("/"):
        if name in known_parts():
            parts.append((1, f"level_{known_parts().index(name)}"))
            continue
        for part in re.findall(r"[0-9]+|[^0-9]+", name):
            parts.append((0, int(part)) if part.isdigit() and len(part) < 1000 else (1, part))
    return parts
