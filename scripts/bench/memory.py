"""Score a folder of Datasets in this process and print how far its memory grew.

Called as `python memory.py FOLDER [BENCHMARK [sum-up]]`.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
from pathlib import Path
from typing import Any

from datasets import load_from_disk
from datasets.utils import disable_progress_bars

import bench_datasets as bd

MB = 1 << 20


def status(name: str) -> int | None:
    """Bytes of an entry of the process's status, such as RssAnon; None where the system has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)


def peak() -> int:
    """Most bytes that were resident at any time so far."""
    most = status("VmHWM")  # not ru_maxrss, which a child inherits from its parent on Linux
    if most is not None:
        return most
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Watch(threading.Thread):
    """Looks at the memory every few milliseconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = status("RssAnon")
        self.done = threading.Event()

    def run(self) -> None:
        """Look until told to stop."""
        while not self.done.wait(0.003):
            now = status("RssAnon")
            if now is not None and self.most is not None:
                self.most = max(self.most, now)


def main(folder: Path, benchmark: str = "pbench", *, sum_up: bool = False) -> dict[str, Any]:
    """Score a few rows, so that everything is imported, then all of them; sum them up, too, if asked to."""
    disable_progress_bars()
    truth, answers = load_from_disk(str(folder / "truth")), load_from_disk(str(folder / "answers"))
    few = truth.select(range(20))
    bd.score(benchmark, few, answers, whole=False)
    before, resident = status("RssAnon"), status("VmRSS") or peak()
    watch = Watch()
    watch.start()
    scores = bd.score(benchmark, truth, answers)
    if sum_up:
        bd.summarize(benchmark, scores)
    watch.done.set()
    watch.join()
    size = sum(file.stat().st_size for file in folder.rglob("*.arrow"))
    return {
        "scored": len(scores),
        "data_mb": size / MB,
        "anonymous_mb": None if before is None or watch.most is None else (watch.most - before) / MB,
        "all_mb": (peak() - resident) / MB,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:3], sum_up="sum-up" in sys.argv)))
