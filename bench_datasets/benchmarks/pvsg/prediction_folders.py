"""Folders of videos: which files belong to which, and the relations beside the masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench_datasets.benchmarks.pvsg.prediction_parse import read_triplets
from bench_datasets.benchmarks.pvsg.prediction_rows import Video
from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.json_records import whole

RELATIONS = "relations.json"

_PICKLES = (".pickle", ".pkl", ".pk", ".pt", ".pth")
_NO_RESULTS = {
    "query_feats.pickle": "the tubes' features",
    "relations.pickle": "the ground truth matched to the tubes",
}
"""Pickles that the research code leaves in a video's folder, and what they hold; no predicted relations."""


@dataclass
class VideoFolder:
    """One video's files.

    Attributes:
        name: the video's id, which is the folder's name.
        shown: how messages call the folder.
        files: by path inside it, in natural order.
    """

    name: str
    shown: str
    files: dict[str, Location] = field(default_factory=dict)

    def first(self, *paths: str) -> Location | None:
        """The first of these files that is there."""
        return next((self.files[path] for path in paths if path in self.files), None)

    def pick(self, video: Video, *paths: str) -> Location | None:
        """The first of these files that is there; further ones are noted as faults of the video."""
        there = [path for path in paths if path in self.files]
        video.faults += [
            ("ignored_file", f"{self.shown}/{path}: {there[0]} is read in its place") for path in there[1:]
        ]
        return self.files[there[0]] if there else None


def video_folders(location: Location, *markers: str) -> list[VideoFolder]:
    """The videos of a folder: itself, if one of the marked files is in it, else its subfolders.

    A subfolder counts if it holds a marked file or relations; others are no videos.

    Args:
        location: the folder.
        markers: paths inside a video's folder.

    Raises:
        BenchError: it is one file.
    """
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder, found one file; give the folder of the video(s)")
    files = {relative: item for relative, item, is_folder in location.inside() if not is_folder}
    if any(marker in files for marker in markers):
        return [VideoFolder(location.name, location.shown, files)]
    found: dict[str, VideoFolder] = {}
    for relative, item in files.items():
        name, _, inner = relative.partition("/")
        if inner:
            shown = f"{location.shown.rstrip('/')}/{name}"
            found.setdefault(name, VideoFolder(name, shown)).files[inner] = item
    return [folder for folder in found.values() if folder.first(*markers, RELATIONS)]


def add_relations(video: Video, folder: VideoFolder) -> None:
    """Read the folder's `relations.json`, `{video_id?, relations: [...]}`, into the video's triplets.

    Raises:
        BenchError: it is no JSON, or there is a pickle in its place.
    """
    file = folder.pick(video, RELATIONS, f"quantitive/{RELATIONS}", f"quantitative/{RELATIONS}")
    if file is None:
        pickled = [path for path in folder.files if path.lower().endswith(_PICKLES)]
        if pickled:
            raise BenchError(f"{folder.shown}: expected {RELATIONS}, {_instead(pickled)}")
        return
    content = whole(file)
    relations: Any = content
    if isinstance(content, dict):
        relations = content.get("relations", content.get("triplets"))
        name = content.get("video_id")
        if name is not None and name != folder.name:
            text = f"{file.shown}: video_id: expected {folder.name!r} like the folder, found {name!a}"
            video.faults.append(("unknown_row", text))
            video.key = None
    if not isinstance(relations, list):
        found = type(relations).__name__ if not isinstance(content, dict) else ", ".join(sorted(content)[:8]) or "{}"
        raise BenchError(f"{file.shown}: expected {{video_id, relations: [...]}}, found {found!a}")
    video.triplets = read_triplets(relations, video.faults)


def _instead(pickled: list[str]) -> str:
    """Files found instead of the relations, and advice."""
    others = [path for path in pickled if path.rsplit("/", 1)[-1] not in _NO_RESULTS]
    if others:
        return (
            f"found {others[0]}, a pickle, which is never read; turn it into {RELATIONS} with "
            "scripts/convert_pvsg_relations.py where the research code is installed"
        )
    held = " and ".join(f"{path} ({_NO_RESULTS[path.rsplit('/', 1)[-1]]})" for path in pickled)
    return (
        f"found only {held}; no prediction. Pickle the relations that the research code's generate_results "
        f"returns, and turn them into {RELATIONS} with scripts/convert_pvsg_relations.py"
    )
