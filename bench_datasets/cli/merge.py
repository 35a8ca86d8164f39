"""`merge`: the parts of a scoring into one run."""

from __future__ import annotations

from typing import Annotated

import typer

from bench_datasets.cli import choices
from bench_datasets.cli.screen import working


def merge(
    parts: Annotated[list[str], typer.Argument(metavar="DIR...", help="Folders of parts, or the parts themselves.")],
    folder: Annotated[str, typer.Option("--out", metavar="DIR", help="Write scores.parquet and result.json there.")],
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="COLUMN", help="Numbers for each value of it, too. Repeatable.")
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="20,50,100", help="PVSG: ranks up to which triplets count.")
    ] = None,
    draws: choices.Draws = 10_000,
    seed: choices.Seed = 0,
    every: choices.Every = False,
    as_json: choices.Json = False,
) -> None:
    """Join the parts of one scoring; the files are those that one process would have written.

    Example: bench-datasets merge parts --out run
    """
    from bench_datasets import engines
    from bench_datasets.cli.tables import show_run
    from bench_datasets.metrics.files import write_run
    from bench_datasets.metrics.provenance import provenance_of
    from bench_datasets.metrics.summarizing import summarize

    with working("joining the parts"):
        scores = engines.merge(parts)
        benchmark = (provenance_of(scores) or {})["benchmark"]
        ranks = choices.ranks_of(benchmark, k)
        result = summarize(benchmark, scores, by=list(dict.fromkeys(by or ())), draws=draws, seed=seed, **ranks)
    files = write_run(scores, result, folder)
    show_run(result, files, as_json=as_json, every=every, by=by or ())
