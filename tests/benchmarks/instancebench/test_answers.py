"""Answers that are no masks, several runs, interventions, matched controls: by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd

from ...support.instancebench_sets import (
    Ask,
    Tces,
    Thing,
    encode,
    line,
    predictions_of,
    read_lines,
    simple,
    truth_of,
    values,
)

FULL = line((0, 50))


def summed(sets: Sequence[Tces], lines: Sequence[Mapping[str, Any]], folder: Path, **more: Any) -> bd.Result:
    scores = bd.score("instancebench", truth_of(sets), read_lines(lines, folder), **more)
    return bd.summarize("instancebench", scores, draws=20)


def mask_keys(result: bd.Result) -> set[str]:
    other = ("oracle/", "box_acc", "transition/")
    return {key for key in result.metrics if not key.startswith(other)}


class TestBoxes:
    def lines(self) -> list[dict[str, Any]]:
        # The target's box is [0, 0, 50, 1].
        boxes = {"a-0": [0, 0, 25, 1], "a-1": [0, 0, 24.9, 1], "b-0": [-50, 0, 100, 1], "b-1": None}
        return [{"expression_id": name, "mask": None, "box": box} for name, box in boxes.items()]

    def test_accuracy_and_no_number_of_masks(self, tmp_path: Path) -> None:
        """A model that answers by boxes has no masks, also where it once finds nothing."""
        result = summed([simple("a"), simple("b")], self.lines(), tmp_path)
        assert (result.metrics["box_acc@0.5"].value, result.metrics["box_acc@0.5"].n) == (0.5, 4)
        for key in mask_keys(result) | {key for key in result.metrics if key.startswith("oracle/")}:
            assert (math.isnan(result.metrics[key].value), result.metrics[key].n) == (True, 0), key
        for part in result.slices:
            assert all(metric.n == 0 for metric in part.metrics.values()), part

    def test_answers_next_to_masks(self, tmp_path: Path) -> None:
        lines = [{**item, "mask": encode(FULL)} for item in self.lines()]
        result = summed([simple("a"), simple("b")], lines, tmp_path)
        assert (result.metrics["box_acc@0.5"].value, result.metrics["miou"].value) == (0.5, 1.0)

    def test_in_a_map_as_in_a_file(self, tmp_path: Path) -> None:
        sets = [simple("a"), simple("b")]
        given = {item["expression_id"]: item["box"] for item in self.lines()}
        rows = truth_of(sets)
        column = [[given[ask.name] for ask in tces.asks] for tces in sets]
        batch = {**{name: rows[name][:] for name in rows.column_names}, "pred_boxes": column}
        scored = bd.scorer("instancebench")(batch)
        expected = bd.score("instancebench", rows, read_lines(self.lines(), tmp_path))
        assert repr(scored["box_iou"]) == repr(expected["box_iou"][:])
        assert scored["box_iou"][0] == pytest.approx([0.5, 0.498])

    @pytest.mark.parametrize("box", [[0, 0, 0, 0], [0, 0, 1e200, 1e200], [1e299, 0, 1, 1]])
    def test_answers_not_masks_are_wrong(self, box: list[float], tmp_path: Path) -> None:
        lines = [{"expression_id": f"a-{k}", "box": box} for k in (0, 1)]
        assert summed([simple("a")], lines, tmp_path).metrics["box_acc@0.5"].value == 0.0


class TestCandidates:
    def test_ids(self, tmp_path: Path) -> None:
        alone = simple("c", things=[Thing("a", FULL)])
        crowd = simple("d", things=[*simple("d").things, Thing("z", line((0, 99)), crowd=True)])
        chosen = {"a-0": "a", "a-1": "a", "b-0": "a", "b-1": "b", "c-0": "a", "c-1": "a", "d-0": "z", "d-1": "a"}
        lines = [{"expression_id": name, "candidate_id": value} for name, value in chosen.items()]
        sets = [simple("a"), simple("b"), alone, crowd]
        result = summed(sets, lines, tmp_path)
        expected = {
            "expression_id": (4 / 6, 6), "minimal_id": (2 / 3, 3), "variant_id": (2 / 3, 3),
            "all_target_id": (1 / 3, 3), "retention": (1 / 2, 2),
        }  # fmt: skip
        for name, (value, n) in expected.items():
            metric = result.metrics[f"oracle/{name}"]
            assert (metric.value, metric.n) == (pytest.approx(value), n), name
        assert all(result.metrics[key].n == 0 for key in mask_keys(result))

    def test_missing_and_unknown_ones_are_wrong(self, tmp_path: Path) -> None:
        lines = [{"expression_id": "a-0", "candidate_id": "nobody"}]
        result = summed([simple("a")], lines, tmp_path, missing="empty")
        assert (result.metrics["oracle/expression_id"].value, result.metrics["oracle/expression_id"].n) == (0.0, 2)
        assert math.isnan(result.metrics["oracle/retention"].value)


class TestConditions:
    """Interventions, held against the answers to the original."""

    def test_answers_numbers_computed_by_hand(self, tmp_path: Path) -> None:
        donor = line((50, 100))
        sets = [
            simple("a", asks=[Ask("a-0", "minimal", "ordinal", donor=donor), Ask("a-1", "variant", "extremal")]),
            simple("b", asks=[Ask("b-0", "minimal", "ordinal", donor=donor), Ask("b-1", "variant", "extremal")]),
            simple("c"),
        ]
        names = [ask.name for tces in sets for ask in tces.asks]
        given = {
            ("0", "original"): dict.fromkeys(names, FULL) | {"b-0": line((0, 40))},
            ("0", "category_only"): {"a-0": line((0, 20)), "b-0": None},
            ("0", "text_swap"): {"a-0": line((50, 100)), "b-0": line((25, 75)), "a-1": FULL},
            ("0", "logic_explicit"): {"b-0": FULL, "c-0": line((0, 45))},
            ("0", "rotated"): {"a-0": line((0, 25)), "b-0": FULL},  # no condition of the paper's
        }
        scores = bd.score("instancebench", truth_of(sets), predictions_of(given, tmp_path))
        assert len(scores) == 3 + 2 + 2 + 2 + 2
        result = bd.summarize("instancebench", scores, draws=20)
        expected = {
            "category_only/miou": (0.2, 2),  # (.4 + 0) / 2
            "category_only/drop": (0.2 - 0.9, 2),  # the minimal ones of the same sets: 1 and .8
            "text_swap/donor_iou": ((1 + 25 / 75) / 2, 2),  # a-1 has no donor
            "text_swap/donor_preference": (0.5, 2),  # b-0 is as near to one as to the other
            "logic_explicit/delta_miou": ((0.2 - 0.1) / 2, 2),
            "rotated/delta_miou": ((-0.5 + 0.2) / 2, 2),
        }
        for key, (value, n) in expected.items():
            metric = result.metrics[f"intervention/{key}"]
            assert (metric.value, metric.n) == (pytest.approx(value), n), key
        assert result.metrics["miou"].value == pytest.approx((5 + 0.8) / 6)
        assert result.predictions["missing"] == 0
        assert result.dataset["rows"]["scored"] == 3
        assert not any("deliberation" in key for key in result.metrics)

    def test_the_original_must_be_there(self, tmp_path: Path) -> None:
        given = {("0", "text_swap"): {"a-0": FULL, "a-1": FULL}}
        with pytest.raises(bd.FaultError, match="a: predictions: no prediction for the expression a-0"):
            bd.score("instancebench", truth_of([simple("a")]), predictions_of(given, tmp_path))


class TestRuns:
    def test_mean_and_sample_deviation(self, tmp_path: Path) -> None:
        given = {
            (run, "original"): {"a-0": line((0, pixels)), "a-1": FULL}
            for run, pixels in (("0", 50), ("1", 30), ("2", 40))
        }
        scores = bd.score("instancebench", truth_of([simple("a")]), predictions_of(given, tmp_path))
        assert scores["run"][:] == ["0", "1", "2"]
        metric = bd.summarize("instancebench", scores, draws=0).metrics["miou"]
        assert metric.value == pytest.approx(0.9)  # of 1.0, .8 and .9
        assert metric.sd == pytest.approx(0.1)
        assert metric.runs == 3

    def test_one_run_is_short(self, tmp_path: Path) -> None:
        given = {("0", "original"): {"a-0": FULL, "a-1": FULL}, ("1", "original"): {"a-0": FULL}}
        with pytest.raises(bd.FaultError, match="a: predictions: no prediction for the expression a-1"):
            bd.score("instancebench", truth_of([simple("a")]), predictions_of(given, tmp_path))

    def test_duplicates_are_of_one_run(self, tmp_path: Path) -> None:
        lines = [{"expression_id": f"a-{k}", "mask": encode(FULL), "run": run} for k in (0, 1) for run in ("0", "1")]
        truth = truth_of([simple("a")])
        twice = read_lines([*lines, lines[1]], tmp_path)
        scores = bd.score("instancebench", truth, twice, on_fault="skip-and-report")
        assert dict(zip(scores["run"], scores["skipped"], strict=True)) == {"0": False, "1": True}


class TestControls:
    """Matched effects: the nearest of the same category and source, deviations pooled within the groups."""

    @staticmethod
    def tces(key: str, operation: str, pixels: int, words: int, iou: float, **more: Any) -> tuple[Tces, dict[str, Any]]:
        things = [Thing("a", line((0, pixels), width=1000)), Thing("b", line((900, 1000), width=1000))]
        asks = [
            Ask(f"{key}-0", "minimal", operation, " ".join(["w"] * words)),
            Ask(f"{key}-1", "variant", "target_evidence"),
        ]
        answer = line((0, round(pixels * iou)), width=1000)
        return Tces(key, things, asks, **more), {f"{key}-0": answer, f"{key}-1": answer}

    def effect(self, tmp_path: Path, *rows: tuple[Tces, dict[str, Any]]) -> bd.results.Metric:  # type: ignore[name-defined]
        answers = {name: mask for _, found in rows for name, mask in found.items()}
        predictions = predictions_of({("0", "original"): answers}, tmp_path)
        scores = bd.score("instancebench", truth_of([tces for tces, _ in rows]), predictions)
        return bd.summarize("instancebench", scores, draws=0).metrics["effect/ordinal-extremal"]

    def test_nearest_in_pooled_deviations(self, tmp_path: Path) -> None:
        """Areas spread by a factor of 2 within the groups, lengths hardly: a word weighs more than an area."""
        metric = self.effect(
            tmp_path,
            self.tces("t0", "ordinal", 100, 5, 0.5),
            self.tces("t1", "ordinal", 400, 5, 0.5, category="other"),
            self.tces("c0", "extremal", 100, 7, 1.0),
            self.tces("c1", "extremal", 400, 5, 0.8),
        )
        # Pooled: log area (ln 4)^2 / 2 each of the groups -> sd .98; words (0 + 2) / 2 -> sd 1; c0 is 2, c1 1.41 away.
        assert (metric.value, metric.n) == (pytest.approx(0.5 - 0.8), 1)

    def test_category_and_source_must_agree(self, tmp_path: Path) -> None:
        metric = self.effect(
            tmp_path,
            self.tces("t0", "ordinal", 100, 5, 0.5),
            self.tces("t1", "ordinal", 100, 5, 0.9, source="openimages"),
            self.tces("c0", "extremal", 100, 5, 0.6, category="other"),
            self.tces("c1", "extremal", 800, 50, 0.7),
        )
        assert (metric.value, metric.n) == (pytest.approx(0.5 - 0.7), 1)

    def test_a_control_may_serve_again_and_the_first_of_equals_serves(self, tmp_path: Path) -> None:
        metric = self.effect(
            tmp_path,
            self.tces("t0", "ordinal", 100, 5, 0.5),
            self.tces("t1", "ordinal", 100, 6, 0.7),
            self.tces("c0", "extremal", 100, 4, 1.0),
            self.tces("c1", "extremal", 100, 4, 0.2),
        )
        assert (metric.value, metric.n) == (pytest.approx(-0.4), 2)

    def test_traits_without_spread_tell_nothing(self, tmp_path: Path) -> None:
        """All treated are alike and all controls are alike, in an unlike area: only the words differ."""
        metric = self.effect(
            tmp_path,
            self.tces("t0", "ordinal", 110, 5, 0.5), self.tces("t1", "ordinal", 110, 5, 0.5),
            self.tces("t2", "ordinal", 110, 5, 0.5),
            self.tces("c0", "extremal", 700, 9, 1.0), self.tces("c1", "extremal", 700, 6, 0.6),
            self.tces("c2", "extremal", 700, 9, 1.0),
        )  # fmt: skip
        assert metric.value == pytest.approx(0.5 - 0.6, abs=2e-3)


def test_thresholds_may_be_added(tmp_path: Path) -> None:
    given = {("0", "original"): {"a-0": line((0, 30)), "a-1": FULL}}
    scores = bd.score("instancebench", truth_of([simple("a")]), predictions_of(given, tmp_path))
    plain = bd.summarize("instancebench", scores, draws=0)
    more = bd.summarize("instancebench", scores, draws=0, thresholds=[0.6, 0.61])
    found = values(more)
    assert {key: found[key] for key in ("p@0.6", "p@0.61", "all@0.6", "all@0.61")} == {
        "p@0.6": 1.0, "p@0.61": 0.5, "all@0.6": 1.0, "all@0.61": 0.0
    }  # fmt: skip
    assert math.isnan(found["identity_error@0.6"])
    assert found["correct_id_poor_mask@0.61"] == 1.0
    assert {key: repr(value) for key, value in found.items() if key in plain.metrics} == {
        key: repr(value) for key, value in values(plain).items()
    }
    for wrong in ([0.0], [1.1], [float("nan")]):
        with pytest.raises(bd.BenchError, match="thresholds"):
            bd.summarize("instancebench", scores, thresholds=wrong)


def test_words_of_a_metrics_name_say_what_is_better(tmp_path: Path) -> None:
    scores = bd.score("instancebench", truth_of([simple("a")]), predictions_of(
        {("0", "original"): {"a-0": FULL, "a-1": FULL}}, tmp_path))  # fmt: skip
    metrics = bd.summarize("instancebench", scores, draws=0).metrics
    lower = {key for key, metric in metrics.items() if not metric.higher_is_better}
    words = ("identity_error", "same_class_switch", "unresolved", "exclusion_drop")
    assert lower == {key for key in metrics if any(word in key for word in words)}
