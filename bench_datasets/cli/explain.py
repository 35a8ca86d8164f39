"""`explain`: why rows have the scores they have, in words and as pictures; the worst rows, or some by key."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.benchmark import get_benchmark
from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, remark, say, worded, working
from bench_datasets.faults import BenchError, FaultError

if TYPE_CHECKING:
    from PIL import Image

    from bench_datasets.scoring.prepare import Plan

SUGGESTED = 3
"""Keys that are named where one is unknown."""


@dataclass
class _Told:
    """One row explained.

    Attributes:
        key: the row's.
        text: why it has its score, or why it has none.
        facts: the same as plain values; nothing for a row that can't be scored.
        score: the row's own, where rows were put in order by it.
        picture: the row, where it could be scored.
    """

    key: str
    text: str
    facts: dict[str, Any]
    score: float | None = None
    picture: Image.Image | None = None


def explain(
    benchmark: options.BenchmarkName,
    predictions: options.Predictions,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Rows by key, as scores and faults name them.")
    ] = None,
    data: options.Data = None,
    split: options.Split = "test",
    protocol: options.Protocol = None,
    worst: Annotated[
        int | None, typer.Option("--worst", metavar="N", min=1, help="The N rows with the lowest scores of their own.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--out", metavar="PNG", help="Draw the row there; several rows get a number before the ending."),
    ] = None,
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """Say why rows have the scores they have: rows by key, or those with the lowest scores.

    Example: bench-datasets explain pbench --worst 3 --data sample --predictions demo/pbench/careful.jsonl
    """
    if bool(keys) == (worst is not None):
        raise typer.BadParameter("expected keys of rows, or --worst N", param_hint="'KEY...'")
    if file is not None and Path(file).suffix.lower() != ".png":
        raise typer.BadParameter(f"expected a file that ends in .png, got {file!r}", param_hint="'--out'")
    chosen = options.protocol_of(benchmark, protocol)
    plan = _plan(benchmark, predictions, data, split, chosen, options.format_of(benchmark, format))
    for line in _unknown(plan):
        remark(line)
    units: dict[str, list[int]] = {}
    every = [str(key) for key in plan.labels["key"]]
    for unit, row in enumerate(plan.units.truth.tolist()):
        units.setdefault(every[row], []).append(unit)
    scores: dict[str, float] = {}
    if worst is not None:
        with working("scoring"):
            scores = _scores(plan)
        wanted = sorted(scores, key=lambda key: (scores[key], key))[:worst]
    else:
        wanted = list(dict.fromkeys(keys or ()))
        _refuse_unknown(wanted, every)
    with working("reading the images"):
        images = _images(benchmark, data, split, wanted) if file is not None else {}
    told = [
        one for key in wanted for one in _tell(plan, key, units.get(key, []), images.get(key), chosen, scores.get(key))
    ]
    written = _draw(told, file)
    if as_json:
        rows = [{"key": one.key, "score": one.score, "text": one.text, "facts": one.facts} for one in told]
        found = {"rows": len(every), "protocol": chosen, "explained": rows, "written": list(map(str, written))}
        echo(json.dumps(found, indent=1, ensure_ascii=False, default=str))
        return
    _show(told, len(every), worst, len(scores), written)


def _plan(benchmark: str, predictions: str, data: str | None, split: str, protocol: str, kind: str | None) -> Plan:
    """Pair ground truth and predictions; faults are reported row by row."""
    from bench_datasets.cli.predictions_option import read_answers
    from bench_datasets.cli.score import part_of
    from bench_datasets.scoring.prepare import make_plan

    wanted, level = options.split_of(benchmark, split)
    answers = read_answers(benchmark, predictions, kind, data)
    with working("reading the truth"):
        truth, answers = part_of(benchmark, answers, data, wanted, level)
    return make_plan(
        benchmark, truth, answers, protocol, missing="empty", on_fault="skip-and-report", whole=level is None
    )


def _unknown(plan: Plan) -> list[str]:
    """One line about predictions that name no row of the ground truth; none where all do."""
    found = [fault for fault in plan.units.faults if fault.code == "unknown_row"]
    if not found:
        return []
    what = "1 prediction names" if len(found) == 1 else f"{len(found):,} predictions name"
    first = f"{found[0].key}: {worded(found[0].text)}"
    return [f"warning: {what} no row of the ground truth and cannot be explained ({first}); `check` lists all"]


def _scores(plan: Plan) -> dict[str, float]:
    """Each row's own score, as the report's page has it; rows that count nowhere are left out."""
    import pyarrow as pa

    from bench_datasets.report.runs import Run
    from bench_datasets.results.summarize import read_table, summarize

    scores = plan.finish(plan.score(plan.everything))
    table = read_table(scores, plan.metric)
    table = table.filter(pa.compute.invert(table["skipped"]))
    if not len(table):
        raise BenchError("--worst: expected rows that can be scored, found none; `check` says why")
    run = Run("run", "", scores, table, summarize(plan.benchmark, scores, draws=0))
    page = get_benchmark(plan.benchmark).report_section()
    content = page.build([run], None)
    found: dict[str, list[float]] = {}
    for key, score in zip(content.rows["key"], content.runs[0]["score"], strict=True):
        if score >= 0:
            found.setdefault(page.truth_key(key), []).append(score)
    return {key: sum(own) / len(own) for key, own in found.items()}


def _refuse_unknown(keys: Sequence[str], known: Sequence[str]) -> None:
    """Stop at keys that no row bears.

    Raises:
        BenchError: there is one; the message names rows that may have been meant.
    """
    there = set(known)
    for key in keys:
        if key in there:
            continue
        parts = [other for other in known if other.rpartition("/")[2] == key.rpartition("/")[2]]
        near = list(dict.fromkeys([*parts, *difflib.get_close_matches(key, known, n=SUGGESTED, cutoff=0.5)]))
        meant = f"did you mean {' or '.join(near[:SUGGESTED])}?" if near else f"keys look like {known[0]}"
        raise BenchError(f"{key}: expected the key of one of {len(known):,} rows, found none such; {meant}")


def _images(benchmark: str, data: str | None, split: str, keys: Sequence[str]) -> dict[str, Any]:
    """Images of some rows by key, where they are available."""
    from bench_datasets.data import open_truth

    stream = open_truth(benchmark, data, split=options.split_of(benchmark, split)[0], images=True, streaming=True)
    if "image" not in (stream.features or {}):
        return {}
    found: dict[str, Any] = {}
    for row in stream.select_columns(["key", "image"]):
        if row["key"] in keys:
            found[row["key"]] = row["image"]
        if len(found) == len(keys):
            break
    return found


def _tell(
    plan: Plan, key: str, units: Sequence[int], image: Any, protocol: str, score: float | None
) -> list[_Told]:  # fmt: skip
    """One row explained, once for each of a model's answers to all of it."""
    from bench_datasets.display.explain import explain as why
    from bench_datasets.scoring.prepare import UnitScorer

    told = []
    for unit in units:
        row = UnitScorer(plan).attached([unit]).to_pylist()[0]
        which = _which(row) if len(units) > 1 else ""
        found: Mapping[str, Any] = {**row, "image": image}
        try:
            reason = why(plan.benchmark, found, row, protocol)
        except FaultError as error:
            missed = error.code == "missing_prediction"
            words = "no prediction; with `score --missing empty` it counts as an empty answer" if missed else str(error)
            told.append(_Told(key, f"{which}{key}: {words}" if missed else f"{which}not scored: {words}", {}, score))
            continue
        told.append(_Told(key, f"{which}{reason.text}", reason.facts, score, reason.picture))
    return told


