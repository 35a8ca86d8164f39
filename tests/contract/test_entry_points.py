"""Every entry point gives the same verdict on the same input: the same fault, the same rows left out, the same number.

The rows of the tables are inputs, sound ones and one per fault; each goes through Python, `Dataset.map`, a stream,
`evaluate`, the command line, shards and `check`, with each choice of `on_fault`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, List, Value
from pycocotools import mask as coco
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench.truth import truth_features
from bench_datasets.cli import app
from bench_datasets.masks import MASK_FEATURE

CHOICES = ("stop", "skip-and-report", "count-as-wrong")


def mask(first: int, last: int, width: int = 20) -> dict[str, Any]:
    """A mask one pixel high with the pixels from `first` to `last` (exclusive), as COCO RLE."""
    dense = np.zeros((1, width), np.uint8, order="F")
    dense[0, first:last] = 1
    rle = coco.encode(dense)
    return {"size": [1, width], "counts": rle["counts"].decode("ascii")}


A, B, SMALL = mask(0, 5), mask(6, 11), mask(0, 5, width=15)
BROKEN = {"size": [1, 20], "counts": "zz"}


@dataclass
class Input:
    """One input of a benchmark: ground truth rows by key, predictions by key, and lines of a file besides."""

    truth: dict[str, Any]
    predictions: dict[str, Any]
    more: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """An input and what every entry point must find.

    Attributes:
        name: of the case.
        edit: makes the input from a sound one.
        code: of the fault; empty for a sound input.
        key: of the row that has it.
        of_truth: whether the ground truth has it, so that the row can never be scored.
        numbers: the headline number under each choice that goes on; `None` for a scoring that can't.
        stops_at: what the fault is named by where it stops, if pairing finds it and names something smaller.
        protocol: that is asked for.
        without: entry points through which such an input can't come.
    """

    name: str
    edit: Callable[[Input], None]
    code: str = ""
    key: str = ""
    of_truth: bool = False
    numbers: tuple[float, float] = (1.0, 1.0)
    stops_at: str = ""
    protocol: str | None = None
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


PAIRED_ALONE = ("map_score", "scorer", "stream", "evaluate")
"""Entry points whose predictions stand in the row, so that none can be for another row, or be twice."""


# --- PBench: level_0/0 and level_0/1 have truth, level_0/2 has none.

HEADLINE = {"pbench": "macro_f1/level_0", "instancebench": "miou"}


def pbench_input() -> Input:
    rows = [f"level_0/{i}" for i in range(3)]
    return Input(
        dict(zip(rows, ([A], [A, B], []), strict=True)),
        {
            rows[0]: {"masks": [A], "scores": [0.5]},
            rows[1]: {"masks": [A, B], "scores": [0.5, 0.5]},
            rows[2]: {"masks": [], "scores": []},
        },
    )


def predicted(row: int, **values: Any) -> Callable[[Input], None]:
    return lambda given: given.predictions[f"level_0/{row}"].update(values)


def true_masks(row: int, *masks: Any) -> Callable[[Input], None]:
    return lambda given: given.truth.update({f"level_0/{row}": list(masks)})


def without_row(row: int) -> Callable[[Input], None]:
    return lambda given: given.predictions.pop(f"level_0/{row}") and None


NUMBERS_ALONE = ("evaluate",)
"""The entry point that takes masks alone: no scores."""

COLUMNS_ALONE = ("evaluate", "file", "command line")
"""Entry points whose predictions have no centres: these are columns, or fields of another format."""

PBENCH = [
    Case("sound", lambda given: None),
    Case("empty_prediction", predicted(1, masks=[], scores=[]), numbers=(0.5, 0.5)),
    Case("resized", predicted(1, masks=[A, mask(9, 14, width=15)]), numbers=(0.75, 0.75)),
    Case("malformed_mask", predicted(1, masks=[A, BROKEN]), "malformed_mask", "level_0/1", numbers=(1.0, 0.5)),
    Case("scores_too_few", predicted(1, scores=[0.5]), "bad_score", "level_0/1", numbers=(1.0, 0.5),
         without=NUMBERS_ALONE),
    Case("scores_nan", predicted(1, scores=[0.5, float("nan")]), "bad_score", "level_0/1", numbers=(1.0, 0.5),
         without=NUMBERS_ALONE),
    Case("scores_inf", predicted(1, scores=[float("inf"), 0.5]), "bad_score", "level_0/1", numbers=(1.0, 0.5),
         without=NUMBERS_ALONE),
    Case("centers_too_few", predicted(1, centers=[[0.5, 0.5]]), "bad_box", "level_0/1", numbers=(1.0, 0.5),
         without=COLUMNS_ALONE),
    Case("sizes_nan", predicted(1, centers=[[0.5, 0.5]] * 2, sizes=[[0.5, float("nan")]] * 2), "bad_box", "level_0/1",
         numbers=(1.0, 0.5), without=COLUMNS_ALONE),
    Case("missing_prediction", without_row(1), "missing_prediction", "level_0/1", numbers=(1.0, 0.5)),
    Case("null_masks", predicted(1, masks=None, scores=None), "missing_prediction", "level_0/1", numbers=(1.0, 0.5)),
    Case("null_masks_with_scores", predicted(1, masks=None), "missing_prediction", "level_0/1", numbers=(1.0, 0.5)),
    Case("duplicate", lambda given: given.more.append({"key": "level_0/1", "masks": [A]}), "duplicate_prediction",
         "level_0/1", numbers=(1.0, 0.5), without=PAIRED_ALONE),
    Case("truth_malformed", true_masks(1, A, BROKEN), "malformed_mask", "level_0/1", of_truth=True),
    Case("truth_two_sizes", true_masks(1, A, SMALL), "image_size_mismatch", "level_0/1", of_truth=True),
    Case("card_mixed_sizes", predicted(2, masks=[A, SMALL], scores=[0.5, 0.5]), "size_mismatch", "level_0/2",
         numbers=(1.0, 2 / 3), protocol="card"),
    Case("released_mixed_sizes", predicted(2, masks=[A, SMALL], scores=[0.5, 0.5])),
    Case("card_malformed_without_truth", predicted(2, masks=[BROKEN], scores=[0.5]), "malformed_mask", "level_0/2",
         numbers=(1.0, 2 / 3), protocol="card"),
    Case("paper_missing_without_truth", without_row(2), "missing_prediction", "level_0/2", numbers=(1.0, 2 / 3),
         protocol="paper"),
]  # fmt: skip

PBENCH_TRUTH = Features(
    id=Value("int64"), level=Value("string"), expression=Value("string"), masks=List(MASK_FEATURE), count=Value("int32")
)
_PAIRS = List(List(Value("float64"), length=2))
PBENCH_PREDICTED = {
    "pred_masks": List(MASK_FEATURE), "pred_scores": List(Value("float64")), "pred_centers": _PAIRS,
    "pred_sizes": _PAIRS,
}  # fmt: skip


def pbench_truth(given: Input) -> Dataset:
    rows = [
        {"id": i, "level": "level_0", "expression": f"thing {i}", "masks": masks, "count": len(masks)}
        for i, masks in enumerate(given.truth.values())
    ]
    return Dataset.from_list(rows, features=PBENCH_TRUTH)


def pbench_joined(given: Input) -> Dataset:
    rows = [
        {**row, **{name: given.predictions.get(key, {}).get(name[5:]) for name in PBENCH_PREDICTED}}
        for key, row in zip(given.truth, pbench_truth(given), strict=True)
    ]
    return Dataset.from_list(rows, features=Features({**PBENCH_TRUTH, **PBENCH_PREDICTED}))


def pbench_folder(given: Input, folder: Path) -> Path:
    kind = pa.schema(
        [
            ("expression", pa.string()), ("count", pa.int32()), ("id", pa.int64()),
            ("masks", pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))),
        ]
    )  # fmt: skip
    rows = [{name: row[name] for name in kind.names} for row in pbench_truth(given)]
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, kind), folder / "data" / "level_0-00000-of-00001.parquet")
    return folder


def pbench_lines(given: Input) -> list[dict[str, Any]]:
    return [{"key": key, **row} for key, row in given.predictions.items()] + given.more


def pbench_evaluate(given: Input) -> dict[str, Any]:
    return {
        "predictions": [given.predictions.get(key, {}).get("masks") for key in given.truth],
        "references": list(given.truth.values()),
        "levels": "level_0",
        "ids": [key.partition("/")[2] for key in given.truth],
    }


# --- InstanceBench: two sets, each of two candidates and the two core expressions.


def instancebench_input() -> Input:
    truth = {
        key: {
            "target": 0,
            "candidates": [{"instance_id": "a", "mask": A}, {"instance_id": "b", "mask": B}],
            "expressions": [[f"{key}-0", "minimal", "ordinal"], [f"{key}-1", "variant", "extremal"]],
        }
        for key in ("s", "t")
    }
    return Input(truth, {f"{key}-{i}": {"mask": A} for key in truth for i in (0, 1)})


def answered(name: str, **values: Any) -> Callable[[Input], None]:
    return lambda given: given.predictions[name].update(values)


def asked(change: Callable[[dict[str, Any]], Any]) -> Callable[[Input], None]:
    return lambda given: change(given.truth["t"]) and None


def expressions(*items: list[str]) -> Callable[[Input], None]:
    """Ask other things of the set `t`, and answer all of them."""

    def edit(given: Input) -> None:
        given.truth["t"]["expressions"] = list(items)
        for name in ("t-0", "t-1"):
            given.predictions.pop(name)
        given.predictions |= {item[0]: {"mask": A} for item in items}

    return edit


def without_answer(name: str) -> Callable[[Input], None]:
    return lambda given: given.predictions.pop(name) and None


BOXES = ("evaluate",)
"""The entry point that takes masks alone: no boxes, no candidates."""

ROWS_ALONE = ("score", "file", "command line", "shards", "check", "command line check")
"""Entry points whose predictions have a line per expression, so that no list can be of the wrong length."""

INSTANCEBENCH = [
    Case("sound", lambda given: None),
    Case("null_mask", answered("t-1", mask=None), numbers=(0.75, 0.75)),
    Case("malformed_mask", answered("t-1", mask=BROKEN), "malformed_mask", "t", numbers=(1.0, 0.75)),
    Case("other_size", answered("t-1", mask=SMALL), "size_mismatch", "t", numbers=(1.0, 0.75)),
    Case("bad_box", answered("t-1", box=[0.0, 0.0, -5.0, 1.0]), "bad_box", "t", numbers=(1.0, 0.75), without=BOXES),
    Case("nan_box", answered("t-1", box=[0.0, float("nan"), 5.0, 1.0]), "bad_box", "t", numbers=(1.0, 0.75),
         without=BOXES),
    Case("list_too_long", lambda given: given.predictions.update({"t": 3}), "unaligned_prediction", "t",
         numbers=(1.0, 0.5), without=ROWS_ALONE),
    Case("missing_expression", without_answer("t-1"), "missing_prediction", "t", numbers=(1.0, 0.75),
         without=PAIRED_ALONE),
    Case("duplicate", lambda given: given.more.append({"expression_id": "t-1", "mask": A}), "duplicate_prediction",
         "t", numbers=(1.0, 0.5), stops_at="t-1", without=PAIRED_ALONE),
    Case("target_missing", asked(lambda row: row.update(target=9)), "target_missing", "t", of_truth=True),
    Case("target_malformed", asked(lambda row: row["candidates"][0].update(mask=BROKEN)), "target_missing", "t",
         of_truth=True),
    Case("target_null", asked(lambda row: row["candidates"][0].update(mask=None)), "target_missing", "t",
         of_truth=True),
    Case("target_other_size", asked(lambda row: row["candidates"][0].update(mask=SMALL)), "target_missing", "t",
         of_truth=True),
    Case("candidate_malformed", asked(lambda row: row["candidates"][1].update(mask=BROKEN))),
    Case("candidate_other_size", asked(lambda row: row["candidates"][1].update(mask=SMALL))),
    Case("candidate_empty", asked(lambda row: row["candidates"][1].update(mask=mask(0, 0)))),
    Case("target_empty", asked(lambda row: row["candidates"][0].update(mask=mask(0, 0))), "target_empty", "t",
         of_truth=True),
    Case("core_role_missing", expressions(["t-0", "minimal", "ordinal"]), "core_role_missing", "t", of_truth=True),
    Case("core_role_repeated",
         expressions(["t-0", "minimal", "ordinal"], ["t-1", "variant", "extremal"], ["t-2", "variant", "extremal"]),
         "core_role_repeated", "t", of_truth=True),
    Case("repeated_expression",
         expressions(["t-0", "minimal", "ordinal"], ["t-1", "variant", "extremal"], ["t-1", "extra", "ordinal"]),
         "repeated_expression", "t", of_truth=True),
]  # fmt: skip


def instancebench_truth(given: Input) -> Dataset:
    rows = [
        {
            "key": key, "image_id": "i", "source": "coco", "category": "thing", "height": 1, "width": 20,
            "target": row["target"], "faults": [],
            "candidates": [{"iscrowd": False, **item} for item in row["candidates"]],
            "expressions": [
                {"expression_id": name, "text": role, "role": role, "operation": operation, "family": None,
                 "track": role if role == "minimal" else None, "tags": [], "donor_mask": None}
                for name, role, operation in row["expressions"]
            ],
        }
        for key, row in given.truth.items()
    ]  # fmt: skip
    return Dataset.from_list(rows, features=_plain_terms(truth_features(False)))


def _plain_terms(features: Features) -> Features:
    """The truth's features with terms as text, so that family and track may be left open."""
    found = copy.deepcopy(features)
    item = found["expressions"].feature
    for name in ("role", "operation", "family", "track"):
        item[name] = Value("string")
    return found


