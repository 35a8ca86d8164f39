"""A Hub on loopback in a process of its own, and clients for it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests" / "support" / "localhub.py"
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
