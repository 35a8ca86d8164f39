"""PVSG's zip files, read member by member where they are: nothing is unpacked, so nothing overwrites anything.

A member is known by its own path, however deep it lies: its folder is its video, and the folders above say which source
and kind of file it is (`.../vidor/masks/<video_id>/0000.png`); where they don't, the zip's name does
(`vidor_masks.zip`).
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from typing import IO, Any

from bench_datasets._util.untrusted import open_file
from bench_datasets.benchmarks.pvsg.annotation import SOURCES
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError

KINDS = ("masks", "frames", "videos")
"""What the source's folders and zips hold."""

MAX_MEMBER = 1 << 28
"""Bytes that one image may have."""

_IMAGE = re.compile(r"(\d+)\.png", re.IGNORECASE)
_KEPT_OPEN = 6


def frame_number(name: str) -> int | None:
    """The frame that an image file's name says; None where it is no such name.

    Example:
        >>> frame_number("0012.png"), frame_number("._0012.png")
        (12, None)
    """
    match = _IMAGE.fullmatch(name)
    return int(match[1]) if match and len(match[1]) <= 9 else None


def plain_source(name: str) -> str:
    """A source's name without case and punctuation: `EpicKitchen`, `epic_kitchen` -> `epickitchen`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_PLAIN = {plain_source(source): source for source in SOURCES}


class Archive:
    """One zip, open.

    Args:
        url: path or fsspec URL.
        access: token and storage options.
        name: what messages call it.
        source: whose files it holds where a member's path does not say.
        kind: likewise, one of `KINDS`.

    Attributes:
        images: by kind, source and video: the member of each frame.
        videos: by source and video: the member.

    Raises:
        BenchError: it is missing, cut off or no zip, a member's path leads outside, or two members are one frame.
    """

    def __init__(self, url: str, access: Access, *, name: str, source: str, kind: str) -> None:
        self.name = name
        fs, path = access.open(url)
        try:
            self._file = open_file(fs, path, url)
        except FileNotFoundError as error:
            raise BenchError(f"{name}: expected a zip, found none") from error
        try:
            head = self._file.read(64)
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, size - 64))
            self._file.read(64)
        except (ValueError, OSError) as error:  # what fsspec says of a server that knows no ranges
            raise BenchError(
                f"{name}: the server does not hand out parts of a file ({error}); download the zips and name their "
                f"folder as data_dir"
            ) from error
        if head.startswith(b"version https://git-lfs"):
            raise BenchError(f"{name}: found a Git LFS pointer in place of the file; run `git lfs pull`")
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError) as error:
            found = "one that is cut off" if head[:2] == b"PK" else "another kind of file"
            raise BenchError(f"{name}: expected a zip, found {found} ({error}); fetch it again") from error
        self.images: dict[tuple[str, str, str], dict[int, zipfile.ZipInfo]] = {}
        self.videos: dict[tuple[str, str], zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            self._place(info, source, kind)

    def _place(self, info: zipfile.ZipInfo, source: str, kind: str) -> None:
        """Enter a member where its path says that it belongs."""
        parts = info.filename.split("/")
        if ".." in parts or parts[0] == "" or any(sign in info.orig_filename for sign in "\\:\0"):
            raise BenchError(f"{self.name}: member {info.orig_filename!r}: expected a path within the archive")
        if info.is_dir() or parts[0] == "__MACOSX":
            return
        base, stem, folders = parts[-1], parts[-1][:-4], parts[:-1]
        is_video, frame = base.lower().endswith(".mp4") and not base.startswith("."), frame_number(base)
        above = folders if is_video else folders[:-1]
        kind = next((part for part in reversed(above) if part in KINDS), kind)
        source = next(
            (_BY_PLAIN[plain] for part in reversed(above) if (plain := plain_source(part)) in _BY_PLAIN), source
        )
        other: zipfile.ZipInfo
        if is_video and kind == "videos":
            other = self.videos.setdefault((source, stem), info)
        elif frame is not None and folders and kind != "videos":
            other = self.images.setdefault((kind, source, folders[-1]), {}).setdefault(frame, info)
        else:
            return
        if other is not info:
            raise BenchError(
                f"{self.name}: expected one member a file, found {other.filename!r} and {info.filename!r}; which of "
                f"them is meant?"
            )

    def read(self, info: zipfile.ZipInfo) -> bytes:
        """A member's bytes, checked against its checksum.

        Raises:
            BenchError: it is too large, damaged, or stored in a way that is not read; the message names it.
        """
        if info.file_size > MAX_MEMBER:
            raise BenchError(f"{self.where(info)}: expected at most {MAX_MEMBER} bytes, found {info.file_size}")
        with self.open(info) as member:
            try:
                return member.read(MAX_MEMBER + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
                raise BenchError(f"{self.where(info)}: the member is damaged ({error}); fetch the zip again") from error

    def open(self, info: zipfile.ZipInfo) -> IO[bytes]:
        """A member as a stream.

        Raises:
            BenchError: it is damaged, or stored in a way that is not read; the message names it.
        """
        try:
            return self._zip.open(info)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, KeyError) as error:
            raise BenchError(f"{self.where(info)}: the member is damaged ({error}); fetch the zip again") from error
        except (NotImplementedError, RuntimeError) as error:  # a rare compression, a password
            raise BenchError(f"{self.where(info)}: the member cannot be read ({error})") from error

    def where(self, info: zipfile.ZipInfo) -> str:
        """The name of a member for messages."""
        return f"{self.name}: {info.filename}"

    def close(self) -> None:
        """Give the file back."""
        self._zip.close()
        self._file.close()


_OPEN: dict[tuple[int, str, str], Archive] = {}


def open_archive(url: str, version: str, access: Access, **where: Any) -> Archive:
    """An archive, opened once a process while its version is the same; the last few are kept open.

    Args:
        url: path or fsspec URL.
        version: a text that changes with the file.
        access: token and storage options.
        where: `name`, `source` and `kind` as `Archive` takes them.
    """
    key = (os.getpid(), url, version)
    archive = _OPEN.pop(key, None)
    if archive is None:
        for other in [entry for entry in _OPEN if entry[0] != key[0]]:
            del _OPEN[other]  # inherited from the process that forked this one, which reads on in its own way
        archive = Archive(url, access, **where)
        while len(_OPEN) >= _KEPT_OPEN:
            _OPEN.pop(next(iter(_OPEN))).close()
    _OPEN[key] = archive
    return archive
