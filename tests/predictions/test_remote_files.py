"""Predictions that are read where they are: a web server's files, with and without ranges, and endless ones."""

from __future__ import annotations

import functools
import gzip
import json
import re
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from bench_datasets import samples
from bench_datasets.faults import BenchError
from bench_datasets.predictions import json_records, read_predictions


class Server(SimpleHTTPRequestHandler):
    """A folder's files; parts of them where `ranges`."""

    ranges = True

    def do_GET(self) -> None:
        """Answer a whole file or one range of it."""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked is None or not self.ranges:
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(data[first : last + 1])

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(params=[True, False], ids=["ranges", "no ranges"])
def web(request: Any, tmp_path: Path) -> Iterator[str]:
    """The address of a server of `tmp_path`."""
    handler = type("Handler", (Server,), {"ranges": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_web_servers_files(web: str, tmp_path: Path) -> None:
    lines = Path(samples.pbench_sample_predictions("careful")).read_bytes()
    array = b"[" + b",\n".join(lines.split(b"\n")[:-1]) + b"]"
    files = {
        "out.jsonl": b"\xef\xbb\xbf" + lines,
        "array.json": b"\n \n" + array,
        "packed.jsonl.gz": gzip.compress(lines),
    }
    expected = read_predictions("pbench", samples.pbench_sample_predictions("careful"))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        assert read_predictions("pbench", f"{web}/{name}").to_list() == expected.to_list(), name
    with pytest.raises(BenchError):
        read_predictions("pbench", f"{web}/absent.jsonl")
    (tmp_path / "bad.jsonl").write_bytes(lines + b"{\n")
    last = len(lines.splitlines()) + 1
    with pytest.raises(BenchError, match=rf"{web}/bad\.jsonl:{last}: column 2: expected"):
        read_predictions("pbench", f"{web}/bad.jsonl")


class Endless(AbstractBufferedFile):  # type: ignore[misc]
    """A line without an end, in a file system whose files read lines only whole."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        EndlessFileSystem.asked += end - start
        return b'{"id": 1, "masks": ['.ljust(end, b"1")[start:] if start == 0 else b"1" * (end - start)


class EndlessFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Any path is such a file, of a terabyte."""

    protocol = "endless"
    asked = 0

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """The same of every path."""
        return {"name": path, "size": 1 << 40, "type": "file"}

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Endless:
        return Endless(self, path, mode, size=1 << 40, **kwargs)


def test_an_endless_line_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("endless", EndlessFileSystem, clobber=True)
    monkeypatch.setattr(json_records, "MAX_RECORD", 1 << 23)
    tracemalloc.start()
    with pytest.raises(BenchError, match=r"out.jsonl:1: .*longer than 8388608"):
        read_predictions("pbench", "endless://out.jsonl", format="jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert EndlessFileSystem.asked < 1 << 26
    assert peak < 1 << 27


def test_lines_are_numbered_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("\n\n" + json.dumps({"id": 1, "masks": []}) + "\n\n[\n")
    with pytest.raises(BenchError, match=r"out.jsonl:5"):
        read_predictions("pbench", path)
