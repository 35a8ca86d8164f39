"""PVSG's builder keeps what it has built: a build that was killed goes on where it was."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ...support.pvsg_sources import label_map, load, png, video, write

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], dict[str, str]]:
    """What the builder has said of each video since it was asked last: "built" or "kept"."""
    caplog.set_level(logging.INFO, "bench_datasets")

    def since() -> dict[str, str]:
        words = [record.getMessage().split(": ", 2) for record in caplog.records]
        caplog.clear()
        return {
            w[1]: w[2].split()[0] for w in words if w[0] == "pvsg" and len(w) == 3 and w[2][:5] in ("built", "kept ")
        }

    return since


def test_a_killed_build_goes_on_with_the_videos_that_are_missing(
    tmp_path: Path, told: Callable[[], dict[str, str]]
) -> None:
    videos = {"vidor/val": [video(name) for name in "abcde"]}
    root, cache = write(tmp_path / "source", videos), tmp_path / "cache"
    code = (
        "import os, signal, sys\n"
        "import bench_datasets\n"
        "from bench_datasets.benchmarks.pvsg import build as builder\n"
        "from datasets import load_dataset\n"
        "build = builder.build_video_row\n"
        "def once_too_often(entry, *args, **kwargs):\n"
        "    if entry.video_id == 'd':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return build(entry, *args, **kwargs)\n"
        "builder.build_video_row = once_too_often\n"
        "load_dataset('pvsg', split='test', data_dir=sys.argv[1], cache_dir=sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root), str(cache)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    data = load(root, cache_dir=str(cache))
    assert told() == dict.fromkeys("abc", "kept") | dict.fromkeys("de", "built")
    assert data.to_list() == list(load(root, streaming=True))


def test_only_what_changed_is_built_again(tmp_path: Path, told: Callable[[], dict[str, str]]) -> None:
    root, cache = write(tmp_path / "source", {"vidor/val": [video(name) for name in "abc"]}), str(tmp_path / "cache")
    load(root, cache_dir=cache)
    assert told() == dict.fromkeys("abc", "built")
    load(root, cache_dir=cache)
    assert told() == {}
    (root / "vidor/masks/b/0001.png").write_bytes(png(label_map(2, 2, 2, 2, 2, 2)))
    assert load(root, cache_dir=cache)[1]["tubes"][0]["frames"] == [0, 2]
    assert told() == {"a": "kept", "b": "built", "c": "kept"}
    write(root, {"vidor/val": [video("a"), video("b", summary="Another."), video("c")]}, files={})
    assert load(root, cache_dir=cache)["summary"][:][1] == "Another."
    assert told() == {"a": "kept", "b": "built", "c": "kept"}
    load(root, cache_dir=cache, download_mode="force_redownload")
    assert told() == dict.fromkeys("abc", "built")


def test_a_kept_video_that_is_damaged_is_built_again(tmp_path: Path, told: Callable[[], dict[str, str]]) -> None:
    videos = [video("a", [(1, 2, "squeezing", [[0, 1]])]), video("b")]
    root, cache = write(tmp_path / "source", {"vidor/val": videos}), tmp_path / "cache"
    first = load(root, cache_dir=str(cache)).to_list()
    kept = sorted((cache / "bench_datasets" / "pvsg").rglob("*.arrow"))
    assert len(kept) == 2
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    (root / "pvsg.json").touch()
    told()
    assert load(root, cache_dir=str(cache)).to_list() == first
    assert sorted(told().values()) == ["built", "kept"]


def test_processes_share_what_is_kept(tmp_path: Path, told: Callable[[], dict[str, str]]) -> None:
    root, cache = write(tmp_path / "source", {"vidor/val": [video(name) for name in "abcd"]}), str(tmp_path / "cache")
    load(root, cache_dir=cache, num_proc=2)
    os.utime(root / "pvsg.json", (1, 1))
    told()
    assert load(root, cache_dir=cache)["key"][:] == list("abcd")
    assert told() == dict.fromkeys("abcd", "kept")
