"""`merge`: the parts of a scoring into one run."""

from __future__ import annotations

from typing import Annotated

import typer

from bench_datasets.cli import options
from bench_datasets.cli.console import working


def merge(
    parts: Annotated[list[str], typer.Argument(metavar="DIR...", help="Folders of parts, or the parts themselves.")],
    folder: Annotated[str, typer.Option("--out", metavar="DIR", help="Write scores.parquet and result.json there.")],
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="COLUMN", help="Numbers for each value of it, too. Repeatable.")
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="20,50,100", help="PVSG: ranks up to which triplets count.")
    ] = None,
    draws: options.Draws = 10_000,
    seed: options.Seed = 0,
    every: options.Every = False,
    as_json: options.Json = False,
) -> None:
    """Join the parts of one scoring; the files are those that one process would have written.

    Example: bench-datasets merge parts --out run
    """
    from bench_datasets import execution
    from bench_datasets.cli.tables import show_run
    from bench_datasets.results.run_files import write_run
    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.provenance import provenance_of

    with working("joining the parts"):
        scores = execution.merge(parts)
        benchmark = (provenance_of(scores) or {})["benchmark"]
        ranks = options.ranks_of(benchmark, k)
        result = summarize(benchmark, scores, by=list(dict.fromkeys(by or ())), draws=draws, seed=seed, **ranks)
    files = write_run(scores, result, folder)
    show_run(result, files, as_json=as_json, every=every, by=by or ())
