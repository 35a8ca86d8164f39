"""The page as text: self-contained, escaped, of bounded size, the same bytes each time, and honest about its runs."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.data import open_truth
from bench_datasets.report import profile, write_report
from bench_datasets.report.embed import ALPHABET, LIMIT, coded, hundredths, script_json
from bench_datasets.report.runs import open_runs
from bench_datasets.results.paper_results import published
from bench_datasets.results.run_files import write_run

from ..support.pbench_score_tables import table_of
from ..support.report_runs import HOSTILE, Hostile, Runs


class Reader(html.parser.HTMLParser):
    """The elements of a page, and what its scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.inside = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def read(page: Path) -> tuple[Reader, dict[str, Any]]:
    found = Reader(page.read_text(encoding="utf-8"))
    return found, json.loads(found.scripts[0])


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
def test_stands_alone(make_runs: Callable[..., Runs], tmp_path: Path, benchmark: str) -> None:
    page = make_runs(benchmark, "careful", "hasty").report(tmp_path / "report.html")
    found, data = read(page)
    assert page.stat().st_size <= LIMIT
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert len(found.scripts) == 2
    for tag, attributes in found.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", found.scripts[1])
    assert len(data["pictures"]) == len(data["rows"]["key"])
    for entry in data["pictures"].values():
        for panel in entry["panels"]:
            names = [panel["truth"], *(layer for run in panel["runs"] for layer in run[:2])]
            assert all(data["images"][name].startswith("data:image/png;base64,") for name in names)
            assert data["images"][panel["base"]].startswith("data:image/jpeg;base64,")


def test_the_same_bytes(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    one, two = runs.report(tmp_path / "one.html"), runs.report(tmp_path / "two.html")
    assert one.read_bytes() == two.read_bytes()


def test_hostile_texts_stay_texts(hostile: Hostile, tmp_path: Path) -> None:
    page = hostile.report(tmp_path / "report.html")
    found, data = read(page)
    assert len(found.scripts) == 2
    shown = set(data["rows"]["caption"])
    assert shown >= set(HOSTILE)
    assert data["names"] == [hostile.name]
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert "<img" not in text
    assert "<b>" not in text.replace("<b>{", "").split("<script")[0].replace('<p class="score"><b>', "")
    assert [tag for tag, attributes in found.tags if tag == "img" or "onerror" in attributes] == []


def test_json_that_nothing_breaks_out_of() -> None:
    for text in (*HOSTILE, "\ud800", "]]>", "\\u003c/script>"):
        inline = script_json({text: [text]})
        assert not set("<>&'\u2028\u2029") & set(inline)
        assert json.loads(inline) == {text: [text]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))


def test_hundredths_meet_thresholds_as_python_does() -> None:
    rng = np.random.default_rng(0)
    top, bottom = rng.integers(0, 400, 4000), rng.integers(1, 400, 4000)
    values = np.concatenate([np.minimum(top / bottom, 1), np.arange(101) / 100, np.arange(20, 101) / 100 * 1.0])
    steps = hundredths(values)
    for k in range(1, 101):
        assert np.array_equal(steps >= k, values >= k / 100)
    assert len(set(ALPHABET)) == 101
    assert [ALPHABET.index(c) for c in coded(values)] == steps.tolist()


def test_many_rows_fit(tmp_path: Path) -> None:
    """Rows with long texts: pictures of some, everything else of all, within the bytes that are allowed."""
    many = Hostile(tmp_path, [f"{k} " + "long words about a thing " * 12 for k in range(50)], rows=800)
    page = many.report(tmp_path / "report.html", limit=640_000)
    _, data = read(page)
    assert page.stat().st_size <= 640_000
    assert len(data["rows"]["key"]) == 800
    assert 48 <= len(data["pictures"]) <= 300
    assert max(map(len, data["rows"]["caption"])) > 300
    assert sorted(map(len, data["rows"]["caption"]))[400] < 250


def test_ten_thousand_rows_of_six_models_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    levels = [PBENCH_LEVELS[i % 6] for i in range(10_000)]
    for k in range(6):
        scores = Dataset(table_of(rng.integers(0, 11, 10_000) / 10, levels))
        write_run(scores, bd.summarize("pbench", scores, draws=0), tmp_path / f"model {k}")
    page = write_report(sorted(tmp_path.iterdir()), tmp_path / "report.html", draws=20)
    assert page.stat().st_size <= LIMIT
    assert len(read(page)[1]["rows"]["key"]) == 10_000


