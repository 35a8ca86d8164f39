"""PVSG: `load_dataset("pvsg")`.

Configs: `videos` (also called `default`), one row a video; `frames`, one row a frame; and `sample`, which is built in.
Splits: `train` and `test`, which the released file calls `val`: `split="val"` means the same. The columns are those of
`pvsg_rows.truth_features` and `pvsg_rows.frame_features`; what may lie at the source is said in `pvsg_files`, where
built videos are kept in `pvsg_parts`. A copy that `publish dataset` wrote is read by `pvsg_copy`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import datasets
import pyarrow as pa

from bench_datasets._compat import Key
from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.pvsg.annotation import Annotation, VideoEntry, parse_entry, read_annotation
from bench_datasets.benchmarks.pvsg.frames import can_decode_video, frame_images, label_maps
from bench_datasets.benchmarks.pvsg.published_copy import VIDEO_LABELS, frame_tables, frames_of_videos, video_tables
from bench_datasets.benchmarks.pvsg.source_files import (
    ImageFolder,
    Layout,
    find_layout,
    mask_digests,
    read_annotation_file,
    video_files,
)
from bench_datasets.benchmarks.pvsg.splits import as_test
from bench_datasets.benchmarks.pvsg.truth import build_video_row, frame_features, other_size, row_table, truth_features
from bench_datasets.benchmarks.pvsg.video_cache import Parts, part_key
from bench_datasets.data.builder import SAMPLE, SourceBuilder, SourceRequest
from bench_datasets.data.fault_log import Noted
from bench_datasets.data.parquet import LabelFile
from bench_datasets.data.published_copy import (
    Beside,
    CopyShard,
    beside,
    check_columns,
    declared_rows,
    shards_of,
    survey,
)
from bench_datasets.data.source import (
    PARQUET,
    Access,
    Listing,
    Pinned,
    SourceFile,
    list_copy,
    pin,
)
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import encode_label_map

logger = logging.getLogger(__name__)

_TEXT = (
    "PVSG: videos with panoptic masks and the relations between what is seen in them, each with its spans of frames."
)

_VERSION = datasets.Version("1.0.0")
"""Version of the rows, in the cache's folder names; raise it whenever a change of the code changes rows."""
_FRAME_ROWS = 16


@dataclass
class PVSGConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """A config of PVSG.

    Attributes:
        images: whether `frames` has the images; the other configs have none.
    """

    images: bool = True
    version: Any = _VERSION


class VideoJob(NamedTuple):
    """One video to build.

    Attributes:
        source: where it is from.
        text: its annotation entry, as JSON.
        video: path or URL of the mp4, if it is there.
    """

    source: str
    text: str
    video: str | None


