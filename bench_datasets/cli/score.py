"""`score`: a model's predictions against the truth, and the two files of a run."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets._util.cpus import usable_cpus
from bench_datasets.benchmark import get_benchmark
from bench_datasets.cli import options
from bench_datasets.cli.console import out, progress, remark, working
from bench_datasets.faults import BenchError

if TYPE_CHECKING:
    from bench_datasets.results.result import Result


def score(
    context: typer.Context,
    benchmark: options.BenchmarkName,
    predictions: options.Predictions,
    data: options.Data = None,
    split: options.Split = "test",
    protocol: options.Protocol = None,
    folder: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Write scores.parquet and result.json there; else only print."),
    ] = None,
    missing: options.Missing = "error",
    on_fault: options.OnFault = "stop",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Score N rows only; the result is then partial.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Numbers for each value of it, too; with --limit, N rows of each. Repeatable.",
        ),
    ] = None,
    draws: options.Draws = 10_000,
    seed: options.Seed = 0,
    boundary: Annotated[
        bool, typer.Option("--boundary", help="Compare outlines too: boundary IoU and boundary F.")
    ] = False,
    num_proc: Annotated[
        int | None, typer.Option("--num-proc", metavar="N", min=1, help="Processes to score with.")
    ] = None,
    ray: Annotated[
        bool,
        typer.Option(
            "--ray", help="Score on Ray, at $RAY_ADDRESS or here: --data and --predictions are Parquet for every node."
        ),
    ] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Stream the truth; no cache is built.")] = False,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Score part I of N (from 0) into --out; `merge` joins the parts."),
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="20,50,100", help="PVSG: ranks up to which triplets count.")
    ] = None,
    oracle: Annotated[
        str | None,
        typer.Option("--oracle", metavar="tubes|relations", help="PVSG: take these from the truth: what if?"),
    ] = None,
    engine: options.Engine = None,
    threads: options.Threads = None,
    format: options.Format = None,
    every: options.Every = False,
    as_json: options.Json = False,
) -> None:
    """Score predictions. Reads label columns alone: no image is fetched to make a number.

    Example: bench-datasets score pbench --data sample --predictions demo/pbench/careful.jsonl --out run
    """
    from bench_datasets.cli.predictions_option import read_answers
    from bench_datasets.cli.ray import score_there
    from bench_datasets.cli.tables import show_run
    from bench_datasets.execution import score_shard, scoring_in_parts
    from bench_datasets.masks import using_engine
    from bench_datasets.results.run_files import write_run
    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.hints import explain_near_zero
    from bench_datasets.scoring.prepare import make_plan

    chosen = options.protocol_of(benchmark, protocol)
    kind = options.format_of(benchmark, format)
    wanted, level = options.split_of(benchmark, split)
    columns = list(dict.fromkeys(by or ()))
    sliced = _slices(benchmark, columns, limited=limit is not None)
    ranks = options.ranks_of(benchmark, k)
    part = options.shard_of(shard)
    if part is not None and folder is None:
        raise typer.BadParameter("a part needs a folder to be written to: give --out", param_hint="'--shard'")
    if folder is not None:
        _writable(Path(folder))
        if part is None:
            context.with_resource(_only_run(Path(folder)))
    if ray:
        beside = {
            "--split": split != "test", "--limit": limit, "--num-proc": num_proc, "--stream": stream, "--shard": part,
            "--format": format, "--threads": threads is not None,
        }  # fmt: skip
        scores = score_there(
            benchmark, predictions, data, folder, beside=beside, protocol=chosen, missing=missing, on_fault=on_fault,
            boundary=boundary, oracle=oracle, engine=engine,
        )  # fmt: skip
        result = summarize(benchmark, scores, by=sliced, draws=draws, seed=seed, **ranks)
        _tell_of_earlier(Path(str(folder)), result)
        show_run(result, write_run(scores, result, str(folder)), as_json=as_json, every=every, by=sliced)
        return
    threads = threads or max(1, usable_cpus() // (num_proc or 1))
    with using_engine(engine, threads):
        answers = read_answers(benchmark, predictions, kind, data, validate=False)
        with working("reading the truth"):
            truth, answers = part_of(benchmark, answers, data, wanted, level, limit, columns, stream=stream)

    def read_again() -> Any:
        answers = read_answers(benchmark, predictions, kind, data)
        return part_of(benchmark, answers, data, wanted, level, limit, columns, stream=stream)[1]

    with progress():
        plan = make_plan(
            benchmark, truth, answers, chosen, missing=missing, on_fault=on_fault, boundary=boundary, oracle=oracle,
            engine=engine, threads=threads, whole=limit is None and level is None, num_proc=num_proc,
            read_again=read_again,
        )  # fmt: skip
        if part is not None and folder is not None:
            file = score_shard(plan, *part, folder, num_proc)
            out().print(
                f"wrote {file}; when all {part[1]} are there: bench-datasets merge {folder} --out DIR", markup=False
            )
            return
        with contextlib.ExitStack() as parts:
            scores = (
                parts.enter_context(scoring_in_parts(plan, folder, num_proc))
                if folder is not None
                else plan.finish(plan.score(plan.everything, num_proc))
            )
            with working("summing up"):
                result = summarize(benchmark, scores, by=sliced, draws=draws, seed=seed, **ranks)
            if folder is not None:
                _tell_of_earlier(Path(folder), result)
            files = write_run(scores, result, folder) if folder is not None else ()
    show_run(result, files, as_json=as_json, every=every, by=sliced)
    for cause in explain_near_zero(result, plan):
        remark(f"hint: {cause}")


def part_of(
    benchmark: str,
    answers: Any,
    data: str | None,
    split: str,
    level: str | None,
    limit: int | None = None,
    by: Sequence[str] = (),
    *,
    stream: bool = False,
) -> tuple[Any, Any]:
    """The truth rows that were asked for and the predictions for them.

    Args:
        benchmark: its name.
        answers: all predictions.
        data: the truth's root.
        split: of the builder.
        level: the one part of the split that is wanted, or None.
        limit: rows to take, or None.
        by: columns by whose values they are taken.
        stream: whether to stream the truth.
    """
    from bench_datasets.cli.subset import mark_strangers, restrict, take
    from bench_datasets.data import open_truth

    truth = open_truth(benchmark, data, split=split, streaming=stream)
    if level is None and limit is None:
        return truth, answers
    metric = get_benchmark(benchmark)
    if limit is not None:
        names = [name for name in options.flat_columns(truth.features.arrow_schema) if name in metric.truth_columns]
        for column in by:
            options.one_of(column, names, "--by")
    part = take(truth, metric, level=level, limit=limit, by=by if limit else ())
    # Where predictions bear the rows' own names, those for rows that were not taken are told apart by the pairing.
    return part.rows, restrict(answers, part) if metric.parts else mark_strangers(answers, part)


def _slices(benchmark: str, by: Sequence[str], *, limited: bool) -> list[str]:
    """The columns to slice the result by; with a limit, columns of the truth that no score row has are left out."""
    from bench_datasets.scoring.score import score_features

    names = ["count", "position", *options.flat_columns(score_features(benchmark).arrow_schema)]
    if not limited:
        for column in by:
            options.one_of(column, names, "--by")
    return [column for column in by if column in names]


def _tell_of_earlier(folder: Path, result: Result) -> None:
    """Say so where a run of other inputs is about to be overwritten."""
    from bench_datasets.results.result import Result
    from bench_datasets.results.run_files import RESULT

    if not (folder / RESULT).is_file():
        return
    try:
        before = Result.load(folder)
    except BenchError:
        remark(f"{folder}: a {RESULT} that can't be read is overwritten")
        return

    def inputs(one: Result) -> dict[str, Any]:
        return {
            "benchmark": one.benchmark,
            "protocol": f"{one.protocol.get('name')}@{one.protocol.get('version')}",
            "truth": one.dataset.get("content_sha256"),
            "predictions": one.predictions.get("sha256"),
        }

    old, new = inputs(before), inputs(result)
    differ = [name for name in new if old[name] != new[name]]
    if differ:
        what = f"{before.benchmark}, {before.protocol.get('name')}, made {before.created}"
        remark(f"{folder}: an earlier run ({what}) of another {' and '.join(differ)} is overwritten")


@contextlib.contextmanager
def _only_run(folder: Path) -> Iterator[None]:
    """Hold the folder from the start, so that a second run into it ends before it has read anything.

    Raises:
        BenchError: another process is scoring into the folder.
    """
    from bench_datasets._util.locks import alone

    held = folder / ".scoring"
    with alone(held, "a scoring into this folder"):
        try:
            yield
        finally:
            shutil.rmtree(held, ignore_errors=True)


def _writable(folder: Path) -> None:
    """Make the folder now, so that nothing is scored for a place that cannot be written.

    Raises:
        BenchError: it is a file.
        OSError: it cannot be made or written.
    """
    if folder.exists() and not folder.is_dir():
        raise BenchError(f"--out: expected a folder, found the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
