"""Ground truth and predictions in every form that Python users have give the numbers of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict, load_dataset
from PIL import Image
from pycocotools import mask as coco
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.cli import app
from bench_datasets.data import open_truth

FILES: dict[str, Callable[[], str]] = {
    "pbench": lambda: samples.pbench_sample_predictions("careful"),
    "instancebench": lambda: samples.instancebench_sample_predictions("crowd_shy"),
    "pvsg": lambda: samples.pvsg_sample_predictions("careful"),
}
NAMES = {"pbench": "id", "instancebench": "expression_id", "pvsg": "video_id"}


ROWS_SCORED = {"pbench": 4, "instancebench": 2, "pvsg": 1}
"""The first rows of the sample that are scored."""


def small_truth(benchmark: str) -> Dataset:
    """The first rows of the sample."""
    return open_truth(benchmark, "sample").select(range(ROWS_SCORED[benchmark]))


def lines_of(benchmark: str) -> list[dict[str, Any]]:
    """The lines of the built-in model's file that are for these rows."""
    lines = [json.loads(line) for line in Path(FILES[benchmark]()).read_text(encoding="utf-8").splitlines()]
    truth = small_truth(benchmark)
    if benchmark == "instancebench":
        wanted = {one["expression_id"] for row in truth for one in row["expressions"]}
    else:
        wanted = {str(row["id" if benchmark == "pbench" else "key"]) for row in truth}
    return [line for line in lines if str(line[NAMES[benchmark]]) in wanted]


def decoded(value: Any, kind: Callable[[Any], Any] = np.asarray) -> Any:
    """The same with every RLE as an array, decoded by pycocotools and handed to `kind`."""
    if isinstance(value, dict) and "counts" in value:
        return kind(coco.decode({**value, "counts": value["counts"].encode()}).astype(bool))
    if isinstance(value, dict):
        return {name: decoded(item, kind) for name, item in value.items()}
    return [decoded(item, kind) for item in value] if isinstance(value, list) else value


