"""Where PVSG's files are: folders as they are unpacked, or the zips as they are fetched, on any fsspec file system.

A root holds `pvsg.json` and, for each source, `<source>/masks/<video_id>/0000.png`, `<source>/frames/...` and
`<source>/videos/<video_id>.mp4`; or zips named `<source>_masks.zip`, `<source>_videos.zip`, `<source>_frames.zip`, in
the root or in a folder named after the source (`VidOR/vidor_masks.zip`). Where both are there, a video is read from the
folder that holds it, else from the zip.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench_datasets._util.untrusted import open_file
from bench_datasets.benchmarks.pvsg.annotation import MAX_ANNOTATION, SOURCES
from bench_datasets.benchmarks.pvsg.zips import KINDS, MAX_MEMBER, Archive, frame_number, open_archive, plain_source
from bench_datasets.data.provenance import without_secrets
from bench_datasets.data.source import (
    Access,
    SourceFile,
    SourceNotFoundError,
    SourceUnreachableError,
    version_of,
    why,
)
from bench_datasets.faults import BenchError

ANNOTATION = "pvsg.json"
_FOLDERS = {"vidor": "VidOR", "epic_kitchen": "EpicKitchen", "ego4d": "Ego4D"}
"""The folders of the Hub's zips."""


class Place(NamedTuple):
    """A folder or a zip that holds one kind of one source's files.

    Attributes:
        url: path or URL.
        name: what messages call it.
        version: of a zip, a text that changes with the file; empty for a folder.
    """

    url: str
    name: str
    version: str


@dataclass(frozen=True)
class Layout:
    """A root's files.

    Attributes:
        root: path or URL of the folder.
        annotation: `pvsg.json`.
        places: by source and kind, the folder and the zip, as far as they are there.
    """

    root: str
    annotation: SourceFile
    places: Mapping[tuple[str, str], tuple[Place, ...]]

    def archives(self, kind: str, sources: Iterable[str]) -> list[Place]:
        """The zips of these sources' files of a kind."""
        return [place for source in sources for place in self.places.get((source, kind), ()) if place.version]

    def moved(self, paths: Mapping[str, str]) -> Layout:
        """The same with zips read elsewhere, by their URLs: their copies in the download cache, say."""
        places = {
            key: tuple(place._replace(url=paths.get(place.url, place.url)) for place in found)
            for key, found in self.places.items()
        }
        return Layout(self.root, self.annotation, places)


class ImageFile(NamedTuple):
    """An image of a frame: its path or URL (of a zip, its member), and a text that changes with it."""

    path: str | zipfile.ZipInfo
    version: str


def find_layout(root: str, access: Access, ways: str) -> Layout:
    """Find the layout of a root with a few listings, independent of the number of videos.

    Args:
        root: path or URL of the folder, without a last slash; or of the annotation file in it.
        access: token and storage options.
        ways: what else the user may do, for messages.

    Raises:
        SourceNotFoundError: there is no such folder, or no annotation in it.
        SourceUnreachableError: the root is elsewhere and does not answer.
    """
    base, _, last = root.rpartition("/")
    root, annotation = (base, root) if last.endswith(".json") else (root, _join(root, ANNOTATION))
    try:
        fs, path = access.open(annotation)
        if not fs.isfile(path):
            raise SourceNotFoundError(
                f"{root}: expected a folder that holds {ANNOTATION} and either <source>/masks/<video_id>/ or the zips "
                f"(sources: {', '.join(SOURCES)}), found no {ANNOTATION}"
            )
        file = SourceFile(annotation, version_of(fs.info(path)))
        places = _places(fs, path[: path.rfind("/") + 1], root)
    except BenchError:
        raise
    except Exception as error:
        name = without_secrets(root)
        raise SourceUnreachableError(f"{name}: the source could not be listed ({why(error)}). {ways}") from error
    return Layout(root, file, places)


def _join(root: str, name: str) -> str:
    """A name below a path or URL, chained (`zip://folder::file.zip`) or not."""
    head, mark, rest = root.partition("::")
    return f"{head if head.endswith('/') else head + '/'}{name}{mark}{rest}"


