"""PVSG straight from its zips: members by their own paths, nothing unpacked, damage named."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

from bench_datasets.benchmarks.pvsg.source_files import ImageFolder, find_layout
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError

from ...support.pvsg_sources import STILL, annotation, label_map, load, mask_files, png, video, write, write_zip

VIDEOS = {
    "vidor/val": [video("a"), video("b")],
    "ego4d/val": [video("c")],
    "epic_kitchen/train": [video("P01_01")],
}
MAPS = {"a": [STILL, label_map(2, 2, 2, 0, 0, 1), STILL], "b": [label_map(1, 0, 0, 0, 0, 2)] * 3}
TITLES = {"vidor": "VidOR", "ego4d": "Ego4D", "epic_kitchen": "EpicKitchen"}


def zipped(root: Path, prefix: str = "", titled: bool = True, **options: Any) -> Path:
    """A source whose masks lie in zips, as the Hub holds them, members below `prefix`."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pvsg.json").write_text(json.dumps(annotation(VIDEOS)))
    for source, title in TITLES.items():
        files = {prefix + name: data for name, data in mask_files(VIDEOS, MAPS).items() if name.startswith(source)}
        write_zip(root / (title if titled else "") / f"{source}_masks.zip", files, **options)
    return root


def without_path(rows: Any) -> list[dict[str, Any]]:
    return [{**row, "video": None} for row in rows]


@pytest.fixture
def expected(tmp_path: Path) -> list[dict[str, Any]]:
    return list(load(write(tmp_path / "folders", VIDEOS, MAPS)))


@pytest.mark.parametrize("prefix", ["", "mnt/data/PVSG/", "x/y/"])
@pytest.mark.parametrize("titled", [True, False])
def test_zips_give_what_folders_give(tmp_path: Path, expected: list[dict[str, Any]], prefix: str, titled: bool) -> None:
    root = zipped(tmp_path / "zips", prefix, titled)
    assert list(load(root)) == expected
    assert list(load(root, num_proc=2, download_mode="force_redownload")) == expected
    assert list(load(root, streaming=True)) == expected
    assert load(root, split="train")["key"][:] == ["P01_01"]
    assert not list(root.rglob("*.png"))