def instancebench_joined(given: Input) -> Dataset:
    truth = instancebench_truth(given)
    rows = []
    for row in truth:
        names = [item["expression_id"] for item in row["expressions"]]
        found = [given.predictions.get(name, {}) for name in names]
        length = given.predictions.get(row["key"], len(found))
        masks = [item.get("mask") for item in found] + [None] * (length - len(found))
        boxes = [item.get("box") for item in found]
        rows.append({**row, "pred_masks": masks, "pred_boxes": boxes})
    more = {"pred_masks": List(MASK_FEATURE), "pred_boxes": List(List(Value("float64")))}
    return Dataset.from_list(rows, features=Features({**truth.features, **more}))


def instancebench_folder(given: Input, folder: Path) -> Path:
    rows = []
    for key, row in given.truth.items():
        target = row["candidates"][row["target"]]["instance_id"] if row["target"] < 2 else "absent"
        items = [{"instance_id": c["instance_id"], "segmentation": c["mask"], "iscrowd": 0} for c in row["candidates"]]
        asks = [
            {"expression_id": name, "role": role, "text": role, "operation": operation}
            for name, role, operation in row["expressions"]
        ]
        rows.append(
            {"tces_id": key, "image": None, "image_id": "i", "source": "coco", "category": "thing", "height": 1,
             "width": 20, "target": target, "candidates": items, "expressions": asks}
        )  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def instancebench_lines(given: Input) -> list[dict[str, Any]]:
    return [{"expression_id": name, **row} for name, row in given.predictions.items()] + given.more