def _places(fs: Any, path: str, root: str) -> dict[tuple[str, str], tuple[Place, ...]]:
    """The folders and zips below `path` (which ends with a slash, or is empty)."""
    top = _list(fs, path.rstrip("/") or path)
    places: dict[tuple[str, str], list[Place]] = {}
    for source in SOURCES:
        own = sorted(name for name in (*top, _FOLDERS[source]) if plain_source(name) == plain_source(source))
        below = {name: _list(fs, f"{path}{name}") for name in dict.fromkeys((source, *own))}
        for kind in KINDS:
            found = places.setdefault((source, kind), [])
            for folder, names in below.items():
                if names.get(kind) == "directory":
                    url = _join(root, f"{folder}/{kind}")
                    found.append(Place(url, url, ""))
            zips = [f"{source}_{kind}.zip", *(f"{folder}/{source}_{kind}.zip" for folder in below)]
            for name in zips:
                folder, _, base = name.rpartition("/")
                listed = below[folder] if folder else top
                if base in listed or (not listed and _is_http(fs) and fs.isfile(f"{path}{name}")):
                    url = _join(root, name)
                    found.append(Place(url, url, version_of(fs.info(f"{path}{name}")) or "?"))
    return {key: tuple(found) for key, found in places.items() if found}


def _list(fs: Any, folder: str) -> dict[str, str]:
    """Name and type of what lies in a folder; nothing where there is none, or where a web server does not tell."""
    try:
        infos = fs.ls(folder, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except Exception:
        if _is_http(fs):
            return {}
        raise
    found = {}
    for info in infos:
        name = str(info["name"]).rstrip("/")
        kind = "directory" if str(info["name"]).endswith("/") else str(info.get("type"))
        found[name.rpartition("/")[2]] = kind
    return found


def _is_http(fs: Any) -> bool:
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    return bool({"http", "https"} & set(protocols))


def read_whole(file: str, access: Access, limit: int) -> bytes:
    """A file's bytes.

    Raises:
        BenchError: it is missing or has more bytes than `limit`.
    """
    fs, path = access.open(file)
    try:
        with open_file(fs, path, file) as stream:
            content: bytes = stream.read(limit + 1)
    except FileNotFoundError as error:
        raise BenchError(f"{file}: expected a file, found none") from error
    if len(content) > limit:
        raise BenchError(f"{file}: expected at most {limit} bytes, found more")
    return content


def read_annotation_file(layout: Layout, access: Access) -> bytes:
    """The bytes of `pvsg.json`."""
    return read_whole(layout.annotation.url, access, MAX_ANNOTATION)


class ImageFolder:
    """The images of one video: its masks, or its frames.

    Args:
        layout: the root's files.
        access: token and storage options.
        source: the video's source.
        kind: `masks` or `frames`.
        video_id: the video.

    Attributes:
        files: the image of each frame, ascending; empty where there are none.

    Raises:
        BenchError: two files are one frame, or a zip cannot be read.
    """

    def __init__(self, layout: Layout, access: Access, source: str, kind: str, video_id: str) -> None:
        self._access = access
        self._archive: Archive | None = None
        self._place: Place | None = None
        self.files: dict[int, ImageFile] = {}
        for place in layout.places.get((source, kind), ()):
            self._place = place
            if place.version:
                archive = archive_of(place, access, source, kind)
                members = archive.images.get((kind, source, video_id), {})
                self.files = {
                    frame: ImageFile(info, f"{info.CRC:08x};{info.file_size}")
                    for frame, info in sorted(members.items())
                }
                self._archive = archive
            else:
                self.files = _images(place.url, video_id, access)
                self._archive = None
            if self.files:
                return

    @property
    def digest(self) -> str:
        """SHA-256 over where the images are, and each one's frame and version: another where anything of it changes."""
        place = None if self._place is None else f"{self._place.name} {self._place.version}"
        text = "\n".join([str(place), *(f"{frame} {file.version}" for frame, file in self.files.items())])
        return hashlib.sha256(text.encode()).hexdigest()

    def where(self, frame: int) -> str:
        """The name of a frame's image for messages."""
        path = self.files[frame].path
        if isinstance(path, str):
            return path
        assert self._archive is not None
        return self._archive.where(path)

    def read(self, frame: int) -> bytes:
        """A frame's image file.

        Raises:
            BenchError: it is gone, too large or damaged; the message names it.
        """
        path = self.files[frame].path
        if isinstance(path, str):
            return read_whole(path, self._access, MAX_MEMBER)
        assert self._archive is not None
        return self._archive.read(path)


def archive_of(place: Place, access: Access, source: str, kind: str) -> Archive:
    """A place's zip, open."""
    return open_archive(place.url, place.version, access, name=place.name, source=source, kind=kind)


def _images(folder: str, video_id: str, access: Access) -> dict[int, ImageFile]:
    found: dict[int, ImageFile] = {}
    url = _join(folder, video_id)
    listed = _local_files(url) if "://" not in url else _remote_files(url, access)
    for name, version in listed:
        frame = frame_number(name)
        if frame is None:
            continue
        file = ImageFile(_join(url, name), version)
        other = found.setdefault(frame, file)
        if other is not file:
            raise BenchError(f"{url}: expected one file a frame, found {other.path} and {file.path} for frame {frame}")
    return dict(sorted(found.items()))


def _local_files(folder: str) -> list[tuple[str, str]]:
    try:
        with os.scandir(folder) as entries:
            found = []
            for entry in entries:
                stat = entry.stat()
                found.append((entry.name, f"{stat.st_size};{stat.st_mtime_ns};{stat.st_ino}"))
            return found
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remote_files(url: str, access: Access) -> list[tuple[str, str]]:
    fs, path = access.open(url)
    try:
        infos = fs.ls(path, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except Exception as error:
        if _is_http(fs) and getattr(error, "status", None) == 404:
            return []
        name = without_secrets(url)
        raise SourceUnreachableError(f"{name}: the folder could not be listed ({why(error)})") from error
    return [(str(info["name"]).rpartition("/")[2], version_of(info)) for info in infos]


def mask_digests(layout: Layout, access: Access, videos: Iterable[tuple[str, str]], kind: str) -> list[SourceFile]:
    """Digests of the current images of a kind: one per zip file, and one per video's folder.

    Args:
        layout: the root's files.
        access: token and storage options.
        videos: source and id of each.
        kind: `masks` or `frames`.
    """
    pairs = list(videos)
    files = [
        SourceFile(place.url, place.version)
        for place in layout.archives(kind, dict.fromkeys(pair[0] for pair in pairs))
    ]
    folders = {
        key: tuple(place for place in found if not place.version)
        for key, found in layout.places.items()
        if key[1] == kind
    }
    alone = Layout(layout.root, layout.annotation, folders)
    wanted = [pair for pair in pairs if folders.get((pair[0], kind))]

    def digest(pair: tuple[str, str]) -> SourceFile:
        source, video_id = pair
        url = _join(folders[source, kind][0].url, video_id)
        return SourceFile(url, ImageFolder(alone, access, source, kind, video_id).digest)

    if not wanted:
        return files
    with ThreadPoolExecutor(16) as pool:
        return files + list(pool.map(digest, wanted))


def video_files(layout: Layout, access: Access) -> dict[tuple[str, str], str]:
    """Path or URL of every mp4, by source and video id; a zip's member is `zip://member::zip`."""
    found: dict[tuple[str, str], str] = {}
    for (source, kind), places in layout.places.items():
        for place in places if kind == "videos" else ():
            if place.version:
                members = archive_of(place, access, source, kind).videos.items()
                pairs = [(key, f"zip://{info.filename}::{place.url}") for key, info in members if key[0] == source]
            else:
                fs, path = access.open(place.url)
                names = [name for name, type_ in _list(fs, path).items() if type_ != "directory"]
                mp4 = [name for name in names if name.lower().endswith(".mp4") and not name.startswith(".")]
                pairs = [((source, name[:-4]), _join(place.url, name)) for name in sorted(mp4)]
            for key, url in pairs:
                found.setdefault(key, url)
    return found
