"""A Hub of one's own on loopback for every test, and clients for it in this process and in others."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets.config
import pytest
from datasets import Dataset
from huggingface_hub import HfApi, HfFileSystem, constants
from huggingface_hub.utils import close_session

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth
from bench_datasets.hub.commits import CommitResult, commit
from bench_datasets.hub.datasets import Built, build_dataset
from bench_datasets.hub.export import open_source
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import write_run
from bench_datasets.scoring.provenance import provenance_of, with_provenance

from .publishing import MODEL, SAMPLE

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("localhub.py")

USERS = {
    "alice": "alice=hf_alicetoken:acme",
    "bob": "bob=hf_bobtoken:labs",
    "eve": "eve=hf_evetoken:acme:read",
}
"""Users by name: alice may write in acme, bob in labs, eve may only read."""


class Hub:
    """A server in a process of its own, its disk below `root`.

    Attributes:
        endpoint: its address, the same after a restart.
        env: what another process needs to speak with it (no token in it).
    """

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, 0
        self.process: subprocess.Popen[str] | None = None
        self.start()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        left_out = ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE", "HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE")
        self.env = {
            **{name: value for name, value in os.environ.items() if name not in left_out},
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(root / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "PYTHONPATH": os.pathsep.join(paths),
            "COLUMNS": "120",
        }

    def start(self) -> None:
        """Start the server on its disk and its port (any free one the first time)."""
        command = [sys.executable, str(SERVER), "--root", str(self.root / "hub"), "--port", str(self.port)]
        command += [f"--user={user}" for user in USERS.values()]
        command += ["--trace", str(self.root / "trace.jsonl")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "localhub on http://" in line, line + self.process.stderr.read()
        self.port = int(line.split("127.0.0.1:")[1].split()[0])

    def kill(self) -> None:
        """End the server at once, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stderr is not None
            self.process.stderr.close()
            self.process = None

    def gone(self, seconds: float = 10) -> bool:
        """Whether the server has ended by itself within that time."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is not None

    def trouble(self, *troubles: dict[str, Any]) -> None:
        """What the next requests run into; see `localhub.py`."""
        url, data = f"{self.endpoint}/_localhub/troubles", json.dumps(troubles).encode()
        urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"})).close()

    def requests(self) -> list[dict[str, Any]]:
        """Every request so far: `method`, `path`, `range`, `status`, ..."""
        trace = self.root / "trace.jsonl"
        return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []

    def token(self, user: str | None) -> str | None:
        """A user's token."""
        return None if user is None else USERS[user].split("=")[1].split(":")[0]

    def api(self, user: str | None = "alice") -> HfApi:
        """A client in this process; reads as nobody for None."""
        return HfApi(endpoint=self.endpoint, token=self.token(user) or False)

    def read(self, repo: str, path: str, *, kind: str = "dataset", revision: str = "main") -> bytes:
        """A file's content, fetched with alice's token and kept nowhere."""
        prefix = "" if kind == "model" else f"{kind}s/"
        request = urllib.request.Request(f"{self.endpoint}/{prefix}{repo}/resolve/{revision}/{path}")
        request.add_header("Authorization", f"Bearer {self.token('alice')}")
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    def commits(self, repo: str, kind: str = "dataset") -> list[str]:
        """The titles of a repo's commits, newest first."""
        return [commit.title for commit in self.api().list_repo_commits(repo, repo_type=kind)]

    def launch(self, args: str | Sequence[object], *, user: str | None = "alice", **env: str) -> subprocess.Popen[str]:
        """Start Python code, or the command line's arguments, in a process of its own."""
        command = ["-c", args] if isinstance(args, str) else ["-m", "bench_datasets", *map(str, args)]
        token = {"HF_TOKEN": str(self.token(user))} if user else {}
        return subprocess.Popen(
            [sys.executable, *command],
            env={**self.env, **token, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, args: str | Sequence[object], *, user: str | None = "alice", timeout: float = 120, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code, or the command line, in a process of its own; gives exit code, stdout and stderr."""
        process = self.launch(args, user=user, **env)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A fresh Hub; in this process the package speaks with it, too, as alice."""
    found = Hub(tmp_path / "hub")
    home = Path(found.env["HF_HOME"])
    for name, value in (
        ("HF_HUB_OFFLINE", False),
        ("HF_HUB_CACHE", str(home / "hub")),
        ("HF_TOKEN_PATH", str(home / "token")),
        ("HF_HUB_DISABLE_XET", True),
    ):
        monkeypatch.setattr(constants, name, value)
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", found.endpoint)
    monkeypatch.setenv("HF_TOKEN", str(found.token("alice")))
    close_session()
    yield found
    found.kill()
    close_session()


@pytest.fixture
def reading(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The Hub, with `datasets` and `huggingface_hub` themselves speaking with it in this process."""
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub.endpoint)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    HfFileSystem.clear_instance_cache()
    return hub


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits in this process: gives the seconds that would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: waited.append(seconds))
    return waited


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """A benchmark's built-in sample as it is published, by name; made once a session."""

    @functools.lru_cache
    def build(benchmark: str) -> Built:
        truth = open_source(benchmark, "sample", with_images=False)
        return build_dataset(truth, f"acme/{benchmark}", tmp_path_factory.mktemp(benchmark))

    return build


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folders of runs over PBench's built-in sample: by model, protocol and source, copied afresh for each call."""
    base = tmp_path_factory.mktemp("runs")

    @functools.lru_cache
    def scored(model: str, protocol: str) -> tuple[Any, Result]:
        predictions = bd.read_predictions("pbench", samples.pbench_sample_predictions(model))
        scores = bd.score("pbench", open_truth("pbench", "sample"), predictions, protocol)
        return scores, bd.summarize("pbench", scores, draws=50)

    def make(model: str = "careful", protocol: str = "released", **dataset: Any) -> Path:
        scores, result = scored(model, protocol)
        folder = base / str(len(list(base.iterdir())))
        changed = {**result.dataset, **dataset}
        if dataset:  # the scores record the same origin as the result
            origin = provenance_of(scores) or {}
            named = {name: changed[name] for name in ("source", "split", "revision")}
            origin["dataset"] = {**named, "expected": changed["rows"]["expected"]}
            scores = Dataset(with_provenance(scores.with_format("arrow")[:], scores.features, origin))
        write_run(scores, replace(result, dataset=changed), folder)
        return folder

    return make


@pytest.fixture
def model(hub: Any) -> str:
    """A model's repo with a card of its own."""
    hub.api().create_repo(MODEL)
    commit(MODEL, "model", {"README.md": "---\nlicense: mit # mine\n---\n# Net\n\nWords.\n"}, "Card")
    return MODEL


@pytest.fixture
def copy(hub: Any, built: Callable[[str], Any]) -> dict[str, Any]:
    """The sample as a dataset of one's own; gives what a result over it says of its origin."""
    done = commit(SAMPLE, "dataset", built("pbench").files, "Sample", create=True)
    assert isinstance(done, CommitResult)
    return {"source": SAMPLE, "revision": done.sha}