def instancebench_evaluate(given: Input) -> dict[str, Any]:
    rows = instancebench_joined(given)
    return {
        "predictions": rows["pred_masks"][:],
        "references": instancebench_truth(given).to_list(),
        "ids": list(given.truth),
    }


# --- The entry points. Each gives a score table, or raises the fault.

Score = Callable[[str, Input, str, "str | None", Path], Any]


def _named(function: str, benchmark: str) -> Any:
    return globals()[f"{benchmark}_{function}"]


def _file(benchmark: str, given: Input, folder: Path) -> Path:
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in _named("lines", benchmark)(given)))
    return path


def by_score(benchmark: str, given: Input, on_fault: str, protocol: str | None, folder: Path) -> Any:
    """`bd.score` with a Dataset of one's own."""
    lines = _named("lines", benchmark)(given)
    if benchmark == "pbench":
        kind = Features({"key": Value("string"), **PBENCH_PREDICTED})
        rows = [{"key": line["key"], **{name: line.get(name[5:]) for name in PBENCH_PREDICTED}} for line in lines]
    else:
        kind = Features(expression_id=Value("string"), mask=MASK_FEATURE, box=List(Value("float64")))
        rows = [{name: line.get(name) for name in kind} for line in lines]
    own = Dataset.from_list(rows, features=kind)
    return bd.score(benchmark, _named("truth", benchmark)(given), own, protocol, on_fault=on_fault)


