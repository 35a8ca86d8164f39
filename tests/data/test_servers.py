"""Web servers that stop answering, or break an answer off: an error in words, after a bounded time."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from bench_datasets import samples
from bench_datasets.cli import app
from bench_datasets.data import open_truth, source
from bench_datasets.faults import BenchError


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """A web server that misbehaves in a named way; gives its address with a user and a password."""
    release, way = threading.Event(), [""]
    page = b'<a href="level_0.parquet">level_0.parquet</a>'

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if way[0] == "silent" or (way[0] == "silent file" and self.path.endswith(".parquet")):
                release.wait(20)
                return
            self.send_response(206 if "Range" in self.headers else 200)
            if way[0] == "half" or self.path.endswith(".parquet"):
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"half")
                self.wfile.flush()
                self.connection.close()
                return
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.send_header("Accept-Ranges", "bytes")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    monkeypatch.setattr(source, "TIMEOUT", 0.5)
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()

    def start(name: str) -> str:
        way[0] = name
        return f"http://ada:hunter2@127.0.0.1:{found.server_address[1]}/{name.replace(' ', '-')}"

    yield start
    release.set()
    found.shutdown()
    found.server_close()


@pytest.mark.parametrize("way", ["silent", "silent file", "half", "half file"])
def test_open_truth_server_that_breaks_off_says_so(server: Callable[[str], str], way: str) -> None:
    url = server(way)
    with pytest.raises(BenchError) as caught:
        open_truth("pbench", url)
    text = str(caught.value)
    assert ("did not answer within" if way.startswith("silent") else "broke its answer off") in text
    assert "hunter2" not in text


def test_score_server_that_is_silent_ends_in_one_line(server: Callable[[str], str]) -> None:
    answers = str(samples.pbench_sample_predictions("careful"))
    done = CliRunner().invoke(app, ["score", "pbench", "--data", server("silent"), "--predictions", answers])
    assert done.exit_code == 1
    assert "did not answer within" in done.stderr
    assert "hunter2" not in done.output
    assert "Traceback" not in done.output


def test_check_predictions_of_a_silent_server_ends_in_one_line(server: Callable[[str], str]) -> None:
    done = CliRunner().invoke(app, ["check", "pbench", "--predictions", server("silent") + "/out.jsonl"])
    assert done.exit_code == 1
    assert "did not answer within" in done.stderr


def test_open_truth_token_with_other_characters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_café")
    with pytest.raises(BenchError, match=r"token: expected letters, digits and _ alone, found character 7"):
        open_truth("pbench", "hf://datasets/acme/rows")
