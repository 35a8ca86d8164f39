"""`publish`: truth, metrics and results onto the Hub; this file has `publish results`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, remark, waits
from bench_datasets.cli.publish_dataset import (
    DryRun,
    Private,
    Yes,
    publish_dataset,
    publish_metrics,
    refuse_unseen,
    tell,
)
from bench_datasets.cli.repeated_options import Once

if TYPE_CHECKING:
    from bench_datasets.hub.results import Published

app = typer.Typer(no_args_is_help=True, help="Publish ground truth, metrics or results on the Hugging Face Hub.")


def publish_results(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A run's folder, with scores.parquet and result.json (score --out).")
    ],
    model: Annotated[str, typer.Option("--model", metavar="ORG/NAME", help="The model on the Hub.")],
    repo: Annotated[
        str, typer.Option("--repo", metavar="ORG/RESULTS", help="The dataset that holds results; made if missing.")
    ],
    run: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="The run's name; by default benchmark and protocol.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="ORG/NAME",
            help="The dataset on the Hub that holds the same rows, if the run was scored on a local copy.",
        ),
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Commit to the model's repo; by default a pull request proposes it.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a published run of the same name, and its value.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Publish a partial or not comparable result, too; the entry says so."),
    ] = False,
    scores_only: Annotated[bool, typer.Option("--scores-only", help="Leave the model's repo alone.")] = False,
    private: Private = None,
    with_source: Annotated[
        bool,
        typer.Option(
            "--with-source",
            help="Publish the path or URL of the ground truth, too; by default only the name of a dataset on the Hub.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: options.Json = False,
) -> None:
    """Publish a run: scores and numbers into a results repo, an entry and a table into the model's repo.

    Example: bench-datasets publish results run --model ORG/NAME --repo ORG/RESULTS --dry-run
    """
    from bench_datasets.hub.results import publish_results as publish

    with waits():
        done = publish(
            folder,
            model=model,
            repo=repo,
            run=run,
            dataset=dataset,
            direct=direct,
            overwrite=overwrite,
            force=force,
            scores_only=scores_only,
            private=private,
            with_source=with_source,
            dry_run=dry_run,
            confirm=lambda text: _agreed(text, yes),
        )
    _tell(done, as_json, dry_run)


def _agreed(text: str, yes: bool) -> bool:
    """Whether to go on."""
    if yes:
        remark(text)
        return True
    if not sys.stdin.isatty():
        return False
    remark(text)
    return typer.confirm("Go on?", err=True)


def _tell(done: Published, as_json: bool, dry_run: bool) -> None:
    """Print the changes that were made, or would be made."""
    if as_json:
        echo(json.dumps({"dry_run": dry_run, **dataclasses.asdict(done)}, indent=1, ensure_ascii=False))
        refuse_unseen([one for one in (done.results, done.model) if one is not None])
        return
    for line in done.remarks:
        remark(line)
    tell([one for one in (done.results, done.model) if one is not None], as_json=False)
    pull: Any = getattr(done.model, "pr_url", None)
    if pull:
        from rich.text import Text

        out().print(Text(f"pull request: {pull}"), soft_wrap=True)


app.command("dataset", cls=Once)(publish_dataset)
app.command("metrics", cls=Once)(publish_metrics)
app.command("results", cls=Once)(publish_results)