def by_file(benchmark: str, given: Input, on_fault: str, protocol: str | None, folder: Path) -> Any:
    """`bd.score` with a file of predictions."""
    read = bd.read_predictions(benchmark, _file(benchmark, given, folder))
    return bd.score(benchmark, _named("truth", benchmark)(given), read, protocol, on_fault=on_fault)


def by_map_score(benchmark: str, given: Input, on_fault: str, protocol: str | None, folder: Path) -> Any:
    return bd.map_score(_named("joined", benchmark)(given), benchmark, protocol, on_fault=on_fault)


def by_scorer(benchmark: str, given: Input, on_fault: str, protocol: str | None, folder: Path) -> Any:
    """`bd.scorer` over columns of Python values, as `Dataset.map(batched=True)` hands them over."""
    batch = _named("joined", benchmark)(given)[:]
    columns = {name: list(values) for name, values in batch.items()}
    return pa.table(
        bd.scorer(benchmark, protocol, on_fault=on_fault)(columns), bd.score_features(benchmark).arrow_schema
    )


def by_stream(benchmark: str, given: Input, on_fault: str, protocol: str | None, folder: Path) -> Any:
    stream = _named("joined", benchmark)(given).to_iterable_dataset()
    scored = list(bd.map_score(stream, benchmark, protocol, on_fault=on_fault))
    return Dataset.from_list(scored, features=bd.score_features(benchmark))


