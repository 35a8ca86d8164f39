"""`publish dataset` and `publish metrics`: truth as plain Parquet with its card, and metrics as Spaces."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, remark, waits, working
from bench_datasets.faults import BenchError

if TYPE_CHECKING:
    from bench_datasets.hub.commits import CommitResult, Plan

Private = Annotated[
    bool | None,
    typer.Option("--private/--public", help="Whether a new repo is private. Default: the owner's setting on the Hub."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Build everything, say what would change, and send nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask no question; go on as after a yes.")]


def _names(values: list[str] | None) -> list[str]:
    return [options.one_of(value, BENCHMARKS, "BENCHMARK") for value in values or ()]


def publish_dataset(
    benchmark: options.BenchmarkName,
    repo: Annotated[str, typer.Option("--repo", metavar="ORG/NAME", help="The dataset on the Hub; made if missing.")],
    data: options.Data = None,
    with_images: Annotated[
        bool,
        typer.Option(
            "--with-images", help="Send the images, too. Asks first: you may not have the right to publish them."
        ),
    ] = False,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Read no image; the rows then have no image_sha256.")
    ] = False,
    private: Private = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: options.Json = False,
) -> None:
    """Publish a benchmark's truth as Parquet that anybody loads without this package: labels and masks, no pixels.

    Example: bench-datasets publish dataset pbench --data sample --repo ORG/pbench --dry-run
    """
    from bench_datasets.hub.datasets import publish_dataset as publish

    if with_images and labels_only:
        text = "images that are not read cannot be sent; leave it or --with-images out"
        raise typer.BadParameter(text, param_hint="'--labels-only'")
    if with_images and not dry_run:
        _ask(_warning(benchmark, repo, data), yes)
    with waits(), working("building and sending the dataset" if not dry_run else "building the dataset"):
        done = publish(
            benchmark,
            repo,
            data=data,
            with_images=with_images,
            labels_only=labels_only,
            private=private,
            dry_run=dry_run,
        )
    tell([done], as_json)


def publish_metrics(
    org: Annotated[str, typer.Option("--org", metavar="ORG", help="A user or an organisation.")],
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK]...", callback=_names, help=f"Which: {', '.join(BENCHMARKS)}. Default: all."
        ),
    ] = None,
    private: Private = None,
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Publish metrics as Spaces, so that evaluate.load("ORG/pbench") gives them where this package is installed.

    Example: bench-datasets publish metrics pbench --org ORG
    """
    from bench_datasets.hub.metrics import publish_metrics as publish

    with waits(), working("sending the metrics" if not dry_run else "looking what is there"):
        done = publish(benchmarks or (), org=org, private=private, dry_run=dry_run)
    tell(done, as_json)


def _warning(benchmark: str, repo: str, data: str | None) -> str:
    """The warning about publishing images."""
    entry = get_benchmark(benchmark)
    source = data or entry.source.repo or f"${entry.source.env}"
    if data == "sample":
        return f"--with-images: the sample's own drawings (Apache-2.0) will be part of {repo}."
    return (
        f"--with-images: every image of {source} will be part of {repo}, under your name. The source's licence:"
        f" {entry.source.licence}. Go on only if you may pass the images on."
    )


def _ask(text: str, yes: bool) -> None:
    """Go on if the answer is yes.

    Raises:
        BenchError: it is not, or nobody is there to ask.
    """
    remark(text)
    if yes:
        return
    if not sys.stdin.isatty():
        raise BenchError("--with-images: nobody is here to be asked; add --yes if you may pass the images on")
    if not typer.confirm("Go on?", err=True):
        raise BenchError("nothing was sent")


def tell(done: Sequence[CommitResult | Plan], as_json: bool) -> None:
    """Print the changes that were made, or would be made."""
    if as_json:
        found = [{"dry_run": _is_plan(one), **dataclasses.asdict(one)} for one in done]
        echo(json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False))
        refuse_unseen(done)
        return
    from rich.text import Text

    if any(getattr(one, "unseen", "") for one in done):
        remark("the Hub cannot be asked: below is what a first publication would send, compared with nothing")
    console = out()
    for one in done:
        if _is_plan(one):
            for line in str(one).splitlines():
                shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
                console.print(Text(shown, style=_style(line)), soft_wrap=True)
            continue
        result: Any = one
        what = f"{len(result.paths)} files" if result.paths else "nothing new: all of it is there"
        console.print(Text(f"{result.repo_type} {result.repo_id}: {what}"), soft_wrap=True)
        console.print(Text(result.url, style="dim"), soft_wrap=True)
    refuse_unseen(done)


def refuse_unseen(done: Sequence[CommitResult | Plan]) -> None:
    """Fail if the printed plan could not be compared with the repo's current state.

    Raises:
        BenchError: it could not; the message says why.
    """
    unseen = next((reason for one in done if (reason := getattr(one, "unseen", ""))), None)
    if unseen is not None:
        raise BenchError(f"could not compare with the Hub: {unseen}")


def _is_plan(one: CommitResult | Plan) -> bool:
    return hasattr(one, "changes")


def _style(line: str) -> str:
    """Added lines of a diff green, removed ones red."""
    if line.startswith("+") and not line.startswith("+++"):
        return "green"
    return "red" if line.startswith("-") and not line.startswith("---") else ""
