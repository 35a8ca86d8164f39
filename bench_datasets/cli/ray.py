"""`score --ray`: the same scores from a Ray cluster, whose nodes read Parquet themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from bench_datasets.cli.console import working


def score_there(
    benchmark: str, predictions: str, data: str | None, folder: str | None, *, beside: Mapping[str, Any], **options: Any
) -> Any:
    """Scores from the cluster that `RAY_ADDRESS` names, else from Ray on this machine.

    Args:
        benchmark: its name.
        predictions: Parquet of predictions, a file, a folder or a URL.
        data: likewise of truth rows.
        folder: where parts are written meanwhile; every node sees it. A run that is there is left as it is.
        beside: options that don't go with it, by name, and whether they were given.
        options: of `score_on_ray`.

    Raises:
        typer.BadParameter: something is missing, or doesn't go with it.
        BenchError: Ray is not installed, or as `score_on_ray`.
    """
    hint = "'--ray'"
    if data is None or data == "sample":
        raise typer.BadParameter("--data must name Parquet of truth rows that every node can open", param_hint=hint)
    if folder is None or "://" in folder:
        raise typer.BadParameter("--out must name a folder that every node sees", param_hint=hint)
    given = [name for name, is_given in beside.items() if is_given]
    if given:
        raise typer.BadParameter(f"{given[0]} does not go with it: Ray itself shares the work out", param_hint=hint)
    from bench_datasets.execution.ray import score_on_ray

    with working("scoring on Ray"):
        return score_on_ray(benchmark, data, predictions, folder, write=False, **options)