ENTRY_POINTS: dict[str, Score] = {
    "score": by_score,
    "file": by_file,
    "map_score": by_map_score,
    "scorer": by_scorer,
    "stream": by_stream,
}


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "100"})


CASES = [("pbench", case) for case in PBENCH] + [("instancebench", case) for case in INSTANCEBENCH]


@pytest.fixture(params=CASES, ids=lambda param: f"{param[0]}-{param[1]}")
def benchmark_and_case(request: pytest.FixtureRequest) -> tuple[str, Case, Input]:
    benchmark, case = request.param
    given = _named("input", benchmark)()
    case.edit(given)
    return benchmark, case, given


def headline(benchmark: str, metrics: Mapping[str, Any], protocol: str | None) -> float:
    key = "accuracy/level_0" if protocol == "card" else HEADLINE[benchmark]
    return float(getattr(metrics[key], "value", metrics[key]))


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_python_entry_points_give_the_expected_verdict(
    entry: str, benchmark_and_case: tuple[str, Case, Input], tmp_path: Path
) -> None:
    benchmark, case, given = benchmark_and_case
    if entry in case.without:
        pytest.skip("such an input can't come through this entry point")
    for on_fault in CHOICES:
        if case.code and on_fault == "stop":
            with pytest.raises(bd.FaultError) as stopped:
                ENTRY_POINTS[entry](benchmark, given, on_fault, case.protocol, tmp_path)
            assert (stopped.value.code, stopped.value.key) == (case.code, case.stops_at or case.key)
            continue
        scores = ENTRY_POINTS[entry](benchmark, given, on_fault, case.protocol, tmp_path)
        table = scores if isinstance(scores, pa.Table) else scores.with_format("arrow")[:]
        left_out = case.code and (case.of_truth or on_fault == "skip-and-report")
        assert [r["key"] for r in table.to_pylist() if r["skipped"]] == ([case.key] if left_out else [])
        noted = {row["key"]: set(row["faults"]) for row in table.select(["key", "faults"]).to_pylist()}
        if case.code:
            assert case.code in noted[case.key]
        result = bd.summarize(benchmark, scores, draws=0)
        wanted = case.numbers[on_fault == "count-as-wrong"]
        assert headline(benchmark, result.metrics, case.protocol) == pytest.approx(wanted)
        assert result.comparable_to is None


def test_evaluate_gives_the_expected_verdict(benchmark_and_case: tuple[str, Case, Input]) -> None:
    benchmark, case, given = benchmark_and_case
    if "evaluate" in case.without:
        pytest.skip("such an input can't come through this entry point")
    rows = _named("evaluate", benchmark)(given)
    for on_fault in CHOICES:
        metric = evaluate.load(bd.metric_path(benchmark))
        options = {"on_fault": on_fault, **({"protocol": case.protocol} if case.protocol else {})}
        if case.code and on_fault == "stop":
            with pytest.raises(bd.FaultError) as stopped:
                metric.compute(**rows, **options)
            assert stopped.value.code == case.code
            assert case.key.rpartition("/")[2] in stopped.value.key
            continue
        found = metric.compute(**rows, **options)
        wanted = case.numbers[on_fault == "count-as-wrong"]
        assert headline(benchmark, found, case.protocol) == pytest.approx(wanted)


