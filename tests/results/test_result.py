"""`Result` and its file: what goes in comes out, what is odd is said, what is hostile is harmless."""

from __future__ import annotations

import html
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, List, Value

import bench_datasets as bd
from bench_datasets.masks import MASK_FEATURE
from bench_datasets.results.result import Metric, Result, Slice

HOSTILE = "</table><script>alert('x')</script>\x1b[31m\n&\"<b>"
FULL = {"size": [1, 5], "counts": "05"}
HALF = {"size": [1, 5], "counts": "032"}
FEATURES = Features(
    key=Value("string"), id=Value("int64"), level=Value("string"), expression=Value("string"), masks=List(MASK_FEATURE),
    pred_masks=List(MASK_FEATURE), faults=List(Value("string")),
)  # fmt: skip


def scores_of(key: str = "level_0/1") -> Dataset:
    rows = [
        {"key": key, "id": 1, "level": "level_0", "masks": [FULL], "pred_masks": [HALF], "faults": ["repeated_id"]},
        {"key": "level_1/2", "id": 2, "level": "level_1", "masks": [FULL], "pred_masks": [FULL, FULL], "faults": []},
        {"key": "level_1/3", "id": 3, "level": "level_1", "masks": [], "pred_masks": [], "faults": ["no_truth"]},
    ]
    return bd.map_score(Dataset.from_list([{**row, "expression": "x"} for row in rows], features=FEATURES), "pbench")


def result_of(key: str = "level_0/1", **options: Any) -> Result:
    return bd.summarize("pbench", scores_of(key), **{"draws": 100, **options})


def test_result_saved_and_loaded_is_equal(tmp_path: Path) -> None:
    result = result_of(by=["level"])
    for target in (tmp_path, tmp_path / "other.json"):
        path = result.save(target)
        assert path.name in ("result.json", "other.json")
        for source in (path, str(path)):
            again = Result.load(source)
            assert again.to_json() == result.to_json()
            assert str(again) == str(result)
            assert again.headline == "average"
    assert Result.load(tmp_path).to_json() == result.to_json()
    undefined = [key for key, metric in Result.load(tmp_path).metrics.items() if math.isnan(metric.value)]
    assert "il_mcc/level_0" in undefined
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.json", "result.json"]


def test_the_schema(tmp_path: Path) -> None:
    text = result_of().save(tmp_path).read_text()
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(content) == [
        "schema_version", "benchmark", "protocol", "dataset", "predictions", "settings", "statistics", "metrics",
        "slices", "faults", "packages", "created",
    ]  # fmt: skip
    assert content["schema_version"] == 1
    assert set(content["protocol"]) == {"name", "version", "comparable_to"}
    assert set(content["dataset"]) == {"source", "split", "revision", "rows", "content_sha256"}
    assert content["dataset"]["rows"] == {"scored": 3, "expected": None}
    assert set(content["predictions"]) == {"sha256", "rows", "missing"}
    assert {"missing", "on_fault", "k", "boundary"} <= set(content["settings"])
    assert content["statistics"] == {"seed": 0, "draws": 100, "unit": "row", "clusters": 3}
    for metrics in (content["metrics"], *(part["metrics"] for part in content["slices"])):
        for metric in metrics.values():
            assert set(metric) == {"value", "n", "ci95", "higher_is_better"}
            assert (metric["value"] is None) == (metric["n"] == 0)
    assert {frozenset(part) for part in content["slices"]} == {frozenset({"by", "value", "metrics"})}
    assert content["faults"]["repeated_id"] == {"count": 1, "examples": ["level_0/1"]}
    assert set(content["packages"]) == {"bench_datasets", "datasets", "numpy", "scipy", "pyarrow", "pycocotools"}
    assert content["metrics"]["macro_f1/level_0"]["value"] == pytest.approx(0.3)
    assert content["metrics"]["mask_redundancy_rate/level_1"]["higher_is_better"] is False
    assert content["metrics"]["il_tp/level_1"]["ci95"] is None


def test_equal_scores_give_equal_bytes(tmp_path: Path) -> None:
    one, other = (replace(result_of(), created="then").to_json() for _ in range(2))
    assert one == other
    assert "created" in one
    path = tmp_path / "scores.parquet"
    scores_of().to_parquet(path)
    reread = Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    assert replace(bd.summarize("pbench", reread.select([2, 0, 1]), draws=100), created="then").to_json() == one
    assert replace(bd.summarize("pbench", reread.to_iterable_dataset(), draws=100), created="then").to_json() == one


def test_runs_and_their_spread(tmp_path: Path) -> None:
    metric = Metric(0.5, 10, (0.4, 0.6), sd=0.01, runs=3)
    result = replace(result_of(), metrics={"macro_f1/level_0": metric}, slices=[Slice("by", "x", {"giou": metric})])
    again = Result.load(result.save(tmp_path))
    assert again.metrics["macro_f1/level_0"] == metric
    assert again.slices[0].metrics["giou"] == metric


def test_hostile_texts_are_harmless(tmp_path: Path) -> None:
    result = result_of(HOSTILE, by=["key"])
    assert HOSTILE in result.faults["repeated_id"]["examples"]
    assert Result.load(result.save(tmp_path)).faults == result.faults
    page = result._repr_html_()
    assert "<script" not in page
    assert "<b>&" not in page
    assert "&lt;/table&gt;&lt;script&gt;" in page
    text = str(result)
    assert "\x1b" not in text
    assert len(text.splitlines()) == len(str(result_of(by=["key"])).splitlines())
    hostile = replace(
        result, benchmark=HOSTILE, protocol={"name": HOSTILE, "version": HOSTILE, "comparable_to": HOSTILE},
        metrics={HOSTILE: Metric(0.5, 1), f"macro_f1/{HOSTILE}": Metric(0.5, 1)}, headline=HOSTILE,
    )  # fmt: skip
    assert "<script" not in hostile._repr_html_()
    assert "\x1b" not in str(hostile)


