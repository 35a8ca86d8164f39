"""The images beside an InstanceBench manifest."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote

from bench_datasets._util.untrusted import open_file, refuse_outside
from bench_datasets.benchmarks.instancebench.manifest import Tces
from bench_datasets.data.images import Picture, no_picture, picture_of
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError

MAX_IMAGE = 1 << 28
"""Largest image file that is read: 256 MiB."""


_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


class Images:
    """Reads the images that a manifest names; the last one is kept, for sets of one image stand together.

    Args:
        manifest: path or URL of the manifest; images are looked for in its folder and the folders below.
        access: token and storage options.
    """

    def __init__(self, manifest: str, access: Access) -> None:
        inner, *outer = manifest.split("::")
        scheme, mark, path = inner.rpartition("://")
        self._scheme, self._outer, self._access = scheme + mark, outer, access
        self._folder = posixpath.dirname(path if mark else path.replace("\\", "/"))
        self._last: tuple[str, Picture] | None = None

    def read(self, tces: Tces) -> Picture:
        """A set's picture; one with a `problem` where the file is absent or unreadable.

        Raises:
            BenchError: the path leads out of the manifest's folder.
        """
        if tces.image is None:
            return no_picture("")
        if self._last is None or self._last[0] != tces.image:
            self._last = (tces.image, self._fetch(relative(tces.image, tces.place), tces.place))
        return self._last[1]

    def _fetch(self, path: str, place: str) -> Picture:
        web = self._scheme in ("http://", "https://")
        url = self._scheme + posixpath.join(self._folder, quote(path) if web else path)
        try:
            fs, inner = self._access.open("::".join([url, *self._outer]))
            info = fs.info(inner)
            if info.get("type", "file") != "file":
                return no_picture(f"{path}: expected an image file, found a folder, device or pipe")
            if (info.get("size") or 0) > MAX_IMAGE:
                return no_picture(f"{path}: the file has more than {MAX_IMAGE} bytes")
            if getattr(fs, "local_file", False):
                refuse_outside(self._folder, inner, f"{place}: field 'image': {path}")
            with open_file(fs, inner) as file:
                data = file.read(MAX_IMAGE + 1)
        except OSError as error:
            if self._scheme and not isinstance(error, _ABSENT):  # a connection that failed says nothing of the image
                raise BenchError(f"{place}: field 'image': {url} could not be read ({error}); try again") from error
            return no_picture(f"{path}: the image is not there ({type(error).__name__})")
        if len(data) > MAX_IMAGE:
            return no_picture(f"{path}: the file has more than {MAX_IMAGE} bytes")
        return picture_of(data, posixpath.basename(path))


def relative(path: str, place: str) -> str:
    """A manifest's image path, checked to lead nowhere but below the manifest's folder.

    Args:
        path: as the manifest has it, with forward slashes.
        place: `file:line`, for messages.

    Raises:
        BenchError: the path is absolute, climbs, or is a URL.

    Example:
        >>> relative("images/./7.jpg", "test.jsonl:1")
        'images/7.jpg'
    """
    parts = path.split("/")
    if (
        not path.strip()
        or path.startswith(("/", "~"))
        or ".." in parts
        or "\\" in path
        or "::" in path
        or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path)
        or any(ord(character) < 32 for character in path)
    ):
        raise BenchError(
            f"{place}: field 'image': expected a path below the manifest's folder, like images/7.jpg, found "
            f"{ascii(path)[:80]}"
        )
    return posixpath.normpath(path)
