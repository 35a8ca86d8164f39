"""`write_report`: runs in, one HTML file out."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench_datasets._util.atomic import whole_file
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.report.embed import ALPHABET, LIMIT, Pictures, script_json
from bench_datasets.report.inputs import Material
from bench_datasets.report.page import render
from bench_datasets.report.page_data import Content, Panel
from bench_datasets.report.runs import Run, open_runs
from bench_datasets.report.section import Section
from bench_datasets.results.comparability import common_ranks
from bench_datasets.results.compare import Comparison, compare

MARGIN = 60_000
"""Bytes that are left free for what is not counted beforehand."""

CAPTION = 240
"""Characters of a caption in the list of all rows; rows with a picture have all of theirs."""


def write_report(
    runs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] = "report.html",
    *,
    names: Sequence[str] | None = None,
    data: str | None = None,
    predictions: Sequence[str] = (),
    split: str = "test",
    images: bool = True,
    assets: bool = False,
    draws: int = 10_000,
    seed: int = 0,
    limit: int = LIMIT,
) -> Path:
    """Write one self-contained page about a run, or about several runs side by side.

    Args:
        runs: run folders or score files, of one benchmark, protocol and truth.
        out: the file; it appears whole or not at all.
        names: what to call the runs; by default their folders' names.
        data: where the truth is (a folder, a URL, `sample`), for expressions, masks and images.
        predictions: each run's predictions, in the runs' order, for masks.
        split: of the truth.
        images: whether to look for images.
        assets: put the pictures that do not fit into a folder beside the file.
        draws: of the comparison's bootstrap, and permutations of its test.
        seed: of both.
        limit: bytes the file may have.

    Returns:
        The file.

    Raises:
        BenchError: the runs do not belong together, or truth or predictions are not theirs.

    Example:
        >>> write_report(["demo/careful"], "careful.html", data="sample")                    # doctest: +SKIP
    """
    opened = open_runs(runs, names)
    target = Path(out)
    if target.is_dir():
        target = target / "report.html"
    material = Material(opened, data, predictions, split=split, images=images) if data or predictions else None
    section = get_benchmark(opened[0].result.benchmark).report_section()
    content: Content = section.build(opened, material)
    comparison: Comparison | str | None = None
    if len(opened) > 1:
        try:
            comparison = compare(
                {run.name: run.scores for run in opened}, every=False, k=common_ranks([r.result for r in opened]),
                draws=draws, permutations=draws, seed=seed,
            )  # fmt: skip
        except BenchError as error:  # rows are the same, but not what was asked about them
            comparison = str(error)
    page = _data(opened, content, shown=CAPTION)
    for shorter in (120, 60, 24, 0):
        if len(script_json(page).encode()) < limit * 0.6:
            break
        page = _data(opened, content, shown=shorter)
    command = _command(runs, names, data, predictions, split, assets=assets)
    bare = len(render(opened, content, page, [], comparison, command, assets=assets).encode())
    if bare > limit:
        raise BenchError(f"report: {bare:,} bytes without a picture, {limit:,} allowed; report fewer runs or rows")
    folder = target.with_name(f"{target.stem}_assets") if assets else None
    pictures = Pictures(limit - bare - MARGIN, folder)
    drawings: list[str] = []
    if material is not None and material.plans:
        page["pictures"], drawings = _pictures(section, opened, material, content, pictures, page)
        page["images"] = pictures.known
    text = render(opened, content, page, drawings, comparison, command, assets=assets)
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8"))
    return target


def _data(runs: Sequence[Run], content: Content, *, shown: int) -> dict[str, Any]:
    captions = [text if len(text) <= shown else f"{text[:shown]}…" if shown else "" for text in content.rows["caption"]]
    return {
        "benchmark": runs[0].result.benchmark,
        "unit": content.unit,
        "alphabet": ALPHABET,
        "names": [run.name for run in runs],
        "groups": content.groups,
        "group_title": content.group_title,
        "kinds": [[kind.name, kind.meaning] for kind in content.kinds],
        "rows": {**content.rows, "caption": captions},
        "runs": content.runs,
        "headlines": [[run.result.headline, _finite(run)] for run in runs],
        "slider": content.slider,
        "pictures": {},
        "images": {},
    }


def _finite(run: Run) -> float | None:
    metric = run.result.metrics.get(run.result.headline or "")
    return metric.value if metric is not None and math.isfinite(metric.value) else None


FIRST, BATCH = 48, 252
"""Rows whose pictures are drawn at a time: each lot is a walk through the source's images."""

INLINE = 300
"""Rows that have pictures in the page itself; more make no better gallery."""


def _pictures(
    section: Section,
    runs: Sequence[Run],
    material: Material,
    content: Content,
    pictures: Pictures,
    page: dict[str, Any],
) -> tuple[dict[str, Any], list[str]]:
    """Pictures of the most telling rows, as many as fit; by number of the row."""
    keys = content.rows["key"]
    place = {key: i for i, key in enumerate(keys)}
    found: dict[str, Any] = {}
    drawings: list[str] = []
    full = 0
    order = content.order if pictures.folder is not None else content.order[:INLINE]
    for first, stop in pairwise([0, *range(min(FIRST, len(order)), len(order), BATCH), len(order)]):
        some = [keys[i] for i in order[first:stop]]
        for run, number in zip(runs, range(len(runs)), strict=True):
            material.verify(run, number, set(map(section.truth_key, some)))
        for key, panels, drawn in section.panels(runs, material, some):
            entry = _entry(panels, pictures, len(drawn) + len(content.rows["caption"][place[key]]) * 2)
            if entry is None:
                full += 1
                continue
            if drawn:
                entry["drawing"] = len(drawings)
                drawings.append(drawn)
            page["rows"]["caption"][place[key]] = content.rows["caption"][place[key]]
            found[str(place[key])] = entry
        if full > 3 and pictures.folder is None:
            break
    return found, drawings


def _entry(panels: Sequence[Panel], pictures: Pictures, extra: int) -> dict[str, Any] | None:
    items = []
    for panel in panels:
        layers = [panel.truth, *(layer for pair in panel.runs for layer in pair)]
        given = [*([panel.base] if panel.base else []), *layers]
        names = pictures.add_all(given)
        if names is None:
            return None
        pictures.left -= sum(map(len, panel.facts)) + 2 * len(panel.caption) + 120
        base = names.pop(0) if panel.base else None
        items.append({
            "caption": panel.caption, "size": list(panel.size), "base": base, "truth": names[0],
            "runs": [[names[1 + 2 * k], names[2 + 2 * k], fact] for k, fact in enumerate(panel.facts)],
        })  # fmt: skip
    pictures.left -= extra
    return {"panels": items}


def _command(
    runs: Sequence[str | os.PathLike[str]], names: Sequence[str] | None, data: str | None, predictions: Sequence[str],
    split: str, *, assets: bool,
) -> str:  # fmt: skip
    """The command that makes this page again, with the places as given."""
    words = ["bench-datasets", "report", *(os.fspath(run) for run in runs)]
    for name in names or ():
        words += ["--name", name]
    if data:
        words += ["--data", data]
    for place in predictions:
        words += ["--predictions", place]
    if split != "test":
        words += ["--split", split]
    return " ".join(map(shlex.quote, [*words, *(["--assets"] if assets else [])]))
