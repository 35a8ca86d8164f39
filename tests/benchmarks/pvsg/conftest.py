"""The real video, read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, load_dataset

import bench_datasets as bd

from ...support.dense_pvsg import Video
from ...support.pvsg_rows import mini


@pytest.fixture(scope="session")
def mini_video(shared: Path) -> Video:
    """The video of pvsg_mini that has masks."""
    return mini(shared)


@pytest.fixture(scope="session")
def mini_truth(shared: Path) -> Dataset:
    """The same video as the builder gives it."""
    return load_dataset("pvsg", split="test", data_dir=str(shared / "data" / "pvsg_mini"))


@pytest.fixture(scope="session")
def mini_predictions(shared: Path) -> Dataset:
    """Its predictions, as they are read."""
    return bd.read_predictions("pvsg", str(shared / "data" / "pvsg_mini" / "predictions"))


@pytest.fixture(scope="session")
def mini_batch(mini_truth: Dataset, mini_predictions: Dataset) -> dict[str, Any]:
    """Both side by side, as Arrow columns."""
    truth, predicted = (dataset.with_format("arrow")[:] for dataset in (mini_truth, mini_predictions))
    columns = {name: truth[name] for name in truth.column_names}
    return columns | {name: predicted[name] for name in ("pred_tubes", "pred_triplets")}
