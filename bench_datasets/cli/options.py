"""Values that options take: checked before anything is read, with the nearest name where one was misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.scoring.options import MISSING, ON_FAULT


def one_of(value: str, allowed: Iterable[str], hint: str) -> str:
    """The value, if it is allowed.

    Args:
        value: what was given.
        allowed: what may be.
        hint: the option's name.

    Raises:
        typer.BadParameter: it is none of those; the message says which is nearest.

    Example:
        >>> one_of("card", ["released", "card"], "--protocol")
        'card'
    """
    names = list(allowed)
    if value in names:
        return value
    near = difflib.get_close_matches(value.lower(), names, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise typer.BadParameter(f"{value!r} is none of {', '.join(names)}.{guess}", param_hint=f"'{hint}'")


def _benchmark(value: str) -> str:
    return one_of(value, BENCHMARKS, "BENCHMARK")


def _missing(value: str) -> str:
    return one_of(value, MISSING, "--missing")


def _on_fault(value: str) -> str:
    return one_of(value, ON_FAULT, "--on-fault")


def protocol_of(benchmark: str, value: str | None) -> str:
    """The protocol's name, the benchmark's default for None."""
    names = BENCHMARKS[benchmark].protocols
    return next(iter(names)) if value is None else one_of(value, names, "--protocol")


def split_of(benchmark: str, value: str) -> tuple[str, str | None]:
    """The split to load and the part (PBench: the level) to keep, or None for all."""
    base, bracket, rest = value.partition("[")
    parts = BENCHMARKS[benchmark].source.rows
    more = BENCHMARKS[benchmark].more_splits
    one_of(base, dict.fromkeys(("test", *parts, *more)), "--split")
    if base == "test" or not BENCHMARKS[benchmark].parts:
        return more.get(base, base) + bracket + rest, None
    if bracket:
        raise typer.BadParameter(f"{base!r} takes no [{rest}; take rows with --limit", param_hint="'--split'")
    return "test", base


def format_of(benchmark: str, value: str | None) -> str | None:
    """The format's name, or None for one that is to be recognised."""
    if value is None:
        return None
    return one_of(value, BENCHMARKS[benchmark].prediction_form().readers, "--format")


def _data(value: str | None) -> str | None:
    if value == "":
        raise typer.BadParameter("expected a folder, a URL or 'sample', got nothing", param_hint="'--data'")
    return value


BenchmarkName = Annotated[
    str,
    typer.Argument(
        metavar="BENCHMARK",
        callback=_benchmark,
        autocompletion=lambda: list(BENCHMARKS),
        help=f"Which benchmark: {', '.join(BENCHMARKS)}.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="D",
        callback=_data,
        help="Ground truth: a folder, any fsspec URL, hf://datasets/ORG/NAME, or 'sample' for the built-in sample."
        " Default: the folder that the environment variable names, else the published dataset.",
    ),
]
Predictions = Annotated[
    str,
    typer.Option("--predictions", metavar="P", help="The model's output: a file or folder in any format, or a URL."),
]
Split = Annotated[
    str,
    typer.Option(
        "--split",
        metavar="S",
        help="'test'; or 'train' where the ground truth has it (InstanceBench also 'val'); or one level of PBench"
        " (level_0, ..., dense).",
    ),
]
Protocol = Annotated[str | None, typer.Option("--protocol", metavar="X", help="How to score; `info` lists them.")]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="|".join(MISSING),
        callback=_missing,
        help="A row without a prediction: an error, or an empty prediction.",
    ),
]
OnFault = Annotated[
    str,
    typer.Option(
        "--on-fault",
        metavar="HOW",
        callback=_on_fault,
        help="What to do with a faulty row. stop: end with an error. skip-and-report: leave the row out and count it."
        " count-as-wrong: count its prediction as wrong. The last two make the result not comparable.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="F",
        help="Format of the predictions: jsonl, falcon, coco, ... Default: recognised from the file.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed.")]
Draws = Annotated[
    int, typer.Option("--draws", metavar="N", min=0, help="Number of bootstrap draws; 0 for no confidence intervals.")
]
Every = Annotated[bool, typer.Option("--every", "--all", help="Print every metric and table, not only the main ones.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def flat_columns(schema: Any) -> list[str]:
    """The names of an Arrow schema's columns that hold one value a row."""
    import pyarrow as pa

    return [field.name for field in schema if not pa.types.is_nested(field.type)]


def shard_of(value: str | None) -> tuple[int, int] | None:
    """Which part of how many, from `I/N`.

    Example:
        >>> shard_of("0/7")
        (0, 7)
    """
    if value is None:
        return None
    index, slash, count = value.partition("/")
    if not slash or not index.isdigit() or not count.isdigit() or int(index) >= int(count):
        raise typer.BadParameter(f"expected I/N with I from 0 to N - 1, got {value!r}", param_hint="'--shard'")
    return int(index), int(count)


def ranks_of(benchmark: str, value: str | None) -> dict[str, Any]:
    """Ranks for `summarize`, from a list with commas; nothing where none were given."""
    if value is None:
        return {}
    if "k" not in BENCHMARKS[benchmark].options:
        raise typer.BadParameter(f"{benchmark} has no ranked triplets", param_hint="'--k'")
    ranks = [part.strip() for part in value.split(",")]
    if not all(part.isdigit() and int(part) > 0 for part in ranks):
        raise typer.BadParameter(f"expected ranks from 1, like 20,50,100, got {value!r}", param_hint="'--k'")
    return {"k": tuple(map(int, ranks))}


def _engine(value: str | None) -> str | None:
    return value if value is None else one_of(value, ("numba", "pycocotools"), "--engine")


Engine = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="E", callback=_engine, help="numba or pycocotools. Same numbers. Default: the faster one."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Threads per process of the numba engine. Default: all usable processors."
    ),
]
