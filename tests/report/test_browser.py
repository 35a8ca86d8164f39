"""The page in a browser: no error, the slider's number is Python's at every threshold, filters, keys, hostile texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.protocol import get_protocol
from bench_datasets.benchmarks.pbench.statistics import read_scores
from bench_datasets.results.error_kinds import find_errors
from bench_datasets.results.summarize import read_table

from ..support.browser import Browser
from ..support.report_runs import HOSTILE, Hostile, Runs

STEPS = range(5, 101)


def opened(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.until("return document.readyState === 'complete' && typeof window.report === 'object'")


def values(browser: Browser, run: int, everything: bool = False) -> list[float]:
    """The page's own numbers at every step."""
    script = "return [...Array(96).keys()].map((k) => report.headline(arguments[0], k + 5, arguments[1]))"
    return [float(v) for v in browser.run(script, run, everything)]


def shown(browser: Browser) -> list[str]:
    return list(browser.run("return [...document.querySelectorAll('.card')].map((c) => c.dataset.row)"))


@pytest.fixture(scope="module")
def page(make_runs: Callable[..., Runs], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs("pbench", "careful", "hasty", "crowd_shy").report(tmp_path_factory.mktemp("page") / "r.html")


def test_browser_logs_no_error(browser: Browser, page: Path) -> None:
    opened(browser, page)
    assert len(shown(browser)) == 24
    broken = "return [...document.images].filter((i) => i.complete && !i.naturalWidth).length"
    assert browser.run(broken) == 0
    assert browser.run("return [...document.images].every((i) => i.alt.length > 0)")
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.log() == []


@pytest.mark.parametrize("protocol", [None, "paper"])
def test_the_slider_is_python(
    browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path, protocol: str | None
) -> None:
    runs = make_runs("pbench", "careful", "hasty", "crowd_shy", protocol=protocol)
    opened(browser, runs.report(tmp_path / "r.html"))
    for number, scores in enumerate(runs.scores.values()):
        mine = values(browser, number)
        for k, value in zip(STEPS, mine, strict=True):
            expected = bd.summarize("pbench", scores, thresholds=[k / 100], draws=0).metrics["average"].value
            assert value == expected, (number, k)  # to the last bit
    browser.run("report.move(62)")
    texts = browser.run("return [...document.querySelectorAll('#recomputed b')].map((b) => b.textContent)")
    assert texts == [f"{100 * values(browser, run)[62 - 5]:.2f}" for run in range(3)]


def test_the_slider_of_unions(browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    """The card's accuracy: right or wrong at the threshold that is set."""
    runs = make_runs("pbench", "hasty", "crowd_shy", protocol="card")
    opened(browser, runs.report(tmp_path / "r.html"))
    for number, scores in enumerate(runs.scores.values()):
        found = read_scores(read_table(scores, BENCHMARK),
                            get_protocol("card"))  # fmt: skip
        rows = [i for i, level in enumerate(found.levels.tolist()) if level != "dense"]
        iou = []
        for i in rows:
            union = int(found.left[i] + found.right[i] - found.shared[i])
            nothing = not found.true[i] and not found.raw[i]
            iou.append(1.0 if nothing else int(found.shared[i]) / union if union else 0.0)
        mine = values(browser, number)
        assert mine == [sum(v >= k / 100 for v in iou) / len(iou) for k in STEPS]
        assert mine[50 - 5] == bd.summarize("pbench", scores, draws=0).metrics["accuracy"].value


def test_the_slider_of_sets(browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    """P@t and All@t, over three runs of a model and over one."""
    runs = make_runs("instancebench", "careful", "hasty")
    opened(browser, runs.report(tmp_path / "r.html"))
    for number, scores in enumerate(runs.scores.values()):
        grid = [k / 100 for k in STEPS]
        metrics = bd.summarize("instancebench", scores, thresholds=grid, draws=0).metrics
        assert values(browser, number) == pytest.approx([metrics[f"p@{t:g}"].value for t in grid], abs=1e-15)
        assert values(browser, number, True) == pytest.approx([metrics[f"all@{t:g}"].value for t in grid], abs=1e-15)


@pytest.mark.parametrize("protocol", ["official", "volume", "card"])
def test_the_slider_of_relations(
    browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path, protocol: str
) -> None:
    runs = make_runs("pvsg", "careful", "hasty", protocol=protocol)
    opened(browser, runs.report(tmp_path / "r.html"))
    grid = [k / 100 for k in STEPS]
    for rank in (1, 20):
        browser.run(
            "const box = document.getElementById('rank'); box.value = arguments[0];"
            "box.dispatchEvent(new Event('input'))", rank,
        )  # fmt: skip
        for number, scores in enumerate(runs.scores.values()):
            metrics = bd.summarize("pvsg", scores, thresholds=grid, k=(rank,), draws=0).metrics
            assert values(browser, number) == [metrics[f"R@{rank}/{t:g}"].value for t in grid]


def test_the_headlines_thresholds_are_shaded(browser: Browser, page: Path) -> None:
    opened(browser, page)
    shaded = browser.run(
        "const b = document.querySelector('#curve .band'), h = document.getElementById('here');"
        "report.move(50); const low = Number(h.getAttribute('x1')); report.move(95);"
        "const x = Number(b.getAttribute('x')), w = Number(b.getAttribute('width'));"
        "return [x - low, x + w - Number(h.getAttribute('x1'))]"
    )
    assert shaded == pytest.approx([-1, 1], abs=0.01)
    assert "the mean over 10 thresholds" in browser.run("return document.getElementById('slider-words').textContent")


def test_sums_are_exact(browser: Browser, page: Path) -> None:
    opened(browser, page)
    for numbers in ([0.1] * 10, [1e100, 1.0, -1e100, 1e-20], [2.0**53, 1.0, 2.0**-60], [], [-0.3, 0.1, 0.2]):
        assert browser.run("return report.fsum(arguments[0])", numbers) == math.fsum(numbers)


def test_kinds_filter_the_gallery(browser: Browser, page: Path, make_runs: Callable[..., Runs]) -> None:
    opened(browser, page)
    runs = make_runs("pbench", "careful", "hasty", "crowd_shy")
    names = browser.run("return [...document.querySelectorAll('[data-errors]:not([hidden]) .kind')].map(b => b.title)")
    errors = find_errors("pbench", runs.scores["careful"])
    assert names == [kind.meaning for kind in errors.kinds]
    for k, kind in enumerate(errors.kinds):
        if kind.name in ("merged", "split", "missed", "poor_boundary", "wrong_instance", "extra"):
            continue  # these may move where the masks are looked at
        rows = sum(count > 0 for count in errors.table[kind.name].to_pylist())
        browser.run("report.choose({kinds: 1 << arguments[0], limit: 999})", k)
        assert len(browser.run("return report.rows()")) == rows
    browser.run("report.choose({kinds: 0})")
    browser.click("[data-errors]:not([hidden]) .cell")
    assert browser.run("return report.state.kinds > 0 && report.state.group >= 0")
    cell = browser.run("return document.querySelector('[data-errors]:not([hidden]) .cell').title")
    assert cell.endswith(f" in {len(shown(browser))} rows")
    browser.click("#chips .chip")
    browser.click("#chips .chip")
    assert browser.run("return report.rows().length") == 35
    browser.click("[data-errors]:not([hidden]) .group")
    groups = browser.run("return report.state.group")
    assert groups == 0
    assert browser.log() == []


def test_orders_and_search(browser: Browser, page: Path) -> None:
    opened(browser, page)
    data = browser.run("return JSON.parse(document.getElementById('data').textContent)")
    score = [run["score"] for run in data["runs"]]
    worst = browser.run("return report.rows()")
    ranked = [score[0][i] for i in worst if score[0][i] >= 0]
    assert ranked == sorted(ranked)
    browser.run("report.choose({run: 1, a: 0, b: 1, sort: 'change'})")
    changes = [abs(score[1][i] - score[0][i]) for i in browser.run("return report.rows()") if score[1][i] >= 0]
    assert changes == sorted(changes, reverse=True)
    assert browser.run("return document.querySelectorAll('.card')[0].querySelectorAll('.stage').length") == 2
    browser.run("report.choose({sort: 'near'})")
    first = browser.run("return report.rows()[0]")
    near = [abs(data["alphabet"].index(c) + 0.5 - 50) for c in data["runs"][1]["iou"][first]]
    every = [abs(data["alphabet"].index(c) + 0.5 - 50) for text in data["runs"][1]["iou"] for c in text]
    assert min(near) == min(every)
    browser.click("#find")
    browser.type(*"BaLLoon")
    found = browser.run("return report.rows()")
    assert 0 < len(found) < 35
    assert all("balloon" in data["rows"]["caption"][i].lower() for i in found)


def test_the_keyboard(browser: Browser, page: Path) -> None:
    opened(browser, page)
    state = "return JSON.stringify([report.state.run, report.state.layers, report.state.at])"
    before = browser.run(state)
    browser.type("2", "d", "]", "]")
    assert browser.run("return [report.state.run, report.state.layers.difference, report.state.at]") == [1, True, 52]
    browser.type("1", "d", "t", "p", "[", "[")
    assert browser.run(state) == before
    browser.type("/", "j", "a", "r")
    assert browser.run("return report.state.query") == "jar"
    assert browser.run("return report.state.layers.truth") is True  # keys in a field are text
    browser.type("Escape")
    browser.run("document.querySelector('.card').focus()")
    browser.type("ArrowRight")
    assert browser.run("return document.activeElement === document.querySelectorAll('.card')[1]")
    browser.type("Enter")
    assert browser.run("return document.getElementById('big').open")
    second = browser.run("return report.state.open")
    browser.type("ArrowRight")
    assert browser.run("return report.state.open") != second
    browser.type("ArrowLeft")
    assert browser.run("return report.state.open") == second
    browser.type("Escape")
    browser.until("return !document.getElementById('big').open && report.state.open === -1")
    assert browser.run("return document.activeElement.dataset.row") == str(second)
    assert browser.log() == []


def test_hostile_texts_are_shown(browser: Browser, hostile: Hostile, tmp_path: Path) -> None:
    opened(browser, hostile.report(tmp_path / "report.html"))
    captions = browser.run("return [...document.querySelectorAll('.card .caption')].map((c) => c.textContent)")
    assert set(captions) == set(HOSTILE)
    assert browser.run("return document.title") == f"PBench: {hostile.name}"
    assert browser.run("return document.querySelector('h1 bdi').textContent") == hostile.name
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert browser.run("return document.querySelectorAll('.cards script, .cards svg [onload], [onerror]').length") == 0
    for row in range(len(HOSTILE)):
        browser.run("report.open(arguments[0])", row)
        assert browser.run("return document.getElementById('big-caption').textContent") in HOSTILE
        assert browser.run("const b = document.getElementById('big'); return b.scrollWidth <= b.clientWidth + 1")
    browser.type("Escape")
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.log() == []  # nor did the policy have to stop anything


@pytest.mark.parametrize("benchmark", ["instancebench", "pvsg"])
def test_the_other_benchmarks(browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path, benchmark: str) -> None:
    opened(browser, make_runs(benchmark, "careful", "hasty").report(tmp_path / "r.html"))
    rows = browser.run("return report.rows()")
    browser.run("report.open(arguments[0])", rows[0])
    panels = browser.run("return document.querySelectorAll('#big-body .sheet').length")
    assert panels >= (2 if benchmark == "instancebench" else 1)
    assert browser.run("return document.querySelectorAll('#big-body svg.timeline').length") == (benchmark == "pvsg")
    assert browser.run("return [...document.images].every((i) => i.alt.length > 0)")
    assert browser.log() == []


def test_assets_load_from_files(browser: Browser, make_runs: Callable[..., Runs], tmp_path: Path) -> None:
    page = make_runs("pbench", "careful", "hasty").report(tmp_path / "page.html", limit=420_000, assets=True)
    opened(browser, page)
    browser.run(
        "report.choose({sort: 'key'}); document.querySelectorAll('img').forEach((i) => { i.loading = 'eager'; })"
    )
    loaded = (
        "const done = arguments[arguments.length - 1];"
        "return Promise.all([...document.images].map((i) => i.decode().then(() => 1, () => 0)))"
        ".then((all) => [all.length, all.reduce((a, b) => a + b, 0)])"
    )
    total, sound = browser.run(loaded)
    assert total == sound > 20
    assert browser.log() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_widths_and_themes(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.devtools("Emulation.setEmulatedMedia", features=theme)
    try:
        opened(browser, page)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        ground = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
        assert (browser.run(ground) < 60) == dark
        browser.click("#theme")
        assert (browser.run(ground) < 60) != dark
        small = "return [...document.querySelectorAll('button')].filter((b) => b.offsetParent && b.offsetHeight < 24)"
        assert browser.run(f"{small}.length") == 0
    finally:
        browser.devtools("Emulation.setEmulatedMedia", features=[])
        browser.devtools("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1,
                         mobile=False)  # fmt: skip


def test_print(browser: Browser, page: Path, tmp_path: Path) -> None:
    opened(browser, page)
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    try:
        hidden = "return ['#layers', '.bar', '#theme'].map((s) => getComputedStyle(document.querySelector(s)).display)"
        assert browser.run(hidden) == ["none"] * 3
    finally:
        browser.devtools("Emulation.setEmulatedMedia", media="")


def test_numbers_need_no_script(make_runs: Callable[..., Runs], page: Path) -> None:
    text: Any = page.read_text(encoding="utf-8").split("<script")[0]
    for scores in make_runs("pbench", "careful", "hasty", "crowd_shy").scores.values():
        assert f"{100 * bd.summarize('pbench', scores, draws=0).metrics['average'].value:.2f}" in text