class Tensor:
    """What a tensor on a device with a gradient offers: no array before `detach().cpu()`."""

    def __init__(self, array: Any, at: str = "device") -> None:
        self.array, self.at = np.asarray(array), at
        self.ndim, self.shape = self.array.ndim, self.array.shape

    def detach(self) -> Tensor:
        """Without the gradient."""
        return Tensor(self.array, "detached")

    def cpu(self) -> Tensor:
        """In main memory."""
        return Tensor(self.array, "memory" if self.at == "detached" else self.at)

    def tolist(self) -> Any:
        """As lists."""
        return self.array.tolist()

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Any:
        return (Tensor(item) for item in self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.at != "memory":
            raise TypeError("can't convert device tensor to numpy")
        return self.array


@pytest.fixture(scope="module", params=["pbench", "instancebench", "pvsg"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Dataset, Any]:
    """A benchmark's sample, and the score rows that the command line writes for a built-in model."""
    benchmark: str = request.param
    out = tmp_path_factory.mktemp(benchmark)
    words = ["score", benchmark, "--data", "sample", "--predictions", FILES[benchmark](), "--draws", "0"]
    words += ["--limit", str(ROWS_SCORED[benchmark])]
    done = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return benchmark, small_truth(benchmark), repr(bd.read_scores(out).to_list())  # NaN is not equal to itself


def by_name(benchmark: str, lines: list[dict[str, Any]]) -> dict[Any, Any]:
    name = NAMES[benchmark]
    if benchmark == "instancebench":
        return {line[name]: line["mask"] for line in lines}
    return {line[name]: {field: value for field, value in line.items() if field != name} for line in lines}


PREDICTIONS: dict[str, Callable[[str, list[dict[str, Any]]], Any]] = {
    "list": lambda benchmark, lines: lines,
    "tuple": lambda benchmark, lines: tuple(lines),
    "generator": lambda benchmark, lines: (line for line in lines),
    "arrays": lambda benchmark, lines: decoded(lines),
    "bytes_of_0_and_255": lambda benchmark, lines: decoded(lines, lambda mask: mask.astype(np.uint8) * 255),
    "images": lambda benchmark, lines: decoded(lines, Image.fromarray),
    "tensors": lambda benchmark, lines: decoded(lines, Tensor),
    "stacks": lambda benchmark, lines: decoded(lines, lambda mask: mask[None]),
    "dataframe": lambda benchmark, lines: pd.DataFrame(lines),
    "dataframe_of_arrays": lambda benchmark, lines: pd.DataFrame(decoded(lines)).set_index(NAMES[benchmark]),
    "columns": lambda benchmark, lines: {name: [line.get(name) for line in lines] for name in lines[0]},
    "by_name": by_name,
    "arrow": lambda benchmark, lines: pa.Table.from_pylist(lines),
    "dataset": lambda benchmark, lines: Dataset.from_list(lines),
    "stream": lambda benchmark, lines: Dataset.from_list(lines).to_iterable_dataset(),
    "splits": lambda benchmark, lines: DatasetDict(test=Dataset.from_list(lines)),
    "read": lambda benchmark, lines: bd.read_predictions(benchmark, lines),
}


@pytest.mark.parametrize("form", PREDICTIONS)
def test_score_predictions_in_any_form_give_the_command_lines_rows(case: tuple[str, Dataset, Any], form: str) -> None:
    benchmark, truth, expected = case
    given = PREDICTIONS[form](benchmark, lines_of(benchmark))
    assert repr(bd.score(benchmark, truth, given).to_list()) == expected


@pytest.mark.parametrize("form", ["list", "arrays", "dataframe", "by_name", "splits"])
def test_check_predictions_in_any_form_finds_no_error(case: tuple[str, Dataset, Any], form: str) -> None:
    benchmark, truth, _ = case
    report = bd.check(benchmark, PREDICTIONS[form](benchmark, lines_of(benchmark)), truth)
    assert report.ok, str(report)
    assert report.rows == len(lines_of(benchmark))


TRUTHS: dict[str, Callable[[Dataset], Any]] = {
    "stream": lambda truth: truth.to_iterable_dataset(),
    "split": lambda truth: DatasetDict(test=truth),
    "list": list,
    "arrays": lambda truth: decoded(list(truth)),
    "dataframe": lambda truth: truth.to_pandas(),
    "arrow": lambda truth: truth.with_format("arrow")[:],
    "columns": lambda truth: truth.to_dict(),
}


@pytest.mark.parametrize("form", TRUTHS)
def test_score_ground_truth_in_any_form_gives_the_command_lines_rows(case: tuple[str, Dataset, Any], form: str) -> None:
    benchmark, truth, expected = case
    given, lines = TRUTHS[form](truth), lines_of(benchmark)
    assert repr(bd.score(benchmark, given, lines).to_list()) == expected
    if form != "stream":
        assert bd.check(benchmark, lines, given).ok


def test_score_the_sample_and_its_folder_give_the_command_lines_rows(case: tuple[str, Dataset, Any]) -> None:
    benchmark, truth, expected = case
    folder = getattr(samples, f"{benchmark}_sample_dir")()
    for given in (
        "sample",
        Path(folder),
        load_dataset(benchmark, "sample", images=False, split="test", streaming=True),
    ):
        found = bd.score(benchmark, given, Path(FILES[benchmark]())).to_list()
        assert repr([row for row in found if row["key"] in list(truth["key"])]) == expected


def joined(benchmark: str, truth: Dataset) -> list[dict[str, Any]]:
    """Ground truth and predictions side by side, as a model over the rows would give them."""
    lines = {str(line[NAMES[benchmark]]): line for line in lines_of(benchmark)}
    rows = []
    for row in truth:
        if benchmark == "pbench":
            line = lines[str(row["id"])]
            found = {"pred_masks": line["masks"], "pred_scores": line["scores"]}
        elif benchmark == "instancebench":
            found = {"pred_masks": [lines[one["expression_id"]]["mask"] for one in row["expressions"]]}
        else:
            found = {f"pred_{name}": lines[row["key"]][name] for name in ("tubes", "triplets")}
        rows.append({**row, **found})
    return rows


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    return [name for name in rows[0] if name.startswith("pred_")]


ROWS: dict[str, Callable[[str, Dataset, Path], Any]] = {
    "list": lambda benchmark, truth, place: joined(benchmark, truth),
    "arrays": lambda benchmark, truth, place: decoded(joined(benchmark, truth)),
    "tensors": lambda benchmark, truth, place: decoded(joined(benchmark, truth), Tensor),
    "dataframe": lambda benchmark, truth, place: mapped(benchmark, truth).to_pandas(),
    "map": lambda benchmark, truth, place: mapped(benchmark, truth),
    "map_of_batches": lambda benchmark, truth, place: mapped(benchmark, truth, batched=True, batch_size=3),
    "splits": lambda benchmark, truth, place: DatasetDict(test=mapped(benchmark, truth)),
    "stream": lambda benchmark, truth, place: mapped(benchmark, truth.to_iterable_dataset()),
    "stream_of_batches": lambda benchmark, truth, place: mapped(
        benchmark, truth.to_iterable_dataset(), batched=True, batch_size=3
    ),
    "saved": lambda benchmark, truth, place: saved(mapped(benchmark, truth), place),
}


def saved(rows: Dataset, place: Path) -> Path:
    rows.save_to_disk(place / "rows")
    return place / "rows"


def mapped(benchmark: str, truth: Any, **options: Any) -> Any:
    """`truth.map` of a model that gives arrays."""
    rows = {row["key"]: row for row in joined(benchmark, small_truth(benchmark))}
    columns = columns_of(list(rows.values()))

    def model(row: Any) -> dict[str, Any]:
        if options:
            found = [decoded({name: rows[key][name] for name in columns}) for key in row["key"]]
            return {name: [one[name] for one in found] for name in columns}
        found = decoded({name: rows[row["key"]][name] for name in columns})
        return {name: found[name] for name in columns}

    features = bd.answer_features(benchmark, truth, *columns)
    return truth.map(bd.predictor(benchmark, model), features=features, **options)


@pytest.mark.parametrize("form", ROWS)
def test_map_score_rows_in_any_form_give_the_command_lines_rows(
    case: tuple[str, Dataset, Any], form: str, tmp_path: Path
) -> None:
    benchmark, truth, expected = case
    found = bd.map_score(ROWS[form](benchmark, truth, tmp_path), benchmark).to_list()
    assert repr(sorted(found, key=lambda row: str(row["key"]))) == expected
