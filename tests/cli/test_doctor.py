"""`doctor`: what is said of this installation, of what it lacks, and of a Hub that does not answer."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bench_datasets.cli import doctor
from bench_datasets.masks import available_engines

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a server that takes a question and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    held.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in held:
            connection.close()


def facts(run: Run, *args: object) -> dict[str, Any]:
    done = run("doctor", "--json", *args)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_doctor_lists_installed_parts(run: Run) -> None:
    found = facts(run, "--timeout", 0)
    assert found["ok"]
    assert found["problems"] == []
    assert found["packages"]["datasets"] == metadata.version("datasets")
    assert {"pbench", "instancebench", "pvsg"} <= set(found["names"])
    assert found["engines"]["available"] == list(available_engines())
    assert found["cache"]["writable"]
    assert found["cache"]["free_bytes"] > 0
    assert found["data"]["pbench"]["from"] == "hf://datasets/tiiuae/PBench"
    assert "BENCH_DATASETS_PVSG" in found["data"]["pvsg"]["advice"]


def test_doctor_package_that_does_not_import_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bench_broken_extra.py").write_text("raise ImportError('a library is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(doctor.EXTRAS, "video", ("bench_broken_extra", "PVSG"))
    done = run("doctor", "--timeout", 0)
    assert "no video" in done.stdout
    assert "bench_broken_extra does not import (ImportError: a library is missing)" in done.stdout


def test_doctor_text_output(run: Run) -> None:
    done = run("doctor", "--timeout", 0)
    assert done.exit_code == 0
    for word in ("pycocotools", "cache", "pbench", "everything that every command needs works"):
        assert word in done.stdout


def test_the_hub_is_not_asked_offline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub = facts(run)["hub"]
    assert hub["reachable"] is None
    assert "HF_HUB_OFFLINE" in hub["text"]


def test_a_hub_that_does_not_answer(run: Run, deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", deaf)
    found = facts(run, "--timeout", 0.3)
    assert found["hub"]["reachable"] is False
    assert "sample" in found["data"]["pbench"]["advice"]
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    assert facts(run, "--timeout", 1)["hub"]["reachable"] is False
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "no address")
    assert facts(run, "--timeout", 1)["hub"]["reachable"] is False


def test_no_secret_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_verysecret")
    done = run("doctor", "--json", "--timeout", 0)
    assert json.loads(done.stdout)["hub"]["signed_in"] is True
    assert "verysecret" not in done.output + run("doctor", "--timeout", 0).output


def test_doctor_names_missing_parts(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "surely-not-installed"))
    monkeypatch.setattr(doctor, "EXTRAS", {"fast": ("surely_not_installed", "speed")})
    monkeypatch.setattr("bench_datasets.data.registry.packaged_modules", lambda: 1 / 0)
    monkeypatch.setenv("BENCH_DATASETS_PVSG", str(tmp_path / "gone"))
    done = run("doctor", "--timeout", 0)
    assert done.exit_code == 1
    assert "pip install surely-not-installed" in done.stdout
    assert "pip install 'bench-datasets[fast]'" in done.stdout
    assert "load_dataset by name: ZeroDivisionError" in done.stdout
    assert "there is no such folder" in done.stdout


def test_every_extra_is_told_of() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    optional = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    assert set(doctor.EXTRAS) == set(re.findall(r"^(\w+) = \[", optional, re.MULTILINE)) - {"dev"}
    needed = project.split("\ndependencies = [")[1].split("\n]")[0]
    assert set(doctor.PACKAGES) == set(re.findall(r'"([\w-]+)', needed))


def test_completion_is_offered(spawn: Callable[..., Any]) -> None:
    done = spawn("--show-completion", "bash")
    assert done.returncode == 0
    assert "COMP_WORDS" in done.stdout
