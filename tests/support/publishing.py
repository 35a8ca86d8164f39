"""Runs and how they are published: what several tests of results and pull requests share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from bench_datasets.faults import BenchError
from bench_datasets.hub.results import Published, publish_results
from bench_datasets.results.result import Result

Runs = Callable[..., Path]

MODEL, REPO, RUN = "acme/net", "acme/results", "pbench-released"
ENTRIES = ".eval_results/pbench.yaml"
SAMPLE = "acme/pbench-sample"


def publish(folder: Path, **options: Any) -> Published:
    return publish_results(folder, **{"model": MODEL, "repo": REPO, **options})


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(BenchError) as caught:
        publish(folder, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def entries(hub: Any, **options: Any) -> list[Any]:
    text = hub.read(MODEL, ENTRIES, kind="model", **options)
    return parse_eval_result_entries(yaml.safe_load(text))


def edit(folder: Path, **fields: Any) -> Path:
    """A run's result with other fields; its scores stay."""
    replace(Result.load(folder), **fields).save(folder)
    return folder