def _which(row: Mapping[str, Any]) -> str:
    """Which of a model's answers to a row these are."""
    named = [f"{name} {row[f'pred_{name}']}" for name in ("run", "condition") if f"pred_{name}" in row]
    return f"{', '.join(named)}: " if named else ""


def _draw(told: Sequence[_Told], file: str | None) -> list[Path]:
    """Write the pictures; a row that can't be scored has none."""
    pictures = [one.picture for one in told if one.picture is not None]
    if file is None or not pictures:
        return []
    place = Path(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    names = [place.with_name(f"{place.stem}-{k + 1}{place.suffix}") for k in range(len(pictures))]
    written = names if len(pictures) > 1 else [place]
    for picture, path in zip(pictures, written, strict=True):
        picture.save(path, "PNG")
    return written


def _show(told: Sequence[_Told], rows: int, worst: int | None, scored: int, written: Sequence[Path]) -> None:
    console = out()
    if worst is not None:
        shown = len({one.key for one in told})
        apart = f", {rows - scored:,} of them without a score of their own" if scored < rows else ""
        which = "the row with the lowest score" if shown == 1 else f"the {shown:,} rows with the lowest scores"
        say(console, f"{which}, of {rows:,} row{'' if rows == 1 else 's'}{apart}", "dim")
    for number, one in enumerate(told):
        if number or worst is not None:
            console.print()
        if one.score is not None:
            say(console, f"{one.key}: row score {one.score:.4f}", "bold")
        for line in one.text.splitlines():
            say(console, line)
    for path in written:
        console.print(f"wrote {path}", markup=False, soft_wrap=True)
