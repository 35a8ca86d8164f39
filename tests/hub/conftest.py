"""A Hub of one's own on loopback for every test, and clients for it in this process and in others."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets.config
import pytest
from datasets import Dataset
from huggingface_hub import HfFileSystem, constants
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

from ..support.hub import Hub
from ..support.publishing import MODEL, SAMPLE


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