def test_command_line_shards_and_check_give_the_expected_verdict(
    benchmark_and_case: tuple[str, Case, Input], tmp_path: Path
) -> None:
    """`score`, `score --shard` with `merge`, and `check`, whose exit code is 1 exactly where `score` stops."""
    benchmark, case, given = benchmark_and_case
    if "command line" in case.without:
        pytest.skip("such an input can't come through this entry point")
    inputs = [benchmark, "--data", _named("folder", benchmark)(given, tmp_path / "truth")]
    inputs += ["--predictions", _file(benchmark, given, tmp_path)]
    if case.protocol:
        inputs += ["--protocol", case.protocol]
    for on_fault in CHOICES:
        stops = bool(case.code) and on_fault == "stop"
        out = tmp_path / on_fault
        done = run("score", *inputs, "--on-fault", on_fault, "--draws", 0, "--out", out)
        assert done.exit_code == int(stops), done.output
        checked = run("check", *inputs, "--on-fault", on_fault, "--json")
        assert checked.exit_code == int(stops), checked.output
        report = json.loads(checked.stdout)
        assert report["ok"] == (not stops)
        assert [error["code"] for error in report["errors"]] == ([case.code] if case.code else [])
        if stops:
            assert re.search(rf"{case.stops_at or case.key}\b.*\[{case.code}\]", " ".join(done.output.split())), (
                done.output
            )
            continue
        result = bd.Result.load(out)
        wanted = case.numbers[on_fault == "count-as-wrong"]
        assert headline(benchmark, result.metrics, case.protocol) == pytest.approx(wanted)
        assert result.settings["on_fault"] == on_fault
        if case.code:
            assert result.faults[case.code]["count"] == 1
            assert result.comparable_to is None
        parts = tmp_path / f"parts-{on_fault}"
        for index in (0, 1):
            part = run("score", *inputs, "--on-fault", on_fault, "--shard", f"{index}/2", "--out", parts)
            assert part.exit_code == 0, part.output
        merged = run("merge", parts, "--draws", 0, "--out", parts / "all")
        assert merged.exit_code == 0, merged.output
        assert (parts / "all" / "scores.parquet").read_bytes() == (out / "scores.parquet").read_bytes()


def pbench_calls(given: Input, tmp_path: Path) -> list[Callable[..., Any]]:
    """Every Python entry point with rows of Python values, which need not be of one type."""
    truth = [dict(row) for row in pbench_truth(given)]
    names = {f"pred_{name}" for found in given.predictions.values() for name in found}
    beside = [
        {**row, **{name: given.predictions.get(key, {}).get(name[5:]) for name in names}}
        for key, row in zip(given.truth, truth, strict=True)
    ]
    columns = {name: [row[name] for row in beside] for name in beside[0]}
    file = str(_file("pbench", given, tmp_path))
    return [
        lambda **options: bd.score("pbench", truth, pbench_lines(given), **options),
        lambda **options: bd.score("pbench", truth, file, **options),
        lambda **options: bd.map_score(beside, "pbench", **options),
        lambda **options: pa.table(bd.scorer("pbench", **options)(columns), bd.score_features("pbench").arrow_schema),
        lambda **options: evaluate.load(bd.metric_path("pbench")).compute(**pbench_evaluate(given), **options),
    ]


def pbench_number(found: Any) -> float:
    """The headline of a score table, or of what `evaluate` gives."""
    return headline(
        "pbench", found if isinstance(found, dict) else bd.summarize("pbench", found, draws=0).metrics, None
    )


NO_LISTS = {"dictionary of masks": {"a": A}, "one mask": A, "text": "abc", "text of one mask": json.dumps(A)}


@pytest.mark.parametrize("masks", NO_LISTS.values(), ids=NO_LISTS)
def test_masks_that_are_no_list_are_malformed_masks_everywhere(masks: Any, tmp_path: Path) -> None:
    """The scores of such a row are not read, so that the fault is not that their number differs."""
    given = pbench_input()
    predicted(1, masks=masks)(given)
    for call in pbench_calls(given, tmp_path):
        with pytest.raises(bd.FaultError) as stopped:
            call()
        assert (stopped.value.code, stopped.value.key[-1]) == ("malformed_mask", "1")


TEXTS = {
    "list": json.dumps([A, B]),
    "list of texts": [json.dumps(A), json.dumps(B)],
    "list of dictionary and text": [A, json.dumps(B)],
}


