"""PVSG's config `frames`: a row a frame, from files and from videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from datasets import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.pvsg.frames import can_decode_video
from bench_datasets.benchmarks.pvsg.truth import frame_features
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES
from bench_datasets.faults import BenchError

from ...support.pvsg_sources import STILL, VIDEOS, label_map, load, video, write


def test_frames(tmp_path: Path) -> None:
    root = write(tmp_path, VIDEOS, {"a": [STILL, label_map(1, 0, 0, 0, 7, 7), None, STILL]})
    pictures = [np.full((4, 6, 3), 60 * k, np.uint8) for k in range(3)]
    for k, values in enumerate(pictures):
        path = root / f"vidor/frames/a/{k:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(values).save(path)
    data = load(root, "frames")
    assert data.features == frame_features(True)
    assert data.features["image"] == Image()
    assert [(row["video_id"], row["frame"]) for row in data] == [
        *(("a", 0), ("a", 1), ("a", 3)),
        *((name, frame) for name in "bc" for frame in range(3)),
    ]
    assert np.array_equal(np.asarray(data[1]["image"]), pictures[1])
    assert [row["image"] is None for row in data] == [False, False, *[True] * 7]
    assert data[1]["object_ids"] == [1]
    assert data[0]["object_ids"] == [1, 2]
    assert data[0]["categories"] == [CATEGORIES.index("adult"), CATEGORIES.index("table")]
    expected = coco.encode(np.asfortranarray(STILL == 2, dtype=np.uint8))
    assert data[0]["masks"][1] == {"size": expected["size"], "counts": expected["counts"].decode()}
    plain = load(root, "frames", images=False)
    assert plain.features == frame_features(False)
    assert plain.to_list() == data.remove_columns("image").to_list()
    assert list(load(root, "frames", images=False, streaming=True)) == plain.to_list()
    assert load(root, "frames", images=False, num_proc=2).to_list() == plain.to_list()
    with pytest.raises(BenchError, match="images: expected True or False"):
        load(root, "frames", images="no")


def test_more_frames_than_a_batch(pvsg_mini: Path) -> None:
    data = load(pvsg_mini, "frames", images=False)
    (row,) = load(pvsg_mini)
    tubes = {item["object_id"]: tube for item, tube in zip(row["objects"], row["tubes"], strict=True)}
    assert data["frame"][:] == list(range(146))
    found: dict[int, list[int]] = {}
    for frame in data:
        for label in frame["object_ids"]:
            found.setdefault(label, []).append(frame["frame"])
    assert found == {label: tube["frames"] for label, tube in tubes.items()}


def _write_mp4(path: Path, frames: int) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for n in range(frames):
            picture = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 60 * n, np.uint8), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


@pytest.mark.skipif(not can_decode_video(), reason="PyAV is not installed (the extra `video`)")
def test_frames_from_the_mp4(tmp_path: Path) -> None:
    root = write(tmp_path, {"vidor/val": [video("a", frames=4)]}, {"a": [STILL, None, STILL, STILL]})
    path = root / "vidor" / "videos" / "a.mp4"
    path.parent.mkdir()
    _write_mp4(path, 3)
    for kwargs in ({}, {"streaming": True}):
        data = list(load(root, "frames", **kwargs))
        assert [row["frame"] for row in data] == [0, 2, 3]
        assert [None if row["image"] is None else round(np.asarray(row["image"]).mean() / 60) for row in data] == [
            0,
            2,
            None,
        ]
    path.write_bytes(b"no video")
    with pytest.raises(BenchError, match=r"a\.mp4: the video cannot be read"):
        load(root, "frames")


def test_the_path_of_a_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    root = write(tmp_path, {"vidor/val": [video("a"), video("b")]})
    (root / "vidor" / "videos").mkdir()
    (root / "vidor" / "videos" / "b.mp4").write_bytes(b"film")
    assert load(root)["video"][:] == [None, str(root.resolve() / "vidor/videos/b.mp4")]
    monkeypatch.setattr("bench_datasets.benchmarks.pvsg.build.can_decode_video", lambda: False)
    monkeypatch.setattr("bench_datasets.benchmarks.pvsg.frames.can_decode_video", lambda: False)
    assert load(root, "frames")["image"][:] == [None] * 6
    assert "pip install 'bench-datasets[video]'" in caplog.text