class PVSG(SourceBuilder):
    """Builder of PVSG's truth rows."""

    BENCHMARK = "pvsg"
    PARTS = ("train", "test")
    BUILDER_CONFIG_CLASS = PVSGConfig
    BUILDER_CONFIGS: ClassVar[list[PVSGConfig]] = [PVSGConfig(name=name) for name in ("videos", "frames", SAMPLE)]
    DEFAULT_CONFIG_NAME = "videos"
    DEFAULT_WRITER_BATCH_SIZE = 1  # a video's row is written when it is built, and not held

    layout: Layout | None = None
    annotation: Annotation
    videos: Listing
    """Of a copy, the files of its config `videos`, whichever of its configs is read; `layout` is None then."""

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        config_name = self.DEFAULT_CONFIG_NAME if config_name in (None, "default") else config_name
        images = kwargs.get("images", True)
        if not isinstance(images, bool):
            raise BenchError(f"images: expected True or False, got {images!r}")
        if images or config_name != "frames":
            kwargs.pop("images", None)  # what is said anyway, or means nothing, is one cache
        self._images = images and config_name == "frames"
        super().__init__(cache_dir=cache_dir, dataset_name=dataset_name, config_name=config_name, **kwargs)

    def sample_dir(self) -> str:
        """The folder of the built-in sample."""
        from bench_datasets.samples import pvsg_sample_dir

        return str(pvsg_sample_dir())

    def _find(self, config_name: str, request: SourceRequest, data_dir: Any, access: Access) -> Listing:
        default = get_benchmark(self.BENCHMARK).source
        ways = (
            "Three other ways: load_dataset('pvsg', data_dir=...) with a folder or URL holding pvsg.json and "
            f"<source>/masks/ or the zips; the environment variable {default.env} with the same; or the built-in "
            "load_dataset('pvsg', 'sample')."
        )
        if config_name == SAMPLE:
            if data_dir or request.data_files is not None or request.revision:
                raise BenchError(f"pvsg: config {SAMPLE!r} is built in; leave data_dir, data_files and revision out")
            root = Pinned(self.sample_dir(), SAMPLE, None, {})
        elif request.data_files is not None:
            return self._given(config_name, request, data_dir, access)
        else:
            root = _resolve(data_dir, request.revision, default, access, ways)
        copy = {} if config_name == SAMPLE else list_copy(root.root, "videos", self.PARTS, access)
        if copy:
            self.videos = Listing(root.source, root.commit, copy, root.declared)
            frames = list_copy(root.root, "frames", self.PARTS, access) if config_name == "frames" else {}
            return Listing(root.source, root.commit, frames, root.declared) if frames else self.videos
        self.layout = find_layout(root.root, access, ways)
        self.annotation = read_annotation(read_annotation_file(self.layout, access), self.layout.annotation.url)
        videos = [(video.source, video.entry.video_id) for found in self.annotation.splits.values() for video in found]
        parts: dict[str, tuple[SourceFile, ...]] = {"annotation": (self.layout.annotation,)}
        if root.commit is None:  # else the commit says what everything is, and no folder need be listed for it
            for kind in ("masks", "frames") if self._images else ("masks",):
                parts[kind] = tuple(mask_digests(self.layout, access, videos, kind))
        self._video_files = video_files(self.layout, access)
        files = sorted(self._video_files.values())
        parts["videos"] = tuple(SourceFile(url, _version(url) if self._images else "") for url in files)
        return Listing(root.source, root.commit, {part: found for part, found in parts.items() if found})

    def _given(self, config_name: str, request: SourceRequest, data_dir: Any, access: Access) -> Listing:
        """A copy's files that a caller named one by one."""
        tree = "PVSG is a tree of files; name the folder that holds pvsg.json with data_dir= instead"
        if config_name != "videos" or PARQUET not in str(request.data_files):
            raise BenchError(f"data_files: {tree}")
        try:
            self.videos = self._list_given(request, data_dir, access)
        except BenchError as error:
            raise BenchError(f"{error}; {tree}") from error
        return self.videos

    def _info(self) -> datasets.DatasetInfo:
        benchmark = get_benchmark(self.BENCHMARK)
        return datasets.DatasetInfo(
            description=_TEXT,
            citation=benchmark.citation,
            homepage=f"https://huggingface.co/datasets/{benchmark.source.repo}",
            license=benchmark.source.licence,
            features=frame_features(self._images) if self.config.name == "frames" else truth_features(),
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        streaming = bool(dl_manager.is_streaming)
        log_level = logging.INFO if streaming else logging.WARNING
        if self.layout is None:
            return self._copy_generators(dl_manager, log_level)
        self._report_unmatched(log_level)
        self._describe(_TEXT, {split: len(videos) for split, videos in self.annotation.splits.items()})
        shared = {
            "layout": self.layout if streaming else self._fetched(self.layout, dl_manager),
            "keep": not streaming and "://" not in str(self._cache_dir_root),
            "reuse": not getattr(dl_manager.download_config, "force_download", False),
            "reads": None,
            "log_level": log_level,
        }
        return [
            datasets.SplitGenerator(
                name=split,
                gen_kwargs={
                    "videos": [
                        VideoJob(source, text, self._video_files.get((source, entry.video_id)))
                        for source, entry, text in videos
                    ],
                    **shared,
                },
            )
            for split, videos in self.annotation.splits.items()
        ]

    def _copy_generators(self, dl_manager: Any, log_level: int) -> list[datasets.SplitGenerator]:
        """Generate the rows of a published copy; a stream from the Hub takes the number of rows from the card."""
        frames, main = self.config.name == "frames", self.videos.parts

        def check(schema: pa.Schema, file: str, _: str) -> None:
            check_columns(schema, VIDEO_LABELS, file)

        declared = declared_rows(self.videos, "videos") if dl_manager.is_streaming else None
        found = survey(main, self.access, check, stands=list(main.values())[-1][0], declared=declared)
        self._describe(_TEXT, found.rows)
        reads = Beside(False, False)
        if frames:
            schema = found.schema
            if self.listing is not self.videos:
                schema = LabelFile(list(self.listing.parts.values())[-1][0].url, self.access).schema
            reads = Beside(beside(schema, self.listing.source, images=self._images).image, hashes=False)
            self.info.features = frame_features(reads.image)
        shared = {"layout": None, "keep": False, "reuse": False, "reads": tuple(reads), "log_level": log_level}
        return [
            datasets.SplitGenerator(
                name=split, gen_kwargs={"videos": shards_of(files, dl_manager, whole=reads.image), **shared}
            )
            for split, files in self.listing.parts.items()
        ]

    def _report_unmatched(self, log_level: int) -> None:
        for videos, what in (
            (self.annotation.without_data, "in `split` without an entry in `data`"),
            (self.annotation.without_split, "in `data` and in no split"),
        ):
            if videos:
                logger.log(
                    log_level, "pvsg: %d videos stand %s, and are left out: %s", len(videos), what, ", ".join(videos)
                )

    def _fetched(self, layout: Layout, dl_manager: Any) -> Layout:
        """The layout with the Hub's zips as they lie in its cache; others are read where they are."""
        used = dict.fromkeys(video.source for found in self.annotation.splits.values() for video in found)
        kinds = ("masks", "frames") if self._images else ("masks",)
        urls = [place.url for kind in kinds for place in layout.archives(kind, used)]
        urls = [url for url in urls if url.startswith("hf://")]
        return layout.moved(dict(zip(urls, dl_manager.download(urls), strict=True)) if urls else {})

    def _generate_tables(
        self,
        videos: Sequence[Any],
        layout: Layout | None,
        keep: bool,
        reuse: bool,
        reads: tuple[bool, bool] | None,
        log_level: int,
    ) -> Iterator[tuple[Key, pa.Table]]:
        noted = Noted(self.BENCHMARK)
        if layout is None:
            yield from self._copy_tables(videos, Beside(*(reads or (False, False))), noted)
        elif self.config.name == "frames":
            yield from self._frame_tables(videos, layout, noted)
        else:
            folder = Path(str(self._cache_dir_root), "bench_datasets", self.BENCHMARK)
            parts = Parts(folder, truth_features().arrow_schema, reuse=reuse) if keep else None
            for number, job in enumerate(videos):
                table, faults = self._video(job, layout, parts)
                noted.add(faults)
                yield Key(number, 0), table
        noted.log(log_level)

    def _copy_tables(self, shards: Sequence[CopyShard], reads: Beside, noted: Noted) -> Iterator[tuple[Key, pa.Table]]:
        if self.config.name != "frames":
            tables = video_tables(shards, self.access)
        elif self.listing is self.videos:  # published without frames: they are made of the videos
            tables = frames_of_videos(shards, self.access)
        else:
            tables = frame_tables(shards, reads, self.access)
        for i, (number, table, faults) in enumerate(tables):
            noted.add(faults)
            yield Key(number, i), table

    def _video(self, job: VideoJob, layout: Layout, parts: Parts | None) -> tuple[pa.Table, list[Fault]]:
        """A video's row and faults, built or as it was kept."""
        entry = _entry(job)
        folder = ImageFolder(layout, self.access, job.source, "masks", entry.video_id)
        key = part_key(str(_VERSION), job.source, job.text, job.video, folder.digest)
        kept = parts.load(key) if parts is not None else None
        if kept is not None:
            logger.info("pvsg: %s: kept from an earlier build", entry.video_id)
            return kept
        row, faults = build_video_row(entry, label_maps(folder, entry), job.source, video=job.video)
        table = row_table(row)
        if parts is not None:
            parts.save(key, table, faults)
        logger.info("pvsg: %s: built from %d frames", entry.video_id, len(folder.files))
        return table, faults

    def _frame_tables(self, videos: Sequence[VideoJob], layout: Layout, noted: Noted) -> Iterator[tuple[Key, pa.Table]]:
        schema = frame_features(self._images).arrow_schema
        undecoded = 0
        for number, job in enumerate(videos):
            entry = _entry(job)
            masks = ImageFolder(layout, self.access, job.source, "masks", entry.video_id)
            wanted = list(masks.files)
            pictures: Iterator[tuple[int, Mapping[str, Any] | None]] | None = None
            if self._images:
                folder = ImageFolder(layout, self.access, job.source, "frames", entry.video_id)
                pictures = frame_images(folder, job.video, self.access, wanted)
                undecoded += bool(wanted and not folder.files and job.video and not can_decode_video())
            without, rows, batch = 0, [], 0
            sizes: list[str] = []
            for frame, label_map in label_maps(masks, entry):
                sizes += filter(None, [other_size(entry, frame, label_map)])
                row = _frame_row(entry, frame, label_map)
                if pictures is not None:
                    row["image"] = next(pictures)[1]
                    without += row["image"] is None
                rows.append(row)
                if len(rows) == _FRAME_ROWS or frame == wanted[-1]:
                    yield Key(number, batch), pa.Table.from_pylist(rows, schema=schema)
                    rows, batch = [], batch + 1
            if sizes:
                noted.add([Fault("mask_size", entry.video_id, f"{len(sizes)} of {len(wanted)} frames: {sizes[0]}")])
            if without:
                noted.add([Fault("image_missing", entry.video_id, f"{without} of {len(wanted)} frames")])
            if not wanted:
                noted.add([Fault("mask_missing", entry.video_id, "no masks at all, so no rows")])
        if undecoded:
            logger.warning(
                "pvsg: %d videos have their frames in an mp4 alone, which is not decoded without PyAV; "
                "`pip install 'bench-datasets[video]'` for their images",
                undecoded,
            )

    def as_dataset(self, split: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As upstream; `val` means `test`."""
        return super().as_dataset(as_test(split), *args, **kwargs)

    def as_streaming_dataset(self, split: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As upstream; `val` means `test`."""
        return super().as_streaming_dataset(as_test(split), *args, **kwargs)


def _resolve(data_dir: Any, revision: str | None, default: Any, access: Access, ways: str) -> Pinned:
    """The root that is read."""
    chosen = os.fspath(data_dir) if data_dir else os.environ.get(default.env) or None
    if chosen is None:
        chosen = f"hf://datasets/{default.repo}" + ("" if revision else f"@{default.revision}")
    return pin(chosen, revision, access, ways)


def _version(url: str) -> str:
    """Of a local file, a text that changes with it."""
    try:
        stat = os.stat(url)
    except (OSError, ValueError):
        return ""
    return f"{stat.st_size};{stat.st_mtime_ns}"


def _entry(job: VideoJob) -> VideoEntry:
    return parse_entry(json.loads(job.text))


def _frame_row(entry: VideoEntry, frame: int, label_map: Any) -> dict[str, Any]:
    category = {item.object_id: item.category for item in entry.objects}
    masks = {label: mask for label, mask in encode_label_map(label_map).items() if label in category}
    return {
        "video_id": entry.video_id,
        "frame": frame,
        "object_ids": list(masks),
        "categories": [category[label] for label in masks],
        "masks": list(masks.values()),
    }