@pytest.mark.parametrize("masks", TEXTS.values(), ids=TEXTS)
def test_masks_as_json_text_are_read_everywhere(masks: Any, tmp_path: Path) -> None:
    given = pbench_input()
    predicted(1, masks=masks, scores="[0.5, 0.25]")(given)
    for call in pbench_calls(given, tmp_path):
        assert pbench_number(call()) == 1.0
    assert not bd.check("pbench", pbench_lines(given), pbench_truth(given)).errors
    predicted(1, masks=json.dumps([A, BROKEN]))(given)
    for call in pbench_calls(given, tmp_path):
        with pytest.raises(bd.FaultError) as stopped:
            call()
        assert (stopped.value.code, stopped.value.key[-1]) == ("malformed_mask", "1")
        assert pbench_number(call(on_fault="count-as-wrong")) == 0.5


def test_instancebench_masks_and_boxes_as_json_text_are_read_everywhere() -> None:
    given = instancebench_input()
    truth = [dict(row) for row in instancebench_truth(given)]
    masks = [json.dumps([A, json.dumps(A)]), [json.dumps(A), A]]
    boxes = ["[[0, 0, 5, 1], [0, 0, 5, 1]]", ["[0, 0, 5, 1]", [0, 0, 5, 1]]]
    beside = [{**row, "pred_masks": m, "pred_boxes": b} for row, m, b in zip(truth, masks, boxes, strict=True)]
    for row in given.predictions.values():
        row |= {"mask": json.dumps(A), "box": "[0, 0, 5, 1]"}
    columns = {name: [row[name] for row in beside] for name in beside[0]}
    found = [
        bd.score("instancebench", truth, instancebench_lines(given)),
        bd.map_score(beside, "instancebench"),
        pa.table(bd.scorer("instancebench")(columns), bd.score_features("instancebench").arrow_schema),
    ]
    for scores in found:
        result = bd.summarize("instancebench", scores, draws=0)
        assert (result.metrics["miou"].value, result.faults) == (1.0, {})
    metric = evaluate.load(bd.metric_path("instancebench"))
    assert metric.compute(predictions=masks, references=truth)["miou"] == 1.0


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_faulty_masks_and_faulty_scores_stop_at_the_masks_and_count_both(entry: str, tmp_path: Path) -> None:
    given = pbench_input()
    predicted(1, masks=[A, BROKEN], scores=[0.5])(given)
    with pytest.raises(bd.FaultError) as stopped:
        ENTRY_POINTS[entry]("pbench", given, "stop", None, tmp_path)
    assert (stopped.value.code, stopped.value.key) == ("malformed_mask", "level_0/1")
    scores = ENTRY_POINTS[entry]("pbench", given, "count-as-wrong", None, tmp_path)
    faults = bd.summarize("pbench", scores, draws=0).faults
    assert {code: found["count"] for code, found in faults.items()} == {"bad_score": 1, "malformed_mask": 1}


def test_row_without_masks_but_with_scores_is_missing_beside_the_truth() -> None:
    given = pbench_input()
    predicted(1, masks=None)(given)
    for missing, outcome in (("error", None), ("empty", 0.5)):
        if outcome is None:
            with pytest.raises(bd.FaultError) as stopped:
                bd.map_score(pbench_joined(given), "pbench", missing=missing)
            assert (stopped.value.code, stopped.value.key) == ("missing_prediction", "level_0/1")
        else:
            result = bd.summarize("pbench", bd.map_score(pbench_joined(given), "pbench", missing=missing), draws=0)
            assert headline("pbench", result.metrics, None) == outcome


def test_candidate_id_that_is_no_name_is_the_same_fault_in_rows_and_lines() -> None:
    given = instancebench_input()
    for row in given.predictions.values():
        row["candidate_id"] = "a"
    answered("t-1", candidate_id=1.5)(given)
    truth = instancebench_truth(given)
    beside = [
        {
            **row,
            "pred_masks": [given.predictions[item["expression_id"]]["mask"] for item in row["expressions"]],
            "pred_candidate_ids": [
                given.predictions[item["expression_id"]]["candidate_id"] for item in row["expressions"]
            ],
        }
        for row in truth
    ]
    calls: list[Callable[[str], Any]] = [
        lambda on_fault: bd.score("instancebench", truth, instancebench_lines(given), on_fault=on_fault),
        lambda on_fault: bd.map_score(beside, "instancebench", on_fault=on_fault),
    ]
    for call in calls:
        with pytest.raises(bd.FaultError, match="expected a candidate's instance_id") as stopped:
            call("stop")
        assert (stopped.value.code, stopped.value.key) == ("malformed_mask", "t")
        result = bd.summarize("instancebench", call("count-as-wrong"), draws=0)
        assert result.metrics["miou"].value == pytest.approx(0.75)  # one of four masks counts as wrong


