"""`convert`: other people's annotations into the layouts that the benchmarks are read from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, remark, working
from bench_datasets.cli.repeated_options import Once

app = typer.Typer(no_args_is_help=True, help="Turn other annotations into a benchmark's own layout.")


@app.callback()
def _group() -> None:
    """Turn other annotations into a benchmark's own layout."""


@app.command("refcoco", cls=Once)
def refcoco(
    instances: Annotated[str, typer.Option("--instances", metavar="FILE", help="COCO's instances.json.")],
    refs: Annotated[str, typer.Option("--refs", metavar="FILE", help="refs(*).json or refs(*).p, or their folder.")],
    to: Annotated[str, typer.Option("--out", metavar="FILE", help="The manifest to write, like data/test.jsonl.")],
    split: Annotated[
        str | None, typer.Option("--split", metavar="S", help="The refs' split to take: train, val, testA, ...")
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option("--split-by", metavar="WHO", help="Whose refs, where --refs is a folder: unc, umd, ..."),
    ] = None,
    images: Annotated[
        str, typer.Option("--images", metavar="DIR", help="Folder of the images, relative to the manifest's.")
    ] = "images",
    as_json: options.Json = False,
) -> None:
    """Write an InstanceBench manifest from RefCOCO's refs.

    RefCOCO has no roles and no operations. Roles are guessed from the sentences' order, operations from their words.

    A prediction names a sentence by its expression_id: refcoco-<ref_id>-<sent_id>.

    `score instancebench --data data` reads the file that the example writes.

    Example: bench-datasets convert refcoco --instances instances.json --refs refs.p --split val --out data/test.jsonl
    """
    with working("converting"):
        done = _converter("refcoco")(instances, refs, to, split=split, split_by=split_by, images=images)
    if as_json:
        counts = {"left_out": done.left_out, "other_splits": done.other_splits, "noted": done.noted}
        found = {"path": done.path, "sets": done.sets, "expressions": done.expressions, **counts}
        echo(json.dumps(found, indent=2))
        return
    out().print(f"wrote {done.path}: {done.sets} sets, {done.expressions} expressions", markup=False, soft_wrap=True)
    for line in done.lines():
        remark(line)


@app.command("coco", cls=Once)
def coco(
    instances: Annotated[str, typer.Option("--instances", metavar="FILE", help="COCO's instances.json.")],
    to: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder to write into.")],
    captions: Annotated[
        str | None,
        typer.Option(
            "--captions",
            metavar="FILE",
            help="Captions that name their annotations (annotation_ids or boxes), or refs of RefCOCO or gRefCOCO.",
        ),
    ] = None,
    split: Annotated[str | None, typer.Option("--split", metavar="S", help="The captions' split to take.")] = None,
    images: Annotated[
        str | None, typer.Option("--images", metavar="DIR", help="Folder of the images; without it none are written.")
    ] = None,
    level: Annotated[str, typer.Option("--level", metavar="L", help="PBench level to write the rows as.")] = "level_0",
    as_json: options.Json = False,
) -> None:
    """Write ground truth of PBench from COCO annotations: one row per image and category, or per caption.

    A category's name is the expression. Its annotations in the image are the masks.

    Rows with a crowd region or an invalid mask are left out and counted.

    Predictions name a row by its id, a number from 0 in the order of the file.

    Example: bench-datasets convert coco --instances instances.json --out own
    """
    with working("converting"):
        done = _converter("coco")(instances, to, captions=captions, split=split, images=images, level=level)
    if as_json:
        counts = {"left_out": done.left_out, "noted": done.noted}
        echo(json.dumps({"path": done.path, "rows": done.rows, "masks": done.masks, **counts}, indent=2))
        return
    out().print(f"wrote {done.path}: {done.rows} rows, {done.masks} masks", markup=False, soft_wrap=True)
    for line in done.lines():
        remark(line)


def _converter(name: str) -> Callable[..., Any]:
    """The function of the benchmark that converts these annotations."""
    return next(found[name] for entry in BENCHMARKS.values() if name in (found := entry.converters()))