def test_of_a_benchmark_that_is_not_known_here(tmp_path: Path) -> None:
    dataset = {"source": "org/another", "split": None, "revision": None, "rows": {"scored": 3, "expected": 3}}
    content = {**result_of().to_dict(), "benchmark": "another", "dataset": dataset}
    (tmp_path / "result.json").write_text(json.dumps(content))
    result = Result.load(tmp_path)
    assert result.benchmark == "another"
    assert "another" in str(result)
    assert "another" in result._repr_html_()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "7", '"text"', "{}", '{"schema_version": 1}', '{"schema_version": "1"}',
        '{"schema_version": null}', "[" * 100_000, "\xff\xfe", '{"schema_version": 1, "benchmark": []}',
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(bd.BenchError, match="result"):
        Result.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema_version", 2), ("schema_version", True), ("metrics", []), ("metrics", {"x": 1}), ("metrics", None),
        ("metrics", {"x": {"value": "high", "n": 1, "ci95": None, "higher_is_better": True}}), ("slices", {"a": 1}),
        ("slices", [1]), ("slices", 3), ("dataset", []), ("dataset", {}), ("dataset", 5), ("protocol", {}),
        ("protocol", "released"), ("faults", [1]), ("benchmark", {}), ("predictions", {}),
    ],
)  # fmt: skip
def test_damaged_files_are_refused_or_shown(tmp_path: Path, name: str, value: Any) -> None:
    """Whatever is loaded can be shown; what can't be is refused in words."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**result_of(draws=0).to_dict(), name: value}))
    with pytest.raises(bd.BenchError, match=r"result\.json"):
        Result.load(path)


def test_a_newer_schema_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**result_of(draws=0).to_dict(), "schema_version": 2}))
    with pytest.raises(bd.BenchError, match=r"newer.*update"):
        Result.load(path)
    with pytest.raises(bd.BenchError, match="can't be read"):
        Result.load(tmp_path / "absent.json")


@pytest.mark.parametrize("content", [b"", b"{", b"PAR1\x15\x04\xff"])
def test_result_load_of_no_json_says_so_without_the_content(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(bd.BenchError, match=r"expected a result file; found no JSON; score again") as refused:
        Result.load(path)
    assert "Error(" not in str(refused.value)


def test_what_it_says() -> None:
    text = str(result_of())
    assert "pbench, protocol released (version 1)" in text
    assert "no average" in text
    assert "3 rows scored; the number of rows of the source was not recorded" in text
    assert "repeated_id" in text
    assert "30.00" in text


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"rows": (17, 6338)}, "not comparable to published numbers: subset (17 of 6,338 rows)"),
        ({"rows": (35, 35)}, "35 rows were scored, the published test set has 6,338"),
        ({"rows": (6338, 6338)}, "the rows are not those of the published test set"),
        ({"protocol": "card"}, "no published results exist for the protocol card"),
        ({"thresholds": [0.5]}, "the thresholds are not those of the protocol"),
        ({"on_fault": "skip-and-report", "faults": 2}, "with faults were left out (malformed_mask: 2)"),
        ({"on_fault": "count-as-wrong", "faults": 2}, "faulty predictions were counted as wrong (malformed_mask: 2)"),
        ({"missing": "empty", "absent": 1}, "1 row without a prediction: counted as empty predictions"),
        ({"on_fault": "skip-and-report", "absent": 1234}, "1,234 rows without a prediction: left out"),
        ({"on_fault": "count-as-wrong", "absent": 3}, "3 rows without a prediction: counted as wrong"),
    ],
)
def test_verdict_says_why_a_result_is_not_comparable_and_what_became_of_missing_rows(
    changes: dict[str, Any], line: str
) -> None:
    result = result_of(draws=0)
    scored, expected = changes.get("rows", (35, 35))
    headline = "accuracy" if changes.get("protocol") == "card" else "average"
    faults = {"malformed_mask": {"count": changes["faults"], "examples": []}} if "faults" in changes else {}
    settings = {**result.settings, **{name: changes.get(name) for name in ("missing", "on_fault", "thresholds")}}
    result = replace(
        result, dataset={**result.dataset, "source": "x", "rows": {"scored": scored, "expected": expected}},
        protocol={**result.protocol, "name": changes.get("protocol", "released")}, settings=settings, faults=faults,
        predictions={**result.predictions, "missing": changes.get("absent")}, headline=headline,
    )  # fmt: skip
    assert line in str(result)
    assert line in html.unescape(result._repr_html_())
    assert ("without a prediction" in str(result)) == ("absent" in changes)


def test_what_the_intervals_resample(tmp_path: Path) -> None:
    result = result_of()
    for text in (str(result), result._repr_html_()):
        assert "intervals resample only 3 rows: so few that they mean little" in text
    for statistics, said in (
        ({"unit": "image", "clusters": 2, "draws": 10, "seed": 0}, "intervals resample only 2 images: so few"),
        ({"unit": "tces", "clusters": 2918, "draws": 10, "seed": 0}, "intervals resample 2,918 sets\n"),
        ({"unit": "video", "draws": 10, "seed": 0}, "intervals resample videos\n"),
    ):
        assert said in str(replace(result, statistics=statistics))
    assert "resample" not in str(replace(result, statistics={"unit": "row", "clusters": 3, "draws": 0, "seed": 0}))
