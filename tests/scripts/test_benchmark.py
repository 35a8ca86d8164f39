"""The benchmark's face: what it runs, writes and refuses. How long anything takes is nobody's business here."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import benchmark
import pytest
from bench import clock, obvious, suite_masks, suite_pbench
from pycocotools import mask as coco
from rich.console import Console

import bench_datasets as bd
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.masks import available_engines

SWEEPS = {
    "instances": [{"x": 1, "seconds": {"pycocotools loop": 1e-4, "new": 2e-4}}, {"x": 10, "seconds": {"new": 1e-3}}],
    "megapixels": [{"x": 0.3, "seconds": {"pycocotools loop": 1e-4}}],
    "bytes": [{"x": 60.0, "kind": "smooth", "seconds": {"pycocotools loop": 1e-6}}],
}


def rle(*pixels: int) -> dict[str, Any]:
    """A mask one pixel high."""
    runs, value = [], 0
    for pixel in pixels:
        if pixel == value and runs:
            runs[-1] += 1
        elif pixel == value:
            runs.append(1)
        else:
            runs += [0, 1] if not runs else [1]
            value = pixel
    return coco.frPyObjects({"size": [1, len(pixels)], "counts": runs}, 1, len(pixels))


class TestObviousLoop:
    def test_one_of_two_found_exactly(self) -> None:
        true = [rle(1, 1, 0, 0, 0), rle(0, 0, 0, 1, 1)]
        assert obvious.score_row(true, [rle(1, 1, 0, 0, 0)], obvious.THRESHOLDS) == (pytest.approx(2 / 3), 0.5)

    def test_a_duplicate_goes(self) -> None:
        true = [rle(1, 1, 0, 0, 0)]
        assert obvious.score_row(true, true * 2, obvious.THRESHOLDS) == (pytest.approx(1.0), 1.0)

    def test_iou_of_six_tenths(self) -> None:
        f1, union = obvious.score_row([rle(1, 1, 1, 1, 1)], [rle(1, 1, 1, 0, 0)], obvious.THRESHOLDS)
        assert f1 == pytest.approx(0.3)
        assert union == pytest.approx(0.6)

    def test_no_prediction(self) -> None:
        assert obvious.score_row([rle(1, 0)], [], obvious.THRESHOLDS) == (0.0, 0.0)

    @pytest.mark.parametrize("engine", available_engines())
    def test_scores_as_the_package_does(self, engine: str) -> None:
        rows = suite_pbench.make_rows(24, 6, 0.02, PBENCH_LEVELS)
        theirs = obvious.macro_f1(rows.rows, rows.predicted)
        ours = suite_pbench._summed_up(suite_pbench._score(rows, engine))
        assert set(theirs) == set(PBENCH_LEVELS)
        assert all(0 < value < 1 for value in theirs.values())
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_hashes_are_left_out_and_back_again() -> None:
    rows = suite_pbench.make_rows(4, 2, 0.01, ("level_0",))
    without = suite_pbench._without_hashes(rows, "pycocotools")
    with_them = suite_pbench._score(rows, "pycocotools")
    assert set(without["row_sha256"]) == {""}
    assert all(len(value) == 64 for value in with_them["row_sha256"])
    assert without["matched_intersection"][:] == with_them["matched_intersection"][:]


def test_rows_are_multiplied_under_other_keys() -> None:
    rows = suite_pbench.make_rows(4, 2, 0.01, ("level_0", "level_3"))
    truth, answers = suite_pbench._grown(rows.truth, 10), suite_pbench._grown(rows.answers, 10)
    assert len(truth) == 10
    assert len(set(truth["key"])) == len(set(truth["id"])) == 10
    assert truth["key"] == answers["key"]
    assert len(bd.score("pbench", truth, answers)) == 10


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    rows = suite_pbench.make_rows(20, 2, 0.01, ("level_0",))
    (found,) = suite_pbench._memory(rows, [40])
    assert found["rows"] == found["scored"] == 40
    assert found["data_mb"] > 0
    assert found["all_mb"] >= 0


def test_cases_take_turns() -> None:
    calls: list[str] = []
    times = clock.alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    order = [name for k, name in enumerate(calls) if k == 0 or calls[k - 1] != name]
    assert order == ["a", "b"] * 3
    assert set(times) == {"a", "b"}


@pytest.mark.parametrize(
    ("value", "shown"), [(2.5, "2.5 s"), (93.4, "93 s"), (0.00312, "3.1 ms"), (2e-5, "20 us"), (3e-7, "0.3 us")]
)
def test_seconds(value: float, shown: str) -> None:
    assert clock.seconds(value) == shown


def test_ratio() -> None:
    assert [clock.ratio(value) for value in (35.2, 1.234, None)] == ["35", "1.2", "-"]


class TestCommand:
    def test_unknown_suite(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as error:
            benchmark.main(["mask"])
        assert error.value.code == 2
        assert "expected suites among pbench, instancebench, pvsg, masks, whole, got mask" in capsys.readouterr().err

    def test_plot_without_masks(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as error:
            benchmark.main(["pbench", "--plot", "x.png"])
        assert error.value.code == 2
        assert "--plot" in capsys.readouterr().err

    def test_writes_json(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seen: dict[str, Any] = {}

        def run(console: Console, *, quick: bool, seed: int) -> dict[str, Any]:
            seen.update(quick=quick, seed=seed)
            return {"cases": []}

        monkeypatch.setattr(suite_pbench, "run", run)
        assert benchmark.main(["pbench", "--quick", "--seed", "5", "--json", str(tmp_path / "b.json")]) == 0
        report = json.loads((tmp_path / "b.json").read_text())
        assert seen == {"quick": True, "seed": 5}
        assert report["pbench"] == {"cases": []}
        assert report["environment"]["packages"]["pycocotools"] in capsys.readouterr().out

    def test_plot(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        if importlib.util.find_spec("matplotlib") is None:
            pytest.skip("matplotlib is not installed")
        monkeypatch.setattr(suite_masks, "run", lambda console, **_: {"sweeps": SWEEPS})
        assert benchmark.main(["masks", "--plot", str(tmp_path / "p.png")]) == 0
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")

    def test_plot_without_matplotlib(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(suite_masks, "run", lambda console, **_: {"sweeps": SWEEPS})
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert benchmark.main(["masks", "--plot", str(tmp_path / "p.png")]) == 0
        assert not (tmp_path / "p.png").exists()
        assert "matplotlib is not installed" in capsys.readouterr().out


def test_tables_name_every_peer() -> None:
    stream = io.StringIO()
    case = {
        "case": "5 pairs", "task": "pairs", "kind": "smooth", "masks": 5, "size": [3, 4], "bytes_per_mask": 9.0,
        "seconds": {"pycocotools loop": 0.01, "fast": 0.005}, "ratio": {"pycocotools loop": 1.0, "fast": 2.0},
    }  # fmt: skip
    suite_masks._print(Console(file=stream, width=120), [case], ["pycocotools loop", "fast", "absent"])
    text = stream.getvalue()
    assert "10 ms" in text
    assert [cell.strip() for cell in text.splitlines()[-2].split("│")][-3:-1] == ["2", "-"]