def test_data_frame_with_gaps_in_the_image_size_reads_polygons_as_a_list_does() -> None:
    """pandas makes floats of integers where other rows have none."""
    given = pbench_input()
    square = [[0, 0, 5, 0, 5, 1, 0, 1]]
    predicted(1, masks=[square, B], height=1, width=20)(given)
    truth = pbench_truth(given)
    results = [
        bd.summarize("pbench", bd.score("pbench", truth, made(pbench_lines(given))), draws=0)
        for made in (list, pd.DataFrame)
    ]
    assert [headline("pbench", found.metrics, None) for found in results] == [1.0, 1.0]


@pytest.mark.parametrize("on_fault", ["skip-and-report", "count-as-wrong"])
def test_two_processes_give_the_scores_of_one(on_fault: str, tmp_path: Path) -> None:
    given = pbench_input()
    predicted(1, masks=[A, BROKEN])(given)
    read = bd.read_predictions("pbench", _file("pbench", given, tmp_path))
    one, two = (bd.score("pbench", pbench_truth(given), read, on_fault=on_fault, num_proc=n) for n in (None, 2))
    assert one[:] == two[:]
    assert list(one["skipped"]) == [False, on_fault == "skip-and-report", False]


def test_scoring_of_no_row_ends_with_an_error_everywhere(tmp_path: Path) -> None:
    """Under skip-and-report every row may be left out; then there is no number, and no exit code 0."""
    given = pbench_input()
    for row in given.predictions.values():
        row["masks"] = [BROKEN]
    inputs = ["pbench", "--data", pbench_folder(given, tmp_path / "truth")]
    inputs += ["--predictions", _file("pbench", given, tmp_path), "--on-fault", "skip-and-report"]
    done = run("score", *inputs)
    assert done.exit_code == 1
    assert "none of the 3 rows was scored" in " ".join(done.output.split())
    assert run("check", *inputs).exit_code == 1
    scores = bd.map_score(pbench_joined(given), "pbench", on_fault="skip-and-report")
    with pytest.raises(bd.BenchError, match="none of the 3 rows was scored"):
        bd.summarize("pbench", scores)
    metric = evaluate.load(bd.metric_path("pbench"))
    with pytest.raises(bd.BenchError, match="none of the 3 rows was scored"):
        metric.compute(**pbench_evaluate(given), on_fault="skip-and-report")


def test_missing_rows_counted_as_empty_pass_check_as_they_pass_score(tmp_path: Path) -> None:
    given = pbench_input()
    given.predictions.pop("level_0/1")
    inputs = ["pbench", "--data", pbench_folder(given, tmp_path / "truth")]
    inputs += ["--predictions", _file("pbench", given, tmp_path)]
    for missing, code in (("error", 1), ("empty", 0)):
        assert run("score", *inputs, "--missing", missing, "--draws", 0).exit_code == code
        assert run("check", *inputs, "--missing", missing).exit_code == code


def test_rows_added_to_evaluate_one_by_one_are_judged_as_in_one_call() -> None:
    given = pbench_input()
    predicted(1, masks=[A, BROKEN])(given)
    rows = pbench_evaluate(given)
    metric = evaluate.load(bd.metric_path("pbench"))
    with pytest.raises(bd.FaultError, match="malformed_mask"):
        metric.add_batch(**{**rows, "levels": ["level_0"] * 3})
    metric.add_batch(**{**rows, "levels": ["level_0"] * 3}, on_fault="count-as-wrong")
    assert metric.compute(on_fault="count-as-wrong")["macro_f1/level_0"] == pytest.approx(0.5)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize(
    ("benchmark", "edits", "code"),
    [
        ("pbench", (true_masks(1, A, SMALL), predicted(1, masks=[BROKEN])), "image_size_mismatch"),
        (
            "instancebench",
            (asked(lambda row: row.update(target=9)), answered("t-1", mask=BROKEN)),
            "target_missing",
        ),
    ],
)
def test_row_with_two_faults_stops_at_the_ground_truth_first(
    benchmark: str, edits: tuple[Callable[[Input], None], ...], code: str, entry_point: str, tmp_path: Path
) -> None:
    given = _named("input", benchmark)()
    for edit in edits:
        edit(given)
    with pytest.raises(bd.FaultError) as stopped:
        ENTRY_POINTS[entry_point](benchmark, given, "stop", None, tmp_path)
    assert stopped.value.code == code