def test_pictures_beside_the_page(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    whole = read(runs.report(tmp_path / "whole.html"))[1]
    some = read(runs.report(tmp_path / "some.html", limit=420_000))[1]
    assert 0 < len(some["pictures"]) < len(whole["pictures"])
    page = runs.report(tmp_path / "beside.html", limit=420_000, assets=True)
    assert page.stat().st_size <= 420_000
    beside = read(page)[1]
    assert len(beside["pictures"]) == len(whole["pictures"])
    outside = [name for name in beside["images"].values() if not name.startswith("data:")]
    assert outside
    assert all((tmp_path / name).is_file() and name.startswith("beside_assets/") for name in outside)
    with pytest.raises(bd.BenchError, match="bytes without a picture"):
        runs.report(tmp_path / "tiny.html", limit=1000)
    assert not (tmp_path / "tiny.html").exists()


def test_without_truth_and_predictions(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    places = list(runs.places.values())
    bare = read(write_report(places, tmp_path / "bare.html", draws=50))[1]
    assert set(bare["rows"]["caption"]) == {""}
    assert bare["pictures"] == {}
    named = read(write_report(places, tmp_path / "named.html", data="sample", draws=50))[1]
    assert "jar" in named["rows"]["caption"]
    assert bare["runs"][0]["iou"] == named["runs"][0]["iou"]


def test_predictions_of_another_run_are_refused(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    with pytest.raises(bd.BenchError, match="expected the predictions that careful was scored on, found others"):
        write_report([runs.places["careful"]], tmp_path / "x.html", data="sample",
                     predictions=[runs.predictions["hasty"]])  # fmt: skip
    with pytest.raises(bd.BenchError, match=r"predictions: expected one per run \(1\), in their order, got 2"):
        write_report([runs.places["careful"]], tmp_path / "x.html", data="sample",
                     predictions=list(runs.predictions.values()))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_truth_that_differs_is_refused(hostile: Hostile, make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    few = Hostile(tmp_path / "few", ["other words"])
    other = Hostile(tmp_path / "other", ["other words"] * len(hostile.texts))
    for data, said in ((few.data, "2 of its rows, such as level_0/6, are not"), (other.data, "is another row")):
        with pytest.raises(bd.BenchError, match="scored on") as found:
            write_report([hostile.place], tmp_path / "x.html", data=str(data), predictions=[str(hostile.predictions)])
        assert f"run was scored on {hostile.data}, not on {data}: " in str(found.value)
        assert f"{said} there; name the data of its scores (--data)" in str(found.value)
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(bd.BenchError, match=r"rows that .* lacks"):
        open_runs([hostile.place, make_runs("pbench", "careful", "hasty").places["careful"]])
    with pytest.raises(bd.BenchError, match="runs of one benchmark, got instancebench, pbench"):
        open_runs([hostile.place, make_runs("instancebench", "careful", "hasty").places["hasty"]])


def test_numbers_that_are_not_the_scores_are_refused(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    place = make_runs("pbench", "careful", "hasty").places["careful"]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "scores.parquet").write_bytes((place / "scores.parquet").read_bytes())
    result = json.loads((place / "result.json").read_text())
    result["metrics"]["average"]["value"] = 0.99
    (copy / "result.json").write_text(json.dumps(result))
    with pytest.raises(bd.BenchError, match="its numbers are not those of the scores beside it"):
        open_runs([copy])
    (copy / "result.json").unlink()
    assert open_runs([copy])[0].result.metrics["average"].value == pytest.approx(0.8589, abs=1e-4)


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_profiles(make_runs: Callable[..., Runs], tmp_path: Path, benchmark: str, suffix: str) -> None:
    runs = make_runs(benchmark, "careful", "hasty")
    results = {f"$x^{{{name}}}$ <b>": bd.Result.load(place) for name, place in runs.places.items()}
    one, two = (profile(results, tmp_path / f"{name}{suffix}") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size > 5000
    assert one.read_bytes()[:4] in (b"<?xm", b"\x89PNG", b"%PDF")


def test_profiles_that_make_no_sense(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    results = [bd.Result.load(make_runs(name, "careful", "hasty").places["careful"]) for name in ("pbench", "pvsg")]
    with pytest.raises(bd.BenchError, match="of one benchmark and protocol, got 2 kinds"):
        profile(dict(zip("ab", results, strict=True)), tmp_path / "x.svg")
    with pytest.raises(bd.BenchError, match=r"ends in \.svg, \.png, \.pdf, got x\.gif"):
        profile({"a": results[0]}, tmp_path / "x.gif")
    with pytest.raises(bd.BenchError, match="got 0 kinds"):
        profile({}, tmp_path / "x.svg")


def test_what_the_page_explains(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    """Where the headline lies, whose the ticks are, what codes mean; the legend above what it is of."""
    runs = make_runs("pbench", "careful", "hasty")
    text = runs.report(tmp_path / "report.html").read_text(encoding="utf-8")
    _, data = read(tmp_path / "report.html")
    assert data["slider"]["band"] == [50, 95]
    assert "it is the mean over 10 thresholds from 0.50 to 0.95 (shaded)" in data["slider"]["note"]
    assert text.index('<ul class="key"') < text.index('id="cards"')
    assert "a row without ground truth masks" in text
    assert "no_truth, 2 times" in text
    models = published("pbench")["models"]
    table = text[text.index("Published results and these runs as a table") : text.index("</details>")]
    for model, parts in models.items():
        assert model in table
        assert f"<td>{parts['dense']:.2f}</td>" in table
    assert "intervals resample 35 rows" in text
    assert "p &lt; .001" in text or re.search(r"p \.\d{3}", text)


def test_one_scale_for_all_errors(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    text = runs.report(tmp_path / "report.html").read_text(encoding="utf-8")
    first = text[text.index('data-errors="0"') : text.index('data-errors="1"')]
    cells = re.findall(r'--heat:([\d.]+)">(?:<button[^>]*>|<span[^>]*>)([\d,]+)<', first)
    most = max(int(count.replace(",", "")) for _, count in cells)
    assert len({count for _, count in cells}) > 2
    for heat, count in cells:
        assert float(heat) == pytest.approx((int(count.replace(",", "")) / most) ** 0.5, abs=1e-3)


def test_an_opened_row_has_its_pairs(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    runs = make_runs("pbench", "careful", "hasty")
    _, data = read(runs.report(tmp_path / "report.html"))
    scores = {row["key"]: row for row in runs.scores["hasty"]}
    seen = 0
    for i, entry in data["pictures"].items():
        row = scores[data["rows"]["key"][int(i)]]
        facts = entry["panels"][0]["runs"][1][2]
        pairs = zip(row["matched_truth"], row["matched_prediction"], row["matched_intersection"], row["matched_union"],
                    strict=True)  # fmt: skip
        for true, given, shared, whole in sorted(pairs)[:8]:
            assert f"{true}–{given} {shared / whole:.3f}" in facts
            seen += 1
        assert ("truth without a prediction" in facts) == (len(row["matched_truth"]) < row["true_count"])
    assert seen > 30


def test_an_opened_relation_tells_how_its_tubes_fit(make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    """Beside each frame's pictures: the IoU of subject and object there, and over all frames, counted by pixels."""
    runs = make_runs("pvsg", "careful", "hasty")
    _, data = read(runs.report(tmp_path / "report.html"))
    truth = {row["key"]: row for row in open_truth("pvsg", "sample")}
    answers = {row["key"]: row for row in bd.read_predictions("pvsg", runs.predictions["careful"])}

    def pixels(tube: dict[str, Any]) -> dict[int, Any]:
        return {frame: coco.decode(mask) > 0 for frame, mask in zip(tube["frames"], tube["masks"], strict=True)}

    def iou(one: dict[int, Any], other: dict[int, Any], frames: set[int]) -> float:
        nothing = np.zeros_like(next(iter(one.values())))
        pairs = [(one.get(frame, nothing), other.get(frame, nothing)) for frame in frames]
        return float(sum((a & b).sum() for a, b in pairs) / sum((a | b).sum() for a, b in pairs))

    told = 0
    for i, entry in data["pictures"].items():
        key, _, number = data["rows"]["key"][int(i)].rpartition("#")
        relation = truth[key]["relations"][int(number)]
        triplets = sorted(answers[key]["pred_triplets"], key=lambda triplet: -triplet["score"])
        tubes = {tube["tube_id"]: tube for tube in answers[key]["pred_tubes"]}
        places = {one["object_id"]: k for k, one in enumerate(truth[key]["objects"])}
        for panel in entry["panels"]:
            facts = panel["runs"][0][2]
            best = re.match(r"best triplet: rank (\d+), ", facts)
            if best is None:
                shown = facts.count("subject ") + facts.count("object ")
                words = ("and no tubes of its classes do", "the closest tube of", "the closest tubes are")[shown]
                assert facts.startswith(f"no triplet overlaps, {words}")
                continue
            said = facts.split("\nIoU in this frame (in all frames): ")[1].split(", ")
            frame = int(panel["caption"].removeprefix("frame "))
            for end, text in zip(("subject_id", "object_id"), said, strict=True):
                true = pixels(truth[key]["tubes"][places[relation[end]]])
                given = pixels(tubes[triplets[int(best[1]) - 1][end]])
                here = f"{iou(true, given, {frame}):.3f}" if frame in true else "not seen"
                assert text == f"{end.removesuffix('_id')} {here} ({iou(true, given, {*true, *given}):.3f})"
                told += 1
    assert told > 20