def test_zips_on_other_file_systems(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    root = zipped(tmp_path / "zips")
    fsspec.filesystem("memory").put(f"{root}/", "/pvsg-zips/", recursive=True)
    assert list(load("memory://pvsg-zips")) == expected
    whole = write_zip(
        tmp_path / "all.zip",
        {"top/pvsg.json": json.dumps(annotation(VIDEOS)).encode()}
        | {f"top/{name}": data for name, data in mask_files(VIDEOS, MAPS).items()},
    )
    assert list(load(f"zip://top::{whole}")) == expected


def test_a_path_that_says_less_is_completed_by_the_zip_s_name(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    root = zipped(tmp_path / "zips")
    files = {
        name.removeprefix("vidor/masks/"): data
        for name, data in mask_files(VIDEOS, MAPS).items()
        if name.startswith("vidor")
    }
    write_zip(root / "VidOR" / "vidor_masks.zip", files)
    assert list(load(root)) == expected


def test_members_of_other_kinds_are_not_masks(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    root = zipped(tmp_path / "zips", "deep/")
    with zipfile.ZipFile(root / "VidOR" / "vidor_masks.zip", "a") as archive:
        archive.writestr("deep/vidor/frames/a/0007.png", png(STILL))
        archive.writestr("deep/ego4d/masks/a/0008.png", png(STILL))
        archive.writestr("__MACOSX/deep/vidor/masks/a/._0000.png", b"fork")
        archive.writestr("deep/vidor/masks/a/readme.txt", b"text")
        archive.writestr("deep/vidor/masks/0000.png", png(STILL))
    assert list(load(root)) == expected


def test_a_folder_goes_before_a_zip_and_a_zip_fills_in(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    for frame in range(2):
        path = root / "vidor" / "masks" / "a" / f"{frame:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(STILL))
    rows = list(load(root))
    assert [row["frames_present"] for row in rows] == [2, 3, 3]


def test_the_path_of_a_zipped_video(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    path = write_zip(root / "VidOR" / "vidor_videos.zip", {"mnt/vidor/videos/a.mp4": b"film", "b/b.mp4": b"film"})
    rows = list(load(root))
    assert [row["video"] for row in rows] == [
        f"zip://mnt/vidor/videos/a.mp4::{path.resolve()}",
        f"zip://b/b.mp4::{path.resolve()}",
        None,
    ]
    with fsspec.open(rows[0]["video"]) as file:
        assert file.read() == b"film"


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips", compression=zipfile.ZIP_STORED)
    path = root / "VidOR" / "vidor_masks.zip"
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("vidor/masks/b/0001.png")
    content = bytearray(path.read_bytes())
    content[info.header_offset + 30 + len(info.filename) + 40] ^= 0xFF
    path.write_bytes(content)
    for kwargs in ({}, {"num_proc": 2}, {"streaming": True}):
        with pytest.raises(BenchError, match=r"vidor_masks\.zip: vidor/masks/b/0001\.png: the member is damaged.*CRC"):
            list(load(root, **kwargs))


@pytest.mark.parametrize("kept", [0, 3, 100, -10])
def test_a_zip_that_is_cut_off(tmp_path: Path, kept: int) -> None:
    root = zipped(tmp_path / "zips")
    path = root / "VidOR" / "vidor_masks.zip"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BenchError, match=r"vidor_masks\.zip: expected a zip, found .*; fetch it again"):
        load(root)


def test_what_stands_in_a_zip_s_place(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    path = root / "VidOR" / "vidor_masks.zip"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(BenchError, match="git lfs pull"):
        load(root)
    path.write_bytes(b"<html>not found</html>" * 10)
    with pytest.raises(BenchError, match="found another kind of file"):
        load(root)


def test_members_that_are_missing_are_faults(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    files = mask_files(VIDEOS, {"a": [STILL, None, STILL], "b": []})
    write_zip(root / "VidOR" / "vidor_masks.zip", {name: data for name, data in files.items() if "vidor" in name})
    (root / "Ego4D" / "ego4d_masks.zip").unlink()
    rows = list(load(root))
    assert [(row["key"], row["faults"], row["frames_present"]) for row in rows] == [
        ("a", ["mask_missing"], 2),
        ("b", ["mask_missing"], 0),
        ("c", ["mask_missing"], 0),
    ]


@pytest.mark.parametrize(
    "name",
    ["../vidor/masks/a/0009.png", "vidor/masks/../../../a/0009.png", "/vidor/masks/a/0009.png", "C:\\a\\0009.png"],
)
def test_members_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    root = zipped(tmp_path / "zips")
    with zipfile.ZipFile(root / "VidOR" / "vidor_masks.zip", "a") as archive:
        archive.writestr(name, png(STILL))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BenchError, match="expected a path within the archive"):
        load(root)
    assert sorted(tmp_path.rglob("*")) == before


def test_two_members_for_one_frame(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    with zipfile.ZipFile(root / "VidOR" / "vidor_masks.zip", "a") as archive:
        archive.writestr("copy/vidor/masks/a/0001.png", png(STILL))
    with pytest.raises(BenchError, match=r"expected one member a file, found 'vidor/masks/a/0001\.png' and 'copy/"):
        load(root)


def test_a_member_that_grows_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_datasets.benchmarks.pvsg.zips.MAX_MEMBER", 1000)
    root = zipped(tmp_path / "zips")
    with zipfile.ZipFile(root / "VidOR" / "vidor_masks.zip", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vidor/masks/a/0003.png", bytes(100_000))
    with pytest.raises(BenchError, match=r"a/0003\.png: expected at most 1000 bytes, found 100000"):
        load(root)


def test_zips_that_were_fetched_are_read_where_they_lie_now(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    layout, access = find_layout(str(root), Access(), ""), Access()
    (place,) = layout.archives("masks", ["vidor"])
    copy = tmp_path / "blob"
    Path(place.url).rename(copy)
    folder = ImageFolder(layout.moved({place.url: str(copy)}), access, "vidor", "masks", "a")
    assert folder.read(0) == png(STILL)
    assert folder.where(0) == f"{place.url}: vidor/masks/a/0000.png"


@pytest.mark.parametrize("ranges", [True, False])
def test_zips_over_http(tmp_path: Path, expected: list[dict[str, Any]], ranges: bool) -> None:
    """A server that lists nothing but hands out ranges will do; one that hands out whole files alone is named."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def list_directory(self, path: Any) -> None:
            self.send_error(403)

        def send_head(self) -> Any:
            if not ranges:
                return super().send_head()
            asked, path = self.headers.get("Range"), Path(self.translate_path(self.path))
            if not path.is_file():
                self.send_error(404)
                return None
            content = path.read_bytes()
            first, last = 0, len(content) - 1
            if asked:
                first, last = (int(end) for end in asked.removeprefix("bytes=").split("-"))
                last = min(last, len(content) - 1)
            self.send_response(206 if asked else 200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(last - first + 1))
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            self.end_headers()
            return io.BytesIO(content[first : last + 1])

    root = zipped(tmp_path / "zips")
    with zipfile.ZipFile(root / "VidOR" / "vidor_masks.zip", "a") as archive:
        archive.writestr("larger than a block", bytes(6 << 20))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root))) as server:
        server.handle_error = lambda *args: None  # type: ignore[method-assign]  # readers that hang up
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            if ranges:
                assert list(load(url)) == expected
            else:
                with pytest.raises(BenchError, match=r"vidor_masks\.zip: the server does not hand out parts of a file"):
                    load(url)
        finally:
            server.shutdown()


def test_frames_out_of_zips(tmp_path: Path) -> None:
    root = zipped(tmp_path / "zips")
    write_zip(root / "VidOR" / "vidor_frames.zip", {f"f/vidor/frames/a/{k:04d}.png": png(STILL) for k in (0, 2)})
    data = load(root, "frames")
    assert [row["image"] is not None for row in data] == [True, False, True, *[False] * 6]
    assert data[0]["image"].size == (6, 4)
