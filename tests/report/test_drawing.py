"""The drawings: sound SVG whatever the names, and places that are those of the numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from bench_datasets.benchmarks.pvsg import report_timeline as timeline
from bench_datasets.report import drawing
from bench_datasets.report.page_data import Ladder, Lane, Point, telling
from bench_datasets.results.compare import Difference
from bench_datasets.results.result import Metric

from ..support.report_runs import HOSTILE, Hostile

NAMES = [Hostile.name, *HOSTILE[:3]]


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)


def texts(root: ET.Element) -> list[str]:
    return ["".join(item.itertext()) for item in root.iter() if item.tag.endswith(("text", "title"))]


@pytest.mark.parametrize("width", [drawing.WIDE, drawing.NARROW])
def test_drawing_ladder(width: int) -> None:
    lanes = [
        Lane(NAMES[0], [Metric(0.25, 10, (0.1, 0.5)), Metric(math.nan, 0)], [Point(NAMES[1], 75.0)]),
        Lane("all", [Metric(1.0, 1234), None], apart=True),
    ]
    root = parsed(drawing.ladder(Ladder(NAMES[2], lanes), NAMES[:2], width))
    assert {item.tag for item in root.iter()} <= {
        "svg", "title", "line", "text", "tspan", "circle", "polygon", "g"
    }  # fmt: skip
    said = texts(root)
    assert any(NAMES[0] in text for text in said)
    assert f"{NAMES[1]}: 75" in said
    assert any("n = 1,234" in text for text in said)
    assert sum(text == "–" for text in said) == 2
    grid = [float(item.get("x1")) for item in root.iter("line") if item.get("class") == "grid"]
    marks = [float(item.get("cx")) for item in root.iter("circle")]
    assert marks == pytest.approx([grid[0] + (grid[-1] - grid[0]) * share for share in (0.25, 1.0)], abs=0.2)
    ticks = [float(item.get("x1")) for item in root.iter("line") if item.get("class") == "published"]
    assert ticks == pytest.approx([grid[0] + (grid[-1] - grid[0]) * 0.75], abs=0.2)


def difference(metric: str, value: float, p: float, higher: bool = True) -> Difference:
    interval = (value - 0.1, value + 0.1)
    return Difference(("", ""), metric, 0.5, 0.5 + value, value, interval, p, p, 1, 0, 0, 10, 0.2, higher)


def test_differences_point_to_who_is_better() -> None:
    found = [difference("a/x_y", 0.2, 0.01), difference("a/z", -0.3, 0.2), difference("loss", -0.3, 0.01, False)]
    root = parsed(drawing.forest(found, NAMES[:2], (4, 5), drawing.MIDDLE))
    zero = next(float(item.get("x1")) for item in root.iter("line") if item.get("class") == "zero")
    dots = list(root.iter("circle"))
    assert [float(dot.get("cx")) > zero for dot in dots] == [True, False, True]
    assert [dot.get("class") for dot in dots] == ["run5", "unsettled", "run5"]
    said = texts(root)
    assert any(NAMES[1] in text for text in said)
    assert {"x y", "z", "loss"} <= set(said)


def test_a_timeline() -> None:
    tracks = [
        timeline.Track(0, NAMES[0], [(0, 5), (8, 20)], True, NAMES[1], {0: 1.0, 1: 0.5, 7: 0.2}, {}),
        timeline.Track(9, "short", [], False, "none", {}, {3: 0.0}),
    ]
    root = parsed(timeline.draw(NAMES[2], 10, [(2, 6)], tracks))
    bars = [(item.get("class"), float(item.get("width"))) for item in root.iter("rect")]
    step = timeline.WIDTH / 10
    assert bars == [("span truth", 4 * step), ("span hit", 5 * step), ("span hit", 2 * step)]  # cut at the film's end
    lines = [item.get("class") for item in root.iter("polyline")]
    assert lines == ["fit subject", "fit subject", "fit object"]
    assert any(NAMES[1] in text for text in texts(root))


def test_every_run_has_a_sign_of_its_own() -> None:
    shapes = [str(drawing.marker(run, 8, 8)) for run in range(drawing.SHAPES)]
    assert len({shape.replace(f"run{k}", "") for k, shape in enumerate(shapes)}) == drawing.SHAPES
    assert str(drawing.marker(drawing.SHAPES, 8, 8)) == shapes[0]


def test_telling_rows_come_first() -> None:
    scores = [[0.9, 0.1, -1.0, 0.5, 0.6], [0.9, 0.2, -1.0, 0.5, 0.0]]
    order = telling(scores, [0.4, 0.4, math.inf, 0.0, 0.2], [[0, 0, 0, 0, 1], [2, 0, 0, 0, 0]])
    assert sorted(order) == list(range(5))
    assert order[:3] == [1, 4, 3]  # worst of each run, then nearest
    assert order[-1] == 2
    assert telling([[], []], [], [[], []]) == []


def test_texts_have_their_room() -> None:
    """One run: the name and n of a part stand between its lines; the longest label ends inside the drawing."""
    lanes = [Lane(name, [Metric(1.0, 3, (1.0, 1.0))]) for name in ("level_0", "level_1", "dense")]
    root = parsed(drawing.ladder(Ladder("x", lanes), ["mini"], drawing.WIDE))
    tops = [float(line.get("y1")) for line in root.iter("line") if line.get("class") == "lane"]
    below = [float(text.get("y")) for text in root.iter("text") if text.get("class") == "n"]
    for top, n, bottom in zip(tops, below, [*tops[1:], float(root.get("height")) - 24], strict=True):
        assert top + 13 < n - 11  # the name above n
        assert n + 4 < bottom
    label = next(text for text in root.iter("text") if text.get("class") == "value")
    said = "".join(label.itertext())
    assert said == "100.0 [100.0, 100.0]"
    assert float(label.get("x")) + 7.5 * len("100.0 ") + 7 * len("[100.0, 100.0]") <= drawing.WIDE


@pytest.mark.parametrize("width", [drawing.MIDDLE, drawing.NARROW])
def test_differences_show_their_p(width: int) -> None:
    found = [difference("a/x", 0.2, 0.0637), difference("a/y", 0.1, 0.0001), difference("a/z", 0.1, math.nan)]
    said = texts(parsed(drawing.forest(found, NAMES[:2], (0, 1), width)))
    assert "p .064" in said
    assert "p < .001" in said
